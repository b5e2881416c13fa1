"""`gossamer advertise`, `unsub` and `batch`: what clients of a broker ask for and announce."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import trio
from attrs import frozen

from gossamer.client.errors import unwrapped
from gossamer.node.commands.clients.batch_text import Operation, read_batch
from gossamer.node.commands.folder import address_of
from gossamer.node.errors import CommandError, NodeError, TransportBroken
from gossamer.node.local.client import LocalClient, open_client
from gossamer.protocol.kernel.errors import ProtocolError

# Operations after which a bar is drawn anew.
SHOWN: Final = 100

# Of an operation that was under way when the connection or the command ended.
UNKNOWN: Final = "it is not known whether this was done"


@frozen(kw_only=True)
class Whose:
    """A client and one of its labels.

    Attributes:
        name: of the client.
        label: what it calls what it asks for or announces.
    """

    name: str
    label: str


def advertise(folder: Path | None, whose: Whose, filter_text: str) -> None:
    """Announce what a client will publish; returns once its broker has stored that.

    Raises:
        NodeError: no broker runs there, or it refuses.
    """
    _with_client(folder, whose.name, lambda one: one.advertise(whose.label, filter_text))


def unadvertise(folder: Path | None, whose: Whose) -> None:
    """Take an advertisement back; raises as `advertise` does."""
    _with_client(folder, whose.name, lambda one: one.unadvertise(whose.label))


def unsubscribe(folder: Path | None, whose: Whose) -> None:
    """Take a subscription back; raises as `advertise` does."""
    _with_client(folder, whose.name, lambda one: one.unsubscribe(whose.label))


def run_batch(folder: Path | None, name: str | None, file: Path) -> str:
    """Carry out the operations of a file; returns what was done, in words.

    Raises:
        CommandError: a line is no operation, and nothing was done; or the broker refused one, or
            went away, and those before it were done.
        NodeError: no broker runs there.
    """
    operations = read_batch(file)
    begun: list[Operation] = []

    async def run() -> str:
        async with open_client(address_of(folder), name, aside=True, patience_s=0) as client:
            with _progress(len(operations)) as show:
                await _carry_out(client, operations, file, begun, show)
        return f"done: {len(operations)} lines of {file}"

    try:
        with unwrapped():
            return trio.run(run)
    except KeyboardInterrupt:
        if begun:
            stopped = _stopped(file, begun[-1].line, UNKNOWN, len(begun) - 1)
            print(f"gossamer: {stopped}", file=sys.stderr)
        raise


async def _carry_out(
    client: LocalClient,
    operations: Sequence[Operation],
    file: Path,
    begun: list[Operation],
    show: Callable[[int], None],
) -> None:
    """Carry out operations; each is added to ``begun`` before."""
    for done, one in enumerate(operations):
        begun.append(one)
        try:
            await one.carry_out(client)
        except TransportBroken as error:
            raise _stopped(file, one.line, f"{error}; {UNKNOWN}", done) from None
        except (NodeError, ProtocolError) as error:
            raise _stopped(file, one.line, str(error), done) from None
        if done % SHOWN == 0:
            show(done)


def _stopped(file: Path, line: int, reason: str, done: int) -> CommandError:
    """An operation was refused, or interrupted; so many before it were carried out."""
    words = {0: "nothing was done", 1: "the operation before it was done"}
    before = words.get(done, f"the {done} operations before it were done")
    return CommandError(f"{file}, line {line}: {reason}; {before}")


def _with_client(
    folder: Path | None, name: str, work: Callable[[LocalClient], Awaitable[None]]
) -> None:
    async def run() -> None:
        async with open_client(address_of(folder), name, aside=True, patience_s=0) as client:
            await work(client)

    with unwrapped():
        trio.run(run)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None]]:
    """Shows how many were done, where somebody is looking and it takes a while."""
    if not sys.stderr.isatty() or total < SHOWN:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("operations", total=total)
        yield lambda done: progress.update(task, completed=done)
