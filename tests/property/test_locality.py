"""A rule reads and writes its own row only: every step of a lively run, with the rest poisoned."""

from __future__ import annotations

import copy
from collections import Counter

import numpy as np
import pytest

from gossamer.protocol.kernel.records import KIND, UNREACHABLE, Words
from gossamer.protocol.peer import codec
from gossamer.protocol.peer import step as peer
from gossamer.protocol.peer.record_table import records as messages
from gossamer.protocol.peer.sampling.sampler import RULES
from gossamer.protocol.peer.settings import config
from gossamer.protocol.peer.space.ring import RING_MASK
from gossamer.protocol.peer.state.state import WANTED, State
from support import overlays

NODES = 11
POISON = 0x5A5A5A5A5A5A
RETURNED = [
    kind + UNREACHABLE
    for kind in (messages.TMAN_REQUEST, messages.INSTALL, messages.EVENT, messages.RECALL)
]


def expected_kinds(settings: config.Settings) -> set[int]:
    """The kinds of record that a lively run of peers with a sampler has."""
    of_other_samplers = RULES.keys() - codec.layouts_of(settings).keys() - {messages.SAMPLE_TIMER}
    return {*peer.ABOUT_EVENTS, *peer.ABOUT_PEERS, *RETURNED} - of_other_samplers


class PoisonedHosts(overlays.Hosts):
    """Hosts that repeat steps with all other rows poisoned, and compare.

    Args:
        most: of each kind of record, so many steps are repeated.
    """

    def __init__(self, state: State, settings: config.Settings, most: int) -> None:
        super().__init__(state, settings)
        self.kinds: Counter[int] = Counter()
        self._most = most
        self._poisoned = overlays.Hosts(copy.deepcopy(state), settings)
        theirs = overlays.arrays_of(self._poisoned.state)
        self._arrays = [
            (name, mine, theirs[name]) for name, mine in overlays.arrays_of(state).items()
        ]
        for _, _, array in self._arrays:
            array[:] = POISON

    def step(self, p: int, words: Words) -> list[Words]:
        self.kinds[int(words[KIND])] += 1
        if self.kinds[int(words[KIND])] > self._most:
            return super().step(p, words)
        for _, mine, theirs in self._arrays:
            theirs[p] = mine[p]
        self._poisoned.now = self.now
        found = self._poisoned.step(p, words.copy())
        expected = super().step(p, words)
        assert [one.tolist() for one in found] == [one.tolist() for one in expected]
        for name, mine, theirs in self._arrays:
            assert np.array_equal(theirs[p], mine[p]), name
            theirs[p] = POISON
            assert (theirs == POISON).all(), name
        return expected


def small_state() -> State:
    settings = config.resilient(NODES, view_size=4, shuffle_length=2)
    return overlays.converged(settings, overlays.random_identifiers(NODES, 1), 1)


def test_every_array_of_a_state_has_a_row_for_each_peer() -> None:
    """So that poisoning by the first axis leaves nothing out."""
    assert all(array.shape[0] == NODES for array in overlays.arrays_of(small_state()).values())


@pytest.mark.parametrize(
    ("nodes", "cycles", "most"),
    [(11, 6, 25), pytest.param(14, 8, 10_000_000, marks=pytest.mark.campaign)],
)
@pytest.mark.parametrize("sampler", config.SAMPLERS)
def test_no_step_touches_a_foreign_row(sampler: str, nodes: int, cycles: int, most: int) -> None:
    seed = 1
    settings = config.resilient(
        nodes,
        attributes=2,
        small_world_links=1,
        finger_levels=1,
        guest_links=1,
        move_rounds=2,
        acknowledged_hops=4,
        ring_offers=True,
        view_size=4,
        shuffle_length=2,
        event_memory=4,
        pending_publications=2,
        held_events=8,
        retention_rounds=20,
        routing_table_entries=16,
        boxes_per_neighbour=4,
        sampler=sampler,
        shift_threshold=0.0,
        seed=seed,
    )
    state = overlays.converged(settings, overlays.random_identifiers(nodes, seed), seed)
    state.guest_targets[:, 0] = state.sampler.key[::-1]
    draws = np.random.default_rng(seed)
    for p in range(nodes):
        low = draws.integers(0, RING_MASK >> 1, 2).tolist()
        overlays.subscribe_to_box(state, p, *((a, a + (RING_MASK >> 3)) for a in low))
    overlays.subscribe_to_box(state, 4, (0, RING_MASK), (0, RING_MASK))
    hosts = PoisonedHosts(state, settings, most)
    for cycle in range(cycles):
        if cycle == 3:
            hosts.alive[[2, 7]] = False
        if cycle == 4:
            state.seat[1::3, WANTED] = state.sampler.key[::-3][: len(state.seat[1::3])] + 99
        if cycle == 5:
            hosts.alive[2] = True
            peer.restart(state, 2)
            hosts.handle(peer.join_record(2, 3, state.sampler.profile[3]))
            hosts.handle(overlays.record(messages.LINK_BROKE, 3, 3, [2]))
            hosts.handle(overlays.record(messages.WITHDRAW, 3, 3, [4 * cycle]))
        if cycle >= 3:
            hosts.handle(overlays.record(messages.CATCH_UP, 4, 4, [10]))
            hosts.handle(overlays.record(messages.ROUNDS_SKIPPED, 4, 4, [1]))
        for event in range(4):
            hosts.publish(0, 4 * cycle + event, *draws.integers(0, RING_MASK, 2).tolist())
        hosts.cycle()
    assert hosts.kinds.keys() >= expected_kinds(settings)
    assert hosts.largest <= peer.largest_step(settings)
