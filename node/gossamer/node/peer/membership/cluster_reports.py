"""Reports of members: asks for them while somebody looks at the cluster, and answers for this peer.

Nothing is sent while nobody looks. A look asks those members that are connected, and a bounded
number of others after connecting to them; what has not come in time is missing from the view, which
says so. A peer answers each other one once in a while only, with what it shows on its page.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, Final

import trio
from attrs import define

from gossamer.node.errors import FrameTooLarge, NoAnswerError, PeerUnreachable, TransportBroken
from gossamer.node.monitoring.looks import next_look
from gossamer.node.monitoring.members import FIGURES, MemberTable, Report, cluster_view
from gossamer.node.peer.frames.address_book import AddressBook
from gossamer.node.peer.frames.frame_types import REPORT_FRAMES, FrameService
from gossamer.node.peer.unicast.messages import Unicast
from gossamer.node.security.identity import decode, encode, key_text
from gossamer.node.transport.frames import KEY_HIGH, encode_frame
from gossamer.node.transport.links import ConnectionPool
from gossamer.node.transport.schema import Frame

# How long members have to answer, and the pause before they are asked again.
ANSWER_S: Final = 2.0
PAUSE_S: Final = 2.0
# Members asked at once, and of those, how many are connected to for it; a few at a time.
MOST_ASKED: Final = 512
MOST_DIALLED: Final = 64
AT_ONCE: Final = 8
# A peer is answered no more often than this.
AGAIN_S: Final = 1.0
# After this a report is out of date, and its member counts as one that did not answer.
STALE_S: Final = 15.0


@define(eq=False, slots=False)
class ClusterReports(FrameService):
    """What members say of themselves; `run` asks them.

    Args:
        own: the report of this peer as of now.
    """

    frames = REPORT_FRAMES

    _members: MemberTable
    _pool: ConnectionPool
    _own: Callable[[], Report]
    _cluster_name: str = ""

    def __attrs_post_init__(self) -> None:
        self._number = 0
        self._reports: dict[int, tuple[Report, float]] = {}
        self._waiting: set[int] = set()
        self._asked = 0
        self._answered_at: dict[int, float] = {}
        self._wanted = trio.Event()
        self._come = trio.Event()
        self._done = trio.Event()

    async def run(self) -> None:
        """Ask whenever somebody looks, until cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted = trio.Event()
            await self._collect()
            self._done.set()
            self._done = trio.Event()
            await trio.sleep(PAUSE_S)

    def view(self) -> dict[str, Any]:
        """The cluster by the reports that there are; new ones are asked for."""
        self._wanted.set()
        return self._view()

    async def fresh_view(self) -> dict[str, Any]:
        """The cluster by reports that were asked for now, or a moment ago."""
        if not self._waiting:
            self._wanted.set()
        with trio.move_on_after(ANSWER_S + PAUSE_S):
            await self._done.wait()
        return self._view()

    def receive(self, sender: int, frame: Frame) -> None:
        """Take a frame about reports; what nobody asked for is nothing."""
        if frame["type"] == "report wanted":
            self._answer(sender, frame["number"])
        elif frame["number"] == self._number and sender in self._waiting:
            self._waiting.discard(sender)
            figures = {name: frame["figures"].get(name, 0) for name in FIGURES}
            report = Report(
                figures=figures, wanted=tuple(frame["wanted"]), troubles=tuple(frame["troubles"])
            )
            self._reports[sender] = report, trio.current_time()
            self._come.set()

    def forget(self, key: int) -> None:
        """A peer is connected no more."""
        self._answered_at.pop(key, None)
        self._waiting.discard(key)
        self._come.set()

    def _answer(self, sender: int, number: int) -> None:
        now = trio.current_time()
        if now - self._answered_at.get(sender, -AGAIN_S) < AGAIN_S:
            return
        self._answered_at[sender] = now
        own = self._own()
        frame = encode_frame(
            "report",
            number=number,
            figures=dict(own.figures),
            wanted=list(own.wanted),
            troubles=list(own.troubles),
        )
        self._send(sender, frame)

    async def _collect(self) -> None:
        """Ask, and wait until all have answered or the time is over."""
        self._number += 1
        self._waiting = set()
        frame = encode_frame("report wanted", number=self._number)
        connected = [connection.identity.key for connection in self._pool][:MOST_ASKED]
        others = self._unconnected(set(connected))[: max(0, MOST_ASKED - len(connected))]
        self._asked = 0
        limiter = trio.CapacityLimiter(AT_ONCE)
        with trio.move_on_after(ANSWER_S):
            async with trio.open_nursery() as nursery:
                for key in connected:
                    self._ask(key, frame)
                for key in others[:MOST_DIALLED]:
                    nursery.start_soon(self._connect_and_ask, key, frame, limiter)
            while self._waiting:
                self._come = trio.Event()
                await self._come.wait()
        self._waiting = set()
        self._drop_stale()

    def _unconnected(self, connected: set[int]) -> list[int]:
        """Members that may be there, and to whom there is no connection."""
        return [key for key in self._members.present() if key not in connected]

    async def _connect_and_ask(self, key: int, frame: bytes, limiter: trio.CapacityLimiter) -> None:
        async with limiter:
            try:
                await self._pool.connect(key)
            except (PeerUnreachable, TransportBroken):
                return
        self._ask(key, frame)

    def _ask(self, key: int, frame: bytes) -> None:
        if self._send(key, frame):
            self._waiting.add(key)
            self._asked += 1

    def _send(self, key: int, frame: bytes) -> bool:
        try:
            return self._pool.try_send(key, frame)
        except FrameTooLarge:
            return False

    def _drop_stale(self) -> None:
        before = trio.current_time() - STALE_S
        self._reports = {key: one for key, one in self._reports.items() if one[1] >= before}

    def _view(self) -> dict[str, Any]:
        self._drop_stale()
        now = trio.current_time()
        found: Mapping[str, tuple[Report, float]] = {
            key_text(self._members.own.key): (self._own(), 0.0),
            **{key_text(key): (one, now - at) for key, (one, at) in self._reports.items()},
        }
        members = self._members.to_json()["members"]
        return cluster_view(members, found, self._asked, name=self._cluster_name)


