"""Guests find the host at the place of an interest, follow it, and are forgotten when they go."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.protocol.peer.record_table.records import FIND_HOST, HOST_FOUND, OVERLAY_TIMER
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.state.state import MALFORMED
from support.overlays import HANDLE, Hosts, record

NODES, GUESTS = 40, 2


def overlay(**changes: Any) -> Hosts:
    """A true ring with two ring links a side, and no guests yet."""
    settings = Settings(
        ring_links=2,
        friend_links=0,
        guest_links=GUESTS,
        view_size=4,
        shuffle_length=2,
        load_shifting=False,
        failure_age=6,
    )
    hosts = Hosts.ring(settings, NODES, 3, **changes)
    hosts.state.links[:, settings.chosen_links :] = -1
    hosts.timers = (OVERLAY_TIMER,)
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


def test_a_guest_s_host_is_the_peer_at_the_place_it_looks_for() -> None:
    hosts = overlay()
    place = far_place(hosts, 0)
    hosts.state.guest_targets[0] = [place, -1]
    hosts.rounds(3)
    host = hosts.rendezvous(place)
    assert hosts_of(hosts, 0) == [host, -1]
    assert guests_of(hosts, host) == {0}


def test_where_a_neighbour_is_at_the_place_nothing_is_kept() -> None:
    hosts = overlay()
    neighbour = int(hosts.state.links[0, 0]) & HANDLE
    hosts.state.guest_targets[0] = [hosts.identifiers()[neighbour], hosts.identifiers()[0]]
    hosts.rounds(4)
    assert hosts_of(hosts, 0) == [-1, -1]
    assert guests_of(hosts, neighbour) == set()


def test_a_full_host_passes_guests_on_along_the_ring() -> None:
    hosts = overlay()
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
    hosts = overlay(rendezvous="key")
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
    hosts = overlay(rendezvous="key", guest_links=1)
    s = hosts.state
    s.constrained[:] = -1
    s.guest_targets[:, 0] = hosts.identifiers()[np.argsort(hosts.identifiers())[20]]
    hosts.rounds(4)
    assert (s.links[:, s.params.chosen_links + 1 :] >= 0).sum() <= 2 * NODES
    assert not s.counters[:, MALFORMED].any()


def test_a_guest_that_wants_nothing_there_any_more_is_forgotten() -> None:
    hosts = overlay()
    hosts.state.guest_targets[0, 0] = far_place(hosts, 0)
    hosts.rounds(3)
    host = hosts_of(hosts, 0)[0]
    hosts.state.guest_targets[0, 0] = -1
    hosts.rounds(10)
    assert guests_of(hosts, host) == set()


def test_a_guest_finds_another_host_when_its_host_fails() -> None:
    hosts = overlay()
    place = far_place(hosts, 0)
    hosts.state.guest_targets[0, 0] = place
    hosts.rounds(3)
    first = hosts_of(hosts, 0)[0]
    hosts.alive[first] = False
    hosts.rounds(8)
    assert hosts.rendezvous(place) in hosts.neighbours(0)
    assert first not in hosts.neighbours(0)


@pytest.mark.parametrize("kind", [FIND_HOST, HOST_FOUND])
@pytest.mark.parametrize("body", [[], [0], [0] * 3])
def test_a_malformed_search_is_counted_and_changes_nothing(kind: int, body: list[int]) -> None:
    hosts = overlay()
    before = hosts.state.links.copy()
    assert hosts.step(0, record(kind, 0, 1, body)) == []
    assert hosts.state.counters[0, MALFORMED] == 1
    assert np.array_equal(hosts.state.links, before)
