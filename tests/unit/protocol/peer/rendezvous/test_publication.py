"""Acknowledged publications: the promise that publishers get (see `rendezvous.publication`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.kernel.records import BODY, FROM, KIND, TO, UNREACHABLE, Words
from gossamer.protocol.peer.record_table import records
from gossamer.protocol.peer.rendezvous.publication import TRIED_AT
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.space.ring import RING_MASK
from gossamer.protocol.peer.state.state import NOT_TAKEN
from gossamer.protocol.peer.step import publish_record, restart
from support.draws import few_examples, larger
from support.overlays import Hosts, mended, nothing, record

NODES = larger(12, 16)
VALUE = RING_MASK // 3


def all_of(kind: int) -> Callable[[Words], bool]:
    """Every record of a kind is lost."""
    return lambda words: bool(words[KIND] == kind)


def overlay(seed: int = 3, **changes: Any) -> Hosts:
    chosen = {"replay_rounds": 10, "pending_publications": 2, "event_memory": 64, **changes}
    return mended(NODES, seed, **chosen)


def told(hosts: Hosts, kind: int) -> list[tuple[int, int]]:
    return [(int(w[TO]), int(w[BODY])) for w in hosts.of_kind(kind)]


def holders(hosts: Hosts, event: int) -> set[int]:
    return set(np.flatnonzero((hosts.state.event_copies == event).any(axis=1)).tolist())


def unanswered(*events: int) -> Hosts:
    hosts = overlay()
    hosts.loses = all_of(records.EVENT)
    for event in events:
        hosts.publish(0, event, VALUE)
    hosts.loses = nothing
    return hosts


@pytest.mark.parametrize("replicas", [0, 1, 2])
@given(publisher=st.integers(0, NODES - 1), value=st.integers(0, RING_MASK))
def test_acknowledged_events_have_k_replicas(replicas: int, publisher: int, value: int) -> None:
    """Whoever publishes, the rendezvous node itself included; told once."""
    hosts = overlay(replicas=replicas)
    hosts.publish(publisher, 7, value)
    assert told(hosts, records.PUBLISHED) == [(publisher, 7)]
    order = np.argsort(hosts.identifiers()).tolist()
    first = order.index(hosts.rendezvous(value))
    assert {order[(first + i) % NODES] for i in range(replicas + 1)} <= holders(hosts, 7)


def test_every_attribute_has_to_be_answered() -> None:
    hosts = overlay(attributes=3)
    hosts.loses = all_of(records.STORED)
    values = (VALUE, 2 * VALUE, 1)
    publisher = next(p for p in range(NODES) if p not in map(hosts.rendezvous, values))
    hosts.publish(publisher, 7, *values)
    assert hosts.of_kind(records.PUBLISHED) == []
    hosts.loses = nothing
    for attribute in (2, 0):
        hosts.handle(record(records.STORED, publisher, 5, [7, attribute]))
        assert told(hosts, records.PUBLISHED) == []
    hosts.handle(record(records.STORED, publisher, 5, [7, 1]))
    assert told(hosts, records.PUBLISHED) == [(publisher, 7)]


@pytest.mark.parametrize("kind", [records.EVENT, records.STORED])
def test_what_is_not_answered_is_published_again_and_served_once(kind: int) -> None:
    hosts = overlay()
    wanting = (1, 4, 9)
    for p in wanting:
        hosts.subscribe(p, (VALUE - 5, VALUE + 5))
    hosts.cycle()
    hosts.loses = all_of(kind)
    publisher = next(p for p in range(NODES) if p not in holders(hosts, 7))
    hosts.publish(publisher, 7, VALUE)
    hosts.rounds(Settings().retry_rounds + 1)
    hosts.loses = nothing
    hosts.rounds(2 * Settings().retry_rounds)
    assert told(hosts, records.PUBLISHED) == [(publisher, 7)]
    assert sorted(p for p, *_ in hosts.served) == sorted(wanting)


def test_the_pauses_between_tries_double_up_to_the_longest() -> None:
    """Until there is an answer; the next publication begins anew."""
    hosts = overlay()
    hosts.loses = all_of(records.EVENT)
    publisher = next(p for p in range(NODES) if p != hosts.rendezvous(VALUE))
    for event in (7, 8):
        published_in = int(hosts.state.round[publisher])
        hosts.publish(publisher, event, VALUE)
        rounds = []
        for _ in range(30):
            hosts.cycle()
            rounds.append(int(hosts.state.pending[publisher, 0, TRIED_AT]) - published_in)
        assert sorted(set(rounds) - {0}) == [2, 6, 14, 22, 30]
        hosts.handle(record(records.STORED, publisher, 5, [event, 0]))
        assert (publisher, event) in told(hosts, records.PUBLISHED)


def test_unanswered_publications_are_bounded_and_forgotten_at_a_restart() -> None:
    hosts = unanswered(1, 2, 3)
    assert told(hosts, records.NOT_PUBLISHED) == [(0, 3)]
    assert hosts.state.counters[0, NOT_TAKEN] == 1
    hosts.rounds(Settings().retry_rounds)
    assert sorted(told(hosts, records.PUBLISHED)) == [(0, 1), (0, 2)]
    hosts.publish(0, 3, VALUE)
    assert (0, 3) in told(hosts, records.PUBLISHED)
    hosts = unanswered(7)
    restart(hosts.state, 0)
    assert (hosts.state.pending[0] == -1).all()
    hosts = overlay(pending_publications=0)
    hosts.publish(0, 7, VALUE)
    kinds = {int(words[KIND]) for words in hosts.passed}
    assert records.EVENT in kinds
    assert not kinds & {records.STORED, records.PUBLISHED, records.NOT_PUBLISHED}


def test_an_answer_that_finds_no_way_goes_over_neighbours_once() -> None:
    """The one who answers and the publisher do not reach each other, as behind two firewalls."""
    hosts = unanswered(7)
    answering = hosts.rendezvous(VALUE)
    hosts.handle(*hosts.step(answering, record(UNREACHABLE + records.STORED, 0, answering, [7, 0])))
    assert told(hosts, records.PUBLISHED) == [(0, 7)]
    asked = {int(w[TO]) for w in hosts.of_kind(records.STORED_FOR)} - {0}
    assert 0 < len(asked) <= 2 * hosts.settings.ring_links
    again = record(UNREACHABLE + records.STORED_FOR, 0, asked.pop(), [7, 0, 0])
    assert not [one for one in hosts.step(int(again[FROM]), again) if one[KIND] != records.INSTALL]


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        *((records.STORED, [7, *more]) for more in ([], [0, 0], [-1], [1])),
        *((records.STORED, [event, 0]) for event in (-1, 8)),
        *((records.STORED_FOR, [7, *more]) for more in ([0], [-1, 0], [1, 0], [0, -1])),
        *((records.STORED_FOR, [event, 0, 0]) for event in (-1, 8)),
    ],
)
def test_a_strange_answer_changes_nothing(kind: int, body: list[int]) -> None:
    hosts = unanswered(7)
    before = hosts.state.pending.copy()
    assert hosts.step(0, record(kind, 0, 5, body)) == []
    np.testing.assert_array_equal(hosts.state.pending, before)


@few_examples(4)
@given(
    seed=st.integers(0, 500),
    crashed=st.sets(st.integers(0, NODES - 1), min_size=1, max_size=2),
    value=st.integers(0, RING_MASK),
)
def test_acknowledged_events_survive_k_crashes(seed: int, crashed: set[int], value: int) -> None:
    """Whoever crashes, they crash before they pass the event on down its tree."""
    hosts = overlay(seed)
    lows = np.random.default_rng(seed).integers(0, RING_MASK // 2, NODES).tolist()
    for p, low in enumerate(lows):
        hosts.subscribe(p, (low, low + RING_MASK // 2))
    wanting = {p for p, low in enumerate(lows) if low <= value <= low + RING_MASK // 2}
    hosts.rounds(4)
    publisher = next(p for p in range(NODES) if p not in crashed)
    hosts.loses = lambda words: bool(
        words[KIND] == records.EVENT
        and words[BODY + records.EVENT_MODE] == records.TREE
        and words[FROM] in crashed
    )
    hosts.handle(publish_record(publisher, 7, np.array([value])))
    assert told(hosts, records.PUBLISHED) == [(publisher, 7)], f"seed {seed}"
    hosts.alive[list(crashed)] = False
    hosts.rounds(8)
    served = [p for p, *_ in hosts.served]
    assert wanting - crashed <= set(served), f"seed {seed}"
    assert set(served) <= wanting, f"seed {seed}"
    assert len(served) == len(set(served)), f"seed {seed}"
