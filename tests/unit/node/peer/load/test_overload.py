"""Events that are too many: whose have to wait, whose are not taken, and what the log says."""

from __future__ import annotations

import logging
import re
from typing import Any

import pytest
import trio
import trio.testing

from gossamer.node.errors import BadFrame
from gossamer.node.monitoring.metrics import Counters
from gossamer.node.peer.frames.address_book import AddressBook
from gossamer.node.peer.frames.core import SELF
from gossamer.node.peer.frames.frame_types import WORD_BYTES, flow_of_frame, is_new
from gossamer.node.peer.load.inbox import MOST_OF_A_FLOW, MOST_OF_ALL, TURN, Inbox
from gossamer.node.peer.load.overload import (
    MOST_WAITING,
    PER_ROUND,
    QUIET_S,
    SAVED,
    Overloads,
    RateLimits,
)
from gossamer.node.security.identity import encode
from gossamer.node.security.sealing import publisher_of
from gossamer.node.transport.schema import Frame
from gossamer.node.transport.send_queue import Backlog, Flow
from gossamer.protocol.kernel.errors import RemoteProtocolError
from gossamer.protocol.peer.record_table.records import (
    ACKNOWLEDGE,
    EVENT,
    FINAL,
    GREEDY,
    REPLAY_OFFER,
    SAMPLE_REQUEST,
    TREE,
)
from support.waiting import running

HONEST, FLOODER, RELAY = 11 << 50, 12 << 50, 13 << 50
VALUES = 300


def frame(publisher: int, mode: int = GREEDY, filler: int = VALUES, origin: int = 0) -> Frame:
    """An event of a publisher, who waits for an answer where ``origin`` is not -1."""
    words = b"".join(
        word.to_bytes(WORD_BYTES, "little", signed=True) for word in (5, 0, mode, 1, 0, origin)
    )
    event = encode([publisher, 0, ["x" * filler]])
    return {"type": "record", "kind": EVENT, "words": words, "peers": [], "event": event}


class Desk:
    def __init__(self) -> None:
        self.counters = Counters()
        self.backlog = Backlog()
        self.lost: list[int] = []
        self.address_book = AddressBook(1, 100, trio.current_time)
        self.address_book.learn(FLOODER, (), "eve")
        self.overloads = Overloads(self.backlog, self.counters, self.address_book)
        self.dealt: list[tuple[int, int]] = []
        self.cuts: list[int] = []
        self.inbox = Inbox(self._deal, self.overloads, self._cut)

    def _deal(self, sender: int, taken: Frame) -> None:
        if taken["words"] == b"":
            raise BadFrame("record", "words", "none", "some")
        self.dealt.append((sender, publisher_of(taken["event"])))

    def _cut(self, sender: int, error: RemoteProtocolError) -> None:
        assert "words" in str(error)
        self.cuts.append(sender)

    async def take(self, sender: int, taken: Frame) -> None:
        await self.inbox.take(sender, taken, flow_of_frame(sender, taken), new=is_new(taken))

    async def deal_with_all(self) -> None:
        async with running(self.inbox.run):
            await trio.testing.wait_all_tasks_blocked()

    async def after(self, seconds: float) -> None:
        await trio.sleep(seconds)
        self.lost += self.overloads.new_round()


@pytest.fixture
async def desk() -> Desk:
    return Desk()


def test_an_event_names_its_publisher_and_is_new_on_its_way_to_its_rendezvous_node() -> None:
    event: Any = frame(HONEST)["event"]
    assert publisher_of(event) == HONEST
    assert [publisher_of(event[:size]) for size in range(10)] == [-1] * 10
    # Of every size that CBOR has for a number.
    keys = [5, 23, 24, 255, 256, 1 << 16, (1 << 32) - 1, 1 << 32, (1 << 62) - 1]
    assert [publisher_of(encode([key, 0, []])) for key in keys] == keys
    assert publisher_of(encode(["x" * 20])) == -1
    assert is_new(frame(HONEST, GREEDY))
    assert is_new({"kind": EVENT, "words": b""})
    for mode, origin in ((TREE, 0), (TREE + 3, 0), (GREEDY, -1), (FINAL, -1)):
        assert not is_new(frame(HONEST, mode, origin=origin))


async def test_an_honest_event_overtakes_a_flood(desk: Desk) -> None:
    """One that comes by its publisher's connection, and one that the flood's relay brings."""
    for _ in range(TURN):
        await desk.take(RELAY, frame(HONEST))
    assert len(desk.dealt) == TURN, "few are dealt with at once"
    for _ in range(TURN + 100):
        await desk.take(FLOODER, frame(FLOODER))
        await desk.take(RELAY, frame(FLOODER, TREE))
    before = len(desk.dealt)
    await desk.take(HONEST, frame(HONEST))
    await desk.take(RELAY, frame(HONEST))
    await desk.deal_with_all()
    places = [place for place, (_, whose) in enumerate(desk.dealt[before:]) if whose == HONEST]
    assert len(places) == 2
    assert places[-1] < 10
    assert len(desk.overloads) == 0


