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


def leave(hosts: Hosts, p: int) -> None:
    """Let peer ``p`` fail, and its place be closed."""
    hosts.alive[p] = False
    hosts.rounds(6)


def left(**changes: Any) -> Hosts:
    """An overlay that `AWAY`, who wants everything, has left."""
    hosts = overlay(**changes)
    hosts.subscribe(AWAY, EVERYTHING)
    leave(hosts, AWAY)
    return hosts


def come_back(hosts: Hosts, p: int) -> None:
    """Let peer ``p`` start again and find its place."""
    restart(hosts.state, p)
    hosts.alive[p] = True
    contact = next(q for q in range(NODES) if q != p and hosts.alive[q])
    hosts.handle(join_record(p, contact, hosts.state.sampler.profile[contact]))
    hosts.rounds(3)


def catch_up(hosts: Hosts, p: int, rounds: int) -> None:
    hosts.handle(record(records.CATCH_UP, p, p, [rounds]))


def events_of(hosts: Hosts, p: int) -> list[int]:
    return [event for server, event, *_ in hosts.served if server == p]


def is_done(hosts: Hosts, p: int) -> bool:
    """Whether ``p`` was told, once, that it has everything."""
    told = [w for w in hosts.of_kind(records.CAUGHT_UP) if w[TO] == p]
    return len(told) == 1 and hosts.state.recall[p, state.SUBSCRIPTION] < 0


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
    leave(hosts, AWAY)
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
    come_back(hosts, AWAY)
    catch_up(hosts, AWAY, 60)
    hosts.rounds(3 * event_log.ASK_AGAIN_ROUNDS)
    assert is_done(hosts, AWAY), f"seed {seed}"
    expected = [event for event, value in enumerate(values) if low <= value <= high]
    assert sorted(events_of(hosts, AWAY)) == expected, f"seed {seed}"


def test_many_events_come_page_by_page() -> None:
    hosts = overlay()
    hosts.subscribe(AWAY, (7, 7))
    leave(hosts, AWAY)
    publisher = hosts.rendezvous(7)
    missed = list(range(3 * event_log.PAGE_EVENTS + 1))
    for event in missed:
        hosts.publish(publisher, event, 7)
    come_back(hosts, AWAY)
    hosts.passed.clear()
    catch_up(hosts, AWAY, 50)
    assert is_done(hosts, AWAY)
    assert sorted(events_of(hosts, AWAY)) == missed
    pages = [w for w in hosts.of_kind(records.RECALL_ANSWER) if w[BODY + 3] > 0]
    assert len(pages) >= 3


@pytest.mark.parametrize("says_so", [True, False])
def test_who_is_held_up_while_it_asks_still_asks_since_the_same_moment(says_so: bool) -> None:
    """It counts no rounds meanwhile, and those who hold what it missed do."""
    hosts = left(retention_rounds=60)
    hosts.publish(0, 1, 1 << 60)
    hosts.rounds(4)
    come_back(hosts, AWAY)
    hosts.loses = lambda words: bool(words[KIND] == records.RECALL)
    catch_up(hosts, AWAY, 12)
    held_up = 20
    hosts.rounds(held_up)
    hosts.state.round[AWAY] -= held_up
    if says_so:
        hosts.handle(record(records.ROUNDS_SKIPPED, AWAY, AWAY, [held_up - 5]))
        # Again before that walk ends.
        catch_up(hosts, AWAY, 1)
        hosts.handle(record(records.ROUNDS_SKIPPED, AWAY, AWAY, [5]))
    hosts.loses = nothing
    hosts.state.recall[AWAY, state.ASKED_IN] = 0
    hosts.rounds(3 * event_log.ASK_AGAIN_ROUNDS)
    assert is_done(hosts, AWAY)
    assert events_of(hosts, AWAY) == ([1] if says_so else [])


def test_what_is_older_than_the_retention_time_is_not_given() -> None:
    hosts = left(retention_rounds=10)
    hosts.publish(0, 1, 1 << 60)
    hosts.rounds(10)
    hosts.publish(0, 2, 1 << 60)
    come_back(hosts, AWAY)
    catch_up(hosts, AWAY, 50)
    assert is_done(hosts, AWAY)
    assert events_of(hosts, AWAY) == [2]


