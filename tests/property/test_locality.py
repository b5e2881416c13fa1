"""Rules touch their own row alone, and views of samplers stay sound."""

from __future__ import annotations

import copy
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.kernel.records import KIND, UNREACHABLE, Words
from gossamer.protocol.peer import codec
from gossamer.protocol.peer import step as peer
from gossamer.protocol.peer.record_table import records as messages
from gossamer.protocol.peer.record_table.records import SAMPLE_TIMER
from gossamer.protocol.peer.sampling.sampler import RULES, SamplerState, sample_hint, sample_step
from gossamer.protocol.peer.settings import config, presets
from gossamer.protocol.peer.settings.config import SAMPLERS
from gossamer.protocol.peer.space.ring import RING_MASK
from gossamer.protocol.peer.state.state import WANTED, State
from gossamer.sim.engine.cycle_engine import CycleEngine, make_network
from support import overlays
from support.draws import few_examples

POISON = 0x5A5A5A5A5A5A
RETURNED = [
    kind + UNREACHABLE
    for kind in (messages.TMAN_REQUEST, messages.INSTALL, messages.EVENT, messages.COMPARE)
]
SEEDS = st.integers(-(2**63), 2**63 - 1)


def expected_kinds(settings: config.Settings) -> set[int]:
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
        self._arrays = [(name, my, theirs[name]) for name, my in overlays.arrays_of(state).items()]
        for _, _, array in self._arrays:
            assert len(array) == len(self.alive), "each peer has a row"
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


@pytest.mark.parametrize(
    ("nodes", "cycles", "most"),
    [(11, 6, 25), pytest.param(14, 8, 10_000_000, marks=pytest.mark.campaign)],
)
@pytest.mark.parametrize("sampler", config.SAMPLERS)
def test_no_step_touches_a_foreign_row(sampler: str, nodes: int, cycles: int, most: int) -> None:
    seed = 1
    links = {"small_world_links": 1, "finger_levels": 1, "guest_links": 1, "move_rounds": 2}
    hops = {"acknowledged_hops": 4, "ring_offers": True, "shift_threshold": 0.0, "seed": seed}
    views = {"view_size": 4, "shuffle_length": 2, "sampler": sampler}
    memory = {"event_memory": 4, "pending_publications": 2, "held_events": 8}
    tables = {"retention_rounds": 20, "routing_table_entries": 16, "boxes_per_neighbour": 4}
    resting = {"suspect_rounds": 1, "rest_rounds": 2}
    settings = presets.resilient(
        nodes, attributes=2, **links, **hops, **views, **memory, **tables, **resting
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
            asked = [4, 0, 0, 1, 5, 9, 9, messages.ALL_CLASSES, 0, 0, 7, -1, *[0, RING_MASK] * 2]
            # What comes back by chance alone, made to.
            hosts.step(4, overlays.record(messages.COMPARE + UNREACHABLE, 2, 4, asked))
            body = [3, *[0] * (messages.EVENT_VALUES - 1), 5, 5]
            body[messages.EVENT_HOPS], body[messages.EVENT_ORIGIN] = 1, 4
            hosts.handle(*hosts.step(9, overlays.record(messages.EVENT + UNREACHABLE, 7, 9, body)))
            hosts.step(9, overlays.record(messages.TMAN_REQUEST + UNREACHABLE, 7, 9))
            answer = overlays.record(messages.STORED + UNREACHABLE, 7, 9, [1, 0])
            hosts.handle(*hosts.step(9, answer))
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
    assert any(kind - UNREACHABLE in RULES for kind in hosts.kinds), "the sampler's come back, too"
    assert hosts.largest <= peer.largest_step(settings)


def compiled_run(sampler: SamplerState, down: set[int], cycles: int) -> CycleEngine:
    network = make_network(len(sampler.key))
    network.alive[list(down)] = False
    engine = CycleEngine(
        sampler,
        sample_step,
        (SAMPLE_TIMER,),
        network,
        seed=9,
        hint=sample_hint,
        outbox_words=1 << 12,
        reserve=1 << 10,
    )
    for _ in range(cycles):
        engine.run_cycle()
    return engine


@pytest.mark.parametrize("profile_words", [0, 2])
@pytest.mark.parametrize("name", SAMPLERS)
@few_examples(12)
@given(seed=SEEDS, nodes=st.integers(2, 40), view_size=st.integers(1, 12), data=st.data())
def test_compiled_and_interpreted_runs_are_equal_bit_for_bit(
    name: str, profile_words: int, seed: int, nodes: int, view_size: int, data: st.DataObject
) -> None:
    """The interpreted one is given no hints, which change nothing. And views stay sound."""
    shuffle, cycles = data.draw(st.integers(1, view_size)), data.draw(st.integers(1, 6))
    down = data.draw(st.sets(st.integers(0, nodes - 1), max_size=nodes // 3))
    compiled = overlays.ring_sampler(nodes, name, view_size, shuffle, profile_words, seed)
    interpreted = copy.deepcopy(compiled)
    engine = compiled_run(compiled, down, cycles)
    for now in range(cycles):
        engine.cycle = now
        overlays.run_cycle(interpreted, engine.network.alive, engine.visiting_order(), now)
    for array in overlays.STATE_ARRAYS:
        np.testing.assert_array_equal(getattr(compiled, array), getattr(interpreted, array), array)
    check_views(interpreted, name, profile_words, cycles)


def check_views(sampler: SamplerState, name: str, profile_words: int, now: int) -> None:
    """Nobody holds itself or anybody twice; used slots lead; profiles stay with their owners."""
    for p in range(len(sampler.key)):
        held = overlays.descriptors_of(sampler, p)
        handles = [handle for _, handle in held]
        assert p not in handles
        assert len(set(handles)) == len(handles)
        assert (sampler.views[p, len(held) :] == -1).all()
        expected = overlays.profile_of(np.array(handles, np.int64), profile_words)
        np.testing.assert_array_equal(sampler.view_profile[p, : len(held)], expected)
        if name == "newscast":
            assert held == sorted(held, key=lambda descriptor: -descriptor[0])
            assert all(freshness <= now for freshness, _ in held)


@pytest.mark.parametrize("name", SAMPLERS)
@given(
    kind=st.sampled_from(sorted(RULES)),
    count=st.integers(-2, 8),
    body=st.lists(st.integers(-(2**63), 2**63 - 1), max_size=16),
    now=st.integers(0, 1 << 20),
)
def test_records_spoil_no_view(name: str, kind: int, count: int, body: list[int], now: int) -> None:
    """Whatever words arrive, the view holds at most C plain descriptors and not its owner."""
    sampler = overlays.ring_sampler(6, name, 4, 3, 1, seed=4)
    overlays.take(sampler, 0, overlays.record(kind, 0, 2, [count, *body]), now)
    held = overlays.descriptors_of(sampler, 0)
    assert 0 not in [handle for _, handle in held]
    assert (sampler.views[0, len(held) :] == -1).all()
    assert all(0 <= freshness < 1 << 29 for freshness, _ in held)
    overlays.take(sampler, 0, overlays.timer_record(0), now + 1)
