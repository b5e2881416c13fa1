"""What a broker needs to go on after it was killed: a dump, and the messages since.

A dump of a large broker takes seconds, in which messages go on: it is made `apart` of the broker as
it is when it is begun, stored in portions, and holds once it is whole. Until then the dump before
it holds, and all messages since that one are there as well.

A loaded dump that is told the same messages again is what the broker was, bit for bit. What the
broker did because of them is not done again: links are told everything when they come up, and what
clients are to get was stored together with the messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import Any, Final, Protocol

import cbor2
import trio
from attrs import frozen

from gossamer.node.broker.forked_work import Apart, Begun, in_a_process
from gossamer.node.broker.host import FamilyHost, HostedBroker
from gossamer.node.errors import StoreError, WorkApartError
from gossamer.node.monitoring.logs import log
from gossamer.node.store import Store
from gossamer.node.store.broker import QueuedDelivery
from gossamer.node.store.writer import StoreWriter
from gossamer.protocol.brokers.core.broker import NewIndex
from gossamer.protocol.brokers.core.messages import DumpError, Hop, MalformedMessageError
from gossamer.protocol.kernel.errors import ConfigError

# An entry of a table costs a dump a hundredth of what a subscription costs the broker. So dumps
# after so many messages, or a fourth as many as there are entries, cost little.
LEAST_BETWEEN_DUMPS: Final = 500
ENTRIES_PER_MESSAGE: Final = 4
# Subscriptions from which a table is large.
LARGE_TABLE: Final = 1000
# Messages made ready for the disk between two turns of the event loop.
TURN: Final = 32
QUEUE_ID: Final = "broker queue"


@frozen
class Entry:
    """A message as the broker was told it, and by whom; ``now`` is its time in microseconds."""

    now: int
    source: Hop | None
    message: Any

    def to_bytes(self, family: FamilyHost) -> bytes:
        """As it is stored."""
        source = None if self.source is None else list(self.source)
        return cbor2.dumps([self.now, source, family.codec.plain_message(self.message)])

    @classmethod
    def from_bytes(cls, data: bytes, family: FamilyHost) -> Entry:
        """The entry that was stored; raises what anything else makes it raise."""
        now, source, message = cbor2.loads(data)
        return cls(
            now, None if source is None else Hop(*source), family.codec.read_message(message)
        )


class Journal(Protocol):
    """Where an engine stores what happened."""

    async def keep(self, entries: Sequence[Entry], deliveries: Sequence[QueuedDelivery]) -> None:
        """Store messages, and what clients are to get because of them; all of it or nothing.

        Raises:
            StoreError: it cannot be stored.
        """

    async def dump_if_due(self, broker: HostedBroker, now: int, nursery: trio.Nursery) -> None:
        """Begin to store the broker as it is, if enough has happened since the last time.

        Args:
            broker: all that it was told is stored; it may be told more on return.
            now: microseconds, its time.
            nursery: where the work goes on.
        """


@frozen
class _UnderWay:
    """A dump that was begun, with as many messages of the log as ``told``."""

    number: int
    told: int
    begun: Begun


class StoredJournal:
    """A journal in a state file.

    Attributes:
        since_dump: messages in the log.
        dumping: whether a dump is under way.
    """

    def __init__(
        self, writer: StoreWriter, family: FamilyHost, apart: Apart = in_a_process
    ) -> None:
        """A journal of a broker of this family, whose dumps are made ``apart``."""
        self._writer = writer
        self._family = family
        self._apart = apart
        self.since_dump = 0
        # Of these, those that there were at the last try, which failed.
        self._tried = 0
        self.dumping = False

    async def keep(self, entries: Sequence[Entry], deliveries: Sequence[QueuedDelivery]) -> None:
        """Store messages and deliveries in one transaction; returns once they are on the disk."""
        data = []
        for number, entry in enumerate(entries, 1):
            data.append(entry.to_bytes(self._family))
            if number % TURN == 0:
                await trio.lowlevel.checkpoint()

        def store(store: Store) -> None:
            store.broker.append(data)
            store.broker.enqueue(deliveries)

        await self._writer.run(store)
        self.since_dump += len(data)

    async def dump_if_due(self, broker: HostedBroker, now: int, nursery: trio.Nursery) -> None:
        """Begin to store the broker, if the log has become long for its tables.

        One that fails is tried again when as much more has happened: the log has it all.
        """
        if self.dumping or self.since_dump - self._tried < LEAST_BETWEEN_DUMPS:
            return
        tables = sum(size for size, _ in self._family.sizes(broker).values())
        if self.since_dump - self._tried < tables // ENTRIES_PER_MESSAGE:
            return
        self._tried = self.since_dump
        try:
            nursery.start_soon(self._go_on_with, await self._begin(broker, now))
        except (StoreError, WorkApartError) as error:
            _log_failure(error)

    async def dump(self, broker: HostedBroker, now: int) -> None:
        """Store the broker as it is, in place of all that was stored of it; return when that is.

        Raises:
            StoreError: it cannot be stored; what was stored before still holds, here and below.
            WorkApartError: it could not be made.
        """
        await self._store(await self._begin(broker, now))

    async def _begin(self, broker: HostedBroker, now: int) -> _UnderWay:
        number = await self._writer.run(lambda store: store.broker.begin_dump())
        settings = self._family.settings()

        def made() -> bytes:
            return cbor2.dumps({"now": now, "settings": settings, "broker": broker.dump()})

        under_way = _UnderWay(number, self.since_dump, self._apart(made))
        self.dumping = True
        return under_way

    async def _go_on_with(self, dump: _UnderWay) -> None:
        try:
            await self._store(dump)
        except (StoreError, WorkApartError) as error:
            _log_failure(error)

    async def _store(self, dump: _UnderWay) -> None:
        writer = self._writer
        try:
            async with aclosing(dump.begun.portions()) as portions:
                async for portion in portions:
                    await writer.run(_add, dump.number, portion)
            await writer.run(lambda store: store.broker.finish_dump(dump.number))
            self.since_dump -= dump.told
            self._tried = 0
            while await writer.run(lambda store: store.broker.give_up()):
                pass
        finally:
            self.dumping = False


@frozen
class Recalled:
    """A broker as it was when its process ended, and its time then, in microseconds."""

    broker: HostedBroker
    now: int


async def recall(
    writer: StoreWriter,
    name: str,
    family: FamilyHost,
    *,
    now: int,
    incarnation: int,
    new_index: NewIndex,
    large_index: NewIndex,
) -> Recalled:
    """The broker that the state file remembers, or a new one.

    Messages are told again under the settings with which they came, so that the broker says of its
    links what it said then. Large tables get a ``large_index``.

    Raises:
        ConfigurationError: it had settings with which its tables cannot go on with these.
        StoreError: what is stored is no broker.
    """
    dump, log = await writer.run(_read)
    path = await writer.run(lambda store: store.path)
    if dump is None:
        return Recalled(family.new(name, incarnation, new_index), now)
    try:
        stored = cbor2.loads(dump)
        before = family.before(stored["settings"], path)
        if family.subscriptions(stored["broker"]) >= LARGE_TABLE:
            new_index = large_index
        broker = before.load(stored["broker"], new_index)
        now = max(now, stored["now"])
        for entry in (Entry.from_bytes(data, before) for data in log):
            broker.handle(entry.now, entry.source, entry.message)
            now = max(now, entry.now)
        broker = family.go_on(before, broker.dump(), new_index, now)
    except _NO_BROKER as error:
        raise StoreError(path, f"holds no broker ({error})") from None
    if broker.name != name:
        raise StoreError(path, f"holds broker {broker.name}, expected {name}")
    return Recalled(broker, now)


_NO_BROKER: Final = (
    *(DumpError, MalformedMessageError, ConfigError, cbor2.CBORDecodeError),
    *(KeyError, TypeError, ValueError),
)


def _add(store: Store, number: int, portion: bytes) -> None:
    store.broker.add_to_dump(number, portion)


def _log_failure(error: Exception) -> None:
    log.warning("the broker cannot be dumped, its log grows meanwhile", cause=str(error))


def _read(store: Store) -> tuple[bytes | None, list[bytes]]:
    return store.broker.dump(), list(store.broker.log())