def test_what_came_before_it_left_is_not_asked_for() -> None:
    hosts = overlay()
    hosts.publish(0, 1, 1 << 60)
    hosts.rounds(10)
    hosts.subscribe(AWAY, EVERYTHING)
    leave(hosts, AWAY)
    hosts.publish(0, 2, 1 << 60)
    come_back(hosts, AWAY)
    catch_up(hosts, AWAY, 9)
    assert is_done(hosts, AWAY)
    assert events_of(hosts, AWAY) == [2]


def test_the_oldest_makes_room() -> None:
    hosts = overlay(held_events=4)
    for event in range(6):
        hosts.publish(0, event, 7)
    holder = hosts.rendezvous(7)
    assert sorted(hosts.state.held_copies[holder].tolist()) == [2, 3, 4, 5]
    told = [int(w[BODY]) for w in hosts.of_kind(records.HELD) if w[TO] == holder]
    assert told == list(range(6))
    assert hosts.state.counters[holder, state.PUSHED_OUT] == 2


def test_what_makes_room_after_the_retention_time_is_not_counted() -> None:
    hosts = overlay(held_events=1, retention_rounds=2)
    holder = hosts.rendezvous(7)
    hosts.publish(0, 1, 7)
    hosts.rounds(3)
    hosts.publish(0, 2, 7)
    assert hosts.state.counters[holder, state.PUSHED_OUT] == 0


def test_copies_that_a_predecessor_is_not_given_at_once_are_counted() -> None:
    hosts = overlay(held_events=4 * GIVEN_BACK)
    successor = published_while_misplaced(hosts)
    there = int(hosts.identifiers()[AWAY])
    for event in range(2, GIVEN_BACK + 4):
        hosts.publish(successor, event, there - 5)
    assert hosts.state.counters[successor, state.NOT_GIVEN_BACK] == 0
    hear_of_it(hosts, successor)
    held = int(hosts.state.held_next[successor])
    assert hosts.state.counters[successor, state.NOT_GIVEN_BACK] == held - GIVEN_BACK
    assert len(events_of(hosts, AWAY)) == GIVEN_BACK


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
    assert sorted(events_of(hosts, AWAY)) == [1, *events]
    assert hosts.state.counters[successor, state.NOT_GIVEN_BACK] == 0


def test_copies_that_a_predecessor_does_not_answer_for_are_not_counted() -> None:
    hosts = overlay(held_events=4 * GIVEN_BACK)
    successor = published_while_misplaced(hosts)
    here, there = (int(hosts.identifiers()[row]) for row in (successor, AWAY))
    for event in range(2, GIVEN_BACK + 4):
        hosts.publish(successor, event, here)
    hosts.publish(successor, GIVEN_BACK + 4, there - 5)
    hear_of_it(hosts, successor)
    assert int(hosts.state.held_next[successor]) > GIVEN_BACK
    assert events_of(hosts, AWAY) == [GIVEN_BACK + 4]
    # The one of before is the only one that should have been given and was not.
    assert hosts.state.counters[successor, state.NOT_GIVEN_BACK] == 1


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


def test_nothing_is_held_without_the_setting() -> None:
    hosts = overlay(held_events=0)
    hosts.subscribe(AWAY, EVERYTHING)
    hosts.publish(0, 1, 7)
    assert hosts.of_kind(records.HELD) == []
    catch_up(hosts, AWAY, 50)
    assert is_done(hosts, AWAY)
    assert hosts.of_kind(records.RECALLED) == []


@pytest.mark.parametrize("kind", [records.RECALL, records.RECALL_ANSWER, records.RECALLED])
def test_a_question_or_answer_that_gets_lost_is_repeated(kind: int) -> None:
    """Events that get lost on their way come again only if the question does."""
    hosts = left()
    for event in range(3):
        hosts.publish(0, event, event << 60)
    come_back(hosts, AWAY)
    hosts.loses = lambda words: words[KIND] in (kind, records.RECALL_ANSWER)
    catch_up(hosts, AWAY, 50)
    assert not is_done(hosts, AWAY)
    hosts.loses = nothing
    hosts.rounds(event_log.ASK_AGAIN_ROUNDS)
    assert is_done(hosts, AWAY)
    assert sorted(events_of(hosts, AWAY)) == [0, 1, 2]


def test_a_peer_that_asks_alone_has_everything() -> None:
    hosts = overlay()
    hosts.alive[:] = False
    hosts.alive[AWAY] = True
    restart(hosts.state, AWAY)
    hosts.subscribe(AWAY, EVERYTHING)
    catch_up(hosts, AWAY, 50)
    assert is_done(hosts, AWAY)


