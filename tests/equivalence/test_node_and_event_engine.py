"""The guard: peers of the node and rows of the event engine do the same, message for message."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import attrs
import numpy as np
import pytest
import trio

from gossamer.node.monitoring.metrics import Counters
from gossamer.node.peer.frames.address_book import AddressBook
from gossamer.node.peer.frames.core import SELF, Box, Core, Delivery, Record
from gossamer.node.peer.frames.descriptor_authentication import PlainAuthentication
from gossamer.node.peer.frames.event_authentication import point_bytes
from gossamer.node.peer.frames.event_frames import MARK, read_event_frame
from gossamer.node.peer.frames.events import EventMemory
from gossamer.node.peer.frames.forgeries import Forgeries
from gossamer.node.peer.frames.frame_types import frame_types
from gossamer.node.peer.frames.wire import Wire
from gossamer.node.peer.inbound import Inbound
from gossamer.node.peer.load.overload import Overloads
from gossamer.node.peer.runtime import Application, Runtime
from gossamer.node.security.identity import encode
from gossamer.node.security.sealing import identifier
from gossamer.node.transport.frames import FrameReader
from gossamer.node.transport.limits import Limits
from gossamer.node.transport.schema import FrameTypes
from gossamer.node.transport.send_queue import Backlog, Flow
from gossamer.protocol.kernel.draws import mix
from gossamer.protocol.kernel.errors import RemoteProtocolError
from gossamer.protocol.kernel.records import BODY, FROM, KIND, TO, UNREACHABLE
from gossamer.protocol.peer import step as peer
from gossamer.protocol.peer.codec import Codec
from gossamer.protocol.peer.record_table.records import DELIVER, EVENT_ORIGIN, JOIN
from gossamer.protocol.peer.settings import config, presets
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.space.ring import RING_MASK, held_boxes, point_of
from gossamer.protocol.peer.state.links import HANDLE_MASK
from gossamer.protocol.peer.state.state import RECORD, SENT_TO, State, make_state
from gossamer.protocol.peer.topology.placement import want_place
from gossamer.sim.engine import link_conditions
from gossamer.sim.engine.cycle_engine import make_network
from gossamer.sim.engine.event_engine import EventEngine, draw_phases
from gossamer.sim.engine.latency import trip_ticks, uniform_latency
from gossamer.sim.engine.link_conditions import make_link_conditions
from support.draws import larger
from support.overlays import arrays_of
from support.ping_protocol import chain_records
from support.transport_peers import on_jumping_clock
from support.waiting import running

PERIOD = 400
SEED = 11
ROUNDS = larger(10, 15)
# Nodes run on a clock that jumps, one second of it a tick of the engine. Within a tick the engine
# fires timers by row, then takes records as sent; here each of these has an instant of its own, a
# sliver apart, so that the order does not depend on how tasks are scheduled.
TIMER_SLIVER, RECORDS_FROM, RECORD_SLIVER = 1e-4, 0.5, 1e-8


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
        self.events = EventMemory(1 << 12, 1 << 24)
        self.address_book = AddressBook(key, 4096, trio.current_time)
        counters, authentication = Counters(), PlainAuthentication(key, self.address_book)
        wire = Wire(network.codec, self.address_book, authentication, self.events)
        self.runtime = Runtime(
            self.core,
            self.address_book,
            wire,
            self.events,
            counters,
            self,
            None,
            PERIOD,
        )
        self.runtime.serve(Application(self._on_delivery))
        forgeries = Forgeries(self.address_book, counters)
        overloads = Overloads(Backlog(), counters, self.address_book)
        self.inbound = Inbound(
            *(self.runtime, wire, authentication, forgeries, overloads, counters),
            *(self._cut, (), None),
        )
        self.core.observe = self._observe
        self._reader = FrameReader(Limits(), own_forms={MARK: read_event_frame})
        self._timers = itertools.count()

    def row_of(self, handle: int) -> int:
        return self.network.rows[self.address_book.key_of(handle)]

    async def next_timer(self) -> tuple[int, int]:
        while True:
            number, place = divmod(next(self._timers), len(peer.TIMERS))
            tick = number * PERIOD + int(self.network.phases[self.row, place])
            await trio.sleep_until(tick + (self.row * len(peer.TIMERS) + place) * TIMER_SLIVER)
            if self.is_up:
                return number, peer.TIMERS[place]

    def send(self, key: int, frame: bytes, record: Record, _: Flow | None = None) -> None:
        self.network.send(self, self.network.rows[key], frame, record)

    def send_together(self, key: int, frames: Sequence[bytes]) -> bool:
        raise AssertionError(f"nothing here waits for batches: {len(frames)} frames for {key}")

    def _cut(self, key: int, error: RemoteProtocolError) -> None:
        raise AssertionError(f"peer {key} broke a rule: {error}")

    def held(self) -> Iterator[Record]:
        return iter(self.network.under_way.get(self.row, {}).values())

    def receive(self, source: TimedNode, frame: bytes) -> None:
        self.core.now = self.network.round
        self._reader.feed(frame)
        for read in self._reader:
            self.network.types.check(read)
            self.inbound.receive(source.key, read)

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
        if len(copy) > BODY and record[KIND] == JOIN:
            copy[BODY] = record[BODY] & ~HANDLE_MASK | self.row_of(record[BODY] & HANDLE_MASK)
        self.network.note(copy)

    def _on_delivery(self, delivery: Delivery) -> None:
        body = [delivery.event, delivery.hops, delivery.tree_hops]
        record = [BODY + len(body), DELIVER, self.row, self.row, *body]
        self.network.served.append((self.row, delivery.event))
        self.network.schedule(self.network.tick, partial(self.network.note, record))


@attrs.define(eq=False)
class TimedNetwork:
    settings: Settings
    keys: list[int]  # permanent keys by row
    phases: Any  # int64[n, timers], ticks of a round at which each row's timers fire
    links: link_conditions.LinkConditions  # what becomes of records; a copy of the engine's own
    nursery: trio.Nursery
    chain: Any = attrs.field(factory=lambda: np.zeros(2, np.int64))
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
            self.nursery.start_soon(node.inbound.run, node.next_timer)

    @property
    def tick(self) -> int:
        return int(trio.current_time())

    @property
    def round(self) -> int:
        return self.tick // PERIOD

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


# Arrays whose words hold handles, with what stands above them; -1 is nobody.
WITH_HANDLES = ("sampler.views", "links", "failed", "owner", "installed_at")


class Pair:
    def __init__(
        self, nodes: int, settings: Settings, nursery: trio.Nursery, **conditions: Any
    ) -> None:
        self.settings = settings
        self.state = make_state(settings, nodes)
        self.draws = np.random.default_rng(SEED)
        self.links = make_link_conditions(nodes, seed=SEED, **conditions)
        self.chain = np.zeros(2, np.int64)
        self.engine = EventEngine(
            self.state,
            peer.step,
            peer.TIMERS,
            make_network(nodes),
            SEED,
            period=PERIOD,
            links=self.links,
            observe=chain_records,
            collector=self.chain,
            reserve=peer.largest_step(settings),
        )
        self.network = TimedNetwork(
            settings=settings,
            keys=self.state.sampler.key.tolist(),
            phases=draw_phases(nodes, len(peer.TIMERS), PERIOD, SEED),
            links=make_link_conditions(nodes, seed=SEED, **conditions),
            nursery=nursery,
        )
        self.events = 0
        for node in self.network.nodes:
            self._subscribe(node)

    def _subscribe(self, node: TimedNode) -> None:
        attributes = self.settings.attributes
        low = self.draws.integers(0, RING_MASK >> 1, attributes)
        ranges = np.stack([low, low + (RING_MASK >> 1)], axis=1).reshape(1, -1)
        mask = (1 << attributes) - 1
        peer.subscribe(self.state, node.row, *held_boxes(self.settings, ranges, np.array([mask])))
        if self.settings.placement == "interest":
            want_place(self.state, self.settings, node.row, ranges, np.array([mask]))
        node.core.subscribe([Box(tuple(ranges[0].tolist()), mask)])

    def join(self, row: int, contact: int, tick: int) -> None:
        node, other = self.network.nodes[row], self.network.nodes[contact]
        profile = other.core.profile
        self.engine.inject(peer.join_record(row, contact, np.array(profile, np.int64)), at=tick)
        handle = node.address_book.handle_of(other.key)
        self.network.schedule(tick, lambda: node.take(node.core.join(handle, profile)))
        # Until then nothing else may remember the contact.
        node.address_book.learn(other.key, ())

    def publish(self, row: int, tick: int) -> None:
        node = self.network.nodes[row]
        values = self.draws.integers(0, RING_MASK, self.settings.attributes)
        self.events += 1
        point = point_of(self.settings, values.tolist(), self.events)
        sealed = encode([node.key, self.events]) + point_bytes(point)
        event = identifier(sealed)
        self.engine.inject(peer.publish_record(row, event, np.array(point)), at=tick)
        node.events.keep(event, sealed)
        self.network.schedule(tick, lambda: node.take(node.core.publish(event, point)))

    def take_down(self, row: int) -> None:
        self.engine.network.alive[row] = False
        self.network.nodes[row].is_up = False

    def bring_up(self, row: int, contact: int, tick: int) -> None:
        self.engine.network.alive[row] = True
        peer.restart.interpreted(self.state, row)
        node = self.network.nodes[row]
        node.is_up = True
        node.core.restart()
        self.join(row, contact, tick)

    async def run_round(self, number: int) -> None:
        self.engine.run_until((number + 1) * PERIOD)
        await trio.sleep_until((number + 1) * PERIOD - 0.25)

    def assert_equal(self) -> None:
        expected = arrays_of(self.state)
        for node in self.network.nodes:
            found = arrays_of(node.core.state)
            for name, array in expected.items():
                place = name.removeprefix("state.")
                if place == "sampler.handle":
                    continue
                words = found[name][SELF]
                if place in WITH_HANDLES:
                    words = in_rows(node, words, place)
                elif place == "departed":
                    words = np.stack([in_rows(node, words[:, 0], place), words[:, 1]], axis=1)
                elif place == "under_way":
                    words, array = copies_in_rows(node, words), kept_copies(array)
                np.testing.assert_array_equal(
                    in_use(node.core.state, words, place),
                    in_use(node.core.state, array[node.row], place),
                    err_msg=f"{place} of row {node.row} in round {self.network.round}",
                )
        np.testing.assert_array_equal(self.network.chain, self.chain)
        np.testing.assert_array_equal(self.network.links.counts, self.links.counts)


def in_rows(node: TimedNode, words: Any, place: str) -> Any:
    """Words with the engine's rows in place of the node's handles.

    Beyond its count, the routing table has what is left over from before.
    """
    most = int(node.core.state.table_count[SELF]) if place == "owner" else len(words)
    rows = [
        word & ~HANDLE_MASK | node.row_of(word & HANDLE_MASK) if word >= 0 and i < most else word
        for i, word in enumerate(words.tolist())
    ]
    return np.array(rows, np.int64)


def kept_copies(words: Any) -> Any:
    return np.where(words[..., :1] >= 0, words, -1)


def copies_in_rows(node: TimedNode, words: Any) -> Any:
    found = kept_copies(words)
    for copy in found:
        for column in (SENT_TO, RECORD + EVENT_ORIGIN):
            if copy[column] >= 0:
                copy[column] = node.row_of(int(copy[column]))
    return found


def in_use(state: State, words: Any, place: str) -> Any:
    """The part of an array that means something: entries beyond the count do not."""
    return words[: state.table_count[SELF]] if place in ("owner", "table") else words


def settings_of(nodes: int, preset: str, **changes: Any) -> Settings:
    made: Settings = getattr(presets, preset)(
        nodes, attributes=2, seed=SEED, event_memory=16, routing_table_entries=64, **changes
    )
    return made


@on_jumping_clock
@pytest.mark.parametrize(
    ("preset", "sampler", "rest_rounds"),
    [
        *(("resilient", "cyclon", 1), ("kindred", "cyclon", 1), ("kindred", "cyclon", 4)),
        *(("paper", name, 1) for name in config.SAMPLERS),
    ],
)
async def test_a_dozen_peers_do_what_rows_do(preset: str, sampler: str, rest_rounds: int) -> None:
    """They join through the first, gossip, subscribe, publish and are served; nothing is lost."""
    async with running() as nursery:
        # Digests are of handles, which mean something to one host only.
        changes = {"sampler": sampler, "refresh_rounds": 1, "rest_rounds": rest_rounds}
        pair = Pair(12, settings_of(12, preset, **changes), nursery)
        for row in range(1, 12):
            pair.join(row, 0, tick=2 * row)
        for number in range(ROUNDS):
            await pair.run_round(number)
            pair.assert_equal()
            pair.publish(number % 12, (number + 1) * PERIOD + 7)
        assert len(pair.network.served) >= 10
        assert pair.chain[1] > 12 * ROUNDS * 6


@on_jumping_clock
@pytest.mark.parametrize(
    ("nodes", "rounds"), [(12, 20), pytest.param(50, 200, marks=pytest.mark.campaign)]
)
async def test_churn_latency_loss_and_copies_change_nothing(nodes: int, rounds: int) -> None:
    async with running() as nursery:
        settings = settings_of(nodes, "resilient", replay_rounds=2)
        latency = uniform_latency(1, PERIOD // 4)
        pair = Pair(nodes, settings, nursery, latency=latency, loss=0.02, duplication=0.01)
        for row in range(1, nodes):
            pair.join(row, row // 2, tick=5 * row)
        down: list[int] = []
        for number in range(rounds):
            await pair.run_round(number)
            if number % (rounds // 20) == 0:
                pair.assert_equal()
            tick = (number + 1) * PERIOD
            if number % 3 == 2:
                down.append(1 + number % (nodes - 1))
                pair.take_down(down[-1])
            elif len(down) > 2:
                pair.bring_up(down.pop(0), 0, tick + 1)
            pair.publish(0, tick + 3)
            pair.publish(0, tick + 3)
        await pair.run_round(rounds)
        pair.assert_equal()
        assert pair.links.counts[:2].min() > 0
        assert pair.network.lost_to_dead == pair.engine.network.counts[1] > 0
        assert len(pair.network.served) > rounds
