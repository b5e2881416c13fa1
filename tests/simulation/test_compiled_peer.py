"""Protocols that come with the project do the same compiled, interpreted and checked."""

from __future__ import annotations

import copy
from types import ModuleType
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt
import pytest

from gossamer.protocol.peer import prefetching
from gossamer.protocol.peer import step as peer
from gossamer.protocol.peer.record_table.records import SAMPLE_TIMER
from gossamer.protocol.peer.sampling.sampler import sample_step
from gossamer.protocol.peer.settings import config, presets
from gossamer.protocol.peer.space.ring import RING_MASK, points_of
from gossamer.protocol.peer.state.state import AWAKE, LEVEL, REPLAYED, SHIFTED, WANTED, State
from gossamer.sim.engine.cycle_engine import CycleEngine, make_network
from gossamer.sim.engine.event_engine import EventEngine
from gossamer.sim.engine.latency import uniform_latency
from gossamer.sim.engine.link_conditions import make_link_conditions
from gossamer.sim.studies.peers.running.collector import make_collector, observe
from support.draws import larger
from support.overlays import (
    Hosts,
    arrays_of,
    converged,
    random_identifiers,
    ring_sampler,
    subscribe_to_box,
)
from support.ping_protocol import make_window_engine

Arrays = dict[str, npt.NDArray[Any]]


def interested(
    settings: config.Settings, nodes: int, seed: int
) -> tuple[State, np.random.Generator]:
    """Peers of an overlay that stands, of which each wants a quarter of both attributes."""
    state = converged(settings, random_identifiers(nodes, seed), seed)
    draws = np.random.default_rng(seed)
    for p in range(nodes):
        low = draws.integers(0, RING_MASK >> 1, 2).tolist()
        subscribe_to_box(state, p, *((a, a + (RING_MASK >> 2)) for a in low), settings=settings)
        if settings.guest_links:
            state.guest_targets[p, 0] = low[0]
    return state, draws


# Compiled in the cycle engine, and interpreted record by record in hosts of their own


PEERS, ROUNDS, DRAWN = 24, 6, 12
RESILIENT = presets.resilient(
    PEERS,
    attributes=2,
    small_world_links=2,
    view_size=8,
    shuffle_length=4,
    boxes_per_neighbour=4,
    routing_table_entries=32,
    event_memory=8,
    shift_threshold=0.0,
    sampler="newscast",
    seed=DRAWN,
)
KINDRED = presets.kindred(PEERS, attributes=2, subscriptions=2, event_memory=8, seed=DRAWN)
RESTING = attrs.evolve(KINDRED, rest_rounds=8)


@pytest.mark.parametrize(
    ("settings", "happens"),
    [
        (RESILIENT, [SHIFTED, REPLAYED]),
        (KINDRED, [REPLAYED, SHIFTED]),
        (RESTING, [REPLAYED, SHIFTED]),
    ],
    ids=["resilient", "kindred", "resting"],
)
def test_a_run_is_the_same_bit_for_bit_compiled_and_interpreted(
    settings: config.Settings, happens: list[int]
) -> None:
    """With churn, load shifting, replicas and replay: every array of every peer."""
    state, draws = interested(settings, PEERS, DRAWN)
    if settings.move_rounds:
        for p in range(1, PEERS, 3):
            state.seat[p, WANTED] = state.subscriptions[p, 0, 2]
    if settings.rest_levels:
        state.rest[:, LEVEL] = np.arange(PEERS) % 4
        state.rest[:, AWAKE] = 0
    peer.restart(state, PEERS - 1)
    hosts = Hosts(copy.deepcopy(state), settings)
    network = make_network(PEERS)
    engine = CycleEngine(
        state, peer.step, peer.TIMERS, network, DRAWN, reserve=peer.largest_step(settings)
    )
    for cycle in range(ROUNDS):
        down = [3, 5] if cycle == 2 else []
        network.alive[down] = False
        hosts.alive[down] = False
        hosts.cycle(engine.visiting_order())
        engine.run_cycle()
        values = draws.integers(0, RING_MASK, (6, 2))
        points = points_of(settings, values, 6 * cycle + np.arange(6))
        records = [
            peer.publish_record(int(draws.integers(PEERS // 2)), 6 * cycle + i, point)
            for i, point in enumerate(points)
        ]
        if cycle == ROUNDS // 2:
            records.append(peer.join_record(PEERS - 1, 0, state.sampler.profile[0].copy()))
        for words in records:
            hosts.handle(words)
            engine.inject(words)
        theirs = arrays_of(hosts.state)
        for name, array in arrays_of(state).items():
            np.testing.assert_array_equal(array, theirs[name], f"{name}, cycle {cycle}")
    assert (state.counters[:, happens].sum(axis=0) > 0).all()
    assert hosts.served


# Checked by engines


NODES, CYCLES, SEED = larger(8, 12), larger(4, 5), 5

WINDOWS = pytest.param(make_window_engine, marks=pytest.mark.campaign)
ENGINES = pytest.mark.parametrize("engine", [CycleEngine, EventEngine, WINDOWS])
# For the same rules as those of push-sum, which is run under two engines.
OTHERS = [pytest.param(EventEngine, marks=pytest.mark.campaign), WINDOWS]
CYCLES_OR_ALL = pytest.mark.parametrize("engine", [CycleEngine, *OTHERS])

PRESETS: dict[str, config.Settings] = {
    "paper": presets.paper(NODES, attributes=2, seed=SEED),
    "baseline": presets.baseline(NODES, attributes=2, seed=SEED),
    "kindred": presets.kindred(NODES, attributes=2, subscriptions=2, seed=SEED),
    "resilient": presets.resilient(
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
    state, draws = interested(settings, NODES, SEED)
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


@ENGINES
def test_push_sum_does_the_same_checked_and_compiled(engine: Any, push_sum: ModuleType) -> None:
    def make() -> Any:
        return push_sum.Shares(total=np.arange(NODES, dtype=float), weight=np.ones(NODES))

    found = same_of_both(engine, make, push_sum.step, (push_sum.TURN,))
    assert np.var(found["state.total"]) > 0
