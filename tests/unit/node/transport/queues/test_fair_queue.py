"""Queues in which flows take turns."""

from __future__ import annotations

from collections import Counter, deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.node.transport.queues.fair_queue import FLOWS_TOLD_APART, Backlog, FairQueue, Flow
from gossamer.node.transport.queues.send_queue import FAIR_BATCH_BYTES, SendQueue

FLOWS = st.sampled_from(
    [None, Flow(1, 1), Flow(1, 2), Flow(2, 1), Flow(2, 9, 4), Flow("again", 1, 8)]
)
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
def test_what_is_dropped_is_the_newest_of_the_longest_flow_of_who_has_most(
    items: list[tuple[Flow | None, int]],
) -> None:
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
    """And whatever names of publishers that one makes up."""
    queue: FairQueue[str] = FairQueue()
    for number in range(10_000):
        queue.put("flood", 300, Flow(1, number % made_up))
    for _ in range(5_000):
        queue.take()
    for source in (2, 3):
        queue.put("honest", 300, Flow(source, 7))
    assert [queue.take() for _ in range(4)].count("honest") == 2


@pytest.mark.parametrize(
    ("much", "little", "share"),
    [
        # Publishers of one neighbour take turns by bytes.
        ((1000, Flow("relay", 1)), (100, Flow("relay", 2)), 10),
        # What costs more gives way.
        ((100, Flow("again", 1, 8)), (100, Flow("fresh", 1)), 8),
    ],
)
def test_turns_are_by_bytes_and_by_cost(
    much: tuple[int, Flow], little: tuple[int, Flow], share: int
) -> None:
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
