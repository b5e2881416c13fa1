"""Events kept for clients with a name: a log on the disk, and each client's place in it.

What a client is owed are the events after its place that match its subscriptions. Its place moves
when it acknowledges. Events leave the log when the retention time is over, or when newer ones need
the room; a client that is away for longer than that is forgotten.

The log is a file of its own (`clients.db`), so that what applications keep here and what the
peer keeps for the overlay never crowd each other out.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import cbor2
import trio
from attrs import evolve, frozen

from gossamer.node.errors import StoreError
from gossamer.node.local.frames import event_values_from_wire, values_to_wire
from gossamer.node.local.peer_like import EventLike
from gossamer.node.store import Store, StoreLimits
from gossamer.node.store.events import RetainedEvent
from gossamer.node.store.store import StoredSubscription
from gossamer.node.store.writer import Aside, StoreWriter, open_writer
from gossamer.protocol.content.schema import Schema
from gossamer.protocol.content.values import Payload, Value

FILE_NAME: Final = "clients.db"
# Events that wait for the disk before the peer's deliveries have to wait.
PENDING: Final = 1024
# Read from the log at a time, between two turns of the event loop.
BATCH: Final = 64
# Between two attempts to write to a full disk.
RETRY_S: Final = 1.0
LOG_ID, _PLACES = "log", "places"
# What is kept for queue groups is so under names that begin like this; names of clients are
# printable.
GROUP_MARK: Final = "\x1f"

_log = logging.getLogger(__name__)


@frozen
class KeptEvent:
    """An event of the log.

    Attributes:
        id, values, publisher, published_at, payload: as of `EventLike`.
        position: in the log; grows, and is never given twice.
    """

    id: int
    values: Mapping[str, Value]
    publisher: int
    published_at: float
    position: int
    payload: Payload | None = None


class History:
    """The log and the clients' places in it; made by `open_history`.

    Attributes:
        id: of this log; a new one after the file was lost.
    """

    def __init__(
        self,
        path: Path,
        writer: StoreWriter,
        log_id: str,
        places: Mapping[str, int],
        retention_s: float,
        now: Callable[[], float],
    ) -> None:
        self.id = log_id
        self._path = path
        self._writer = writer
        self._retention_s = retention_s
        self._now = now
        self._send, self._receive = trio.open_memory_channel[EventLike](PENDING)
        self._grown = trio.Event()
        self._closing = False
        self._places: dict[str, int] = dict(places)

    async def subscriptions(self) -> list[StoredSubscription]:
        """Those of all clients."""
        return await self._writer.read(lambda store: store.subscriptions.all())

    async def newest(self, limit: int) -> list[int]:
        """The identifiers of the newest events that are kept, the newest last."""
        raw = await self._writer.read(lambda store: store.events.newest(limit))
        return [int.from_bytes(one, "big") for one in raw]

    def complaint(self) -> str:
        """What of it could not be written a moment ago, in a sentence; "" where nothing was."""
        return self._writer.complaint()

    def past_s(self, kept: StoredSubscription) -> float:
        """For how long a subscription is wanted; infinite where nobody knows."""
        return kept.past_s(self._now())

    def is_known(self, client: str) -> bool:
        """Whether the client has a place."""
        return client in self._places

    def place(self, client: str) -> int:
        """The position up to which the client has acknowledged."""
        return self._places.get(client, 0)

    @property
    def grown(self) -> trio.Event:
        """Set when the log grows; ask for it before reading."""
        return self._grown

    async def append(self, event: EventLike) -> None:
        """Have ``event`` kept soon; waits while too many wait for the disk, and only then.

        To let others have their turn once an event would be too slow where turns are long.
        """
        try:
            self._send.send_nowait(event)
        except trio.WouldBlock:
            await self._send.send(event)

    async def subscribe(self, subscription: StoredSubscription, *, from_start: bool) -> None:
        """Keep a client's subscription; returns once it is on the disk.

        Args:
            subscription: what is kept.
            from_start: a client that is new here begins with the oldest event kept, and not with
                the next one.

        Raises:
            CapacityError: there are as many subscriptions or clients as allowed.
        """
        client = subscription.client
        places = dict(self._places)

        def keep(store: Store) -> int:
            start = 0 if from_start else store.events.last_position()
            store.deliveries.mark_all(client, [])
            store.subscriptions.add(evolve(subscription, since=self._now()))
            _write_places(store, {client: start, **places})
            return start

        self._places.setdefault(client, await self._writer.run(keep))

    async def unsubscribe(self, client: str, subscription_id: str) -> bool:
        """Drop a client's subscription; returns whether there was one."""
        return await self._writer.run(
            lambda store: store.subscriptions.remove(client, subscription_id)
        )

    async def forget(self, client: str, subscription_ids: Iterable[str]) -> None:
        """Drop the client, its place and its subscriptions."""
        ids = list(subscription_ids)
        places = {name: at for name, at in self._places.items() if name != client}

        def drop(store: Store) -> None:
            for subscription_id in ids:
                store.subscriptions.remove(client, subscription_id)
            store.deliveries.forget(client)
            _write_places(store, places)

        await self._writer.run(drop)
        self._places.pop(client, None)

    async def acknowledge(self, client: str, position: int, event_ids: list[int]) -> None:
        """Move the client's place to ``position``; it has got the events up to there."""
        await self._writer.write(self._noted(client, position, event_ids))

    async def settle(self, client: str, position: int, event_ids: list[int]) -> None:
        """As `acknowledge`; returns once it is on the disk.

        Raises:
            StoreError: it could not be written.
        """
        await self._writer.run(self._noted(client, position, event_ids))

    def _noted(self, client: str, position: int, event_ids: list[int]) -> Callable[[Store], None]:
        self.skip(client, position)
        raw = [_key(event_id) for event_id in event_ids]
        places = dict(self._places)

        def note(store: Store) -> None:
            store.deliveries.mark_all(client, raw)
            _write_places(store, places)

        return note

    async def settled(self, client: str) -> list[int]:
        """The last events that the client has got, oldest first; all that was noted before."""
        raw = await self._writer.run(lambda store: store.deliveries.of(client))
        return [int.from_bytes(one, "big") for one in raw]

    def skip(self, client: str, position: int) -> None:
        """Move the client's place without a write: nothing up to ``position`` is for it."""
        if client in self._places:
            self._places[client] = max(position, self._places[client])

    async def read(self, client: str, after: int, schema: Schema) -> list[tuple[KeptEvent, bool]]:
        """The next events after a position, at most `BATCH`, and which the client has got.

        An event that it has got is in the log again if it came again after its first copy had left.
        """
        now = self._now()

        def look(store: Store) -> list[tuple[RetainedEvent, bool]]:
            events = store.events.after(after, now, BATCH)
            return [(one, store.deliveries.has(client, one.event_id)) for one in events]

        found = await self._writer.read(look)
        return [(_unpack(event, schema, self._path), got) for event, got in found]

    async def prune(self) -> int:
        """Drop what has expired; returns how many that were."""
        now = self._now()
        return await self._writer.run(lambda store: store.events.prune(now))

    async def keep_appending(self) -> None:
        """Write what `append` brings, as much in one commit as there is, until `close`."""
        with trio.CancelScope(shield=True):
            async for event in self._receive:
                await self._keep([event, *self._waiting()])
                self._grown.set()
                self._grown = trio.Event()

    def close(self) -> None:
        """Take no more events; those taken are still written, if the disk takes them."""
        self._closing = True
        self._send.close()

    async def _keep(self, events: list[EventLike]) -> None:
        """Write ``events``; while the disk does not take them, events that follow wait."""
        now = self._now()
        packed = [_pack(event, now, now + self._retention_s) for event in events]
        while True:
            try:
                await self._writer.run(lambda store: store.events.retain_all(packed))
                return
            except StoreError as error:
                _log.warning("events for absent clients cannot be kept: %s", error)
                if self._closing:
                    return
                await trio.sleep(RETRY_S)

    def _waiting(self) -> list[EventLike]:
        found: list[EventLike] = []
        while len(found) < PENDING:
            try:
                found.append(self._receive.receive_nowait())
            except (trio.WouldBlock, trio.EndOfChannel):
                break
        return found


