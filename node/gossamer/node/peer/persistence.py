"""What a peer keeps over restarts: whom it knows, what is wanted of it, what was delivered."""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Final, TypeVar

import trio

from gossamer.node.monitoring.looks import next_look
from gossamer.node.peer.frames.address_book import AddressBook
from gossamer.node.peer.frames.events import Event
from gossamer.node.security.sealing import ID_BITS
from gossamer.node.store import SequenceNumbers, Store
from gossamer.node.store.store import KnownPeer, StoredSubscription
from gossamer.node.store.writer import StoreWriter
from gossamer.node.transport.base import PeerIdentity

T = TypeVar("T")

EVENT_ID_BYTES: Final = -(-ID_BITS // 8)
# Numbers leased at once: at two a round of half a second, for nine hours.
LEASE: Final = 1 << 16
# Peers met since the last write; more are written at their next connection.
MAX_MET: Final = 1024
# How often it is noted that this peer runs.
ALIVE_S: Final = 10.0
_ALIVE_AT: Final = "alive at"
# The last time of more than `GAP_S` in which the peer did not run, or by which its clock was set:
# from when to when, by its own clock. `gossamer node doctor` judges the clock by it.
LAST_GAP: Final = "last gap"
GAP_S: Final = 86_400.0


class Keeper:
    """The state file of a running peer.

    Attributes:
        numbers: of descriptors; they only grow, over restarts too.
    """

    def __init__(self, writer: StoreWriter, now: Callable[[], float]) -> None:
        """A keeper that is not open yet.

        Args:
            writer: of the state file.
            now: Unix seconds.
        """
        self.numbers = SequenceNumbers(self._take_lease, LEASE)
        self._writer = writer
        self._now = now
        self._leases: deque[int] = deque()
        self._met: dict[int, KnownPeer] = {}
        self._asked: dict[tuple[str, str], float | None] = {}
        self._work = trio.Event()
        self._last_noted: float | None = None

    async def open(self, key: int) -> None:
        """Check that the file is that of peer ``key``, and make numbers ready.

        Raises:
            StoreError: it is another peer's, or cannot be written.
        """
        await self._writer.run(Store.bind, key, self._now())
        await self._lease()

    async def away_s(self) -> float | None:
        """For how long the peer did not run until now, None if it never did.

        By the machine's clock: infinite where that was set back meanwhile, since nobody knows then.
        """
        raw = await self._writer.run(lambda store: store.get_meta(_ALIVE_AT))
        if raw is None:
            return None
        passed_s = self._now() - float(raw)
        return passed_s if passed_s >= 0 else math.inf

    async def run(self) -> None:
        """Write what has come up, until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._note_alive)
            await self._write_on()

    async def _note_alive(self) -> None:
        while True:
            await self.note_alive()
            await trio.sleep_until(next_look(ALIVE_S))

    async def note_alive(self) -> None:
        """Note until when the peer ran.

        What fails is told by the writer's next `flush`.
        """
        now = self._now()
        await self._note_gap(now)
        alive_at = repr(now).encode()
        await self._writer.write(lambda store: store.set_meta(_ALIVE_AT, alive_at))

    async def _note_gap(self, now: float) -> None:
        before, self._last_noted = self._last_noted, now
        if before is None:
            raw = await self._writer.run(lambda store: store.get_meta(_ALIVE_AT))
            before = now if raw is None else float(raw)
        if now - before > GAP_S:
            gap = json.dumps([before, now]).encode()
            await self._writer.write(lambda store: store.set_meta(LAST_GAP, gap))

    async def _write_on(self) -> None:
        while True:
            await self._work.wait()
            self._work = trio.Event()
            await self.write()
            if len(self._leases) < 2:
                await self._lease()

    async def write(self) -> None:
        """Write what has come up so far; what fails is told by the writer's next `flush`."""
        met, self._met = self._met, {}
        asked, self._asked = self._asked, {}
        for peer in met.values():
            await self._writer.write(_remember, peer)
        for (name, expression), since in asked.items():
            await self._writer.write(_keep, name, expression, since)

    async def known_peers(self) -> list[KnownPeer]:
        """The peers known before a restart."""
        return await self._writer.run(lambda store: store.peers.all())

    async def subscriptions(self) -> list[StoredSubscription]:
        """The subscriptions of named applications."""
        return await self._writer.run(lambda store: store.subscriptions.all())

    def note_subscription(self, name: str, expression: str, wanted: bool) -> None:
        """Keep a subscription of a named application, or drop it; it is written soon."""
        self._asked[name, expression] = self._now() if wanted else None
        self._work.set()

    def note_met(self, identity: PeerIdentity, address_book: AddressBook) -> None:
        """Remember a peer that is connected; it is written soon."""
        entry = address_book.find(identity.key)
        if entry is None or not entry.addresses or len(self._met) >= MAX_MET:
            return
        addresses = tuple((host, port) for host, port in entry.addresses)
        self._met[identity.key] = KnownPeer(
            identity.key, addresses, identity.fingerprint, self._now()
        )
        self._work.set()

    async def mark(self, name: str, events: Sequence[Event]) -> Sequence[Event]:
        """Note that an application gets these events; return those that it never got before.

        Raises:
            StoreError, CapacityError: it could not be noted; nothing was.
        """
        by_id = {event.id.to_bytes(EVENT_ID_BYTES, "big"): event for event in events}
        new = await self._writer.run(_mark, name, tuple(by_id))
        return [by_id[name] for name in new]

    def _take_lease(self, count: int) -> int:
        assert count == LEASE
        first = self._leases.popleft()
        self._work.set()
        return first

    async def _lease(self) -> None:
        while len(self._leases) < 2:
            self._leases.append(await self._writer.run(Store.lease_sequence, LEASE))


def read_gap(raw: bytes) -> tuple[datetime, datetime]:
    """What was kept as `LAST_GAP`; raises ValueError or OverflowError for anything else."""
    try:
        before, after = json.loads(raw)
        return datetime.fromtimestamp(before, UTC), datetime.fromtimestamp(after, UTC)
    except (TypeError, OSError) as error:
        raise ValueError("no gap") from error


def _remember(store: Store, peer: KnownPeer) -> None:
    store.peers.remember(peer)


def _keep(store: Store, name: str, expression: str, since: float | None) -> None:
    if since is None:
        store.subscriptions.remove(name, expression)
    else:
        store.subscriptions.add(StoredSubscription(name, expression, expression, since))


def _mark(store: Store, name: str, ids: Iterable[bytes]) -> list[bytes]:
    return store.deliveries.mark_all(name, list(ids))
