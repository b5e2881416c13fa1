"""Peers that were away get what they missed (see `rendezvous.retention`)."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.protocol.kernel.records import BODY, KIND, TO, UNREACHABLE, make_outbox
from gossamer.protocol.kernel.rows.hash_chains import CHAINED_FROM
from gossamer.protocol.peer.record_table import records
from gossamer.protocol.peer.rendezvous import event_log
from gossamer.protocol.peer.rendezvous.arc_return import GIVEN_BACK
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.settings.profile import IDENTIFIER
from gossamer.protocol.peer.space.ring import RING_MASK
from gossamer.protocol.peer.state import state
from gossamer.protocol.peer.step import join_record, restart
from support.draws import larger
from support.overlays import Hosts, mended, nothing, record

NODES = larger(12, 16)
AWAY = 5
EVERYTHING = (0, RING_MASK)


def overlay(seed: int = 3, **changes: Any) -> Hosts:
    """A converged overlay that holds events for those who are away."""
    memory = {"event_memory": 512, "held_events": 256, "retention_rounds": 100}
    chosen = {"replay_rounds": 2, "pending_publications": 64, **memory, **changes}
    return mended(NODES, seed, **chosen)


def leave(hosts: Hosts) -> None:
    hosts.alive[AWAY] = False
    hosts.rounds(6)


def left(*wanted: int, **changes: Any) -> Hosts:
    """An overlay that `AWAY`, who wants this range or everything, has left."""
    hosts = overlay(**changes)
    hosts.subscribe(AWAY, (wanted[0], wanted[1]) if wanted else EVERYTHING)
    leave(hosts)
    return hosts


def come_back(hosts: Hosts) -> None:
    restart(hosts.state, AWAY)
    hosts.alive[AWAY] = True
    contact = next(q for q in range(NODES) if q != AWAY and hosts.alive[q])
    hosts.handle(join_record(AWAY, contact, hosts.state.sampler.profile[contact]))
    hosts.rounds(3)


def catch_up(hosts: Hosts, rounds: int, p: int = AWAY) -> None:
    hosts.handle(record(records.CATCH_UP, p, p, [rounds]))


def events_of(hosts: Hosts, p: int = AWAY) -> list[int]:
    return sorted(event for server, event, *_ in hosts.served if server == p)


def is_done(hosts: Hosts) -> bool:
    """Whether `AWAY` was told, once, that it has everything."""
    told = [w for w in hosts.of_kind(records.CAUGHT_UP) if w[TO] == AWAY]
    return len(told) == 1 and hosts.state.recall[AWAY, state.SUBSCRIPTION] < 0


def caught_up(hosts: Hosts, rounds: int = 50) -> list[int]:
    """The events that `AWAY` has once it has caught up."""
    catch_up(hosts, rounds)
    assert is_done(hosts)
    return events_of(hosts)


@settings(max_examples=larger(2, 57))
@given(
    seed=st.integers(0, 1000),
    low=st.integers(0, RING_MASK),
    width=st.sampled_from([0, 1 << 55, 1 << 60, RING_MASK]),
    crash=st.integers(0, 2),
)
def test_a_peer_that_was_away_gets_what_it_missed_and_nothing_else(
    seed: int, low: int, width: int, crash: int
) -> None:
    """Even if as many of those who held it failed as there are replicas."""
    hosts = overlay(seed)
    high = min(low + width, RING_MASK)
    hosts.subscribe(AWAY, (low, high))
    hosts.rounds(3)
    leave(hosts)
    draws = np.random.default_rng(seed)
    values = [low, high, *draws.integers(0, RING_MASK, 20).tolist()]
    for event, value in enumerate(values):
        publisher = next(p for p in draws.permutation(NODES).tolist() if hosts.alive[p])
        hosts.publish(publisher, event, value)
        if event % 5 == 0:
            hosts.cycle()
    hosts.rounds(3)
    for _ in range(crash):
        hosts.alive[hosts.rendezvous(low)] = False
    hosts.rounds(4)
    come_back(hosts)
    catch_up(hosts, 60)
    hosts.rounds(3 * event_log.ASK_AGAIN_ROUNDS)
    assert is_done(hosts), f"seed {seed}"
    expected = [event for event, value in enumerate(values) if low <= value <= high]
    assert events_of(hosts) == expected, f"seed {seed}"


def test_many_events_come_page_by_page() -> None:
    hosts = left(7, 7)
    publisher = hosts.rendezvous(7)
    missed = list(range(3 * event_log.PAGE_EVENTS + 1))
    for event in missed:
        hosts.publish(publisher, event, 7)
    come_back(hosts)
    hosts.passed.clear()
    assert caught_up(hosts) == missed
    pages = [w for w in hosts.of_kind(records.RECALL_ANSWER) if w[BODY + 3] > 0]
    assert len(pages) >= 3


@pytest.mark.parametrize("says_so", [True, False])
def test_who_is_held_up_while_it_asks_still_asks_since_the_same_moment(says_so: bool) -> None:
    """It counts no rounds meanwhile, and those who hold what it missed do."""
    hosts = left(retention_rounds=60)
    hosts.publish(0, 1, 1 << 60)
    hosts.rounds(4)
    come_back(hosts)
    hosts.loses = lambda words: bool(words[KIND] == records.RECALL)
    catch_up(hosts, 12)
    held_up = 20
    hosts.rounds(held_up)
    hosts.state.round[AWAY] -= held_up
    if says_so:
        hosts.handle(record(records.ROUNDS_SKIPPED, AWAY, AWAY, [held_up - 5]))
        # Again before that walk ends.
        catch_up(hosts, 1)
        hosts.handle(record(records.ROUNDS_SKIPPED, AWAY, AWAY, [5]))
    hosts.loses = nothing
    hosts.state.recall[AWAY, state.ASKED_IN] = 0
    hosts.rounds(3 * event_log.ASK_AGAIN_ROUNDS)
    assert is_done(hosts)
    assert events_of(hosts) == ([1] if says_so else [])


def test_neither_what_is_too_old_nor_what_came_before_it_left_is_given() -> None:
    hosts = left(retention_rounds=10)
    hosts.publish(0, 1, 1 << 60)
    hosts.rounds(10)
    hosts.publish(0, 2, 1 << 60)
    come_back(hosts)
    assert caught_up(hosts) == [2]
    hosts = overlay()
    hosts.publish(0, 1, 1 << 60)
    hosts.rounds(10)
    hosts.subscribe(AWAY, EVERYTHING)
    leave(hosts)
    hosts.publish(0, 2, 1 << 60)
    come_back(hosts)
    assert caught_up(hosts, 9) == [2]


def test_the_oldest_makes_room_which_is_counted_within_the_retention_time() -> None:
    hosts = overlay(held_events=4)
    for event in range(6):
        hosts.publish(0, event, 7)
    holder = hosts.rendezvous(7)
    assert sorted(hosts.state.held_copies[holder].tolist()) == [2, 3, 4, 5]
    told = [int(w[BODY]) for w in hosts.of_kind(records.HELD) if w[TO] == holder]
    assert told == list(range(6))
    assert hosts.state.counters[holder, state.PUSHED_OUT] == 2
    hosts = overlay(held_events=1, retention_rounds=2)
    hosts.publish(0, 1, 7)
    hosts.rounds(3)
    hosts.publish(0, 2, 7)
    assert hosts.state.counters[hosts.rendezvous(7), state.PUSHED_OUT] == 0


@pytest.mark.parametrize("own", [False, True])
def test_copies_that_a_predecessor_is_not_given_at_once_are_counted(own: bool) -> None:
    """Those that it answers for, and not those of the successor's ``own`` arc."""
    hosts = overlay(held_events=4 * GIVEN_BACK)
    successor = published_while_misplaced(hosts)
    here, there = (int(hosts.identifiers()[row]) for row in (successor, AWAY))
    for event in range(2, GIVEN_BACK + 4):
        hosts.publish(successor, event, here if own else there - 5)
    if own:
        hosts.publish(successor, GIVEN_BACK + 4, there - 5)
    assert hosts.state.counters[successor, state.NOT_GIVEN_BACK] == 0
    hear_of_it(hosts, successor)
    held = int(hosts.state.held_next[successor])
    assert held > GIVEN_BACK
    if own:
        assert events_of(hosts) == [GIVEN_BACK + 4]
    else:
        assert len(events_of(hosts)) == GIVEN_BACK
    # Of its own arc, the one of before is the only one that should have been given and was not.
    missed = 1 if own else held - GIVEN_BACK
    assert hosts.state.counters[successor, state.NOT_GIVEN_BACK] == missed


