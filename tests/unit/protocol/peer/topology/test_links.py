"""The link table: selection, heartbeats, failures (Vinifera, Sec. IV-B1 and IV-C)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.kernel.records import FROM, KIND, TO, UNREACHABLE
from gossamer.protocol.peer.record_table import records
from gossamer.protocol.peer.sampling.sampler import pack
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.settings.profile import ARC_START, IDENTIFIER
from gossamer.protocol.peer.space.ring import RING_MASK, clockwise
from gossamer.protocol.peer.state.links import settle_ring, slot_of
from gossamer.protocol.peer.state.lookup import own_arc_begins
from gossamer.protocol.peer.state.state import FAILURES_FORGOTTEN, LINK_PLACES, State, make_state
from gossamer.protocol.peer.step import join_record, restart
from gossamer.protocol.peer.topology import selection, tman
from support import overlays

SETTINGS = Settings(ring_links=2, friend_links=3, view_size=6, shuffle_length=3, failure_age=4)


def seats(state: State) -> list[tuple[int, int]]:
    words = state.work.seat_word[: state.links.shape[1]].tolist()
    return sorted((word >> 32, word & overlays.HANDLE) for word in words if word >= 0)


def lone_state(nodes: int = 15) -> State:
    return make_state(SETTINGS, nodes, keys=overlays.random_identifiers(nodes, 1))


def received(state: State, ages: list[tuple[int, int]]) -> np.ndarray:
    return np.concatenate([overlays.descriptor(state, handle, age) for age, handle in ages])


def offer(state: State, ages: list[tuple[int, int]]) -> list[tuple[int, int]]:
    selection.begin_selection(state, 0)
    selection.offer_received(state, 0, received(state, ages), 0, len(ages))
    return seats(state)


@given(order=st.permutations([(2, 1), (1, 1), (3, 2), (0, 3)]))
def test_a_younger_descriptor_brings_its_profile(order: list[tuple[int, int]]) -> None:
    """Whichever of the two comes first."""
    state = lone_state(5)
    words = {age: overlays.descriptor(state, handle, age) for age, handle in order}
    words[1][1 + IDENTIFIER] = 99
    selection.begin_selection(state, 0)
    sent = np.concatenate([words[age] for age, _ in order])
    selection.offer_received(state, 0, sent, 0, len(order))
    selection.write_selection(state, 0, sent, 0)
    held = {int(state.links[0, k]) & overlays.HANDLE: k for k in range(7) if state.links[0, k] >= 0}
    assert (sorted(held), link(state, 0, held[1])) == ([1, 2, 3], words[1].tolist())
    assert link(state, 0, held[2]) == words[3].tolist()


def test_newscast_times_become_ages() -> None:
    state = make_state(Settings(sampler="newscast", view_size=8), 4)
    assert state.sampler.tells_times == 1
    for slot, (time, handle) in enumerate([(12, 1), (9, 2), (7, 3)]):
        state.sampler.views[0, slot] = pack(time, handle)
    selection.begin_selection(state, 0)
    selection.offer_sample(state, 0, 10)
    assert seats(state) == [(0, 1), (1, 2), (3, 3)]


def link(state: State, p: int, k: int) -> list[int]:
    return [int(state.links[p, k]), *state.link_profile[p, k].tolist()]


def handle(state: State, p: int, slots: np.ndarray) -> int:
    """Whom ``p`` has in the slot that it notes for something, as `State.successor`."""
    return int(state.links[p, slots[p]]) & overlays.HANDLE


def seat(state: State, others: list[int]) -> None:
    """Let peer 0 select among exactly these, as many at a time as a record holds."""
    most = state.links.shape[1] + 1
    for first in range(0, len(others), most):
        tman.set_bars_by_links(state, 0)
        selection.begin_selection(state, 0)
        if first > 0:
            selection.offer_links(state, 0)
        words = received(state, [(0, q) for q in others[first : first + most]])
        selection.offer_received(state, 0, words, 0, len(others[first : first + most]))
        selection.write_selection(state, 0, words, 0)


@given(
    others=st.sets(st.integers(1, 14), min_size=1, max_size=8).flatmap(
        lambda chosen: st.permutations(sorted(chosen))
    ),
    seed=st.integers(0, 99),
)
def test_ring_links_are_the_nearest_on_either_side(others: list[int], seed: int) -> None:
    """Against sorting: successors first, predecessors the nearest of those left."""
    state = make_state(SETTINGS, 15, keys=overlays.random_identifiers(15, seed))
    seat(state, others)
    places = state.sampler.profile[:, IDENTIFIER].tolist()
    after = sorted(others, key=lambda q: clockwise(places[0], places[q]))
    expected = [after[:2], after[2:][::-1][:2]]
    held = state.links[0, :4]
    for side in range(2):
        words = held[2 * side : 2 * side + 2]
        assert [int(w) & overlays.HANDLE for w in words if w >= 0] == expected[side]
    ends = handle(state, 0, state.successor), handle(state, 0, state.predecessor)
    assert ends == (after[0], after[-1])
    assert overlays.arc_of(state, 0) == (places[after[-1]], places[0])
    assert state.sampler.profile[0, ARC_START] == places[after[-1]]


def test_links_are_to_distinct_peers_and_without_any_the_arc_is_the_ring() -> None:
    state = lone_state(4)
    seat(state, [1, 2, 3, 2, 1])
    assert sorted(overlays.neighbours(state, 0)) == [1, 2, 3]
    assert (state.links[0] == -1).sum() == 4
    state = lone_state(2)
    settle_ring(state, 0)
    assert (state.successor[0], state.predecessor[0]) == (-1, -1)
    me = int(state.sampler.profile[0, IDENTIFIER])
    assert overlays.arc_of(state, 0) == (me, me)
    assert own_arc_begins(state, 0) == 0
    assert state.sampler.profile[0, ARC_START] == me


def overlay(nodes: int = 10, **changes: Any) -> overlays.Hosts:
    return overlays.Hosts.ring(SETTINGS, nodes, 5, **{"ring_links": 1, **changes})


@pytest.fixture
def hosts() -> overlays.Hosts:
    return overlay()


def test_an_exchange_of_links_goes_to_a_neighbour_and_comes_back(hosts: overlays.Hosts) -> None:
    state = hosts.state
    (request,) = hosts.step(0, overlays.record(records.OVERLAY_TIMER, 0, 0))
    partner = int(request[TO])
    assert request[KIND] == records.TMAN_REQUEST
    assert partner in hosts.neighbours(0)
    (reply, *_) = hosts.step(partner, request)
    assert (reply[KIND], reply[TO], reply[FROM]) == (records.TMAN_REPLY, 0, partner)
    size = 1 + state.link_profile.shape[2]
    for words, owner in ((request, 0), (reply, partner)):
        handles = [int(w) & overlays.HANDLE for w in words[5::size]]
        assert handles[0] == owner
        assert len(handles) == words[4] == 1 + len(set(handles[1:]))


def test_links_without_news_are_dropped_at_the_failure_age(hosts: overlays.Hosts) -> None:
    state = hosts.state
    state.sampler.views[0] = -1
    silent = hosts.neighbours(0)[-1]
    for age in range(1, 6):
        hosts.step(0, overlays.record(records.OVERLAY_TIMER, 0, 0))
        assert (silent in hosts.neighbours(0)) == (age <= 4)
    # Others have not waited as long; it was last heard of five rounds ago.
    assert offer(state, [(4, silent)]) == []


def test_older_descriptors_and_farther_strangers_change_nothing(hosts: overlays.Hosts) -> None:
    before = overlays.copies_of(hosts.state)
    other = hosts.neighbours(0)[0]
    words = hosts.descriptor(other, age=2)
    words[1 + IDENTIFIER] += 1
    hosts.step(0, overlays.record(records.ACKNOWLEDGE, 0, other, words))
    assert overlays.changed_arrays(hosts.state, before) == set()
    state = hosts.state
    before = overlays.copies_of(state)
    stranger = next(q for q in range(1, 10) if q not in hosts.neighbours(0))
    hosts.step(0, overlays.install_record(state, records.INSTALL, 0, stranger, []))
    assert not {"links", "link_profile"} & overlays.changed_arrays(state, before)


@pytest.mark.parametrize("side", [0, 1])
def test_a_stranger_in_between_becomes_ring_neighbour(hosts: overlays.Hosts, side: int) -> None:
    state = hosts.state
    stranger = next(q for q in range(1, 10) if q not in hosts.neighbours(0))
    me = int(state.sampler.profile[0, IDENTIFIER])
    state.sampler.profile[stranger, IDENTIFIER] = (me + (1 if side == 0 else -1)) & RING_MASK
    hosts.step(0, overlays.install_record(state, records.INSTALL, 0, stranger, []))
    assert handle(state, 0, (state.successor, state.predecessor)[side]) == stranger


@pytest.mark.parametrize("word", [-1, -(1 << 63), -(5 << 32)])
def test_a_negative_age_neither_seats_nor_evicts(hosts: overlays.Hosts, word: int) -> None:
    state = hosts.state
    for handle in (hosts.neighbours(0)[0], 9):
        before = overlays.copies_of(state)
        words = hosts.descriptor(handle)
        words[0] = (word & ~overlays.HANDLE) | handle
        hosts.step(0, overlays.record(records.ACKNOWLEDGE, 0, handle, words))
        assert not {"links", "link_profile"} & overlays.changed_arrays(state, before)


def test_an_unreachable_peer_is_refused_until_it_is_heard_of_anew(hosts: overlays.Hosts) -> None:
    """What others still say about it is older than its failure (Sec. IV-C)."""
    state = hosts.state
    hosts.step(0, overlays.record(records.OVERLAY_TIMER, 0, 0))
    gone = hosts.neighbours(0)[0]
    hosts.step(0, overlays.record(records.TMAN_REQUEST + UNREACHABLE, gone, 0, [0]))
    assert gone not in hosts.neighbours(0)
    assert gone not in [int(w) & overlays.HANDLE for w in state.sampler.views[0] if w >= 0]
    assert offer(state, [(0, gone)]) == []
    hosts.step(0, overlays.record(records.OVERLAY_TIMER, 0, 0))
    assert offer(state, [(1, gone)]) == []
    assert offer(state, [(0, gone)]) == [(0, gone)]


def test_the_latest_failures_are_remembered() -> None:
    hosts = overlay(failures_remembered=2)
    state = hosts.state
    for gone in (1, 2, 2, 3):
        state.round[0] += 1
        hosts.step(0, overlays.record(records.TMAN_REQUEST + UNREACHABLE, gone, 0, [0]))
    assert sorted(int(w) & overlays.HANDLE for w in state.failed[0]) == [2, 3]
    assert state.counters[0, FAILURES_FORGOTTEN] == 1
    state.round[0] += state.params.failure_age + 1
    hosts.step(0, overlays.record(records.TMAN_REQUEST + UNREACHABLE, 4, 0, [0]))
    assert state.counters[0, FAILURES_FORGOTTEN] == 1


def newcomer_joins(**changes: Any) -> overlays.Hosts:
    hosts = overlay(**changes)
    restart(hosts.state, 9)
    hosts.alive[9] = False
    hosts.rounds(6)
    hosts.alive[9] = True
    hosts.handle(join_record(9, 0, hosts.state.sampler.profile[0]))
    return hosts


def beside_newcomer(hosts: overlays.Hosts) -> tuple[int, int]:
    order = np.argsort(hosts.identifiers()).tolist()
    at = order.index(9)
    return order[at - 1], order[(at + 1) % 10]


def test_joining_by_lookup_seats_a_newcomer_within_one_exchange() -> None:
    hosts = newcomer_joins(join_lookup=True)
    state = hosts.state
    before, after = beside_newcomer(hosts)
    assert handle(state, 9, state.successor) == after
    assert handle(state, 9, state.predecessor) == before
    assert handle(state, after, state.predecessor) == 9
    kinds = {int(words[KIND]) for words in hosts.passed[-12:]}
    assert {records.FIND_PLACE, records.PLACE_FOUND} <= kinds


def test_joining_by_gossip_alone_takes_rounds() -> None:
    """The paper's way: the contact is known at once, the place only later."""
    hosts = newcomer_joins(join_lookup=False)
    assert hosts.neighbours(9) == [0]
    hosts.rounds(10)
    assert handle(hosts.state, 9, hosts.state.successor) == beside_newcomer(hosts)[1]


def test_a_lookup_for_a_place_goes_around_a_peer_that_failed() -> None:
    hosts = overlay(nodes=12, join_lookup=True, reroute=True, ring_links=3)
    state = hosts.state
    restart(state, 11)
    hosts.alive[[2, 5]] = False
    hosts.handle(join_record(11, 0, state.sampler.profile[0]))
    assert state.successor[11] >= 0
    assert any(words[KIND] == records.PLACE_FOUND for words in hosts.passed)


@given(
    others=st.lists(st.integers(1, 40), max_size=7, unique=True),
    spread=st.sampled_from([1, LINK_PLACES // 2, LINK_PLACES]),
    sought=st.integers(0, 41),
)
def test_a_neighbour_noted_is_found_again(others: list[int], spread: int, sought: int) -> None:
    state = make_state(SETTINGS, 1)
    state.links[0, : len(others)] = [spread * q for q in others]
    tman.note_neighbours(state, 0)
    assert tman.slot_noted(state, spread * sought) == slot_of(state, 0, spread * sought)
