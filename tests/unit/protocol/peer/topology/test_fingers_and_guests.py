"""Fingers reach doubling numbers of peers, and guests find the host at the place of an interest."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from gossamer.protocol.peer.record_table import records
from gossamer.protocol.peer.settings.presets import finger_levels_for
from gossamer.protocol.peer.state.state import INSTALLS_SOON, MALFORMED
from support.draws import larger
from support.overlays import HANDLE, SMALL, Hosts, record

RING_LINKS = 3


def ring_with_fingers(nodes: int, seed: int = 1, **changes: Any) -> Hosts:
    links = {"ring_links": RING_LINKS, "finger_levels": finger_levels_for(nodes, RING_LINKS)}
    hosts = Hosts.ring(SMALL, nodes, seed, **{**links, "friend_links": 0, **changes})
    hosts.state.links[:, 2 * RING_LINKS :] = -1
    hosts.timers = (records.OVERLAY_TIMER,)
    return hosts


def fingers(hosts: Hosts, p: int, side: int) -> list[int | None]:
    levels = hosts.state.params.finger_levels
    first = hosts.state.params.chosen_links + side * levels
    words = hosts.state.links[p, first : first + levels].tolist()
    return [word & HANDLE if word >= 0 else None for word in words]


def expected_fingers(hosts: Hosts, p: int, side: int) -> list[int | None]:
    """Those that the definition gives: R * 2^(i + 1) peers away, while the sides stay apart.

    Who is as far on both sides is one clockwise.
    """
    order = np.argsort(hosts.identifiers()).tolist()
    nodes, at, step = len(order), order.index(p), (1, -1)[side]
    reaches = [RING_LINKS << (level + 1) for level in range(hosts.state.params.finger_levels)]
    return [
        order[(at + step * reach) % nodes]
        if reach + reach // 2 < nodes and (side == 0 or 2 * reach != nodes)
        else None
        for reach in reaches
    ]


def check_fingers(hosts: Hosts) -> None:
    for p in range(len(hosts.alive)):
        for side in (0, 1):
            assert fingers(hosts, p, side) == expected_fingers(hosts, p, side), (p, side)


@pytest.mark.parametrize(
    "nodes", [8, 9, 10, 12, 13, 18, 19, 24, 36, 37, pytest.param(100, marks=pytest.mark.campaign)]
)
def test_fingers_reach_doubling_numbers_of_peers_on_either_side(nodes: int) -> None:
    hosts = ring_with_fingers(nodes)
    hosts.rounds(4 * (hosts.state.params.finger_levels + 1))
    check_fingers(hosts)


def test_friends_give_way_to_fingers() -> None:
    """A level that is held by a friend's slot would be empty, and with it all above."""
    nodes = larger(40, 60)
    hosts = ring_with_fingers(nodes, friend_links=8)
    hosts.rounds(20)
    friends = hosts.state.links[:, 2 * RING_LINKS : hosts.state.params.chosen_links]
    assert (friends >= 0).sum() > 3.3 * nodes
    check_fingers(hosts)
    for p in range(nodes):
        linked = [word & HANDLE for word in hosts.state.links[p].tolist() if word >= 0]
        assert len(linked) == len(set(linked))


def test_whoever_is_a_finger_is_no_candidate_for_a_friend() -> None:
    """Else it would be chosen, and dropped at once, whenever somebody tells of it."""
    hosts = ring_with_fingers(16, friend_links=16, rest_rounds=8, suspect_rounds=2)
    hosts.rounds(25)
    before = hosts.state.links & HANDLE
    hosts.state.rest[:, INSTALLS_SOON] = 0
    hosts.rounds(5)
    assert np.array_equal(hosts.state.links & HANDLE, before)
    assert not hosts.state.rest[:, INSTALLS_SOON].any(), "links were selected anew"


@pytest.mark.parametrize("nodes", [2, 3, 5, 7])
def test_where_everybody_is_a_ring_neighbour_there_are_no_fingers(nodes: int) -> None:
    hosts = ring_with_fingers(nodes, finger_exchanges=4)
    hosts.rounds(10)
    for p in range(nodes):
        assert set(fingers(hosts, p, 0) + fingers(hosts, p, 1)) == {None}


