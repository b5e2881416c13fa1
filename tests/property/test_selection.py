"""Which candidates become links, against brute force (Vinifera, Sec. IV-B1).

The oracle fills the slots one after another, each with the best candidate that is left. The rule
sees every candidate once, in any order, and keeps no list of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.compiled.store import keep_compiled_code
from gossamer.protocol.kernel.rules import use_compiled
from gossamer.protocol.peer.sampling.sampler import pack
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.settings.profile import HALF_BITS, IDENTIFIER, high_end, low_end
from gossamer.protocol.peer.space.ring import RING_MASK, clockwise
from gossamer.protocol.peer.state.links import AGE_SHIFT, put_link, settle_ring
from gossamer.protocol.peer.state.state import State, make_state
from gossamer.protocol.peer.topology import selection
from gossamer.protocol.peer.topology.link_changes import set_bars_by_links
from gossamer.protocol.peer.topology.small_world import offset_distance
from support.overlays import HANDLE, descriptor, subscribe_to_box

NODES, VIEW, FAILURE_AGE, ROUND = 16, 6, 4, 9
SHAPES = st.sampled_from([(2, 2, 3), (1, 1, 2), (1, 0, 4), (3, 2, 0), (2, 0, 1)])
AGES = st.integers(0, FAILURE_AGE + 1)
SIGHTINGS = st.tuples(AGES, st.integers(0, NODES - 1))


@pytest.fixture(scope="module", autouse=True)
def _keep_code() -> None:
    keep_compiled_code()


@dataclass
class Known:
    """What peer 0 knows of others when it selects: (age, handle) from each source."""

    links: list[tuple[int, int]]
    received: list[tuple[int, int]]
    view: list[tuple[int, int]]
    failed: list[tuple[int, int]]


@st.composite
def knowledge(draw: st.DrawFn, slots: int) -> Known:
    """Neighbours and members of the view are distinct; a message may name anybody repeatedly."""
    young = st.tuples(st.integers(0, FAILURE_AGE), st.integers(1, NODES - 1))

    def distinct(sightings: st.SearchStrategy[tuple[int, int]], most: int) -> list[tuple[int, int]]:
        return draw(st.lists(sightings, max_size=most, unique_by=lambda seen: seen[1]))

    links = distinct(young, slots)
    linked = {handle for _, handle in links}
    failed = [(age, q) for age, q in distinct(young, 3) if q not in linked]
    received = draw(st.lists(SIGHTINGS, max_size=slots + 1))
    return Known(links, received, distinct(SIGHTINGS, VIEW), failed)


def small_state(shape: tuple[int, int, int], ranges: int, seed: int) -> State:
    ring, small_world, friends = shape
    settings = Settings(
        ring_links=ring,
        small_world_links=small_world,
        friend_links=friends,
        view_size=VIEW,
        shuffle_length=2,
        failure_age=FAILURE_AGE,
        failures_remembered=3,
        profile_ranges=ranges,
        subscriptions=ranges,
        seed=seed,
    )
    state = make_state(settings, NODES)
    draws = np.random.default_rng(seed)
    for p in range(NODES):
        low = int(draws.integers(0, 4)) << 59
        subscribe_to_box(state, p, (low, low + (int(draws.integers(1, 3)) << 59)))
        if ranges == 2 and draws.random() < 0.5:
            state.sampler.profile[p, state.params.first_range + 1] = (3 << 29) << HALF_BITS | (
                7 << 28
            )
    return state


def learn(state: State, known: Known) -> None:
    """Let peer 0 have these neighbours, in any slots, this view, and these failures."""
    slots = np.random.default_rng(1).permutation(state.links.shape[1])
    state.round[0] = ROUND
    for k, (age, q) in zip(slots.tolist(), known.links, strict=False):
        put_link.interpreted(state, 0, k, descriptor(state, q, age), 0)
    settle_ring.interpreted(state, 0)
    for c, (age, q) in enumerate(known.view):
        state.sampler.views[0, c] = pack.interpreted(age, q)
        state.sampler.view_profile[0, c] = state.sampler.profile[q]
    for f, (age, q) in enumerate(known.failed):
        state.failed[0, f] = (ROUND - age) << AGE_SHIFT | q


def received_words(state: State, known: Known) -> np.ndarray:
    """The descriptors that came, after three other words."""
    received = (descriptor(state, q, age) for age, q in known.received)
    return np.concatenate([np.zeros(3, np.int64), *received])


def select(state: State, words: np.ndarray, received: int, *, view_first: bool = False) -> None:
    """Let peer 0 choose its links among those it knows and some descriptors that came."""
    selection.offer_links(state, 0)
    if view_first:
        selection.offer_sample(state, 0, ROUND)
    selection.offer_received(state, 0, words, 3, received)
    if not view_first:
        selection.offer_sample(state, 0, ROUND)
    selection.write_selection(state, 0, words, 3)


def youngest(known: Known) -> dict[int, int]:
    """The age of every peer that may be linked to: the oracle's view of what is known."""
    failed = {q: age for age, q in known.failed}
    ages: dict[int, int] = {}
    for age, q in known.links + known.received + known.view:
        if q != 0 and age <= FAILURE_AGE and age < failed.get(q, FAILURE_AGE + 1):
            ages[q] = min(age, ages.get(q, age))
    return ages


