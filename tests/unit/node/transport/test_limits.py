"""Limits, back-off, throttling, strangers, queues with turns, and several addresses at once."""

from __future__ import annotations

import random
from collections import Counter, deque
from contextlib import ExitStack
from typing import Any

import attrs
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from gossamer.node.errors import HandshakeFailed
from gossamer.node.transport.base import Address
from gossamer.node.transport.byte_streams import (
    AllFailedError,
    describe,
    first_success,
    interleave,
)
from gossamer.node.transport.limits import (
    LEAVING,
    BackOff,
    Doors,
    Guest,
    Limits,
    TokenBucket,
    address_group,
)
from gossamer.node.transport.send_queue import (
    FAIR_BATCH_BYTES,
    FLOWS_TOLD_APART,
    Backlog,
    FairQueue,
    Flow,
    SendQueue,
)
from gossamer.protocol.kernel.errors import ConfigError


@pytest.mark.parametrize("name", [field.name for field in attrs.fields(Limits)])
def test_every_limit_names_itself_and_what_it_expects(name: str) -> None:
    for value in (-1, "1", True, 1 << 40):
        limit: dict[str, Any] = {name: value}
        with pytest.raises(ConfigError, match=rf"^transport\.{name} is .*expected .* from") as told:
            Limits(**limit)
        assert told.value.value == value


def test_impossible_limits_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"transport\.queue_bytes is 4096, expected room"):
        Limits(frame_bytes=4096, queue_bytes=4096)
    assert Limits(frame_bytes=4096, queue_bytes=4100).queue_bytes == 4100
    with pytest.raises(ConfigError, match=r"transport\.silence_seconds is 9"):
        Limits(ping_seconds=5.0, silence_seconds=9.0)
    for change in ({"first_s": 0}, {"factor": 0.5}, {"longest_s": 0.1}, {"jitter": 2}):
        with pytest.raises(ConfigError, match=r"transport\.back_off\."):
            BackOff(**change)


def test_a_bucket_lets_a_burst_pass_and_then_keeps_the_rate() -> None:
    bucket = TokenBucket(rate=10, burst=20, now=0)
    assert bucket.charge(20, now=0) == 0
    assert bucket.charge(5, now=0) == 0.5
    assert bucket.charge(1, now=0.5) == pytest.approx(0.1)
    assert bucket.charge(20, now=100) == 0, "it fills up to the burst again"
    assert bucket.charge(1, now=100) == pytest.approx(0.1), "and not beyond"
    bucket = TokenBucket(rate=1, burst=1, now=100)
    assert [bucket.charge(1, now=50) for _ in range(2)] == [0, 1], "the clock goes back"


def test_back_off_doubles_up_to_its_longest() -> None:
    failures = {1: 0.5, 2: 1, 3: 2, 7: 32, 8: 60, 9: 60, 10_000: 60}
    for number, longest in failures.items():
        draws = random.Random(1)
        delays = [BackOff().delay_s(number, draws) for _ in range(200)]
        assert longest / 2 <= min(delays) <= max(delays) <= longest
        assert max(delays) - min(delays) > longest / 4, "peers do not come back in step"


# Strangers: how many there may be, and who makes room

ROOM, PER_ADDRESS = 6, 3


def turned_out(guests: list[Guest]) -> list[int]:
    return [number for number, guest in enumerate(guests) if guest.is_turned_out]


@given(st.lists(st.sampled_from("abcdefgh"), max_size=ROOM * (1 + LEAVING)))
def test_who_comes_gets_in_and_the_oldest_of_the_largest_crowd_goes(comers: list[str]) -> None:
    """By a plain list of who is there, whom every newcomer joins."""
    crowds: list[str] = []
    doors = Doors(ROOM, PER_ADDRESS, crowds.append)
    there: dict[int, str] = {}
    expected = []
    guests: list[Guest] = []
    with ExitStack() as stack:
        for number, group in enumerate(comers):
            counts = Counter(there.values())
            is_crowd, is_full = counts[group] >= PER_ADDRESS, len(there) >= ROOM
            before = turned_out(guests)
            guest = stack.enter_context(doors.enter(group))
            assert guest is not None
            guests.append(guest)
            if is_crowd or is_full:
                # Of addresses with as many, any may be meant.
                (gone,) = set(turned_out(guests)) - set(before)
                was = there[gone]
                assert counts[was] == (counts[group] if is_crowd else max(counts.values()))
                assert gone == min(one for one, of in there.items() if of == was)
                assert crowds[-1] == was
                del there[gone]
                expected.append(gone)
            there[number] = group
            assert len(doors) == len(there) <= ROOM
            assert max(Counter(there.values()).values()) <= PER_ADDRESS
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