def steady_clock(now: Callable[[], float] = time.time) -> Callable[[], float]:
    """A clock that shows Unix seconds now, and goes on evenly whatever ``now`` does later.

    A machine's clock that is set ahead would otherwise let everything kept expire at once.
    """
    zero = now() - trio.current_time()
    return lambda: zero + trio.current_time()


@asynccontextmanager
async def open_history(
    path: Path,
    retention_s: float,
    limits: StoreLimits | None = None,
    now: Callable[[], float] | None = None,
    aside: Aside | None = None,
) -> AsyncIterator[History]:
    """The history in the file ``path``, made where it is missing.

    Args:
        path: the file.
        retention_s: how long events are kept.
        limits: bounds of the file's parts.
        now: Unix seconds; by default `steady_clock`.
        aside: as of `open_writer`.

    Raises:
        StoreError: the file cannot be used.
    """
    now = steady_clock() if now is None else now
    async with open_writer(path, limits, aside=aside) as writer:
        log_id = await writer.run(kept_id, LOG_ID)
        places = await writer.read(_read_places)
        history = History(path, writer, log_id, places, retention_s, now)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(history.keep_appending)
            try:
                yield history
            finally:
                history.close()


def kept_id(store: Store, name: str) -> str:
    """What is kept under a name to tell this file from others, made when it is first asked for."""
    found = store.get_meta(name)
    if found is None:
        found = secrets.token_hex(8).encode()
        store.set_meta(name, found)
    return found.decode()


def _read_places(store: Store) -> dict[str, int]:
    raw = store.get_meta(_PLACES)
    if raw is None:
        return {}
    places = _decoded(raw, store.path)
    if not isinstance(places, dict):
        raise StoreError(store.path, "holds no clients' places where they should be")
    return places


def _write_places(store: Store, places: Mapping[str, int]) -> None:
    store.set_meta(_PLACES, cbor2.dumps(dict(places)))


def _pack(event: EventLike, now: float, expires_at: float) -> RetainedEvent:
    payload = event.payload
    more = [] if payload is None else [payload.data, payload.content_type]
    body = cbor2.dumps([values_to_wire(event.values), event.published_at, *more])
    return RetainedEvent(_key(event.id), event.publisher, body, now, expires_at)


def _unpack(event: RetainedEvent, schema: Schema, path: Path) -> KeptEvent:
    values, published_at, *more = _decoded(event.body, path)
    return KeptEvent(
        int.from_bytes(event.event_id, "big"),
        event_values_from_wire(schema, values),
        event.publisher,
        published_at,
        event.position,
        Payload(*more) if more else None,
    )


def _key(event_id: int) -> bytes:
    return event_id.to_bytes(8, "big")


def _decoded(raw: bytes, path: Path) -> Any:
    try:
        return cbor2.loads(raw)
    except (cbor2.CBORDecodeError, ValueError) as error:
        raise StoreError(path, f"holds what cannot be read ({error})") from None
