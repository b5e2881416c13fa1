"""Last values and the order of events, whatever order things come in."""

from __future__ import annotations

import random

import pytest

from gossamer.protocol.patterns import ordering
from gossamer.protocol.patterns.last_values import COMPARED, LastValue, LastValues, chunks


def value(key: int, time: int, *, size: int = 10, **more: object) -> LastValue:
    return LastValue(str(key).encode(), (time, time), bytes(size), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(50))
def test_peers_that_compare_come_to_agree_on_the_newest(seed: int) -> None:
    draws = random.Random(seed)
    peers = [LastValues() for _ in range(5)]
    told = {(a, b): 0 for a in range(5) for b in range(5)}
    newest: dict[int, LastValue] = {}
    for time in range(1, 200):
        key = draws.randrange(30)
        one = value(key, time, is_deleted=draws.random() < 0.1)
        if key not in newest or newest[key].stamp < one.stamp:
            newest[key] = one
        for peer in draws.sample(peers, 2):
            peer.put(one)
        a, b = draws.sample(range(5), 2)
        _compare(peers, told, a, b)
    for _ in range(3):
        for a, b in told:
            _compare(peers, told, a, b)
    expected = {str(key).encode(): one for key, one in newest.items()}
    for peer in peers:
        assert {key: peer.find(key) for key in expected} == expected
        alive = {one.key for one in peer.all(0.0)}
        assert alive == {one.key for one in newest.values() if not one.is_deleted}


def _compare(peers: list[LastValues], told: dict[tuple[int, int], int], a: int, b: int) -> None:
    told[a, b], news = peers[a].since(told[a, b])
    for place in peers[b].missing([(one.key, one.stamp) for one in news]):
        assert peers[b].put(news[place])


def test_what_is_older_or_the_same_changes_nothing() -> None:
    values = LastValues()
    assert values.put(value(1, 5))
    assert not values.put(value(1, 5))
    assert not values.put(value(1, 4, is_deleted=True))
    assert values.put(value(1, 6, is_deleted=True))
    assert (values.all(0.0), len(values)) == ([], 1)
    assert not values.put(value(1, 5))


def test_what_expires_or_finds_no_room_is_forgotten() -> None:
    values = LastValues(limit=3, limit_bytes=100)
    values.put(value(1, 1, expires_at=50.0))
    values.put(value(2, 2))
    assert [one.key for one in values.all(49.0)] == [b"1", b"2"]
    assert [one.key for one in values.all(50.0)] == [b"2"]
    for key in (3, 4, 5):
        values.put(value(key, key))
    assert [one.key for one in values.all(50.0)] == [b"3", b"4", b"5"]
    values.put(value(3, 9, size=85))
    assert [one.key for one in values.all(50.0)] == [b"5", b"3"]


def test_many_are_compared_in_pieces() -> None:
    values = LastValues()
    for key in range(COMPARED + 10):
        values.put(value(key, key + 1))
    serial, first = values.since(0)
    _, rest = values.since(serial)
    assert (len(first), len(rest)) == (COMPARED, 10)
    pieces = list(chunks([value(1, 1, size=60), value(2, 2, size=60), value(3, 3, size=500)], 100))
    assert [len(piece) for piece in pieces] == [1, 1, 1]


PATIENCE = 10.0


def wants(content: int) -> bool:
    return content % 3 != 0


