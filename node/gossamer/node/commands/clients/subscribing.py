"""`gossamer sub`: events as JSON lines, for as long as they are wanted."""

from __future__ import annotations

import fcntl
import io
import json
import math
import os
import re
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, TextIO

import trio
from attrs import frozen

from gossamer.client.client import Subscription
from gossamer.client.errors import unwrapped
from gossamer.client.frames import LAST, NEW, RETAINED
from gossamer.client.link import LocalAddress
from gossamer.client.links import CONNECTED
from gossamer.client.results import ReceivedEvent
from gossamer.node.commands.clients.event_text import line_of_event, write_text
from gossamer.node.commands.folder import address_of, ask
from gossamer.node.config.file import load
from gossamer.node.errors import EventInputError
from gossamer.node.local.client import LocalClient, open_client

# Events as files of JSON lines that appear whole: what `gossamer spark stream` follows.
#
#     FOLDER/SUBSCRIBER/subscription.json           what is subscribed to, and since when
#     FOLDER/SUBSCRIBER/SUBSCRIBER-<ns>-<pid>.jsonl  events, a line each
#
# A file is written under a hidden name and renamed when it is full or old enough, so that a reader
# never sees half of one. What a process that was killed has left is finished by the next one of the
# same subscriber; a line that it had not finished is dropped, as its event was not acknowledged.

