"""A network of nodes that brings frames when the event engine would bring the same records.

Nodes run on a clock that jumps, one second of it a tick of the engine. Latencies, losses and
copies are drawn by the engine's own functions. Within a tick the engine fires timers by row, then
takes records in the order in which they were sent; here each of these happens at an instant of its
own, so that the order does not depend on how tasks are scheduled.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

import attrs
import numpy as np
import trio

from gossamer.node.monitoring.metrics import Counters
from gossamer.node.peer.frames.address_book import AddressBook
from gossamer.node.peer.frames.core import Core, Record
from gossamer.node.peer.frames.descriptor_authentication import PlainAuthentication
from gossamer.node.peer.frames.event_frames import MARK, read_event_frame
from gossamer.node.peer.frames.events import EventMemory
from gossamer.node.peer.frames.wire import Wire, frame_types
from gossamer.node.peer.runtime import Delivery, Runtime
from gossamer.node.transport.base.frames import FrameReader
from gossamer.node.transport.base.limits import Limits
from gossamer.node.transport.base.schema import FrameTypes
from gossamer.node.transport.queues.fair_queue import Flow
from gossamer.protocol.kernel.draws import mix
from gossamer.protocol.kernel.records import BODY, FROM, KIND, TO, UNREACHABLE
from gossamer.protocol.peer.codec import Codec
from gossamer.protocol.peer.record_table.records import DELIVER
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.state.links import HANDLE_MASK
from gossamer.protocol.peer.step import TIMERS
from gossamer.sim.engine import link_conditions
from gossamer.sim.engine.latency import trip_ticks
from support.ping_protocol import chain_records

# Parts of a tick: timers first, a sliver apart by row, then records, a sliver apart as sent.
TIMER_SLIVER: Final = 1e-4
RECORDS_FROM: Final = 0.5
RECORD_SLIVER: Final = 1e-8


class ObservedCore(Core):
    observe: Callable[[Record], None] = staticmethod(lambda _: None)

    def take(self, record: Record) -> list[Record]:
        self.observe(record)
        return super().take(record)


class TimedNode:
    def __init__(self, network: TimedNetwork, row: int, key: int) -> None:
        self.row = row
        self.key = key
        self.is_up = True
        self.network = network
        self.core = ObservedCore(network.settings, key)
        self.counters = Counters()
        self.events = EventMemory(1 << 12, 1 << 24)
        self.address_book = AddressBook(key, 4096, lambda: self.runtime.held(), trio.current_time)
        authentication = PlainAuthentication(key, self.address_book)
        wire = Wire(network.codec, self.address_book, authentication, self.events)
        self.runtime = Runtime(
            self.core,
            self.address_book,
            wire,
            authentication,
            self.events,
            self.counters,
            self._on_delivery,
        )
        self.core.observe = self._observe
        self.runtime.attach(self)
        self._reader = FrameReader(Limits(), own_forms={MARK: read_event_frame})
        self._timers = itertools.count()

    def row_of(self, handle: int) -> int:
        return self.network.rows[self.address_book.key_of(handle)]

    # As rounds

    async def next_timer(self) -> tuple[int, int]:
        while True:
            number, place = divmod(next(self._timers), len(TIMERS))
            tick = number * self.network.period + int(self.network.phases[self.row, place])
            sliver = (self.row * len(TIMERS) + place) * TIMER_SLIVER
            await trio.sleep_until(tick + sliver)
            if self.is_up:
                return number, TIMERS[place]

    # As outlet

    def send(self, key: int, frame: bytes, record: Record, _: Flow | None = None) -> None:
        self.network.send(self, self.network.rows[key], frame, record)

    def send_together(self, key: int, frames: Sequence[bytes]) -> bool:
        raise AssertionError(f"nothing here waits for batches: {len(frames)} frames for {key}")

    def held(self) -> Iterator[Record]:
        return iter(self.network.under_way.get(self.row, {}).values())

    # Records and frames

    def receive(self, source: TimedNode, frame: bytes) -> None:
        self.core.now = self.network.round
        self._reader.feed(frame)
        for read in self._reader:
            self.network.types.check(read)
            self.runtime.receive(source.key, read)

    def take(self, record: Record) -> None:
        self.core.now = self.network.round
        self.runtime.handle(record)

    def _observe(self, record: Record) -> None:
        if record[KIND] >= UNREACHABLE:
            return
        if record[KIND] in self.network.codec.kinds:
            self.network.note(self.network.codec.replace_handles(record, self.row_of))
            return
        copy = [*record[:TO], self.row_of(record[TO]), self.row_of(record[FROM]), *record[BODY:]]
        if len(copy) > BODY and record[KIND] in self.network.joins:
            copy[BODY] = record[BODY] & ~HANDLE_MASK | self.row_of(record[BODY] & HANDLE_MASK)
        self.network.note(copy)

    def _on_delivery(self, delivery: Delivery) -> None:
        body = [delivery.event, delivery.hops, delivery.tree_hops]
        record = [BODY + len(body), DELIVER, self.row, self.row, *body]
        self.network.served.append((self.row, delivery.event))
        self.network.schedule(self.network.tick, partial(self.network.note, record))


@attrs.define(eq=False)
class TimedNetwork:
    """Nodes, and the links between them."""

    settings: Settings
    keys: list[int]  # permanent keys by row
    # Ticks of a round at which each row's timers fire.
    phases: np.ndarray[tuple[int, int], np.dtype[np.int64]]
    period: int  # ticks of a round
    links: link_conditions.LinkConditions  # what becomes of records; a copy of the engine's own
    nursery: trio.Nursery
    joins: frozenset[int]  # kinds whose first word is a descriptor, beside those between peers
    chain: np.ndarray[tuple[int], np.dtype[np.int64]] = attrs.field(
        factory=lambda: np.zeros(2, np.int64)
    )
    served: list[tuple[int, int]] = attrs.field(factory=list)
    under_way: dict[int, dict[int, Record]] = attrs.field(factory=dict)
    lost_to_dead: int = 0
    _scheduled: int = 0
    codec: Codec = attrs.field(init=False)
    types: FrameTypes = attrs.field(init=False)
    rows: dict[int, int] = attrs.field(init=False)
    nodes: list[TimedNode] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.codec = Codec(self.settings)
        self.types = frame_types(self.codec)
        self.rows = {key: row for row, key in enumerate(self.keys)}
        self.nodes = [TimedNode(self, row, key) for row, key in enumerate(self.keys)]
        for node in self.nodes:
            self.nursery.start_soon(node.runtime.run, node)

    @property
    def tick(self) -> int:
        return int(trio.current_time())

    @property
    def round(self) -> int:
        return self.tick // self.period

    def note(self, record: Record) -> None:
        """Let the chain depend on a record that somebody takes, handles being rows."""
        chain_records.interpreted(self.chain, None, record, 0, self.round)

    def schedule(self, tick: int, action: Callable[[], None]) -> None:
        """Let something happen at ``tick``, after all that was scheduled for it before."""
        self._scheduled += 1
        instant = tick + RECORDS_FROM + self._scheduled * RECORD_SLIVER

        async def wait() -> None:
            await trio.sleep_until(instant)
            action()

        self.nursery.start_soon(wait)

    def send(self, source: TimedNode, to: int, frame: bytes, record: Record) -> None:
        """Put a frame on its way, as `link_conditions.send` does a record."""
        links, row = self.links, source.row
        number = self._scheduled
        self.under_way.setdefault(row, {})[number] = record
        arrive = partial(self._arrive, source, self.nodes[to], frame, record, number)
        draws = link_conditions.next_draws.interpreted(links, row)

        def happens(share: int, draw: int) -> bool:
            return bool(share and mix.interpreted(links.seed, row, draws + draw) < share)

        def set_out(draw: int) -> None:
            trip = trip_ticks.interpreted(links.latency, row, to, links.seed, draws + draw)
            self.schedule(self.tick + int(trip), arrive)

        if happens(links.loss, link_conditions.LOSS):
            links.counts[0] += 1
            self.under_way[row].pop(number)
            return
        set_out(link_conditions.LATENCY)
        if happens(links.duplication, link_conditions.DUPLICATION):
            links.counts[1] += 1
            set_out(link_conditions.LATENCY_OF_COPY)

    def _arrive(
        self, source: TimedNode, to: TimedNode, frame: bytes, record: Record, number: int
    ) -> None:
        self.under_way[source.row].pop(number, None)
        if to.is_up:
            to.receive(source, frame)
            return
        self.lost_to_dead += 1
        if source.is_up:
            header = [len(record), record[KIND], to.row, source.row]
            delay = int(link_conditions.return_ticks.interpreted(self.links, header, 0))
            back = partial(self._come_back, source, record)
            if delay == 0:
                back()
            else:
                self.schedule(self.tick + delay, back)

    def _come_back(self, source: TimedNode, record: Record) -> None:
        if source.is_up:
            source.core.now = self.round
            source.runtime.hand_back(record)