def test_a_peer_with_no_subscription_asks_for_nothing() -> None:
    hosts = overlay()
    catch_up(hosts, AWAY, 50)
    assert is_done(hosts, AWAY)
    assert hosts.of_kind(records.RECALL) == []


def test_who_is_to_catch_up_again_meanwhile_begins_again_afterwards() -> None:
    hosts = overlay()
    hosts.subscribe(AWAY, EVERYTHING)
    hosts.rounds(3)
    hosts.publish(0, 1, 7)
    hosts.loses = lambda words: words[KIND] == records.RECALL
    catch_up(hosts, AWAY, 1)
    catch_up(hosts, AWAY, 50)
    catch_up(hosts, AWAY, 2)
    hosts.loses = nothing
    hosts.rounds(event_log.ASK_AGAIN_ROUNDS)
    assert is_done(hosts, AWAY)
    assert events_of(hosts, AWAY) == [1]
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
        catch_up(hosts, p, 60)
    hosts.rounds(3 * event_log.ASK_AGAIN_ROUNDS)
    for p in range(NODES):
        assert sorted(events_of(hosts, p)) == sorted(published), p


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
    assert events_of(hosts, AWAY) == []
    for p in range(NODES):
        hosts.handle(record(records.LINK_BROKE, p, p, [AWAY]))
    hosts.cycle()
    assert events_of(hosts, AWAY) == [1]


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
    assert events_of(hosts, AWAY) == []
    hosts.handle(record(records.HANDOVER, holder, successor_of(hosts, holder), body))
    assert hosts.state.table_count[holder] == 1
    hosts.publish(holder, 2, 7)
    assert events_of(hosts, AWAY) == [2]
    hosts.cycle()
    assert sorted(events_of(hosts, AWAY)) == [1, 2]


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
    assert events_of(hosts, AWAY) == []
    assert (suspect, 1) not in [(server, event) for server, event, *_ in hosts.served]
    hosts.rounds(2)
    assert events_of(hosts, AWAY) == [1]


def published_while_misplaced(hosts: Hosts) -> int:
    """Let the successor of `AWAY` take an event in its place; return the successor.

    Old news of `AWAY` has come to it, from before that took over the part of the ring where the
    event belongs and where it wants everything.
    """
    successor = successor_of(hosts, AWAY)
    there = int(hosts.identifiers()[AWAY])
    hosts.subscribe(AWAY, (there - 10, there))
    old = hosts.descriptor(AWAY)
    old[1 + IDENTIFIER] = there - 10
    hosts.handle(record(records.ACKNOWLEDGE, successor, AWAY, old))
    hosts.publish(successor, 1, there - 5)
    assert [w[BODY] for w in hosts.of_kind(records.PUBLISHED)][-1] == 1
    assert events_of(hosts, AWAY) == []
    return successor


def hear_of_it(hosts: Hosts, successor: int) -> None:
    """Let the successor of `AWAY` hear where that is."""
    hosts.handle(record(records.ACKNOWLEDGE, successor, AWAY, hosts.descriptor(AWAY)))


def test_what_came_while_the_predecessor_seemed_to_be_elsewhere_is_given_back_to_it() -> None:
    hosts = overlay()
    hear_of_it(hosts, published_while_misplaced(hosts))
    assert events_of(hosts, AWAY) == [1]


def test_what_was_given_back_and_lost_with_the_connection_is_given_back_again() -> None:
    hosts = overlay()
    successor = published_while_misplaced(hosts)
    hosts.loses = lambda words: words[KIND] == records.EVENT
    hear_of_it(hosts, successor)
    hosts.loses = nothing
    assert events_of(hosts, AWAY) == []
    hosts.handle(record(records.LINK_BROKE, successor, successor, [AWAY]))
    assert events_of(hosts, AWAY) == [1]


def test_only_what_the_own_arc_has_lost_is_given_back() -> None:
    hosts = overlay()
    hosts.publish(0, 7, int(hosts.identifiers()[AWAY]) - 20)
    successor = published_while_misplaced(hosts)
    hosts.passed.clear()
    hear_of_it(hosts, successor)
    assert [int(w[BODY]) for w in hosts.of_kind(records.EVENT) if w[TO] == AWAY] == [1]
