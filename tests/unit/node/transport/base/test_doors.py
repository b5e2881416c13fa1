"""Strangers: how many there may be, and who makes room."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.node.transport.base.doors import LEAVING, Doors, Guest, address_group

ROOM, PER_ADDRESS = 6, 3


def turned_out(guests: list[Guest]) -> list[int]:
    return [number for number, guest in enumerate(guests) if guest.is_turned_out]


@given(st.lists(st.sampled_from("abcdefgh"), max_size=ROOM * (1 + LEAVING)))
def test_whoever_comes_gets_in_and_the_oldest_of_the_most_crowded_address_makes_room(
    comers: list[str],
) -> None:
    """By a plain list of who is there, whom every newcomer joins."""
    crowds: list[str] = []
    doors = Doors(ROOM, PER_ADDRESS, crowds.append)
    there: list[tuple[int, str]] = []
    expected = []
    guests: list[Guest] = []
    with ExitStack() as stack:
        for number, group in enumerate(comers):
            counts = Counter(one for _, one in there)
            crowded = None
            if counts[group] >= PER_ADDRESS:
                crowded = group
            elif len(there) >= ROOM:
                crowded = max(counts, key=counts.__getitem__)
            if crowded is not None:
                # Of addresses with as many, any may be meant.
                before = turned_out(guests)
            guest = stack.enter_context(doors.enter(group))
            assert guest is not None
            guests.append(guest)
            if crowded is not None:
                (gone,) = set(turned_out(guests)) - set(before)
                was = dict(there)[gone]
                assert counts[was] == counts[crowded]
                assert gone == min(one for one, of in there if of == was)
                assert crowds[-1] == was
                there = [one for one in there if one[0] != gone]
                expected.append(gone)
            there.append((number, group))
            assert len(doors) == len(there) <= ROOM
            assert max(Counter(one for _, one in there).values()) <= PER_ADDRESS
    assert len(doors) == 0
    assert sorted(expected) == turned_out(guests)


def test_who_is_let_stay_makes_room_last() -> None:
    doors = Doors(ROOM, PER_ADDRESS)
    with ExitStack() as stack:
        guests: list[Guest] = []
        for _ in range(PER_ADDRESS):
            guest = stack.enter_context(doors.enter("a"))
            assert guest is not None
            guests.append(guest)
        assert [guest.let_stay(2) for guest in guests] == [True, True, False]
        for _ in range(10):
            stack.enter_context(doors.enter("a"))
        assert turned_out(guests) == [2]


def test_those_who_are_still_taking_their_leave_are_bounded() -> None:
    crowds: list[str] = []
    doors = Doors(1, 1, crowds.append)
    with ExitStack() as stack:
        guests = [stack.enter_context(doors.enter("a")) for _ in range(2 + LEAVING)]
        assert guests[-1] is None
        assert crowds == ["a"] * (1 + LEAVING)
    with doors.enter("a") as guest:
        assert guest is not None


@pytest.mark.parametrize(
    ("host", "group"),
    [
        ("192.168.1.20", "192.168.1.20"),
        ("::ffff:192.168.1.20", "192.168.1.20"),
        ("2001:db8::1:2:3", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("memory", "memory"),
    ],
)
def test_an_ipv6_network_counts_as_one_address(host: str, group: str) -> None:
    assert address_group(host) == group
