"""The other end of `peer_processes`: does what standard input asks for, until that ends.

A request is a line of JSON, [name, arguments]; so is the answer, [true, result] or [false, why].
Nothing is imported but the standard library, as some stacks run in environments of their own.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, Protocol, TextIO


class Closeable(Protocol):
    """Whoever does what is asked for, by methods of these names; closed at the end."""

    async def close(self) -> None: ...


def describe(error: BaseException) -> str:
    """What went wrong, in one line; of several things that did, the first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}".splitlines()[0]


def answers_stream() -> TextIO:
    """Standard output for answers only: what libraries print goes to standard error."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return answers


async def serve(host: Closeable, read_line: Callable[[], Awaitable[str]], answers: TextIO) -> None:
    """Answer requests until there are no more, then part from all others."""
    while line := await read_line():
        name, arguments = json.loads(line)
        try:
            answer = [True, await getattr(host, name)(**arguments)]
        except Exception as error:
            answer = [False, describe(error)]
        print(json.dumps(answer), file=answers, flush=True)
    await host.close()


def run_on_trio(make: Callable[[Any, AsyncExitStack], Closeable]) -> None:
    """Serve in a loop of trio; what is made gets a nursery, and a stack that it closes."""
    import trio

    answers = answers_stream()

    async def read_line() -> str:
        return await trio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)

    async def work() -> None:
        async with trio.open_nursery() as nursery:
            await serve(make(nursery, AsyncExitStack()), read_line, answers)
            nursery.cancel_scope.cancel()

    gc.freeze()  # as a node does
    trio.run(work)