def wanted_by(state: State, q: int) -> list[tuple[int, int]]:
    words = state.sampler.profile[q, state.params.first_range :].tolist()
    ranges = [(low_end(word), high_end(word)) for word in words]
    return [(low, high) for low, high in ranges if low <= high]


def alike(state: State, q: int) -> float:
    """Function I of peers 0 and ``q``: values in both by values in either."""
    mine, theirs = wanted_by(state, 0), wanted_by(state, q)
    shared = sum(
        max(min(high, other_high) - max(low, other_low) + 1, 0)
        for low, high in mine
        for other_low, other_high in theirs
    )
    either = sum(high - low + 1 for low, high in mine + theirs) - shared
    return shared / either if either else 0.0


def best_slots(state: State, candidates: list[int]) -> list[int]:
    """Who is to have which slot, -1 nobody: slot by slot the best of those left."""
    places = state.sampler.profile[:, IDENTIFIER].tolist()
    me = places[0]
    targets = [
        (me + int(offset_distance.interpreted(state, 0, k))) & RING_MASK
        for k in range(state.params.small_world_links)
    ]
    left = list(candidates)

    def take_least(badness: Mapping[int, tuple[float, ...]]) -> int:
        if not left:
            return -1
        best = min(left, key=badness.__getitem__)
        left.remove(best)
        return best

    after = {q: (clockwise(me, places[q]),) for q in left}
    before = {q: (clockwise(places[q], me),) for q in left}
    friend = {q: (-alike(state, q), places[q] ^ me) for q in left}
    chosen = [take_least(after) for _ in range(state.params.ring_links)]
    chosen += [take_least(before) for _ in range(state.params.ring_links)]
    for target in targets:
        away = {
            q: (min((target - places[q]) & RING_MASK, (places[q] - target) & RING_MASK),)
            for q in left
        }
        chosen.append(take_least(away))
    return chosen + [take_least(friend) for _ in range(state.params.friend_links)]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("ranges", [1, 2])
