"""`gossamer pub`: one event from arguments, or many from JSON lines."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, aclosing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final, TextIO

import trio
from attrs import define, field

from gossamer.client.errors import unwrapped
from gossamer.client.frames import BROKER
from gossamer.client.link import LocalAddress
from gossamer.client.results import LastMark, Outcome
from gossamer.node.commands.clients.event_text import (
    Refusals,
    event_of_arguments,
    event_of_line,
    write_text,
)
from gossamer.node.commands.clients.table_events import opened_table
from gossamer.node.commands.folder import address_of, ask
from gossamer.node.errors import (
    ConfigurationError,
    EventInputError,
    NodeError,
    PublicationUncertainError,
    TransportBroken,
    UnacknowledgedError,
)
from gossamer.node.local.client import LocalClient, open_client
from gossamer.protocol.content.limits import MAX_EVENTS, MAX_PAYLOAD_BYTES
from gossamer.protocol.content.schema import Schema
from gossamer.protocol.content.values import Payload, Value
from gossamer.protocol.kernel.errors import ContentError, ProtocolError

EXIT_OK: Final = 0
# What was published may be lost, or it is not known whether it was published.
EXIT_UNACKNOWLEDGED: Final = 1
EXIT_BAD_INPUT: Final = 2

STDIN: Final = "-"
LINE_BYTES: Final = 1 << 18
CHUNK_BYTES: Final = 1 << 16
# Batches on their way at a time: one being published, one travelling, one being made.
AHEAD: Final = 3


@define
class Published:
    """What came of the lines so far.

    Attributes:
        events: how many were published and acknowledged.
        unacknowledged: how many were published, and not acknowledged in time.
        refused: how many were not published, since they are no events or the node refused them.
        alone: of those acknowledged, how many were so by the node alone, out of reach of others.
        started_at: monotonic seconds.
    """

    events: int = 0
    unacknowledged: int = 0
    refused: int = 0
    alone: int = 0
    started_at: float = 0.0

    def summary(self) -> str:
        """For people, at the end."""
        seconds = max(time.monotonic() - self.started_at, 1e-6)
        rate = self.events / seconds
        text = f"published {self.events} events in {seconds:.2f} s, {rate:,.0f} a second"
        if self.unacknowledged:
            text += f"; {self.unacknowledged} more were not acknowledged and may be lost"
        if self.refused:
            lines = "1 line was" if self.refused == 1 else f"{self.refused} lines were"
            text += f"; {lines} not published"
        return text


@define
class Report:
    """Tells what came of each line as soon as that is known.

    Attributes:
        out: gets number and id of each line that was acknowledged.
        err: gets a sentence about each of the others, but for lines that were not published after
            the first of these: they are counted by kind.
        show: told how many events were acknowledged.
        done: the numbers.
    """

    out: TextIO
    err: TextIO
    show: Callable[[int], None] = lambda _: None
    done: Published = field(factory=Published)
    _refusals: Refusals = field(factory=Refusals)
    _under_way: set[int] = field(factory=set)
    _last: int = 0

    @property
    def exit_code(self) -> int:
        """Of the command, where it came to its end."""
        if self.done.refused:
            return EXIT_BAD_INPUT
        return EXIT_UNACKNOWLEDGED if self.done.unacknowledged or self._under_way else EXIT_OK

    def sending(self, lines: Sequence[int]) -> None:
        """These lines are on their way."""
        self._under_way.update(lines)

    def sent(self, lines: Sequence[int], outcomes: Sequence[Outcome]) -> None:
        """What came of lines that were on their way."""
        self._under_way.difference_update(lines)
        found = list(zip(lines, outcomes, strict=True))
        acknowledged = [f"{line} {one.id}\n" for line, one in found if one.error is None]
        self.done.events += len(acknowledged)
        if acknowledged:
            self._print("".join(acknowledged))
        for line, one in found:
            if isinstance(one.error, UnacknowledgedError):
                self.done.unacknowledged += 1
                self._say(f"line {line}: {one.error}")
            elif one.error is not None:
                self.refused(EventInputError(f"line {line}", str(one.error)))
        self.show(self.done.events)

    def not_sent(self, lines: Sequence[int], error: NodeError | ProtocolError) -> None:
        """Lines of which it is known that nothing came of them."""
        self._under_way.difference_update(lines)
        for line in lines:
            self.refused(EventInputError(f"line {line}", f"not published: {error}"))

    def refused(self, error: EventInputError) -> None:
        """A line was not published."""
        self.done.refused += 1
        sentence = self._refusals.take(error)
        if sentence is not None:
            self._say(sentence)

    def read(self, line: int) -> None:
        """Lines up to this one were read."""
        self._last = line

    def end(self, *, early: bool) -> None:
        """Say how it went; ``early`` if there may be lines that were not read."""
        for sentence in self._refusals.summary():
            self._say(sentence)
        if self._under_way:
            which = _ranges(sorted(self._under_way))
            self._say(f"{which}: it is not known whether they were published")
        if early and self._last:
            self._say(f"nothing after line {self._last} was published")
        self._say(self.done.summary())

    def _say(self, sentence: str) -> None:
        with suppress(BrokenPipeError):
            print(f"gossamer: {sentence}", file=self.err, flush=True)

    def _print(self, text: str) -> None:
        # Whoever reads the ids may want no more of them; the events are still to be published.
        write_text(self.out, text)


def _ranges(numbers: Sequence[int]) -> str:
    """Such as "lines 3-7, 9", for ascending numbers."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return "lines " + ", ".join(f"{a}-{b}" if b > a else f"{a}" for a, b in found)


