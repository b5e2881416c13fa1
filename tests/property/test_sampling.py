"""Invariants of the samplers: both forms of a rule agree, rows stay apart, views stay sound."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.protocol.kernel.records import FROM, KIND, TO, UNREACHABLE, Words, make_outbox
from gossamer.protocol.kernel.rules import use_compiled
from gossamer.protocol.peer.record_table.records import SAMPLE_TIMER
from gossamer.protocol.peer.sampling.sampler import (
    RULES,
    SamplerState,
    sample_hint,
    sample_step,
)
from gossamer.protocol.peer.settings.config import SAMPLERS
from gossamer.sim.engine.cycle_engine import CycleEngine, give_no_hint, make_network
from support import sampling_runs

SEEDS = st.integers(-(2**63), 2**63 - 1)
POISON = 0x5A5A5A5A5A5A


def compiled_run(sampler: SamplerState, down: set[int], cycles: int, hint: bool) -> CycleEngine:
    network = make_network(len(sampler.key))
    network.alive[list(down)] = False
    engine = CycleEngine(
        sampler,
        sample_step,
        (SAMPLE_TIMER,),
        network,
        seed=9,
        hint=sample_hint if hint else give_no_hint,
        outbox_words=1 << 12,
        reserve=1 << 10,
    )
    for _ in range(cycles):
        engine.run_cycle()
    return engine


@pytest.mark.parametrize("profile_words", [0, 2])
@pytest.mark.parametrize("name", SAMPLERS)
@given(seed=SEEDS, nodes=st.integers(2, 40), view_size=st.integers(1, 12), data=st.data())
@settings(max_examples=8)
def test_compiled_and_interpreted_runs_are_equal_bit_for_bit(
    name: str, profile_words: int, seed: int, nodes: int, view_size: int, data: st.DataObject
) -> None:
    shuffle = data.draw(st.integers(1, view_size))
    down = data.draw(st.sets(st.integers(0, nodes - 1), max_size=nodes // 3))
    compiled = sampling_runs.ring_sampler(nodes, name, view_size, shuffle, profile_words, seed)
    interpreted = copy.deepcopy(compiled)
    engine = compiled_run(compiled, down, cycles=5, hint=True)
    for now in range(5):
        engine.cycle = now
        sampling_runs.run_cycle(interpreted, engine.network.alive, engine.visiting_order(), now)
    for name in sampling_runs.STATE_ARRAYS:
        np.testing.assert_array_equal(getattr(compiled, name), getattr(interpreted, name), name)


@pytest.mark.parametrize("name", SAMPLERS)
def test_hints_change_nothing(name: str) -> None:
    with_hints = sampling_runs.ring_sampler(64, name, 8, 4, 1, seed=2)
    without = copy.deepcopy(with_hints)
    compiled_run(with_hints, {3, 4}, cycles=10, hint=True)
    compiled_run(without, {3, 4}, cycles=10, hint=False)
    assert sampling_runs.states_equal(with_hints, without)


@pytest.mark.parametrize("name", SAMPLERS)
@given(seed=SEEDS, cycles=st.integers(1, 6), nodes=st.integers(2, 30), view=st.integers(1, 10))
def test_views_stay_sound(name: str, seed: int, cycles: int, nodes: int, view: int) -> None:
    """Nobody holds itself or anybody twice; used slots lead; profiles stay with their owners."""
    sampler = sampling_runs.ring_sampler(nodes, name, view, max(1, view // 2), 2, seed)
    alive = np.ones(nodes, bool)
    alive[nodes // 2] = False
    order = np.arange(nodes)
    for now in range(cycles):
        sampling_runs.run_cycle(sampler, alive, order, now)
    for p in range(nodes):
        held = sampling_runs.descriptors_of(sampler, p)
        handles = [handle for _, handle in held]
        assert p not in handles
        assert len(set(handles)) == len(handles)
        assert (sampler.views[p, len(held) :] == -1).all()
        expected = sampling_runs.profile_of(np.array(handles, np.int64), 2)
        np.testing.assert_array_equal(sampler.view_profile[p, : len(held)], expected)
        if name == "newscast":
            assert held == sorted(held, key=lambda descriptor: -descriptor[0])
            assert all(freshness <= now for freshness, _ in held)


def handle_record(sampler: SamplerState, p: int, now: int, words: Words) -> list[list[int]]:
    out = make_outbox(4096)
    sample_step(sampler, p, now, words.copy(), 0, out)
    return [list(r) for r in sampling_runs.written(out)]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", SAMPLERS)
def test_rules_touch_their_own_row_only(name: str, compiled: bool) -> None:
    """With every other row poisoned a rule does and writes the same, and leaves the poison."""
    sent = sampling_runs.take(
        sampling_runs.ring_sampler(6, name, 4, 3, 1, seed=4),
        1,
        sampling_runs.timer_record(1),
        now=3,
    )
    records = [sampling_runs.timer_record(0)]
    for words in sent:
        for kind in (*RULES, int(words[KIND]) + UNREACHABLE):
            records.append(words.copy())
            records[-1][[KIND, TO, FROM]] = kind, 0 if kind < UNREACHABLE else 2, 1
    for words in records:
        clean = sampling_runs.ring_sampler(6, name, 4, 3, 1, seed=4)
        poisoned = copy.deepcopy(clean)
        for array in sampling_runs.STATE_ARRAYS:
            getattr(poisoned, array)[1:] = POISON
        with use_compiled(compiled):
            expected = handle_record(clean, 0, 3, words)
            found = handle_record(poisoned, 0, 3, words)
        assert found == expected
        for array in sampling_runs.STATE_ARRAYS:
            found_row, expected_row = getattr(poisoned, array)[0], getattr(clean, array)[0]
            np.testing.assert_array_equal(found_row, expected_row, array)
            assert (getattr(poisoned, array)[1:] == POISON).all(), array


@pytest.mark.parametrize("name", SAMPLERS)
@given(
    record_kind=st.sampled_from(sorted(RULES)),
    count=st.integers(-2, 8),
    body=st.lists(st.integers(-(2**63), 2**63 - 1), max_size=16),
    now=st.integers(0, 1 << 20),
)
def test_no_record_makes_a_view_unsound(
    name: str, record_kind: int, count: int, body: list[int], now: int
) -> None:
    """Whatever words arrive, the view holds at most C plain descriptors and not its owner."""
    sampler = sampling_runs.ring_sampler(6, name, 4, 3, 1, seed=4)
    sampling_runs.take(sampler, 0, sampling_runs.record(record_kind, 0, 2, [count, *body]), now)
    held = sampling_runs.descriptors_of(sampler, 0)
    assert 0 not in [handle for _, handle in held]
    assert (sampler.views[0, len(held) :] == -1).all()
    assert all(0 <= freshness < 1 << 29 for freshness, _ in held)
    sampling_runs.take(sampler, 0, sampling_runs.timer_record(0), now + 1)