# Finds members that this peer does not reach though others do: two networks, or firewalls.
#
# The protocol takes whom it cannot reach for gone, and goes on by other ways where there are some.
# Whether somebody is gone or only out of reach from here tells who is connected to it: neighbours
# are asked about those to whom connecting failed several times.


SERVICE: Final = "reach"
LOOK_S: Final = 10.0
NEIGHBOUR_ANSWER_S: Final = 5.0
# Connecting failed so often before somebody is asked, and whom is asked of how many.
FAILURES: Final = 3
ASKED, ABOUT = 3, 16
# For how long an answer holds, and a failure is asked about.
TOLD_S: Final = 90.0


@define(eq=False, slots=False)
class Reachability:
    """What one peer knows of that; `run` asks."""

    _messages: Unicast
    _pool: ConnectionPool
    _address_book: AddressBook
    _draws: random.Random

    def __attrs_post_init__(self) -> None:
        # By key, a neighbour that is connected to it, and trio's time of its answer.
        self._reached_by: dict[int, tuple[int, float]] = {}
        self._messages.offer(SERVICE, self._answer)

    @property
    def unreachable(self) -> dict[int, int]:
        """The keys of those who are there and not reached from here, and of who reaches each."""
        now = trio.current_time()
        return {
            key: by
            for key, (by, at) in sorted(self._reached_by.items())
            if now - at < TOLD_S and self._pool.get(key) is None
        }

    def complaint(self) -> str:
        """Who is not reached from here, in a sentence; "" where nobody is known to be."""
        found = self.unreachable
        if not found:
            return ""
        key, by = next(iter(found.items()))
        more = f", nor {len(found) - 1} more" if len(found) > 1 else ""
        where = ", ".join(map(str, self._address_book.addresses_of(key))) or "no known address"
        text_of = self._address_book.text_of
        return (
            f"{text_of(key)} is not reached from here at {where}{more}, though "
            f"{text_of(by)} is connected to it: let their networks reach each other"
        )

    async def run(self) -> None:
        """Ask about those to whom connecting fails, until cancelled."""
        while True:
            await trio.sleep_until(next_look(LOOK_S))
            failing = self._pool.failing(FAILURES, TOLD_S)[:ABOUT]
            if failing:
                await self._ask(failing)

    async def _ask(self, failing: list[int]) -> None:
        connected = sorted(self._messages.connected)
        for neighbour in self._draws.sample(connected, min(ASKED, len(connected))):
            try:
                raw = await self._messages.ask(
                    neighbour, (), SERVICE, encode(failing), NEIGHBOUR_ANSWER_S
                )
                for place in _places(raw, len(failing)):
                    self._reached_by[failing[place]] = neighbour, trio.current_time()
            except (NoAnswerError, ValueError):
                continue
        known = self.unreachable
        self._reached_by = {key: one for key, one in self._reached_by.items() if key in known}

    def _answer(self, _: int, body: bytes) -> bytes:
        keys = decode(body)
        if type(keys) is not list or len(keys) > ABOUT:
            raise ValueError("no question about keys")
        if any(type(key) is not int or not 0 <= key <= KEY_HIGH for key in keys):
            raise ValueError("no keys")
        return encode([place for place, key in enumerate(keys) if self._pool.get(key) is not None])


def _places(raw: bytes, most: int) -> list[int]:
    places = decode(raw)
    if type(places) is not list or any(type(one) is not int for one in places):
        raise ValueError("no places")
    return [one for one in places if 0 <= one < most]