FLOWS = st.sampled_from([None, Flow(1, 1), Flow(1, 2), Flow(2, 1), Flow(2, 9, 4), Flow("x", 1, 8)])
ITEMS = st.lists(st.tuples(FLOWS, st.integers(1, 100)), max_size=60)


@given(ITEMS)
def test_all_comes_out_once_and_each_flow_in_order(items: list[tuple[Flow | None, int]]) -> None:
    backlog = Backlog()
    queue: FairQueue[int] = FairQueue(backlog)
    for number, (flow, size) in enumerate(items):
        queue.put(number, size, flow)
    assert queue.size == sum(size for _, size in items)
    assert sorted(queue) == list(range(len(items)))
    out = []
    while queue:
        size = queue.first_size()
        out.append(queue.take())
        assert items[out[-1]][1] == size
    assert sorted(out) == list(range(len(items)))
    for flow in {flow for flow, _ in items}:
        own = [number for number in out if items[number][0] == flow]
        assert own == sorted(own)
    assert (queue.size, queue.flow_items, queue.flow_bytes) == (0, 0, 0)
    assert all(backlog.of(flow) == 0 for flow, _ in items if flow is not None)


@given(ITEMS)
def test_the_newest_of_who_has_most_is_dropped(items: list[tuple[Flow | None, int]]) -> None:
    queue: FairQueue[int] = FairQueue()
    left: dict[Flow | None, deque[int]] = {}
    for number, (flow, size) in enumerate(items):
        queue.put(number, size, flow)
        left.setdefault(flow, deque()).append(number)

    def waiting(flow: Flow | None) -> int:
        return sum(items[number][1] for number in left[flow])

    while (dropped := queue.drop_longest()) is not None:
        number, flow = dropped
        assert left[flow][-1] == number
        of_sources = Counter[object]()
        for one in left:
            if one is not None:
                of_sources[one.source] += waiting(one)
        assert of_sources[flow.source] == max(of_sources.values())
        assert waiting(flow) == max(waiting(one) for one in left if one and one[0] == flow[0])
        left[flow].pop()
    assert list(queue) == list(left.get(None, ()))


@pytest.mark.parametrize("made_up", [1, 10 * FLOWS_TOLD_APART])
def test_who_sends_little_waits_for_little_however_much_another_sends(made_up: int) -> None:
    queue: FairQueue[str] = FairQueue()
    for number in range(10_000):
        queue.put("flood", 300, Flow(1, number % made_up))
    for _ in range(5_000):
        queue.take()
    for source in (2, 3):
        queue.put("honest", 300, Flow(source, 7))
    assert [queue.take() for _ in range(4)].count("honest") == 2


def test_turns_are_by_bytes_and_cost() -> None:
    for much, little, share in (
        # Publishers of one neighbour take turns by bytes.
        ((1000, Flow("relay", 1)), (100, Flow("relay", 2)), 10),
        # What costs more gives way.
        ((100, Flow("again", 1, 8)), (100, Flow("fresh", 1)), 8),
    ):
        queue: FairQueue[str] = FairQueue()
        for _ in range(1000):
            queue.put("much", *much)
            queue.put("little", *little)
        given = Counter(queue.take() for _ in range(50 * (share + 1)))
        assert given["little"] == pytest.approx(share * given["much"], rel=0.05)


def test_a_full_send_queue_drops_of_the_longest_flow_and_keeps_room_for_others() -> None:
    backlog = Backlog()
    queue = SendQueue(200_000, backlog)
    flood, honest = Flow(1, 1), Flow(2, 2)
    dropped = [flow for _ in range(1000) for flow in queue.put(bytes(300), flood)]
    assert set(dropped) == {flood}
    assert backlog.of(flood) <= 100_000
    assert queue.size <= 100_000 + FAIR_BATCH_BYTES
    assert queue.put(b"honest", honest) in ([], [flood])
    assert backlog.of(honest) == 6
    assert queue.fits(bytes(80_000))
    assert queue.put(bytes(80_000)) == []
    assert b"honest" not in queue.take_batch(), "what goes out at once does not wait for others"
    assert b"honest" in queue.take_batch()
    # One frame of a flow has room however large it is.
    queue = SendQueue(100_000)
    queue.put(bytes(FAIR_BATCH_BYTES))
    assert queue.put(bytes(80_000), flood) == []
    assert queue.put(bytes(50), honest) == [flood]


