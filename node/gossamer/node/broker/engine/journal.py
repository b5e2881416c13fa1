"""What a broker needs to go on after it was killed: a dump, and the messages since.

A loaded dump that is told the same messages again is what the broker was, bit for bit. What the
broker did because of them is not done again: links are told everything when they come up, and what
clients are to get was stored together with the messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

import cbor2
from attrs import frozen

from gossamer.node.broker.contract.host import FamilyHost, HostedBroker
from gossamer.node.errors import StoreDamagedError
from gossamer.node.store import Store
from gossamer.node.store.broker import QueuedDelivery
from gossamer.node.store.writer import StoreWriter
from gossamer.protocol.brokers.core.errors import DumpError, MalformedMessageError
from gossamer.protocol.brokers.core.identifiers import Hop
from gossamer.protocol.brokers.core.index import NewIndex
from gossamer.protocol.kernel.errors import ConfigError

# An entry of a table costs a dump a hundredth of what a subscription costs the broker. So dumps
# after so many messages, or a fourth as many as there are entries, cost little.
LEAST_BETWEEN_DUMPS: Final = 500
ENTRIES_PER_MESSAGE: Final = 4
# Subscriptions from which a table is large.
LARGE_TABLE: Final = 1000


@frozen
class Entry:
    """A message as the broker was told it.

    Attributes:
        now: microseconds, the broker's time.
        source: who sent it, None for the host.
        message: what came.
    """

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
        ...

    async def dump_if_due(self, broker: HostedBroker, now: int) -> None:
        """Store the broker as it is, if enough has happened since the last time."""
        ...


class StoredJournal:
    """A journal in a state file.

    Attributes:
        since_dump: messages in the log.
    """

    def __init__(self, writer: StoreWriter, family: FamilyHost) -> None:
        self._writer = writer
        self._family = family
        self.since_dump = 0

    async def keep(self, entries: Sequence[Entry], deliveries: Sequence[QueuedDelivery]) -> None:
        """Store messages and deliveries in one transaction; returns once they are on the disk."""
        data = [entry.to_bytes(self._family) for entry in entries]

        def store(store: Store) -> None:
            store.broker.append(data)
            store.broker.enqueue(deliveries)

        await self._writer.run(store)
        self.since_dump += len(data)

    async def dump_if_due(self, broker: HostedBroker, now: int) -> None:
        """Store the broker, if the log has become long for its tables."""
        tables = sum(size for size, _ in self._family.sizes(broker).values())
        if self.since_dump >= max(LEAST_BETWEEN_DUMPS, tables // ENTRIES_PER_MESSAGE):
            await self.dump(broker, now)

    async def dump(self, broker: HostedBroker, now: int) -> None:
        """Store the broker as it is, in place of all that was stored of it."""
        data = cbor2.dumps(
            {"now": now, "settings": self._family.settings(), "broker": broker.dump()}
        )
        await self._writer.run(lambda store: store.broker.replace_dump(data))
        self.since_dump = 0


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
        StoreDamagedError: what is stored is no broker.
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
        broker = family.load(broker.dump(), new_index)
    except _NO_BROKER as error:
        raise StoreDamagedError(path, f"holds no broker ({error})") from None
    if broker.name != name:
        raise StoreDamagedError(path, f"holds broker {broker.name}, expected {name}")
    return Recalled(broker, now)


_NO_BROKER: Final = (
    *(DumpError, MalformedMessageError, ConfigError, cbor2.CBORDecodeError),
    *(KeyError, TypeError, ValueError),
)


def _read(store: Store) -> tuple[bytes | None, list[bytes]]:
    return store.broker.dump(), list(store.broker.log())
