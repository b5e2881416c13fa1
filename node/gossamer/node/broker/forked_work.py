"""Work on the memory of this process in a process of its own, while this one goes on.

The other process is a fork: it has all memory as it is at the instant at which it is begun, of
which the system copies what either changes, and an interpreter of its own. So this one is held for
as long as the system takes to make it, 2 to 5 ms for 100 MB, however long the work takes. It needs
no more than this process: it works out bytes, writes them to a pipe, and ends. All else that it
inherited it closes at once, so that no connection, port or lock outlives this process because of
it.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import traceback
import warnings
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from typing import Any, Final, NoReturn, Protocol

import trio

from gossamer.compiled.store import keep_compiled_code
from gossamer.node.errors import WorkApartError
from gossamer.node.monitoring.logs import log
from gossamer.protocol.brokers.core.effects import Compute
from gossamer.protocol.kernel.rules import use_compiled

Work = Callable[[], bytes]
"""What is to be worked out; it waits for nobody, and uses no socket or thread."""

# Bytes of what was worked out that are handed on at a time.
PORTION: Final = 1 << 18
# Between two attempts.
AGAIN_S: Final = 10.0
# What the other process says first.
_DONE: Final = b"+"
_FAILED: Final = b"-"
_FIRST_DESCRIPTOR: Final = 3
# The loop of this process goes before what nobody waits for.
_NICENESS: Final = 5


class Begun(Protocol):
    """Work that was begun."""

    def portions(self) -> AsyncGenerator[bytes, None]:
        """What was worked out, in portions of at most `PORTION` bytes; to be closed.

        Closed before its end, it ends the work as well.

        Raises:
            WorkApartError: the work failed, or its process was ended from outside.
        """


Apart = Callable[[Work], Begun]
"""Begin work on the memory as it is now."""


def in_a_process(work: Work) -> Begun:
    """Begin work in a process of its own; in this one where the system makes none."""
    try:
        return _Fork(work)
    except OSError as error:
        log.warning("no process can be made, the node stands still instead", cause=error.strerror)
        return in_this_process(work)


def in_this_process(work: Work) -> Begun:
    """Do work at once, which holds the loop for as long as it takes."""
    return _Done(work())


async def worked_out(effect: Compute, apart: Apart) -> Any:
    """What a broker wants to have worked out; tried again where the process for it is ended."""

    def work() -> bytes:
        if effect.pays_to_compile:
            keep_compiled_code()
        with use_compiled(effect.pays_to_compile):
            return pickle.dumps(effect.work())

    while True:
        try:
            async with aclosing(apart(work).portions()) as portions:
                found = b"".join([portion async for portion in portions])
            # From a copy of this very process, over a pipe that nobody else has.
            return pickle.loads(found)
        except WorkApartError as error:
            log.warning("what a broker needs is not worked out yet", cause=str(error))
            await trio.sleep(AGAIN_S)


class _Done:
    def __init__(self, data: bytes) -> None:
        self._data = data

    async def portions(self) -> AsyncGenerator[bytes, None]:
        for begin in range(0, len(self._data), PORTION):
            await trio.lowlevel.checkpoint()
            yield self._data[begin : begin + PORTION]


class _Fork:
    def __init__(self, work: Work) -> None:
        readable, writable = os.pipe()
        try:
            self._process = _forked()
        except BaseException:
            os.close(readable)
            os.close(writable)
            raise
        if not self._process:
            _work_and_end(work, writable)
        os.close(writable)
        self._stream = trio.lowlevel.FdStream(readable)

    async def portions(self) -> AsyncGenerator[bytes, None]:
        said = bytearray()
        done = ended = False
        try:
            while some := await self._stream.receive_some(PORTION):
                said += some
                if not done and said.startswith(_DONE):
                    done = True
                    del said[: len(_DONE)]
                while done and len(said) >= PORTION:
                    yield bytes(said[:PORTION])
                    del said[:PORTION]
            if done and said:
                yield bytes(said)
            ended = True
        finally:
            status = await self._end(kill=not ended)
        if said.startswith(_FAILED) and not done:
            raise WorkApartError(said[len(_FAILED) :].decode(errors="replace"))
        if status:
            code = os.waitstatus_to_exitcode(status)
            raise WorkApartError(f"its process ended with {code}, expected 0")

    async def _end(self, *, kill: bool) -> int:
        """Let the process go; returns how it ended."""
        with trio.CancelScope(shield=True):
            await self._stream.aclose()
            if kill:
                os.kill(self._process, signal.SIGKILL)
            # Giving a large memory back takes a while, in which the loop goes on.
            _, status = await trio.to_thread.run_sync(os.waitpid, self._process, 0)
        return status


def _forked() -> int:
    """As `os.fork`; other threads of this process do not exist in the new one.

    What they hold stays held there, which is why the interpreter warns. The new process takes no
    lock that they may have: it computes, and writes to a pipe.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _work_and_end(work: Work, writable: int) -> NoReturn:
    """What the new process does, without ever returning to what its parent was doing."""
    code = 1
    try:
        gc.disable()  # else all memory is copied
        _let_go_of_everything_but(writable)
        code = _do(work, writable)
    finally:
        os._exit(code)


def _do(work: Work, writable: int) -> int:
    with open(writable, "wb", closefd=False) as out:
        try:
            data = work()
        except BaseException:
            out.write(_FAILED + traceback.format_exc().encode())
            return 1
        out.write(_DONE)
        out.write(data)
    return 0


def _let_go_of_everything_but(writable: int) -> None:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to both
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in range(_FIRST_DESCRIPTOR):
        os.dup2(nothing, standard)
    os.closerange(_FIRST_DESCRIPTOR, writable)
    os.closerange(writable + 1, _most_descriptors())
    with suppress(OSError):
        os.nice(_NICENESS)


def _most_descriptors() -> int:
    most: Any = os.sysconf("SC_OPEN_MAX")
    return most if 0 < most < 1 << 31 else (1 << 31) - 1