def publish_one(
    folder: Path | None,
    arguments: Sequence[str],
    name: str | None = None,
    payload: Payload | None = None,
    last: LastMark | None = None,
) -> tuple[str, bool]:
    """Publish the event that ``key=value`` arguments describe; wait until others hold it.

    Returns its id, and whether the node alone holds it since it reaches nobody.

    Args:
        folder: of the node.
        arguments: the event.
        name: of the client, whose advertisements have to allow it at a broker.
        payload: what the event carries.
        last: says that it is the last of a value.

    Raises:
        UnacknowledgedError: nobody said in time that they do.
        EventInputError: they describe none.
        NodeError: no node runs there, or it refuses.
    """

    async def work(client: LocalClient) -> tuple[str, bool]:
        _check_name(client, name)
        values = event_of_arguments(client.schema, arguments)
        id_ = await client.publish(values, payload=payload, last=last)
        return id_, client.alone > 0

    return ask(address_of(folder), work, name, aside=True)


def read_payload(source: str, content_type: str) -> Payload:
    """The payload in a file, or in standard input.

    Raises:
        ConfigurationError: it cannot be read.
        EventInputError: it is none.
    """
    with _opened(source, "--payload") as file:
        data = b""
        while len(data) <= MAX_PAYLOAD_BYTES and (chunk := os.read(file, CHUNK_BYTES)):
            data += chunk
    try:
        return Payload(data, content_type)
    except ContentError as error:
        raise EventInputError(source, str(error)) from None


def publish_lines(folder: Path | None, source: str, name: str | None = None) -> tuple[int, int]:
    """Publish the events of a file of JSON lines, or of standard input; tell how it went.

    Number and id of each line that was acknowledged go to standard output as soon as they are
    known, sentences about the others to standard error.

    Returns the exit code: 0 if all were acknowledged, `EXIT_BAD_INPUT` if there were lines that
    are no events or that the node refused, else `EXIT_UNACKNOWLEDGED`. And how many events the
    node alone holds.

    Raises:
        NodeError: no node runs there, or it refuses this client.
    """
    return _publish_from(_opened(source, "--jsonl"), folder, name)


def publish_table(
    folder: Path | None, workload: Path, columns: Sequence[str], name: str | None = None
) -> tuple[int, int]:
    """Publish the events of a workload, as `publish_lines` does those of a file.

    Raises:
        EventInputError: the workload has no such events.
        NodeError: as of `publish_lines`.
    """
    return _publish_from(opened_table(workload, columns), folder, name)


def _publish_from(
    opened: AbstractContextManager[int], folder: Path | None, name: str | None
) -> tuple[int, int]:
    """Publish what is read from an open file; see `publish_lines`."""
    address = address_of(folder)
    with opened as file, _progress() as show, unwrapped():
        report = Report(sys.stdout, sys.stderr, show)
        report.done.started_at = time.monotonic()
        whole = False
        try:
            trio.run(partial(publish_all, address, file, report, name))
            whole = True
        except TransportBroken as error:
            print(f"gossamer: {error}", file=sys.stderr)
        finally:
            report.end(early=not whole)
    code = report.exit_code if whole else max(report.exit_code, EXIT_UNACKNOWLEDGED)
    return code, report.done.alone


