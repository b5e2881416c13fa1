"""Checked runs of the protocols that come with the project find nothing and change nothing."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from gossamer.protocol.peer import prefetching
from gossamer.protocol.peer import step as peer
from gossamer.protocol.peer.record_table.records import OVERLAY_TIMER, SAMPLE_TIMER
from gossamer.protocol.peer.sampling.sampler import sample_step
from gossamer.protocol.peer.settings import config
from gossamer.protocol.peer.space.ring import RING_MASK
from gossamer.protocol.peer.space.routing_key import points_of
from gossamer.protocol.peer.state.state import make_state
from gossamer.sim.bench.overlay_protocol import overlay_step
from gossamer.sim.engine.cycle_engine import CycleEngine, make_network
from gossamer.sim.engine.event_engine import EventEngine
from gossamer.sim.engine.initialisers import fill_random_views
from gossamer.sim.engine.latency import uniform_latency
from gossamer.sim.engine.link_conditions import make_link_conditions
from gossamer.sim.studies.peers.running.collector import make_collector, observe
from support.draws import larger
from support.overlays import arrays_of, converged, random_identifiers, subscribe_to_box
from support.sampling_runs import ring_sampler
from support.window_engines import make_window_engine

Arrays = dict[str, npt.NDArray[Any]]

NODES, CYCLES, SEED = larger(8, 12), larger(4, 5), 5

WINDOWS = pytest.param(make_window_engine, marks=pytest.mark.campaign)
ENGINES = pytest.mark.parametrize("engine", [CycleEngine, EventEngine, WINDOWS])
# For the same rules as those of push-sum, which is run under two engines.
OTHERS = [pytest.param(EventEngine, marks=pytest.mark.campaign), WINDOWS]
CYCLES_OR_ALL = pytest.mark.parametrize("engine", [CycleEngine, *OTHERS])

PRESETS: dict[str, config.Settings] = {
    "paper": config.paper(NODES, attributes=2, seed=SEED),
    "baseline": config.baseline(NODES, attributes=2, seed=SEED),
    "kindred": config.kindred(NODES, attributes=2, subscriptions=2, seed=SEED),
    "resilient": config.resilient(
        NODES,
        attributes=2,
        seed=SEED,
        small_world_links=2,
        sampler="newscast",
        shift_threshold=0.0,
        event_memory=8,
        pending_publications=4,
        held_events=8,
        retention_rounds=5,
    ),
}


def conditions(engine: Any) -> dict[str, Any]:
    """Links that are not perfect, where an engine knows of any."""
    if engine is CycleEngine:
        return {}
    latency = uniform_latency(0 if engine is EventEngine else 200, 400)
    links = make_link_conditions(NODES, seed=SEED, latency=latency, loss=0.05, duplication=0.05)
    return {"links": links}


def run_peers(engine: Any, settings: config.Settings, debug: bool) -> Arrays:
    """Peers that publish, leave and join; all arrays there are after some cycles."""
    state = converged(settings, random_identifiers(NODES, SEED), SEED)
    draws = np.random.default_rng(SEED)
    for p in range(NODES):
        low = draws.integers(0, RING_MASK >> 1, 2).tolist()
        box = [(a, a + (RING_MASK >> 2)) for a in low]
        subscribe_to_box(state, p, *box, settings=settings)
        if settings.guest_links:
            state.guest_targets[p, 0] = low[0]
    events = 3 * CYCLES
    network, collector = make_network(NODES), make_collector(NODES, events, events, 1024)
    made = engine(
        *(state, peer.step, peer.TIMERS, network, SEED),
        observe=observe,
        collector=collector,
        reserve=peer.largest_step(settings),
        debug=debug,
        **({"hint": prefetching.hint} if engine is not make_window_engine else {}),
        **({"approach": prefetching.approach} if engine is not EventEngine else {}),
        **conditions(engine),
    )
    for cycle in range(CYCLES):
        network.alive[[3, 5]] = cycle != 2
        made.run_cycle()
        for i in range(3):
            event = 3 * cycle + i
            collector.watched[event] = event
            values = draws.integers(0, RING_MASK, (1, 2))
            point = points_of(settings, values, np.array([event]))[0]
            made.inject(peer.publish_record(i, event, point))
        if cycle == 3:
            peer.restart(state, 7)
            made.inject(peer.join_record(7, 0, state.sampler.profile[0].copy()))
    assert collector.logged[0] > 0
    return arrays_of(state) | arrays_of(collector, "collector") | {"counts": network.counts}


def assert_same(one: Arrays, other: Arrays) -> None:
    assert one.keys() == other.keys()
    for name in one:
        assert one[name].tobytes() == other[name].tobytes(), name


def same_of_both(
    engine: Any, make: Any, step: Any, timers: tuple[int, ...], flickers: bool = False, **how: Any
) -> Arrays:
    """What a protocol has come to, which is the same checked and compiled.

    Where one ``flickers``, row 4 is down in every other cycle.
    """
    found = []
    for debug in (True, False):
        state, network, given = make(), make_network(NODES), how | conditions(engine)
        made = engine(state, step, timers, network, SEED, debug=debug, **given)
        for cycle in range(CYCLES):
            network.alive[4] = not flickers or cycle % 2 == 0
            made.run_cycle()
        found.append(arrays_of(state) | {"counts": network.counts})
    assert_same(*found)
    return found[0]


@CYCLES_OR_ALL
@pytest.mark.parametrize("preset", PRESETS)
def test_peers_do_the_same_checked_and_compiled(engine: Any, preset: str) -> None:
    settings = PRESETS[preset]
    assert_same(run_peers(engine, settings, True), run_peers(engine, settings, False))


@CYCLES_OR_ALL
@pytest.mark.parametrize("name", config.SAMPLERS)
def test_samplers_do_the_same_checked_and_compiled(engine: Any, name: str) -> None:
    def make() -> Any:
        return ring_sampler(NODES, name, 6, 3, 2, SEED)

    found = same_of_both(engine, make, sample_step, (SAMPLE_TIMER,), flickers=True)
    assert found["counts"][0] > NODES


@pytest.mark.campaign
@ENGINES
def test_topology_management_does_the_same_checked_and_compiled(engine: Any) -> None:
    settings = config.paper(
        NODES, friend_links=4, ring_links=0, view_size=6, shuffle_length=3, seed=SEED
    )

    def make() -> Any:
        state = make_state(settings, NODES)
        for p in range(NODES):
            subscribe_to_box(state, p, (p << 50, (p + 3) << 50))
        fill_random_views(state.sampler, np.ones(NODES, np.bool_), SEED, 4)
        return state

    timers, reserve = (SAMPLE_TIMER, OVERLAY_TIMER), peer.largest_step(settings)
    found = same_of_both(engine, make, overlay_step, timers, reserve=reserve)
    assert (found["state.links"] >= 0).any()


@ENGINES
def test_push_sum_does_the_same_checked_and_compiled(engine: Any, push_sum: ModuleType) -> None:
    def make() -> Any:
        return push_sum.Shares(total=np.arange(NODES, dtype=float), weight=np.ones(NODES))

    found = same_of_both(engine, make, push_sum.step, (push_sum.TURN,))
    assert np.var(found["state.total"]) > 0
