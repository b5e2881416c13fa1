"""The guard: at zero latency, without loss and in the same order, both engines do the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gossamer.protocol.kernel.rules import Rule
from gossamer.protocol.peer import step as peer
from gossamer.protocol.peer.record_table.records import SAMPLE_TIMER
from gossamer.protocol.peer.sampling.sampler import make_sampler, sample_hint, sample_step
from gossamer.protocol.peer.settings import config, presets
from gossamer.protocol.peer.space.ring import RING_MASK
from gossamer.protocol.peer.state.state import State, make_state
from gossamer.sim.engine.cycle_engine import (
    CycleEngine,
    fill_random_views,
    give_no_hint,
    make_network,
)
from gossamer.sim.engine.event_engine import EventEngine
from support.overlays import arrays_of
from support.ping_protocol import chain_records

NODES = 200
CYCLES = 15
SEED = 20


class Pair:
    """The same protocol under both engines, which see the nodes in the same order."""

    def __init__(
        self,
        make: Callable[[], Any],
        step: Rule,
        timers: tuple[int, ...],
        reserve: int,
        hint: Rule = give_no_hint,
        **network: Any,
    ) -> None:
        self.chains = np.zeros(2, np.int64), np.zeros(2, np.int64)
        shared: dict[str, Any] = {"observe": chain_records, "reserve": reserve}
        self.cycle_engine = CycleEngine(
            *(make(), step, timers, make_network(NODES, **network), SEED),
            collector=self.chains[0],
            **shared,
        )
        self.event_engine = EventEngine(
            *(make(), step, timers, make_network(NODES, **network), SEED),
            period=NODES * len(timers),
            firing_ticks=lambda _cycle: self.firing_ticks(len(timers)),
            collector=self.chains[1],
            hint=hint,
            queue_words=1,
            **shared,
        )

    @property
    def engines(self) -> tuple[CycleEngine, EventEngine]:
        return self.cycle_engine, self.event_engine

    def firing_ticks(self, timers: int) -> Any:
        """Ticks at which the timers fire in the cycle engine's order, one a tick."""
        place = np.argsort(self.cycle_engine.visiting_order())
        return place[:, None] * timers + np.arange(timers)

    def run_cycle(self) -> None:
        self.event_engine.run_cycle()
        self.cycle_engine.run_cycle()

    def inject(self, record: Any) -> None:
        for engine in self.engines:
            engine.inject(record.copy())

    def take_down(self, rows: Any) -> None:
        for engine in self.engines:
            engine.network.alive[rows] = False

    def assert_equal(self) -> None:
        assert self.event_engine.cycle == self.cycle_engine.cycle
        one, other = (arrays_of(engine.state, scratch=True) for engine in self.engines)
        assert len(one) > 5
        for name, array in one.items():
            np.testing.assert_array_equal(array, other[name], err_msg=f"{name}, seed {SEED}")
        counts, others = [engine.network.counts for engine in self.engines]
        np.testing.assert_array_equal(counts, others)
        assert self.chains[0][1] > NODES * CYCLES / 2
        np.testing.assert_array_equal(*self.chains)


@pytest.mark.parametrize("reports", [True, False])
@pytest.mark.parametrize("name", config.SAMPLERS)
def test_engines_agree_on_a_bare_sampler(name: str, reports: bool) -> None:
    """Also when only one of them gives hints, which change nothing."""

    def make() -> Any:
        sampler = make_sampler(NODES, name, 20, 8, 2, SEED)
        fill_random_views(sampler, np.ones(NODES, np.bool_), SEED, 5)
        return sampler

    how: dict[str, Any] = {"reserve": 1 << 10, "hint": sample_hint, "reports_unreachable": reports}
    pair = Pair(make, sample_step, (SAMPLE_TIMER,), **how)
    for cycle in range(CYCLES):
        if cycle == CYCLES // 2:
            pair.take_down(np.arange(0, NODES, 7))
        pair.run_cycle()
    assert pair.cycle_engine.network.counts[1] > 0
    pair.assert_equal()


def peer_state(settings: config.Settings) -> State:
    """Peers with random views that each want a random range of every attribute."""
    state = make_state(settings, NODES)
    draws = np.random.default_rng(SEED)
    for p in range(NODES):
        low = draws.integers(0, RING_MASK - (RING_MASK >> 4), settings.attributes)
        box = np.stack([low, low + (RING_MASK >> 4)], axis=1).reshape(1, -1)
        peer.subscribe(state, p, box, np.array([(1 << settings.attributes) - 1]))
    fill_random_views(state.sampler, np.ones(NODES, np.bool_), SEED, 5)
    return state


def test_engines_agree_on_the_whole_peer_protocol() -> None:
    settings = presets.paper(NODES, attributes=2, seed=SEED)
    reserve = peer.largest_step(settings)
    pair = Pair(lambda: peer_state(settings), peer.step, peer.TIMERS, reserve)
    draws = np.random.default_rng(SEED)
    for cycle in range(CYCLES):
        if cycle == CYCLES // 2:
            pair.take_down(np.arange(3, NODES, 11))
        pair.run_cycle()
        values = draws.integers(0, RING_MASK, 2)
        pair.inject(peer.publish_record(int(draws.integers(NODES)), cycle, values))
    assert pair.cycle_engine.network.counts[1] > 0
    pair.assert_equal()
