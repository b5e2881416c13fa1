"""The whole protocol, compiled in the cycle engine and interpreted record by record, is one."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from gossamer.protocol.kernel.records import Words
from gossamer.protocol.peer import step as peer
from gossamer.protocol.peer.settings import config
from gossamer.protocol.peer.space.ring import RING_MASK
from gossamer.protocol.peer.state.state import REPLAYED, SHIFTED, State
from gossamer.sim.engine.cycle_engine import CycleEngine, make_network
from support.overlays import (
    Hosts,
    arrays_of,
    converged,
    random_identifiers,
    subscribe_to_box,
)

NODES, CYCLES, SEED = 24, 6, 12


def commands(state: State, cycle: int, draws: np.random.Generator) -> list[Words]:
    """Events of a cycle, and a newcomer's join in the middle of the run."""
    values = draws.integers(0, RING_MASK, (6, 2))
    records = [
        peer.publish_record(int(draws.integers(NODES // 2)), 6 * cycle + i, values[i])
        for i in range(6)
    ]
    if cycle == CYCLES // 2:
        records.append(peer.join_record(NODES - 1, 0, state.sampler.profile[0].copy()))
    return records


@pytest.mark.slow
def test_a_run_is_the_same_bit_for_bit_compiled_and_interpreted() -> None:
    """With churn, load shifting, replicas and replay: every array of every peer."""
    settings = config.resilient(
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
    state = converged(settings, random_identifiers(NODES, SEED), SEED)
    draws = np.random.default_rng(SEED)
    for p in range(NODES):
        low = draws.integers(0, RING_MASK >> 1, 2).tolist()
        subscribe_to_box(state, p, *((a, a + (RING_MASK >> 2)) for a in low))
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
        for words in commands(state, cycle, draws):
            hosts.handle(words)
            engine.inject(words)
        theirs = arrays_of(hosts.state)
        for name, array in arrays_of(state).items():
            np.testing.assert_array_equal(array, theirs[name], f"{name}, cycle {cycle}")
    assert (state.counters[:, [SHIFTED, REPLAYED]].sum(axis=0) > 0).all()
    assert hosts.served
