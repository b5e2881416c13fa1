"""Limits, back-off, throttling, and how many strangers there may be."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import ExitStack
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.node.transport.base.back_off import BackOff
from gossamer.node.transport.base.doors import LEAVING, Doors, Guest, address_group
from gossamer.node.transport.base.limits import Limits
from gossamer.node.transport.base.throttle import TokenBucket
from gossamer.protocol.kernel.errors import ConfigError


@pytest.mark.parametrize("name", [field.name for field in attrs.fields(Limits)])
@pytest.mark.parametrize("value", [-1, "1", True, 1 << 40])
def test_every_limit_names_itself_and_what_it_expects(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=rf"^transport\.{name} is .*expected .* from") as caught:
        Limits(**{name: value})
    assert caught.value.value == value


def test_a_queue_holds_one_frame_and_a_peer_has_time_for_two_pings() -> None:
    with pytest.raises(ConfigError, match=r"transport\.queue_bytes is 4096, expected room"):
        Limits(frame_bytes=4096, queue_bytes=4096)
    assert Limits(frame_bytes=4096, queue_bytes=4100).queue_bytes == 4100
    with pytest.raises(ConfigError, match=r"transport\.silence_seconds is 9"):
        Limits(ping_seconds=5.0, silence_seconds=9.0)


def test_a_bucket_lets_a_burst_pass_and_then_keeps_the_rate() -> None:
    bucket = TokenBucket(rate=10, burst=20, now=0)
    assert bucket.charge(20, now=0) == 0
    assert bucket.charge(5, now=0) == 0.5
    assert bucket.charge(1, now=0.5) == pytest.approx(0.1)
    assert bucket.charge(20, now=100) == 0, "it fills up to the burst again"
    assert bucket.charge(1, now=100) == pytest.approx(0.1), "and not beyond"
    bucket = TokenBucket(rate=1, burst=1, now=100)
    assert [bucket.charge(1, now=50) for _ in range(2)] == [0, 1], "the clock goes back"


@pytest.mark.parametrize(
    ("failures", "longest"), [(1, 0.5), (2, 1), (3, 2), (7, 32), (8, 60), (9, 60), (10_000, 60)]
)
def test_back_off_doubles_up_to_its_longest(failures: int, longest: float) -> None:
    draws = random.Random(1)
    delays = [BackOff().delay_s(failures, draws) for _ in range(200)]
    assert max(delays) <= longest
    assert min(delays) >= longest / 2
    assert max(delays) - min(delays) > longest / 4, "peers do not come back in step"


@pytest.mark.parametrize(
    ("name", "value"), [("first_s", 0), ("factor", 0.5), ("longest_s", 0.1), ("jitter", 2)]
)
def test_an_impossible_back_off_is_refused(name: str, value: float) -> None:
    with pytest.raises(ConfigError, match=r"transport\.back_off\."):
        BackOff(**{name: value})


# Strangers: how many there may be, and who makes room

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


def test_who_is_let_stay_makes_room_last_and_those_who_leave_are_bounded() -> None:
    doors = Doors(ROOM, PER_ADDRESS)
    with ExitStack() as stack:
        guests = [stack.enter_context(doors.enter("a")) for _ in range(PER_ADDRESS)]
        there = [guest for guest in guests if guest is not None]
        assert [guest.let_stay(2) for guest in there] == [True, True, False]
        for _ in range(10):
            stack.enter_context(doors.enter("a"))
        assert turned_out(there) == [2]
    crowds: list[str] = []
    doors = Doors(1, 1, crowds.append)
    with ExitStack() as stack:
        guests = [stack.enter_context(doors.enter("a")) for _ in range(2 + LEAVING)]
        assert guests[-1] is None
        assert crowds == ["a"] * (1 + LEAVING)
    with doors.enter("a") as guest:
        assert guest is not None


def test_an_ipv6_network_counts_as_one_address() -> None:
    groups = {
        "192.168.1.20": "192.168.1.20",
        "::ffff:192.168.1.20": "192.168.1.20",
        "2001:db8::1:2:3": "2001:db8::/64",
        "fe80::1%eth0": "fe80::/64",
        "memory": "memory",
    }
    assert {host: address_group(host) for host in groups} == groups
