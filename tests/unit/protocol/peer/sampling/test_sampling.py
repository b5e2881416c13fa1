"""Cyclon and Newscast, one exchange at a time."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from gossamer.protocol.kernel.errors import ConfigError
from gossamer.protocol.kernel.records import BODY, FROM, KIND, TO, UNREACHABLE
from gossamer.protocol.peer.record_table.records import SAMPLE_REPLY, SAMPLE_REQUEST
from gossamer.protocol.peer.sampling.descriptors import forget
from gossamer.protocol.peer.sampling.sampler import SamplerState, add_contact, make_sampler, pack
from support.overlays import (
    descriptors_of,
    record,
    ring_sampler,
    states_equal,
    take,
    timer_record,
)

CYCLON, NEWSCAST = "cyclon", "newscast"
NO_PROFILE = np.zeros(0, np.int64)


def sampler_with(name: str, views: list[list[tuple[int, int]]], size: int = 4) -> SamplerState:
    sampler = make_sampler(32, name, size, 3, 0, seed=5)
    for p, view in enumerate(views):
        for slot, (freshness, handle) in enumerate(view):
            sampler.views[p, slot] = pack(freshness, handle)
    return sampler


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("nodes", 0),
        ("name", "chord"),
        ("view_size", 0),
        ("view_size", 257),
        ("shuffle_length", 21),
        ("profile_words", -1),
        ("keys", np.zeros(3, np.int64)),
    ],
)
def test_impossible_settings_are_named(field: str, value: object) -> None:
    settings: dict[str, object] = {
        "nodes": 8,
        "name": CYCLON,
        "view_size": 20,
        "shuffle_length": 8,
        "profile_words": 0,
        "seed": 1,
    }
    with pytest.raises(ConfigError, match=rf"^sampler\.{field} is "):
        make_sampler(**(settings | {field: value}))  # type: ignore[arg-type]


def test_a_cyclon_timer_trades_with_the_oldest_and_drops_it() -> None:
    sampler = sampler_with(CYCLON, [[(3, 10), (9, 11), (5, 12), (1, 13)]])
    (request,) = take(sampler, 0, timer_record(0))
    assert (request[KIND], request[TO], request[FROM]) == (SAMPLE_REQUEST, 11, 0)
    assert (request[BODY], request[BODY + 1]) == (3, pack(0, 0))
    offered = {(int(w) >> 32, int(w) & 0xFFFFFFFF) for w in request[BODY + 2 :]}
    assert offered < {(4, 10), (6, 12), (2, 13)}
    assert sorted(descriptors_of(sampler, 0)) == [(2, 13), (4, 10), (6, 12)]


def test_a_cyclon_exchange_hands_over_what_each_side_gave() -> None:
    peers = sampler_with(CYCLON, [[(9, 1), (0, 2), (0, 3), (0, 4)], [(0, n) for n in range(5, 9)]])
    (request,) = take(peers, 0, timer_record(0))
    offered = {int(w) & 0xFFFFFFFF for w in request[BODY + 2 :]}
    (reply,) = take(peers, 1, request)
    given = {int(w) & 0xFFFFFFFF for w in reply[BODY + 1 :]}
    take(peers, 0, reply)
    held = [{handle for _, handle in descriptors_of(peers, p)} for p in (0, 1)]
    assert (len(offered), len(given), held[0]) == (2, 3, ({2, 3, 4} - offered) | given)
    assert held[1] == ({5, 6, 7, 8} - given) | offered | {0}


def test_cyclon_replies_replace_only_what_was_offered() -> None:
    sampler = sampler_with(CYCLON, [[(2, 1), (2, 2)]])
    take(sampler, 0, record(SAMPLE_REPLY, 0, 3, [3, pack(0, 0), pack(0, 2), pack(7, 9)]))
    assert descriptors_of(sampler, 0) == [(2, 1), (2, 2), (7, 9)]
    sampler = sampler_with(CYCLON, [[(2, 1), (2, 2), (2, 3), (2, 4)]])
    before = descriptors_of(sampler, 0)
    take(sampler, 0, record(SAMPLE_REPLY, 0, 9, [2, pack(0, 10), pack(0, 11)]))
    assert descriptors_of(sampler, 0) == before
    sampler = sampler_with(CYCLON, [[(5, 9)]])
    take(sampler, 0, record(SAMPLE_REPLY, 0, 9, [1, pack(0, 0)]))
    assert descriptors_of(sampler, 0) == [(5, 9)]
    take(sampler, 0, record(SAMPLE_REPLY, 0, 9, [2, pack(0, 0), pack(1, 7)]))
    assert descriptors_of(sampler, 0) == [(1, 7)]


def test_newscast_exchanges_leave_the_freshest_by_the_sender_s_clock() -> None:
    sampler = sampler_with(
        NEWSCAST, [[(6, 1), (5, 2), (1, 3)], [(7, 4), (5, 2), (4, 5), (0, 6)]], size=4
    )
    request = record(SAMPLE_REQUEST, 1, 0, [4, pack(8, 0), pack(6, 1), pack(5, 2), pack(1, 3)])
    (reply,) = take(sampler, 1, request, now=8)
    assert descriptors_of(sampler, 1) == [(8, 0), (7, 4), (5, 2), (4, 5)]
    take(sampler, 0, reply, now=8)
    assert descriptors_of(sampler, 0) == [(8, 1), (7, 4), (5, 2), (4, 5)]
    sampler = sampler_with(NEWSCAST, [[(4, 1)]])
    take(
        sampler,
        0,
        record(SAMPLE_REPLY, 0, 2, [4, pack(105, 2), pack(103, 3), pack(103, 4), pack(90, 5)]),
        now=5,
    )
    assert descriptors_of(sampler, 0) == [(5, 2), (4, 1), (3, 3), (3, 4)]


def test_a_newscast_reply_is_adopted_whole_and_undoes_nothing() -> None:
    sampler = ring_sampler(8, NEWSCAST, 4, 1, 2, seed=3)
    (request,) = take(sampler, 0, timer_record(0), now=1)
    (reply,) = take(sampler, int(request[TO]), request, now=1)
    merged = copy.deepcopy(sampler)
    merged.views[0] &= (1 << 62) - 1
    take(sampler, 0, reply, now=1)
    take(merged, 0, reply, now=1)
    assert sorted(descriptors_of(sampler, 0)) == sorted(descriptors_of(merged, 0))
    assert list(sampler.view_profile[0, :, 0]) == [h * 1000 for _, h in descriptors_of(sampler, 0)]
    sampler = ring_sampler(8, NEWSCAST, 4, 1, 0, seed=3)
    (request,) = take(sampler, 0, timer_record(0), now=1)
    (reply,) = take(sampler, int(request[TO]), request, now=1)
    add_contact(sampler, 0, 1, 7, NO_PROFILE, 0)
    take(sampler, 0, reply, now=1)
    assert (1, 7) in descriptors_of(sampler, 0)


MALFORMED = [
    [],
    [-1],
    [2, pack(3, 2)],
    [1, pack(3, 2), pack(3, 3)],
    [1 << 40],
    [6, *(pack(3, handle) for handle in range(2, 8))],
]
MALFORMED_NEWS = [
    [0],
    [1, pack(3, 3)],
    [2, pack(3, 2), pack(4, 3)],
    [2, pack(3, 2), -1],
    [1, pack(1 << 29, 2)],
]


@pytest.mark.parametrize("kind", [SAMPLE_REQUEST, SAMPLE_REPLY])
@pytest.mark.parametrize(
    ("protocol", "body"),
    [(CYCLON, body) for body in MALFORMED]
    + [(NEWSCAST, body) for body in MALFORMED + MALFORMED_NEWS],
)
def test_a_malformed_record_changes_nothing(protocol: str, body: list[int], kind: int) -> None:
    sampler = sampler_with(protocol, [[(2, 1), (1, 5)]])
    before = copy.deepcopy(sampler)
    assert take(sampler, 0, record(kind, 0, 2, body), now=3) == []
    assert states_equal(sampler, before)


@pytest.mark.parametrize("protocol", [CYCLON, NEWSCAST])
def test_samplers_ignore_themselves_and_forget_the_unreachable(protocol: str) -> None:
    sampler = sampler_with(protocol, [[(2, 1)]])
    before = copy.deepcopy(sampler)
    assert take(sampler, 0, record(SAMPLE_REQUEST, 0, 0, [1, pack(0, 0)])) == []
    assert states_equal(sampler, before)
    sampler = sampler_with(protocol, [[(4, 1), (3, 2), (2, 3)]])
    assert take(sampler, 0, record(SAMPLE_REQUEST + UNREACHABLE, 2, 0, [1, pack(4, 0)])) == []
    assert descriptors_of(sampler, 0) == [(4, 1), (2, 3)]
    sampler = sampler_with(protocol, [[]])
    assert (take(sampler, 0, timer_record(0)), sampler.draws[0]) == ([], 0)


def test_forgetting_keeps_order_profiles_and_no_gap() -> None:
    sampler = ring_sampler(8, NEWSCAST, 4, 1, 2, seed=1)
    forget(sampler, 0, 2)
    forget(sampler, 0, 99)
    assert descriptors_of(sampler, 0) == [(0, 1), (0, 3), (0, 4)]
    assert sampler.views[0, 3] == -1
    assert list(sampler.view_profile[0, :3, 1]) == [1001, 3001, 4001]


@pytest.mark.parametrize(
    ("protocol", "view", "handle", "expected"),
    [
        (CYCLON, [(4, 1), (9, 2)], 7, [(4, 1), (9, 2), (0, 7)]),
        (CYCLON, [(4, 1), (9, 2)], 2, [(4, 1), (0, 2)]),
        (CYCLON, [(4, 1), (9, 2), (3, 3), (3, 4)], 7, [(4, 1), (0, 7), (3, 3), (3, 4)]),
        (CYCLON, [(4, 1)], 0, [(4, 1)]),
        (NEWSCAST, [(4, 1), (2, 2)], 7, [(6, 7), (4, 1), (2, 2)]),
        (NEWSCAST, [(4, 1), (2, 2)], 2, [(6, 2), (4, 1)]),
        (NEWSCAST, [(4, 1), (3, 2), (2, 3), (1, 4)], 7, [(6, 7), (4, 1), (3, 2), (2, 3)]),
        (NEWSCAST, [(4, 1)], 0, [(4, 1)]),
    ],
)
def test_a_contact_is_seated_as_fresh(
    protocol: str, view: list[tuple[int, int]], handle: int, expected: list[tuple[int, int]]
) -> None:
    sampler = sampler_with(protocol, [view])
    add_contact(sampler, 0, 6, handle, NO_PROFILE, 0)
    assert descriptors_of(sampler, 0) == expected


def test_cyclon_peers_that_know_one_or_nobody_go_on() -> None:
    sampler = sampler_with(CYCLON, [[(0, 1)], [(0, 0)]])
    for _ in range(3):
        for p in (0, 1):
            (request,) = take(sampler, p, timer_record(p))
            (reply,) = take(sampler, 1 - p, request)
            take(sampler, p, reply)
            assert descriptors_of(sampler, p) == [(0, 1 - p)]
    sampler = sampler_with(CYCLON, [[(3, 1), (2, 2)], []])
    (request,) = take(sampler, 0, timer_record(0))
    (reply,) = take(sampler, 1, request)
    assert list(reply[BODY:]) == [1, pack(0, 1)]
    assert (0, 0) in descriptors_of(sampler, 1)
    sampler = sampler_with(CYCLON, [[(0, 9)]])
    asked = 0
    while descriptors_of(sampler, 0):
        (request,) = take(sampler, 0, timer_record(0))
        assert request[TO] == 9
        asked += 1
    assert asked == 17