@given(shape=SHAPES, seed=st.integers(0, 999), view_first=st.booleans(), data=st.data())
def test_every_slot_has_the_best_that_no_slot_before_it_took(
    compiled: bool,
    ranges: int,
    shape: tuple[int, int, int],
    seed: int,
    view_first: bool,
    data: st.DataObject,
) -> None:
    """Each at its youngest and with its profile, in whatever order and however often offered."""
    state = small_state(shape, ranges, seed)
    known = data.draw(knowledge(state.links.shape[1]))
    learn(state, known)
    words = received_words(state, known)
    ages = youngest(known)
    with use_compiled(compiled):
        set_bars_by_links(state, 0)
        selection.begin_selection(state, 0)
        expected = best_slots(state, list(ages))
        select(state, words, len(known.received), view_first=view_first)
    held = state.links[0].tolist()
    assert [word & HANDLE if word >= 0 else -1 for word in held] == expected
    assert [word >> AGE_SHIFT for word in held if word >= 0] == [
        ages[q] for q in expected if q >= 0
    ]
    for k, q in enumerate(expected):
        if q >= 0:
            np.testing.assert_array_equal(state.link_profile[0, k], state.sampler.profile[q])


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("ranges", [1, 2])
@given(friends=st.integers(1, 5), seed=st.integers(0, 999), data=st.data())
def test_friends_alone_are_the_most_alike_in_order(
    compiled: bool, ranges: int, friends: int, seed: int, data: st.DataObject
) -> None:
    """No profile tells an identifier: peers alike and of equal first ranges are as good.

    The second selection finds the neighbours in the order in which the first one left them.
    """
    state = small_state((0, 0, friends), ranges, seed)
    assert state.sampler.profile.shape[1] == ranges
    known = data.draw(knowledge(friends))
    learn(state, known)
    words = received_words(state, known)
    ages = youngest(known)
    first = state.sampler.profile[:, 0].tolist()
    worth = {q: (-alike(state, q), first[q] ^ first[0]) for q in ages}
    with use_compiled(compiled):
        for received in (0, len(known.received)):
            set_bars_by_links(state, 0)
            selection.begin_selection(state, 0)
            select(state, words, received)
    held = [word for word in state.links[0].tolist() if word >= 0]
    chosen = [word & HANDLE for word in held]
    assert len(set(chosen)) == len(chosen)
    assert [worth[q] for q in chosen] == sorted(worth.values())[:friends]
    assert [word >> AGE_SHIFT for word in held] == [ages[q] for q in chosen]
    for k, q in enumerate(chosen):
        np.testing.assert_array_equal(state.link_profile[0, k], state.sampler.profile[q])


@given(shape=SHAPES, seed=st.integers(0, 999), data=st.data())
def test_profiles_that_changed_neither_seat_anybody_twice_nor_leave_a_seat_double(
    shape: tuple[int, int, int], seed: int, data: st.DataObject
) -> None:
    """Peers move while descriptors of them travel: everybody has one seat and one of its profiles.

    Who gave up a slot to a peer that then turns out to have moved is not called back, so that the
    slots may be short of the best until the next exchange.
    """
    state = small_state(shape, 1, seed)
    slots = state.links.shape[1]
    known = data.draw(knowledge(slots))
    learn(state, known)
    words = received_words(state, known)
    size = 1 + state.link_profile.shape[2]
    for d in range(len(known.received)):
        words[3 + d * size + 1 + IDENTIFIER] = data.draw(st.integers(0, RING_MASK))
    profiles = {
        (int(words[at]) & HANDLE, *words[at + 1 : at + size].tolist())
        for at in range(3, len(words), size)
    } | {(q, *state.sampler.profile[q].tolist()) for q in range(NODES)}
    set_bars_by_links(state, 0)
    selection.begin_selection(state, 0)
    select(state, words, len(known.received))
    filled = [k for k in range(slots) if state.links[0, k] >= 0]
    handles = [int(state.links[0, k]) & HANDLE for k in filled]
    assert len(set(handles)) == len(handles)
    assert set(handles) <= set(youngest(known))
    for k, q in zip(filled, handles, strict=True):
        assert (q, *state.link_profile[0, k].tolist()) in profiles
    ring, friends = state.params.ring_links, state.params.friend_links
    for first, end in ((0, ring), (ring, 2 * ring), (slots - friends, slots)):
        gaps = [k for k in range(first, end) if k not in filled]
        assert gaps == list(range(end - len(gaps), end))
