"""The whole protocol, compiled in the cycle engine and interpreted record by record, is one."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from gossamer.protocol.peer import step as peer
from gossamer.protocol.peer.settings import config
from gossamer.protocol.peer.space.ring import RING_MASK
from gossamer.protocol.peer.space.routing_key import points_of
from gossamer.protocol.peer.state.state import REPLAYED, SHIFTED, WANTED
from gossamer.sim.engine.cycle_engine import CycleEngine, make_network
from support.overlays import Hosts, arrays_of, converged, random_identifiers, subscribe_to_box

NODES, CYCLES, SEED = 24, 6, 12


RESILIENT = config.resilient(
    NODES,
    attributes=2,
    small_world_links=2,
    view_size=8,
    shuffle_length=4,
    boxes_per_neighbour=4,
    routing_table_entries=32,
    event_memory=8,
    shift_threshold=0.0,
    sampler="newscast",
    seed=SEED,
)
KINDRED = config.kindred(NODES, attributes=2, subscriptions=2, event_memory=8, seed=SEED)


@pytest.mark.parametrize(
    ("settings", "happens"),
    [(RESILIENT, [SHIFTED, REPLAYED]), (KINDRED, [REPLAYED, SHIFTED])],
    ids=["resilient", "kindred"],
)
def test_a_run_is_the_same_bit_for_bit_compiled_and_interpreted(
    settings: config.Settings, happens: list[int]
) -> None:
    """With churn, load shifting, replicas and replay: every array of every peer."""
    state = converged(settings, random_identifiers(NODES, SEED), SEED)
    draws = np.random.default_rng(SEED)
    for p in range(NODES):
        low = draws.integers(0, RING_MASK >> 1, 2).tolist()
        box = [(a, a + (RING_MASK >> 2)) for a in low]
        subscribe_to_box(state, p, *box, settings=settings)
        if settings.guest_links:
            state.guest_targets[p, 0] = low[0]
        if settings.move_rounds and p % 3 == 1:
            state.seat[p, WANTED] = low[1]
    peer.restart(state, NODES - 1)
    hosts = Hosts(copy.deepcopy(state), settings)
    network = make_network(NODES)
    engine = CycleEngine(
        state, peer.step, peer.TIMERS, network, SEED, reserve=peer.largest_step(settings)
    )
    for cycle in range(CYCLES):
        down = [3, 5] if cycle == 2 else []
        network.alive[down] = False
        hosts.alive[down] = False
        hosts.cycle(engine.visiting_order())
        engine.run_cycle()
        values = draws.integers(0, RING_MASK, (6, 2))
        points = points_of(settings, values, 6 * cycle + np.arange(6))
        records = [
            peer.publish_record(int(draws.integers(NODES // 2)), 6 * cycle + i, point)
            for i, point in enumerate(points)
        ]
        if cycle == CYCLES // 2:
            records.append(peer.join_record(NODES - 1, 0, state.sampler.profile[0].copy()))
        for words in records:
            hosts.handle(words)
            engine.inject(words)
        theirs = arrays_of(hosts.state)
        for name, array in arrays_of(state).items():
            np.testing.assert_array_equal(array, theirs[name], f"{name}, cycle {cycle}")
    assert (state.counters[:, happens].sum(axis=0) > 0).all()
    assert hosts.served