@pytest.mark.parametrize("seed", range(150))
def test_acknowledged_events_come_in_order_and_none_is_lost(seed: int) -> None:
    """Some are given up, and may come or not; answers are old when they come."""
    draws = random.Random(seed)
    log: ordering.PublishedLog[int] = ordering.PublishedLog(0)
    order: ordering.Sequencer[int] = ordering.Sequencer(0, PATIENCE)
    got: list[ordering.Released[int]] = []
    under_way: list[int] = []
    unsettled: list[int] = []
    answers: list[tuple[int, tuple[int, int, list[ordering.Listed]]]] = []
    given_up: set[int] = set()
    now = 0.0
    for step in range(400):
        now += draws.choice([0.0, 0.01, 0.3])
        what = draws.random()
        if what < 0.3 and step < 300:
            time = log.reserve(int(now * 1e6))
            log.note(time, time, time)
            unsettled.append(time)
            if wants(time):
                under_way.append(time)
        elif what < 0.45 and unsettled:
            time = unsettled.pop(draws.randrange(len(unsettled)))
            is_given_up = draws.random() < 0.1
            if not is_given_up:
                log.settle(time)
            log.give_up(time)
            if is_given_up:
                given_up.add(time)
                if draws.random() < 0.5 and time in under_way:
                    under_way.remove(time)
        elif what < 0.7 and under_way:
            time = under_way.pop(draws.randrange(len(under_way)))
            got += order.take(time, time, now)
        elif what < 0.85:
            asked = order.question(now)
            if asked is not None:
                answers.append((asked[0], log.between(*asked, wants)))
        elif answers:
            after, (since, until, listed) = answers.pop(0)
            got += order.answer(after, (since, until), listed, now)
        # What is acknowledged comes within the patience, whatever this play draws.
        overdue = [
            one for one in under_way if one not in given_up and now - one / 1e6 > PATIENCE / 3
        ]
        for time in overdue:
            under_way.remove(time)
            got += order.take(time, time, now)
    for time in unsettled:
        log.settle(time)
    for time in under_way:
        got += order.take(time, time, now)
    for _ in range(60):
        now += 1.0
        asked = order.question(now)
        if asked is not None:
            since, until, listed = log.between(*asked, wants)
            got += order.answer(asked[0], (since, until), listed, now)
        got += order.release(now)
    assert order.waiting == 0
    in_order = [one.item for one in got if not one.late]
    assert in_order == sorted(in_order)
    assert {one.item for one in got if one.late} <= given_up
    assert len({one.item for one in got}) == len(got)


def test_a_publisher_that_does_not_answer_is_waited_for() -> None:
    order: ordering.Sequencer[str] = ordering.Sequencer(0, PATIENCE)
    assert order.take(200, "b", now=0.0) == []
    assert order.take(100, "a", now=1.0) == []
    assert order.question(1.0) == (0, 200)
    assert order.release(9.0) == []
    assert order.release(11.5) == [ordering.Released("a"), ordering.Released("b")]
    assert order.take(150, "between", now=12.0) == [ordering.Released("between", late=True)]


def test_an_event_that_is_pending_is_waited_for_as_long_as_it_is() -> None:
    order: ordering.Sequencer[str] = ordering.Sequencer(0, PATIENCE)
    order.take(200, "b", now=0.0)
    pending = [ordering.Listed(100, 1, ordering.Fate.PENDING)]
    assert order.answer(0, (0, 200), pending, now=0.1) == []
    assert order.release(60.0) == []
    assert order.question(60.0) == (0, 200)
    given_up = [ordering.Listed(100, 1, ordering.Fate.GIVEN_UP)]
    assert order.answer(0, (0, 200), given_up, now=60.1) == [ordering.Released("b")]


def test_what_is_acknowledged_and_does_not_come_is_given_up_after_a_while() -> None:
    order: ordering.Sequencer[str] = ordering.Sequencer(0, PATIENCE, is_known={2}.__contains__)
    order.take(200, "b", now=0.0)
    listed = [
        ordering.Listed(100, 1, ordering.Fate.ACKNOWLEDGED),
        ordering.Listed(120, 2, ordering.Fate.ACKNOWLEDGED),
    ]
    assert order.answer(0, (0, 200), listed, now=0.1) == []
    assert order.release(10.0) == []
    assert order.release(10.2) == [ordering.Released("b")]


def test_a_publisher_that_has_forgotten_is_not_believed_to_know() -> None:
    order: ordering.Sequencer[str] = ordering.Sequencer(0, PATIENCE)
    order.take(100, "a", now=0.0)
    assert order.answer(0, (0, 100), [], now=0.1) == [ordering.Released("a")]
    order.take(300, "c", now=1.0)
    # It was started anew at 250, and knows nothing of what was between.
    assert order.answer(100, (250, 300), [], now=1.1) == []
    assert order.take(200, "b", now=2.0) == []
    assert order.release(11.2) == [ordering.Released("b"), ordering.Released("c")]


def test_times_grow_and_what_is_long_ago_is_forgotten() -> None:
    log: ordering.PublishedLog[int] = ordering.PublishedLog(1000)
    times = [log.reserve(now) for now in (5, 5000, 4000)]
    assert times == [1001, 5000, 5001]
    assert log.between(0, 9000, wants) == (
        1000,
        9000,
        [ordering.Listed(time, 0, ordering.Fate.PENDING) for time in times],
    )
    for time in times:
        log.note(time, time, 3)
    assert log.between(0, 9000, wants) == (1000, 9000, [])
    for _ in range(ordering.REMEMBERED):
        log.note(log.reserve(0), 1, 1)
    assert log.since > 5001
    since, until, listed = log.between(0, 1 << 40, wants)
    assert (since, until, len(listed)) == (log.since, listed[-1].time, ordering.LISTED)