def test_what_is_handed_on_by_and_by_is_not_counted_as_not_given_back() -> None:
    """There is no bound for what was taken in another's place: it follows turn by turn."""
    hosts = overlay(held_events=4 * GIVEN_BACK, hand_on=True, acknowledged_hops=32)
    successor = published_while_misplaced(hosts)
    there = int(hosts.identifiers()[AWAY])
    events = range(2, GIVEN_BACK + 40)
    for event in events:
        hosts.publish(successor, event, there - 5)
    hear_of_it(hosts, successor)
    hosts.rounds(2 * len(events) // 32)
    assert events_of(hosts) == [1, *events]
    assert hosts.state.counters[successor, state.NOT_GIVEN_BACK] == 0


@pytest.mark.parametrize("held_events", [256, 2 * CHAINED_FROM])
def test_a_copy_that_comes_again_is_held_once(held_events: int) -> None:
    """As it does where an acknowledgement got lost."""
    hosts = overlay(held_events=held_events)
    for _ in range(3):
        hosts.publish(0, 1, 7)
        hosts.cycle()
    assert len(hosts.of_kind(records.HELD)) == 3  # the rendezvous node and its two successors


def test_what_was_held_is_found_alike_in_small_and_large_logs() -> None:
    """Over rounds in which it is old, and a restart after which it is gone."""
    found = []
    for held_events in (CHAINED_FROM - 1, CHAINED_FROM):
        chosen = Settings(held_events=held_events, retention_rounds=100)
        s, out = state.make_state(chosen, 1), make_outbox(1 << 12)
        draws, known = random.Random(1), list[bool]()
        for number in range(4 * CHAINED_FROM):
            s.round[0] += draws.random() < 0.05
            copy = draws.randrange(number + 1) if draws.random() < 0.5 else number
            known.append(bool(event_log.holds(s, 0, copy)))
            if not known[-1]:
                out.cursor[:] = 0
                event_log.hold(s, 0, copy, False, [0] * chosen.coordinates, 0, out)
            if number == CHAINED_FROM:
                restart(s, 0)
        found.append(known)
    assert found[0] == found[1]
    assert 0.05 < sum(found[0]) / len(found[0]) < 0.95


@pytest.mark.parametrize("kind", [records.RECALL, records.RECALL_ANSWER, records.RECALLED])
def test_a_question_or_answer_that_gets_lost_is_repeated(kind: int) -> None:
    """Events that get lost on their way come again only if the question does."""
    hosts = left()
    for event in range(3):
        hosts.publish(0, event, event << 60)
    come_back(hosts)
    hosts.loses = lambda words: words[KIND] in (kind, records.RECALL_ANSWER)
    catch_up(hosts, 50)
    assert not is_done(hosts)
    hosts.loses = nothing
    hosts.rounds(event_log.ASK_AGAIN_ROUNDS)
    assert is_done(hosts)
    assert events_of(hosts) == [0, 1, 2]


def test_who_asks_alone_for_nothing_or_where_nothing_is_held_is_done() -> None:
    hosts = overlay()
    caught_up(hosts)
    assert hosts.of_kind(records.RECALL) == []
    hosts = overlay()
    hosts.alive[:] = False
    hosts.alive[AWAY] = True
    restart(hosts.state, AWAY)
    hosts.subscribe(AWAY, EVERYTHING)
    caught_up(hosts)
    hosts = overlay(held_events=0)
    hosts.subscribe(AWAY, EVERYTHING)
    hosts.publish(0, 1, 7)
    assert hosts.of_kind(records.HELD) == []
    caught_up(hosts)
    assert hosts.of_kind(records.RECALLED) == []


def test_who_is_to_catch_up_again_meanwhile_begins_again_afterwards() -> None:
    hosts = overlay()
    hosts.subscribe(AWAY, EVERYTHING)
    hosts.rounds(3)
    hosts.publish(0, 1, 7)
    hosts.loses = lambda words: words[KIND] == records.RECALL
    for rounds in (1, 50, 2):
        catch_up(hosts, rounds)
    hosts.loses = nothing
    hosts.rounds(event_log.ASK_AGAIN_ROUNDS)
    assert is_done(hosts)
    assert events_of(hosts) == [1]
    asked = [int(w[BODY + 4]) for w in hosts.of_kind(records.RECALL)]
    assert min(asked) <= 1 + event_log.ASK_AGAIN_ROUNDS
    assert max(asked) >= 50


def test_halves_that_were_apart_get_each_others_events() -> None:
    """As after a partition: two rings, one in the other, whose holders stand apart."""
    hosts = overlay(seed=11)
    order = np.argsort(hosts.identifiers()).tolist()
    halves = order[::2], order[1::2]
    for p in range(NODES):
        hosts.subscribe(p, EVERYTHING)
    published: dict[int, int] = {}
    for number, half in enumerate(halves):
        hosts.alive[:] = False
        hosts.alive[half] = True
        hosts.rounds(12)
        for event in range(10 * number, 10 * number + 5):
            published[event] = len(hosts.publish(half[event % len(half)], event, event << 57))
    assert set(published.values()) == {NODES // 2}
    hosts.alive[:] = True
    contact = halves[0][0]
    for p in halves[1]:
        hosts.handle(join_record(p, contact, hosts.state.sampler.profile[contact]))
    hosts.rounds(12)
    for p in range(NODES):
        catch_up(hosts, 60, p)
    hosts.rounds(3 * event_log.ASK_AGAIN_ROUNDS)
    for p in range(NODES):
        assert events_of(hosts, p) == sorted(published), p


def test_what_was_lost_with_a_connection_is_given_when_it_is_asked_for_again() -> None:
    """Both of its ends live; one sent events that the other never got."""
    hosts = overlay(replicas=0, replay_rounds=5)
    hosts.subscribe(AWAY, (7, 7))
    hosts.rounds(4)
    hosts.loses = lambda words: words[KIND] == records.EVENT and words[TO] == AWAY
    publisher = hosts.rendezvous(7)
    if publisher == AWAY:
        pytest.skip("it is the rendezvous node itself")
    hosts.publish(publisher, 1, 7)
    hosts.loses = nothing
    hosts.rounds(2)
    assert events_of(hosts) == []
    for p in range(NODES):
        hosts.handle(record(records.LINK_BROKE, p, p, [AWAY]))
    hosts.cycle()
    assert events_of(hosts) == [1]


def test_an_event_that_came_before_a_handover_reaches_whom_it_brings() -> None:
    """A peer that takes over part of the ring gets events for it before it knows who asks."""
    hosts = overlay(replicas=0, replay_rounds=5)
    hosts.subscribe(AWAY, (7, 7))
    hosts.rounds(3)
    holder = hosts.rendezvous(7)
    entries_there = int(hosts.state.table_count[holder])
    source = int(hosts.state.owner[holder, 0]) & ((1 << 32) - 1)
    body = [1, source, int(hosts.identifiers()[source]), 0, 7, 7]
    assert entries_there == 1
    hosts.state.table_count[holder] = 0
    hosts.publish(holder, 1, 7)
    assert events_of(hosts) == []
    hosts.handle(record(records.HANDOVER, holder, successor_of(hosts, holder), body))
    assert hosts.state.table_count[holder] == 1
    hosts.publish(holder, 2, 7)
    assert events_of(hosts) == [2]
    hosts.cycle()
    assert events_of(hosts) == [1, 2]


def successor_of(hosts: Hosts, p: int) -> int:
    order = np.argsort(hosts.identifiers()).tolist()
    return int(order[(order.index(p) + 1) % len(order)])


def test_what_came_while_a_peer_was_wrongly_taken_for_dead_is_given_back_to_it() -> None:
    """Its successor answered for its values meanwhile, and knows none who ask for them."""
    hosts = overlay(replay_rounds=5, replicas=0)
    hosts.subscribe(AWAY, (7, 7))
    hosts.rounds(3)
    suspect = hosts.rendezvous(7)
    unsuspecting = hosts.lookup(AWAY, 7)
    hosts.state.table_count[successor_of(hosts, suspect)] = 0
    for p in range(NODES):
        if p not in unsuspecting:
            hosts.step(p, record(records.ACKNOWLEDGE + UNREACHABLE, suspect, p))
    publisher = next(p for p in range(NODES) if p not in unsuspecting)
    hosts.loses = lambda words: words[KIND] == records.EVENT and words[TO] in (suspect, AWAY)
    hosts.publish(publisher, 1, 7)
    hosts.loses = nothing
    assert events_of(hosts) == []
    assert (suspect, 1) not in [(server, event) for server, event, *_ in hosts.served]
    hosts.rounds(2)
    assert events_of(hosts) == [1]


def published_while_misplaced(hosts: Hosts) -> int:
    """Let the successor of `AWAY`, to which old news of it has come, take an event in its place."""
    successor = successor_of(hosts, AWAY)
    there = int(hosts.identifiers()[AWAY])
    hosts.subscribe(AWAY, (there - 10, there))
    old = hosts.descriptor(AWAY)
    old[1 + IDENTIFIER] = there - 10
    hosts.handle(record(records.ACKNOWLEDGE, successor, AWAY, old))
    hosts.publish(successor, 1, there - 5)
    assert [w[BODY] for w in hosts.of_kind(records.PUBLISHED)][-1] == 1
    assert events_of(hosts) == []
    return successor


def hear_of_it(hosts: Hosts, successor: int) -> None:
    hosts.handle(record(records.ACKNOWLEDGE, successor, AWAY, hosts.descriptor(AWAY)))


def test_what_the_successor_took_in_its_place_is_given_back_to_it_and_again_if_lost() -> None:
    """And nothing else."""
    hosts = overlay()
    hosts.publish(0, 7, int(hosts.identifiers()[AWAY]) - 20)
    successor = published_while_misplaced(hosts)
    hosts.passed.clear()
    hear_of_it(hosts, successor)
    assert events_of(hosts) == [1]
    assert [int(w[BODY]) for w in hosts.of_kind(records.EVENT) if w[TO] == AWAY] == [1]
    hosts = overlay()
    successor = published_while_misplaced(hosts)
    hosts.loses = lambda words: words[KIND] == records.EVENT
    hear_of_it(hosts, successor)
    hosts.loses = nothing
    assert events_of(hosts) == []
    hosts.handle(record(records.LINK_BROKE, successor, successor, [AWAY]))
    assert events_of(hosts) == [1]
