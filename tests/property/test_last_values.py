"""Last values: the newest wins, within bounds, and all peers come to agree."""

from __future__ import annotations

import random

import pytest

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
