"""Peers have turns ever more rarely while nothing changes, and what changes stirs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.kernel.records import FROM, KIND, TO, UNREACHABLE, make_outbox
from gossamer.protocol.peer import step as peer
from gossamer.protocol.peer.record_table.records import (
    EVENT,
    INSTALL,
    INSTALL_NEWS,
    INSTALL_TIMER,
    LINK_BROKE,
    MOVED,
    OVERLAY_TIMER,
    RING_OFFER,
    TMAN_REPLY,
    TMAN_REQUEST,
)
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.settings.profile import IDENTIFIER
from gossamer.protocol.peer.space.ring import RING, RING_MASK
from gossamer.protocol.peer.state.links import AGE_SHIFT
from gossamer.protocol.peer.state.resting import AWAKE_TURNS, installed_rounds, turn_number
from gossamer.protocol.peer.state.state import (
    AWAKE,
    FINGERS_UNTIL,
    HEARD_IN,
    INSTALLS_SOON,
    LEVEL,
    State,
    make_state,
)
from gossamer.protocol.peer.topology.consistency import is_lacking
from gossamer.protocol.peer.topology.placement import tell_neighbours
from support.draws import few_examples
from support.overlays import HANDLE, SMALL, Hosts, record, written

NODES, REST, RING_LINKS = 12, 8, 2
STEP = RING // NODES
LINKS = {"ring_links": RING_LINKS, "friend_links": 0, "finger_levels": 1, "suspect_rounds": 1}
EVENTS = {"nearest_routing": True, "enter_on_the_way": True, "ring_offers": True, "reroute": True}


def overlay(rest_rounds: int = REST, **changes: Any) -> Hosts:
    """A true ring on which everybody wants everything, evenly spaced."""
    places = np.arange(NODES, dtype=np.int64) * STEP
    settings = attrs.evolve(SMALL, refresh_rounds=2, entry_lifetime=6, heartbeat_rounds=2)
    hosts = Hosts.ring(settings, places, 3, **{"rest_rounds": rest_rounds, **LINKS, **changes})
    for p in range(NODES):
        hosts.subscribe(p, (0, RING_MASK))
    return hosts


def at_rest(**changes: Any) -> Hosts:
    hosts = overlay(**changes)
    hosts.rounds(8 * REST)
    assert set(hosts.state.rest[:, LEVEL].tolist()) == {3}
    hosts.passed.clear()
    return hosts


def turns(hosts: Hosts, rounds: int) -> dict[int, list[int]]:
    """In which of so many rounds each peer began an exchange of links."""
    found: dict[int, list[int]] = {p: [] for p in range(NODES)}
    for _ in range(rounds):
        hosts.passed.clear()
        hosts.cycle()
        for words in hosts.of_kind(TMAN_REQUEST):
            found[int(words[FROM])].append(int(hosts.state.round[words[FROM]]))
    return found


def test_intervals_double_up_to_the_setting_and_phases_follow_keys() -> None:
    hosts = overlay()
    keys = hosts.state.sampler.key
    for p, rounds in turns(hosts, 12 * REST).items():
        assert rounds[:AWAKE_TURNS] == list(range(1, AWAKE_TURNS + 1))
        gaps = np.diff(rounds)
        assert max(gaps) == REST
        assert (gaps[-4:] == REST).all()
        assert all((number + int(keys[p])) % REST == 0 for number in rounds[-4:])
    assert (hosts.state.round == 12 * REST).all(), "rounds are counted at rest"


def test_who_may_rest_for_less_than_two_rounds_does_not() -> None:
    hosts = overlay(1)
    assert hosts.state.rest.shape == (NODES, 0)
    assert all(rounds == list(range(1, 21)) for rounds in turns(hosts, 20).values())


def test_at_rest_links_and_entries_live_and_each_link_is_asked_about_once_an_interval() -> None:
    hosts = at_rest()
    links, entries = hosts.state.links & HANDLE, hosts.state.table_count.copy()
    asked = []
    for _ in range(4):
        hosts.passed.clear()
        hosts.rounds(REST)
        asked.append(sum(words[KIND] in (INSTALL, INSTALL_NEWS) for words in hosts.passed))
        assert np.array_equal(hosts.state.links & HANDLE, links)
        assert np.array_equal(hosts.state.table_count, entries)
        assert (hosts.state.links >> 32 <= 2 * REST).all()
    assert (hosts.state.failed == -1).all()
    links_in_all = (links != HANDLE).sum()
    assert all(number <= 1.5 * links_in_all for number in asked)


def _fails(hosts: Hosts) -> None:
    gone = hosts.neighbours(0)[0]
    hosts.step(0, record(TMAN_REQUEST + UNREACHABLE, gone, 0))


def _moves(hosts: Hosts) -> None:
    state, mover = hosts.state, hosts.neighbours(0)[0]
    state.sampler.profile[mover, IDENTIFIER] += 1
    hosts.handle(record(INSTALL_NEWS, 0, mover, [*hosts.descriptor(mover), 0, 0]))


def _subscribes(hosts: Hosts) -> None:
    hosts.subscribe(0, (5, 7))


def _loses_a_connection(hosts: Hosts) -> None:
    hosts.step(0, record(LINK_BROKE, 0, 0, [3]))


def _restarts(hosts: Hosts) -> None:
    peer.restart(hosts.state, 0)


def _joins(hosts: Hosts) -> None:
    hosts.step(0, peer.join_record(0, 3, hosts.state.sampler.profile[3]))


def _misses_an_event(hosts: Hosts) -> None:
    hosts.step(0, record(RING_OFFER, 0, 1, [1, 77, 5]))


CAUSES = [*(_fails, _moves, _subscribes, _loses_a_connection, _restarts, _joins, _misses_an_event)]


@pytest.mark.parametrize("cause", CAUSES)
def test_what_changes_stirs_a_peer(cause: Callable[[Hosts], None]) -> None:
    hosts = at_rest(**EVENTS)
    cause(hosts)
    assert hosts.state.rest[0, [LEVEL, AWAKE]].tolist() == [0, AWAKE_TURNS]


def test_who_wants_nothing_new_stays_asleep() -> None:
    hosts = at_rest(**EVENTS)
    for event in range(4):
        assert len(hosts.publish(event, event, event * STEP)) == NODES
        hosts.rounds(1)
    assert (hosts.state.rest[:, LEVEL] == 3).all()


def test_an_installation_lives_for_three_intervals_of_its_sender() -> None:
    state = make_state(Settings(suspect_rounds=1, rest_rounds=64, entry_lifetime=12), 1)
    lifetimes = [installed_rounds.interpreted(state, level) for level in (-1, 0, 1, 2, 3, 6, 11)]
    assert lifetimes == [12, 12, 12, 12, 24, 192, 3 << 10]
    awake = make_state(Settings(entry_lifetime=2), 1)
    assert [installed_rounds.interpreted(awake, level) for level in (0, 5)] == [2, 96]
    hosts = at_rest()
    expiry = hosts.state.owner[0, : hosts.state.table_count[0]] >> AGE_SHIFT
    assert (expiry - hosts.state.round[0] <= 3 * REST).all()
    assert (expiry - hosts.state.round[0] >= REST).all()


def test_what_others_ask_for_is_passed_on_without_a_turn() -> None:
    hosts = at_rest(cascade=False)
    asker = hosts.neighbours(0)[0]
    before = hosts.state.rest[:, LEVEL].copy()
    hosts.subscribe(asker, (5, 7))
    hosts.rounds(3)
    changed = hosts.state.rest[:, LEVEL] != before
    assert changed[asker]
    assert changed.sum() == 1, "an installation stirs nobody"


def test_a_finger_elsewhere_changes_what_is_installed_but_stirs_nobody() -> None:
    hosts = at_rest()
    state = hosts.state
    slot = 2 * RING_LINKS
    finger = int(state.links[0, slot]) & HANDLE
    state.sampler.profile[finger, IDENTIFIER] += 1
    hosts.step(0, record(INSTALL_NEWS, 0, finger, [*hosts.descriptor(finger), 0, 0]))
    assert state.link_profile[0, slot, IDENTIFIER] == state.sampler.profile[finger, IDENTIFIER]
    assert state.rest[0, [LEVEL, INSTALLS_SOON]].tolist() == [3, 1]
    assert state.rest[0, FINGERS_UNTIL] > state.round[0]
    hosts.tick(0, INSTALL_TIMER)
    assert state.rest[0, [LEVEL, INSTALLS_SOON]].tolist() == [3, 0]


@pytest.mark.parametrize("rest_rounds", [1, REST])
def test_who_moves_tells_those_who_ask_for_something_at_it_if_they_may_rest(
    rest_rounds: int,
) -> None:
    hosts = overlay(rest_rounds, move_rounds=9)
    state = hosts.state
    state.links[:, -2:] = -1  # nobody has moved before
    hosts.rounds(4)
    stranger = next(q for q in range(1, NODES) if q not in hosts.neighbours(0))
    for _ in range(2):
        entry = int(state.table_count[0])
        state.table[0, entry] = state.table[0, 0]
        state.owner[0, entry] = 999 << AGE_SHIFT | stranger
        state.table_count[0] += 1
    out = make_outbox(1 << 12)
    tell_neighbours.interpreted(state, 0, 7, out)
    told = [int(words[TO]) for words in written(out) if words[KIND] == MOVED]
    askers = {source for source, *_ in hosts.entries(0)} if rest_rounds > 1 else set()
    assert (stranger in told) == (rest_rounds > 1)
    assert sorted(told) == sorted({*hosts.neighbours(0), *askers})


def silent(**changes: Any) -> Hosts:
    """Records for peers that are gone are lost."""
    hosts = at_rest(**{**EVENTS, **changes})
    hosts.loses = lambda words: not hosts.alive[words[TO]]
    return hosts


def test_an_event_sent_is_a_question_and_comes_to_those_below_a_silent_child() -> None:
    """And not only when the child is asked in any case, up to two intervals later."""
    questions = 0
    for gone in range(1, NODES, 2):
        hosts = silent(acknowledged_hops=4)
        hosts.alive[gone] = False
        served = hosts.publish(0, 5, 4 * STEP + 1)
        asked = hosts.state.asked
        askers = np.flatnonzero(((asked >= 0) & (asked & HANDLE == gone)).any(axis=1)).tolist()
        before = len(hosts.served)
        hosts.rounds(4)
        got = {*served, *(p for p, *_ in hosts.served[before:])}
        assert got == set(range(NODES)) - {gone}, f"{gone} is gone"
        questions += len(askers)
        assert not any(gone in hosts.neighbours(p) for p in askers)
    assert questions >= NODES // 2


def test_who_rests_and_hears_nobody_asks_the_others_before_it_takes_one_for_dead() -> None:
    hosts = silent()
    gone, state = hosts.neighbours(0)[0], hosts.state
    hosts.alive[gone] = False
    held = state.links[0] & HANDLE
    state.links[0, held != HANDLE] += 2 << AGE_SHIFT
    state.rest[0, HEARD_IN] = 0
    state.asked[0, int(np.flatnonzero(held == gone)[0])] = int(state.round[0]) << 32 | gone
    hosts.cycle(timers=(OVERLAY_TIMER,))
    assert gone in hosts.neighbours(0)
    assert state.rest[0, LEVEL] == 0
    hosts.tick(0, INSTALL_TIMER)
    hosts.tick(0, OVERLAY_TIMER)
    assert gone not in hosts.neighbours(0)


def test_a_change_wakes_those_who_were_not_told_when_they_trade_links() -> None:
    """Peer 0 does not know that its successor has failed; a partner that knows wakes it."""
    hosts = at_rest()
    state = hosts.state
    teller, gone = 2, 1
    hosts.alive[gone] = False
    hosts.step(teller, record(TMAN_REQUEST + UNREACHABLE, gone, teller))
    state.rest[:, LEVEL], state.rest[:, AWAKE] = 3, 0
    links = [hosts.descriptor(q) for q in hosts.neighbours(teller)[: 2 * RING_LINKS]]
    told = [hosts.descriptor(teller), *links]
    hosts.step(0, record(TMAN_REPLY, 0, teller, [len(told), *np.concatenate(told)]))
    assert state.rest[0, AWAKE] == AWAKE_TURNS


@few_examples(60)
@given(
    places=st.lists(st.integers(0, RING_MASK), min_size=3, max_size=12, unique=True),
    known=st.sets(st.integers(2, 11)),
    ring=st.integers(1, 3),
)
def test_a_partner_lacks_whom_it_would_have_if_it_knew_it(
    places: list[int], known: set[int], ring: int
) -> None:
    """By definition: among the nearest of its links and this one, on either side."""
    settings = attrs.evolve(SMALL, ring_links=ring, suspect_rounds=1, rest_rounds=2, friend_links=9)
    hosts = Hosts(make_state(settings, len(places), keys=np.array(places)), settings)
    state: State = hosts.state
    sender, ours = 0, 1
    listed = [q for q in sorted(known) if q < len(places)]
    state.links[len(places) - 1, 0] = ours
    state.link_profile[len(places) - 1, 0] = state.sampler.profile[ours]
    told = np.concatenate([hosts.descriptor(q) for q in [sender, *listed]])
    words = record(TMAN_REPLY, len(places) - 1, sender, [1 + len(listed), *told])
    lacks = is_lacking.interpreted(state, len(places) - 1, 0, words, 0)
    nearest = set[int]()
    for sign in (1, -1):
        by_distance = sorted(
            [*listed, ours], key=lambda q: sign * (places[q] - places[sender]) & RING_MASK
        )
        nearest |= set(by_distance[:ring])
    assert lacks == (ours in nearest)


def test_turns_are_numbered_one_after_another() -> None:
    state = make_state(Settings(suspect_rounds=1, rest_rounds=16), 1)
    state.rest[0, LEVEL] = 3
    first = -int(state.sampler.key[0]) % 8
    numbers = []
    for turn in range(5):
        state.round[0] = first + 8 * turn
        numbers.append(turn_number.interpreted(state, 0))
    assert np.diff(numbers).tolist() == [1] * 4
    state.rest[0, LEVEL] = 0
    assert turn_number.interpreted(state, 0) == state.round[0]


def test_whoever_was_sent_an_event_and_has_not_been_heard_of_is_asked_and_answers() -> None:
    hosts = silent(ring_offers=False)
    hosts.publish(0, 5, 4 * STEP + 1)
    sent = {(int(words[FROM]), int(words[TO])) for words in hosts.of_kind(EVENT)}
    hosts.passed.clear()
    hosts.cycle(timers=(OVERLAY_TIMER,))
    asked = {(int(words[FROM]), int(words[TO])) for words in hosts.of_kind(INSTALL_NEWS)}
    assert len(sent) == NODES - 1
    assert asked
    assert asked <= sent
    trades = {(int(words[FROM]), int(words[TO])) for words in hosts.passed}
    assert all((to, sender) in trades for sender, to in sent - asked), "they were heard of"
    assert (hosts.state.asked == -1).all()
    assert (hosts.state.rest[:, LEVEL] == 3).all()