async def publish_all(
    address: LocalAddress, file: int, report: Report, name: str | None = None
) -> None:
    """Publish every line of the open ``file`` that is an event, several batches at a time.

    Raises:
        TransportBroken: the node went away.
        NodeError: as of `publish_lines`.
    """
    room = trio.Semaphore(AHEAD)
    failures: list[Exception] = []

    async def publish(lines: list[int], events: list[dict[str, Value]]) -> None:
        report.sending(lines)
        try:
            report.sent(lines, await client.publish_each(events))
        except PublicationUncertainError as error:
            failures.append(error)
            nursery.cancel_scope.cancel()
        except (NodeError, ProtocolError) as error:
            report.not_sent(lines, error)
            if isinstance(error, TransportBroken):
                failures.append(error)
                nursery.cancel_scope.cancel()
        report.done.alone = client.alone
        room.release()

    async with (
        open_client(address, name, aside=True, patience_s=0) as client,
        aclosing(_batches(file)) as batches,
        trio.open_nursery() as nursery,
    ):
        _check_name(client, name)
        async for batch in batches:
            lines, events = _events_of(batch, client.schema, report)
            if events:
                await room.acquire()
                nursery.start_soon(publish, lines, events)
            report.read(batch[-1][0])
    if failures:
        raise failures[0]


def _events_of(
    batch: Sequence[tuple[int, bytes | EventInputError]], schema: Schema | None, report: Report
) -> tuple[list[int], list[dict[str, Value]]]:
    """The lines that are events, and those events; the others are reported."""
    lines, events = [], []
    for number, line in batch:
        try:
            if isinstance(line, EventInputError):
                raise line
            if line.strip():
                events.append(event_of_line(schema, line, number))
                lines.append(number)
        except EventInputError as error:
            report.refused(error)
    return lines, events


def _check_name(client: LocalClient, name: str | None) -> None:
    """A broker lets only those publish who have advertised, which takes a name."""
    if client.role == BROKER and name is None:
        expected = "the client that has advertised, as this node is a broker"
        raise ConfigurationError("", "--name", name, expected, "missing")


async def _batches(
    file: int,
) -> AsyncGenerator[list[tuple[int, bytes | EventInputError]], None]:
    """Lines as they come with their numbers from 1, at most `MAX_EVENTS` of them together.

    A line that is too long comes as an error, as does the place where reading failed.
    """
    rest = b""
    last, too_long, data = 0, False, b"begun"
    while data:
        try:
            # In a thread that may be left behind: nobody can interrupt reading from a terminal.
            data = await trio.to_thread.run_sync(os.read, file, CHUNK_BYTES, abandon_on_cancel=True)
        except OSError as error:
            reason = f"cannot be read ({error.strerror or error}), nor what follows"
            yield [(last + 1, EventInputError(f"line {last + 1}", reason))]
            return
        if not (data or rest or too_long):
            return
        parts = (rest + data).split(b"\n")
        rest = parts.pop() if data else b""
        lines: list[tuple[int, bytes | EventInputError]] = []
        for number, line in enumerate(parts, last + 1):
            if too_long or len(line) > LINE_BYTES:
                reason = f"longer than {LINE_BYTES} bytes"
                lines.append((number, EventInputError(f"line {number}", reason)))
                too_long = False
            else:
                lines.append((number, line))
        last += len(parts)
        if len(rest) > LINE_BYTES:  # it is left out up to its end
            too_long, rest = True, b""
        for first in range(0, len(lines), MAX_EVENTS):
            yield lines[first : first + MAX_EVENTS]


@contextmanager
def _opened(source: str, flag: str) -> Iterator[int]:
    if source == STDIN:
        if sys.stdin is None:
            raise ConfigurationError("", flag, source, "standard input to be open", "closed")
        yield sys.stdin.fileno()
        return
    try:
        file = os.open(source, os.O_RDONLY)
    except OSError as error:
        found = f"unreadable ({error.strerror or error})"
        raise ConfigurationError("", flag, source, "a file, or -", found) from None
    try:
        yield file
    finally:
        os.close(file)


@contextmanager
def _progress() -> Iterator[Callable[[int], None]]:
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