@given(st.lists(st.integers(1, 30_000), max_size=60))
def test_frames_of_no_flow_keep_their_order(sizes: list[int]) -> None:
    queue = SendQueue(1 << 30)
    taken = []
    for number, size in enumerate(sizes):
        queue.put(number.to_bytes(2, "big") * size)
        if number % 3 == 2:
            taken.append(queue.take_batch())
            queue.written()
    while queue:
        taken.append(queue.take_batch())
        queue.written()
    expected = b"".join(number.to_bytes(2, "big") * size for number, size in enumerate(sizes))
    assert b"".join(taken) == expected
    assert queue.size == 0


class Ways:
    """Attempts that succeed or fail after a while; those that were cancelled are noted."""

    def __init__(self, **outcomes: tuple[float, Exception | None]) -> None:
        self.outcomes = outcomes
        self.cancelled: list[str] = []

    async def attempt(self, way: str) -> str:
        seconds, error = self.outcomes[way]
        try:
            await trio.sleep(seconds)
        except trio.Cancelled:
            self.cancelled.append(way)
            raise
        if error is not None:
            raise error
        return way

    async def discard(self, _way: str) -> None:
        await trio.lowlevel.checkpoint()


async def race(ways: Ways) -> str:
    return await first_success(list(ways.outcomes), ways.attempt, ways.discard, 0.25)


REFUSED = OSError(111, "Connection refused")


@pytest.mark.parametrize(
    ("outcomes", "winner", "after_s", "cancelled"),
    [
        # A dead first address costs a quarter of a second.
        ({"dead": (10_000, None), "alive": (0.01, None)}, "alive", 0.26, ["dead"]),
        # A failure starts the next at once.
        ({"refused": (0.01, REFUSED), "alive": (0.01, None)}, "alive", 0.02, []),
        # A slow first may still win.
        ({"slow": (0.3, None), "slower": (0.3, None)}, "slow", 0.3, ["slower"]),
    ],
)
async def test_the_first_success_wins_and_others_begin_soon(
    outcomes: Any, winner: str, after_s: float, cancelled: list[str]
) -> None:
    ways = Ways(**outcomes)
    assert await race(ways) == winner
    assert trio.current_time() == pytest.approx(after_s)
    assert ways.cancelled == cancelled


async def test_all_failures_are_told_in_order() -> None:
    ways = Ways(a=(0.1, OSError(113, "No route to host")), b=(0.1, HandshakeFailed("silence")))
    with pytest.raises(AllFailedError) as caught:
        await race(ways)
    failures = (("a", "no route to host"), ("b", "the handshake failed: silence"))
    assert caught.value.failures == failures
    with pytest.raises(AllFailedError):
        await race(Ways())
    assert trio.current_time() == pytest.approx(0.2), "where there is no way it fails at once"


async def test_the_second_of_two_winners_is_discarded() -> None:
    both, discarded, results = trio.Event(), list[int](), list[int]()

    async def attempt(way: int) -> int:
        with trio.CancelScope(shield=True):
            await both.wait()
        return way

    async def discard(way: int) -> None:
        discarded.append(way)

    async def run() -> None:
        results.append(await first_success([1, 2], attempt, discard, stagger_s=0))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await trio.testing.wait_all_tasks_blocked()
        both.set()
    assert sorted(results + discarded) == [1, 2]
    assert len(results) == 1


def test_address_families_take_turns_and_errors_are_described_in_few_words() -> None:
    text = ["10.0.0.1:1", "10.0.0.2:1", "[fe80::1]:1", "10.0.0.1:1", "[fe80::2]:1", "[fe80::3]:1"]
    mixed = [str(address) for address in interleave([Address.parse(one) for one in text])]
    assert mixed == ["[fe80::1]:1", "10.0.0.1:1", "[fe80::2]:1", "10.0.0.2:1", "[fe80::3]:1"]
    assert describe(ConnectionRefusedError(111, "Connection refused")) == "connection refused"
    assert describe(OSError("odd")) == "odd"


def test_addresses_read_back_as_written_and_loopback_is_told_from_the_rest() -> None:
    loopback = ("127.0.0.1:1", "127.9.9.9:4000", "[::1]:4000", "localhost:1")
    others = (
        *("0.0.0.0:1", "[::]:1", "192.0.2.1:1", "example.org:1", "127.0.0.1.example.org:1"),
        *("[fe80::1%eth0]:1", "host.lan:0"),
    )
    for text in (*loopback, *others):
        address = Address.parse(text)
        assert (str(address), address.is_loopback) == (text, text in loopback)
    none = ("", "host", ":1", "::1:80", "[::1]", "host:", "host:-1", "host:65536", "h:1x", "[h]:1")
    for text in none:
        with pytest.raises(ConfigError, match="expected host:port"):
            Address.parse(text)