async def test_what_a_flood_adds_is_dropped(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    """Of the flooder, by the flooder and by whoever relays it; and the log says who it is."""
    for _ in range(1000):
        await desk.take(FLOODER, frame(FLOODER))
        await desk.take(RELAY, frame(FLOODER))
    await desk.take(RELAY, frame(HONEST))
    refused = desk.counters.dropped["overload"]
    assert refused >= 2 * (1000 - MOST_OF_A_FLOW // VALUES - TURN)
    assert trio.current_time() >= refused / 16 * 0.02 / 2
    await desk.deal_with_all()
    assert (RELAY, HONEST) in desk.dealt
    assert len(desk.dealt) == 2001 - refused
    await desk.after(0)
    assert len(desk.overloads) == 2
    assert re.fullmatch(
        r"eve \(\w{16}\) with events of eve \(\w{16}\) brings more than can be passed on, and so"
        r" do 1 more: some of it is dropped",
        desk.overloads.complaint(),
    )
    await desk.after(QUIET_S)
    assert (len(desk.overloads), desk.overloads.complaint()) == (0, "")
    said = [(record.message, record.fields) for record in caplog.records]  # type: ignore[attr-defined]
    assert [message for message, _ in said] == ["overload begins"] * 2 + ["overload ends"] * 2
    for (_, fields), source in zip(said, (FLOODER, RELAY) * 2, strict=True):
        assert f"{source:016x}" in fields["peer"]
        assert fields["publisher"] == f"eve ({FLOODER:016x})"
    assert sum(fields["dropped"] for _, fields in said[2:]) == refused
    assert desk.counters.overloads == 2


@pytest.mark.parametrize("promised", [frame(FLOODER, TREE), frame(FLOODER, GREEDY, origin=-1)])
async def test_who_brings_too_much_that_is_due_is_read_later(desk: Desk, promised: Frame) -> None:
    count = 2 * MOST_OF_ALL // VALUES

    async def bring() -> None:
        for _ in range(count):
            await desk.take(RELAY, promised)

    async with running(bring):
        await trio.testing.wait_all_tasks_blocked()
        assert len(desk.dealt) == TURN
        await desk.deal_with_all()
        assert len(desk.dealt) == count
    assert desk.counters.dropped["overload"] == 0


async def test_a_rule_broken_by_an_event_that_waited_costs_the_connection(desk: Desk) -> None:
    bad = frame(HONEST) | {"words": b""}
    with pytest.raises(BadFrame):
        await desk.take(RELAY, bad)
    for _ in range(TURN):
        await desk.take(RELAY, frame(HONEST))
    await desk.take(FLOODER, bad)
    await desk.deal_with_all()
    assert desk.cuts == [FLOODER]


async def test_a_backlog_keeps_more_out(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    flow = Flow(RELAY, FLOODER)
    desk.backlog.add(flow, MOST_WAITING)
    await desk.take(RELAY, frame(FLOODER))
    await desk.take(RELAY, frame(FLOODER, TREE))
    await desk.take(RELAY, frame(HONEST))
    desk.overloads.note_dropped(HONEST, flow)
    assert desk.dealt == [(RELAY, FLOODER), (RELAY, HONEST)]
    assert (desk.counters.dropped["overload"], desk.counters.dropped["queue full"]) == (1, 1)


async def test_a_loss_is_told_once_it_is_over(desk: Desk) -> None:
    flow = Flow(RELAY, FLOODER)
    for _ in range(3):
        desk.overloads.note_dropped(HONEST, flow)
        await desk.after(QUIET_S - 1)
    assert desk.lost == []
    for _ in range(2):
        await desk.after(1)
    desk.overloads.note_dropped(RELAY, flow)
    await desk.after(QUIET_S)
    assert desk.lost == [HONEST, RELAY]


async def test_own_applications_are_named(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    own = desk.address_book.key_of(SELF)
    desk.overloads.note_dropped(HONEST, Flow(own, own))
    (record,) = caplog.records
    assert record.fields["peer"] == "applications here (0000000000000001)"  # type: ignore[attr-defined]


# What one peer may make another do in a round

PEER, OTHER = 1, 2
MOST = PER_ROUND[SAMPLE_REQUEST]


def taken(limits: RateLimits, count: int, sender: int = PEER, kind: int = SAMPLE_REQUEST) -> int:
    return sum(limits.allows(sender, kind) for _ in range(count))


def test_what_is_beyond_the_budget_is_dropped_and_counted() -> None:
    """What honest peers sent in several rounds may come in one: it was delayed, or this peer busy.

    One that comes back has saved nothing.
    """
    counters = Counters()
    limits = RateLimits(counters)
    for _ in range(20):
        assert taken(limits, 10 * MOST) == MOST
        limits.new_round()
    assert counters.dropped["flood"] == 20 * 9 * MOST
    assert taken(limits, MOST, OTHER) == MOST
    assert taken(limits, 1, PEER, REPLAY_OFFER) == 1
    assert taken(limits, 10_000, PEER, ACKNOWLEDGE) == 10_000
    for _ in range(100):
        limits.new_round()
    assert taken(limits, SAVED * MOST) == SAVED * MOST
    assert taken(limits, 1) == 0
    limits.new_round()
    assert taken(limits, 2 * MOST) == MOST
    for _ in range(5):
        limits.new_round()
    limits.forget(PEER)
    assert taken(limits, 2 * MOST) == MOST