def test_fingers_lost_with_a_fifth_of_the_peers_are_replaced() -> None:
    hosts = ring_with_fingers(60, failures_remembered=32, failure_age=6)
    hosts.rounds(20)
    hosts.alive[np.argsort(hosts.identifiers())[::5]] = False
    hosts.rounds(larger(30, 60))
    for p in np.flatnonzero(hosts.alive).tolist():
        for side in (0, 1):
            found = [q for q in fingers(hosts, p, side) if q is not None]
            assert all(hosts.alive[q] for q in found)
            # 48 are left: 6, 12 and 24 peers away, of which the last is on both sides.
            assert len(found) >= 2


@pytest.mark.parametrize("nodes", [larger(60, 100), pytest.param(200, marks=pytest.mark.campaign)])
def test_half_of_all_fingers_come_back_within_two_turns_of_all_levels(nodes: int) -> None:
    """A new finger is asked for the next at once: no level waits for a turn of those below it."""
    hosts = ring_with_fingers(nodes, seed=2, finger_exchanges=1)
    hosts.rounds(40)
    hosts.state.links[: nodes // 2, 2 * RING_LINKS :] = -1
    hosts.rounds(2 * (hosts.state.params.finger_levels + 1))
    check_fingers(hosts)


def test_a_round_sends_as_many_questions_as_the_settings_say() -> None:
    nodes = larger(40, 60)
    for exchanges in (1, 3):
        hosts = ring_with_fingers(nodes, finger_exchanges=exchanges)
        hosts.rounds(larger(20, 40))
        del hosts.passed[:]
        hosts.rounds(1)
        kinds = [int(one[1]) for one in hosts.passed]
        assert kinds.count(records.FINGER_REQUEST) == nodes * exchanges
        assert kinds.count(records.FINGER_REPLY) == nodes * exchanges


def test_whom_a_stranger_tells_of_takes_no_finger_s_place() -> None:
    """A level that is filled changes only by what its own finger below says."""
    hosts = ring_with_fingers(40)
    hosts.rounds(20)
    before = fingers(hosts, 0, 1)
    linked = {word & HANDLE for word in hosts.state.links[0].tolist()}
    stranger, other = [q for q in range(1, 40) if q not in linked][:2]
    body = [0, *hosts.descriptor(stranger), *hosts.descriptor(other)]
    hosts.step(0, record(records.FINGER_REQUEST, 0, stranger, body))
    assert fingers(hosts, 0, 1) == before


NODES, GUESTS = 40, 2


def ring_with_guests(**changes: Any) -> Hosts:
    links = {"ring_links": 2, "friend_links": 0, "guest_links": GUESTS, "failure_age": 6}
    hosts = Hosts.ring(SMALL, NODES, 3, **{**links, **changes})
    hosts.state.links[:, hosts.settings.chosen_links :] = -1
    hosts.timers = (records.OVERLAY_TIMER,)
    return hosts


def hosts_of(hosts: Hosts, p: int) -> list[int]:
    """The hosts of ``p``, by interest; -1 where it has none."""
    first = hosts.state.params.chosen_links
    words = hosts.state.links[p, first : first + GUESTS].tolist()
    return [word & HANDLE if word >= 0 else -1 for word in words]


def guests_of(hosts: Hosts, q: int) -> set[int]:
    first = hosts.state.params.chosen_links + GUESTS
    return {word & HANDLE for word in hosts.state.links[q, first:].tolist() if word >= 0}


def far_place(hosts: Hosts, p: int) -> int:
    """A place at which no neighbour of ``p`` is."""
    linked = {word & HANDLE for word in hosts.state.links[p].tolist()}
    far = next(q for q in range(NODES) if q != p and q not in linked)
    return int(hosts.identifiers()[far])


def test_a_guest_s_host_is_the_peer_at_the_place_until_it_wants_nothing() -> None:
    hosts = ring_with_guests()
    place = far_place(hosts, 0)
    hosts.state.guest_targets[0] = [place, -1]
    hosts.rounds(3)
    host = hosts.rendezvous(place)
    assert (hosts_of(hosts, 0), guests_of(hosts, host)) == ([host, -1], {0})
    hosts.state.guest_targets[0, 0] = -1
    hosts.rounds(10)
    assert guests_of(hosts, host) == set()


def test_where_a_neighbour_is_at_the_place_nothing_is_kept() -> None:
    hosts = ring_with_guests()
    neighbour = int(hosts.state.links[0, 0]) & HANDLE
    hosts.state.guest_targets[0] = [hosts.identifiers()[neighbour], hosts.identifiers()[0]]
    hosts.rounds(4)
    assert (hosts_of(hosts, 0), guests_of(hosts, neighbour)) == ([-1, -1], set())


def test_a_full_host_passes_guests_on_along_the_ring() -> None:
    hosts = ring_with_guests()
    places = hosts.identifiers()
    order = np.argsort(places)
    host = int(order[20])
    guests = [int(q) for q in order if abs(int(np.flatnonzero(order == q)[0]) - 20) > 6][:9]
    for guest in guests:
        hosts.state.guest_targets[guest, 0] = places[host]
    hosts.rounds(5)
    assert len(guests_of(hosts, host)) <= 2 * GUESTS
    served = {guest for guest in guests if hosts_of(hosts, guest)[0] >= 0}
    linked = {guest for guest in guests if host in set(hosts.neighbours(guest))}
    assert served | linked == set(guests)
    around = [int(order[20 + i]) for i in range(-8, 9)]
    assert all(hosts_of(hosts, guest)[0] in around for guest in served)


def crowded(wanting: range, guests: int) -> tuple[Hosts, list[int], set[int]]:
    """Guests for one and the same place, about which only some peers want anything.

    Returns the overlay after some rounds, the hosts of the guests, and the peers that want it;
    these are numbered from the place on, clockwise.
    """
    hosts = ring_with_guests(rendezvous="key")
    s = hosts.state
    places = hosts.identifiers()
    order = np.argsort(places)
    place = int(places[order[20]])
    s.constrained[:] = -1
    for i in wanting:
        s.constrained[order[20 + i], 0] = 1
        s.subscriptions[order[20 + i], 0] = (place - 5, place + 5)
    far = [int(order[(35 + i) % NODES]) for i in range(guests)]
    for guest in far:
        s.guest_targets[guest, 0] = place
    hosts.rounds(6)
    return (
        hosts,
        [hosts_of(hosts, guest)[0] for guest in far],
        {int(order[20 + i]) for i in wanting},
    )


@pytest.mark.parametrize("wanting", [range(3), range(-2, 1), range(-3, 0), range(-1, 2)])
def test_guests_find_hosts_that_want_what_they_come_for(wanting: range) -> None:
    _, found, suitable = crowded(wanting, 2 * GUESTS * len(wanting) - 2)
    assert set(found) <= suitable


def test_where_those_are_full_others_take_guests() -> None:
    hosts, found, suitable = crowded(range(2), 2 * GUESTS * 2 + 3)
    (suited, others) = (set(found) & suitable, set(found) - suitable)
    assert suited == suitable
    assert others
    assert -1 not in found
    assert all(len(guests_of(hosts, host)) <= 2 * GUESTS for host in set(found))


def test_a_search_ends_where_everybody_is_full() -> None:
    hosts = ring_with_guests(rendezvous="key", guest_links=1)
    s = hosts.state
    s.constrained[:] = -1
    s.guest_targets[:, 0] = hosts.identifiers()[np.argsort(hosts.identifiers())[20]]
    hosts.rounds(4)
    assert (s.links[:, s.params.chosen_links + 1 :] >= 0).sum() <= 2 * NODES
    assert not s.counters[:, MALFORMED].any()


def test_a_guest_finds_another_host_when_its_host_fails() -> None:
    hosts = ring_with_guests()
    place = far_place(hosts, 0)
    hosts.state.guest_targets[0, 0] = place
    hosts.rounds(3)
    first = hosts_of(hosts, 0)[0]
    hosts.alive[first] = False
    hosts.rounds(8)
    assert hosts.rendezvous(place) in hosts.neighbours(0)
    assert first not in hosts.neighbours(0)


FINGERS = (records.FINGER_REQUEST, records.FINGER_REPLY)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        *product((*FINGERS, records.FIND_HOST, records.HOST_FOUND), ([], [0], [0] * 3)),
        *product(FINGERS, ([99], [-1])),
    ],
)
def test_a_malformed_record_is_counted_and_changes_nothing(kind: int, body: list[int]) -> None:
    hosts = ring_with_guests(finger_levels=2)
    hosts.rounds(4)
    before = hosts.state.links.copy()
    there_is_no_such_level = body in ([99], [-1])
    whole = [*body, *hosts.descriptor(1)] if there_is_no_such_level else body
    assert hosts.step(0, record(kind, 0, 1, whole)) == []
    assert hosts.state.counters[0, MALFORMED] == 1
    assert np.array_equal(hosts.state.links, before)
