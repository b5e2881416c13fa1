"""`gossamer pub`: one event from arguments, or many from JSON lines."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import trio
from attrs import define

from gossamer.node.commands.event_text import event_of_arguments, event_of_line
from gossamer.node.commands.folder import address_of
from gossamer.node.errors import (
    ConfigurationError,
    EventInputError,
    NodeError,
    UnacknowledgedError,
)
from gossamer.node.local.address import LocalAddress
from gossamer.node.local.client import LocalClient, open_client
from gossamer.node.local.frames import BROKER, MAX_EVENTS
from gossamer.node.unwrap import unwrapped
from gossamer.protocol.content.values import Value
from gossamer.protocol.errors import ProtocolError

STDIN: Final = "-"
LINE_BYTES: Final = 1 << 18
CHUNK_BYTES: Final = 1 << 16
# Batches on their way at a time: one being published, one travelling, one being made.
AHEAD: Final = 3


@define
class Published:
    """What was published so far.

    Attributes:
        events: how many were published and acknowledged.
        unacknowledged: how many were published, and not acknowledged in time.
        alone: of those acknowledged, how many were so by the node alone, out of reach of others.
        started_at: monotonic seconds.
    """

    events: int = 0
    unacknowledged: int = 0
    alone: int = 0
    started_at: float = 0.0

    def summary(self) -> str:
        """For people, at the end."""
        seconds = max(time.monotonic() - self.started_at, 1e-6)
        rate = self.events / seconds
        text = f"published {self.events} events in {seconds:.2f} s, {rate:,.0f} a second"
        if self.unacknowledged:
            text += f"; {self.unacknowledged} more were not acknowledged and may be lost"
        return text


def publish_one(
    folder: Path | None, arguments: Sequence[str], name: str | None = None
) -> tuple[str, bool]:
    """Publish the event that ``key=value`` arguments describe; wait until others hold it.

    Returns its id, and whether the node alone holds it since it reaches nobody.

    Args:
        folder: of the node.
        arguments: the event.
        name: of the client, whose advertisements have to allow it at a broker.

    Raises:
        UnacknowledgedError: nobody said in time that they do.
        EventInputError: they describe none.
        NodeError: no node runs there, or it refuses.
    """

    async def run(address: LocalAddress) -> tuple[str, bool]:
        async with open_client(address, name, aside=True) as client:
            _check_name(client, name)
            id_ = await client.publish(event_of_arguments(client.schema, arguments))
            return id_, client.alone > 0

    with unwrapped():
        return trio.run(run, address_of(folder))


def publish_lines(folder: Path | None, source: str, name: str | None = None) -> Published:
    """Publish the events of a file of JSON lines, or of standard input; tell how it went.

    ``name`` is the client's, as of `publish_one`.

    Raises:
        EventInputError: a line is no event; those before it may have been published.
        NodeError: no node runs there, or it refuses.
    """
    address = address_of(folder)
    done = Published(started_at=time.monotonic())
    with _opened(source) as file, _progress() as show, unwrapped():
        try:
            trio.run(partial(publish_all, address, file, done, show, name))
        finally:
            print(f"gossamer: {done.summary()}", file=sys.stderr)
    return done


async def publish_all(
    address: LocalAddress,
    file: int,
    done: Published,
    show: Callable[[int], None],
    name: str | None = None,
) -> None:
    """Publish every line of the open ``file``, several batches at a time."""
    room = trio.Semaphore(AHEAD)
    failures: list[Exception] = []

    async def publish(batch: list[dict[str, Value]]) -> None:
        try:
            ids = await client.publish_many(batch)
            done.events += len(ids)
        except UnacknowledgedError as error:
            done.events += error.published - len(error.events)
            done.unacknowledged += len(error.events)
        except (NodeError, ProtocolError) as error:
            failures.append(error)
            nursery.cancel_scope.cancel()
            return
        done.alone = client.alone
        show(done.events)
        room.release()

    async with (
        open_client(address, name, aside=True) as client,
        aclosing(_batches(file)) as batches,
        trio.open_nursery() as nursery,
    ):
        _check_name(client, name)
        number = 0
        async for lines in batches:
            batch = []
            for line in lines:
                number += 1
                if line.strip():
                    batch.append(event_of_line(client.schema, line, number))
            if batch:
                await room.acquire()
                nursery.start_soon(publish, batch)
    if failures:
        raise failures[0]


def _check_name(client: LocalClient, name: str | None) -> None:
    """A broker lets only those publish who have advertised, which takes a name."""
    if client.role == BROKER and name is None:
        expected = "the client that has advertised, as this node is a broker"
        raise ConfigurationError("", "--name", name, expected, "missing")


async def _batches(file: int) -> AsyncGenerator[list[bytes], None]:
    """Lines as they come, at most `MAX_EVENTS` of them together."""
    rest = b""
    number = 0
    while True:
        # In a thread that may be left behind: nobody can interrupt reading from a terminal.
        data = await trio.to_thread.run_sync(os.read, file, CHUNK_BYTES, abandon_on_cancel=True)
        lines = (rest + data).split(b"\n")
        rest = lines.pop() if data else b""
        if len(rest) > LINE_BYTES:
            place = f"line {number + len(lines) + 1}"
            raise EventInputError(place, f"longer than {LINE_BYTES} bytes")
        number += len(lines)
        for first in range(0, len(lines), MAX_EVENTS):
            yield lines[first : first + MAX_EVENTS]
        if not data:
            return


@contextmanager
def _opened(source: str) -> Iterator[int]:
    if source == STDIN:
        yield sys.stdin.fileno()
        return
    try:
        file = os.open(source, os.O_RDONLY)
    except OSError as error:
        found = f"unreadable ({error.strerror or error})"
        raise ConfigurationError("", "--jsonl", source, "a file, or -", found) from None
    try:
        yield file
    finally:
        os.close(file)


@contextmanager
def _progress() -> Iterator[Callable[[int], None]]:
    """Shows how many were published, where somebody is looking."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.completed:,} events"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("publishing", total=None)
        yield lambda count: progress.update(task, completed=count)