SUBSCRIPTION_FILE: Final = "subscription.json"
_SUFFIX: Final = ".jsonl"
_PART: Final = ".part"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class EventFiles(io.TextIOBase):
    """A stream of lines that become files; text is one line or more, never part of one.

    Args:
        folder: of the files; made where it is not there.
        subscriber: whose events these are.
        every_s: age at which a file is finished, see `finish_old`.
        most: lines of a file.
        clock: Unix nanoseconds.

    Raises:
        EventInputError: the subscriber's name is none for files.
        OSError: the folder cannot be made or written to.
    """

    def __init__(
        self,
        folder: Path,
        subscriber: str,
        *,
        every_s: float,
        most: int,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._part: TextIO | None = None  # whatever is refused is closed
        if not _NAME.fullmatch(subscriber):
            expected = "expected letters, digits, '.', '_' and '-' (--as)"
            raise EventInputError(f"--as is {subscriber!r}", expected)
        self.folder = folder / subscriber
        self.subscriber = subscriber
        self._every_ns = int(every_s * 1e9)
        self._most = most
        self._clock = clock
        self._begun_ns = 0
        self._lines = 0
        self.folder.mkdir(parents=True, exist_ok=True)
        self._finish_left()

    def describe(self, expression: str, schema: Mapping[str, Any] | None) -> None:
        """Say what is subscribed to; since when is kept as long as that stays the same."""
        file = self.folder / SUBSCRIPTION_FILE
        told = {"subscriber": self.subscriber, "expression": expression, "schema": schema}
        try:
            before = json.loads(file.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            before = {}
        plain = json.loads(json.dumps(told, default=str))
        if {**before, **plain} == before:
            return
        temporary = self.folder / f".{SUBSCRIPTION_FILE}{_PART}-"
        content = json.dumps(plain | {"since": self._clock() / 1e9}, indent=2) + "\n"
        temporary.write_text(content, encoding="utf-8")
        temporary.rename(file)

    def write(self, text: str) -> int:
        """Add lines."""
        part = self._part or self._begin()
        part.write(text)
        self._lines += text.count("\n")
        return len(text)

    def flush(self) -> None:
        """Let the system have what was written, and finish a file that is full."""
        if self._part is not None:
            self._part.flush()
            if self._lines >= self._most:
                self.finish()
        self.finish_old()

    def finish_old(self) -> None:
        """Finish the file if its age asks for that."""
        if self._part is not None and self._clock() - self._begun_ns >= self._every_ns:
            self.finish()

    def finish(self) -> None:
        """Let the file appear that is being written, if there is one."""
        if self._part is None:
            return
        part, self._part = self._part, None
        part.flush()
        os.fsync(part.fileno())
        _appear(Path(part.name))
        part.close()

    def close(self) -> None:
        """Finish the last file."""
        if not self.closed:
            self.finish()
        super().close()

    def _begin(self) -> TextIO:
        self._begun_ns = self._clock()
        self._lines = 0
        name = f".{self.subscriber}-{self._begun_ns:020}-{os.getpid()}{_SUFFIX}{_PART}"
        self._part = (self.folder / name).open("x", encoding="utf-8")
        fcntl.flock(self._part, fcntl.LOCK_EX)
        return self._part

    def _finish_left(self) -> None:
        """Finish files of processes that are gone, which no longer hold their locks."""
        for path in sorted(self.folder.glob(f".*{_SUFFIX}{_PART}")):
            with path.open("rb+") as left:
                try:
                    fcntl.flock(left, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                whole = left.read().rfind(b"\n") + 1
                left.truncate(whole)
                os.fsync(left.fileno())
                if whole:
                    _appear(path)
                else:
                    path.unlink(missing_ok=True)


def _appear(part: Path) -> None:
    """Give a finished file its name, which lasts."""
    part.rename(part.with_name(part.name.removeprefix(".").removesuffix(_PART)))
    above = os.open(part.parent, os.O_RDONLY)
    try:
        os.fsync(above)
    finally:
        os.close(above)


SUBSCRIPTION: Final = "sub"


@frozen(kw_only=True)
class Wanted:
    """What `gossamer sub` was asked for.

    Attributes:
        expression: what is to match.
        name: under which the node keeps what was not printed; None keeps nothing.
        count: events after which it ends; None never does.
        retained: whether a new name begins with what the node has kept.
        label: what the client calls its subscription.
        group: queue group of which this is a worker; None: of none.
        ahead: events of the group that come before earlier ones are printed.
        ordered: whether the events of each publisher are printed in its order.
        last: whether it begins with the last values.
        within: of a composite subscription, seconds in which events match together.
    """

    expression: str
    name: str | None = None
    count: int | None = None
    retained: bool = False
    label: str = SUBSCRIPTION
    group: str | None = None
    ahead: int = 1
    ordered: bool = False
    last: bool = False
    within: float | None = None


def subscribe(folder: Path | None, wanted: Wanted) -> None:
    """Print events until there are enough of them, or nobody reads them.

    Raises:
        NodeError: no node runs there, or it refuses.
    """
    with unwrapped():
        trio.run(print_events, address_of(folder), wanted, sys.stdout, tell_change)


def subscribe_into(
    folder: Path | None,
    wanted: Wanted,
    into: Path,
    subscriber: str | None,
    *,
    every_s: float,
    most: int,
) -> None:
    """Write events to files until there are enough of them; raises as `subscribe`.

    Args:
        folder: of the node.
        wanted: what was asked for.
        into: folder of all subscribers.
        subscriber: the name of this one; that of the peer's folder if None.
        every_s, most: age and lines at which a file is finished.

    Raises:
        EventInputError: the subscriber's name is none for files.
        OSError: the files cannot be written.
    """
    address = address_of(folder)
    subscriber = subscriber or load(folder).config.identity.folder.resolve().name
    out = EventFiles(into, subscriber, every_s=every_s, most=most)

    async def run() -> None:
        async with open_client(address) as client:
            schema = client.schema
        out.describe(wanted.expression, None if schema is None else schema.to_mapping())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_finish_old, out, every_s)
            await print_events(
                address, wanted, out, tell_change, lambda one: _filed(one, subscriber)
            )
            nursery.cancel_scope.cancel()

    with unwrapped(), out:
        trio.run(run)


async def _finish_old(out: EventFiles, every_s: float) -> None:
    """Let files appear to which nothing is added any more."""
    while True:
        await trio.sleep(every_s / 4)
        out.finish_old()


def _filed(event: ReceivedEvent, subscriber: str) -> str:
    """An event as a line, with who received it and when, by the clock of this machine."""
    return line_of_event(event, {"subscriber": subscriber, "received_at": time.time()})


def forget(folder: Path | None, name: str) -> None:
    """Have the node drop what it keeps for ``name``.

    Raises:
        NodeError: no node runs there, or the name is in use.
    """
    ask(address_of(folder), LocalClient.forget, name)


def leave_group(folder: Path | None, group: str, expression: str) -> None:
    """Have the node keep no events for a queue group any more.

    Raises:
        NodeError: no node runs there, or it is not of the group, or has workers of it.
    """
    ask(address_of(folder), lambda client: client.leave(group, expression))


@asynccontextmanager
async def taken(
    address: LocalAddress, wanted: Wanted, tell: Callable[[str], None] = lambda _: None
) -> AsyncIterator[Subscription]:
    """The events that were asked for, over as many connections as it takes.

    With a name nothing is missed that the node was given for it, whether the node or the connection
    was away: the node keeps what is not acknowledged. Those of a group or in order are acknowledged
    each by itself. Without a name those come that match while it is connected.

    Args:
        address: where the node's socket is.
        wanted: what was asked for.
        tell: told `CONNECTED`, or why the connection was lost.

    Raises:
        NodeError: as of `open_client` and `Session.subscribe`, on the first connection; later ones
            are tried until the node refuses for good.
    """
    start = LAST if wanted.last else RETAINED if wanted.retained else NEW
    async with open_client(
        address, wanted.name, ordered=wanted.ordered, patience_s=math.inf, on_change=tell
    ) as client:
        if wanted.group is None:
            await client.subscribe(wanted.label, wanted.expression, start, wanted.within)
        else:
            await client.join(wanted.label, wanted.expression, wanted.group, wanted.ahead)
        tell(CONNECTED)
        yield Subscription(client, by_id=wanted.group is not None or wanted.ordered)


async def print_events(
    address: LocalAddress,
    wanted: Wanted,
    out: TextIO | EventFiles,
    tell: Callable[[str], None],
    line_of: Callable[[ReceivedEvent], str] = line_of_event,
) -> None:
    """Write events to ``out``; those of a name or group are acknowledged once they are written."""
    left = wanted.count
    async with taken(address, wanted, tell) as events:
        while left is None or left > 0:
            event = await events.__anext__()
            if not write_text(out, line_of(event) + "\n"):
                return
            await events.acknowledge(event)
            left = None if left is None else left - 1


def tell_change(change: str, connected: str = "subscribed") -> None:
    """Say that the connection is there, or was lost and why."""
    if change == CONNECTED:
        print(f"gossamer: {connected}", file=sys.stderr)
    else:
        print(f"gossamer: without the node ({change}); trying again", file=sys.stderr)
