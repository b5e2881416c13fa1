"""Reports of members: asks for them while somebody looks at the cluster, and answers for this peer.

Nothing is sent while nobody looks. A look asks those members that are connected, and a bounded
number of others after connecting to them; what has not come in time is missing from the view, which
says so. A peer answers each other one once in a while only, with what it shows on its page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import trio

from gossamer.node.errors import FrameTooLarge, PeerUnreachable, TransportBroken
from gossamer.node.monitoring.cluster import FIGURES, Report, cluster_view
from gossamer.node.monitoring.members import MemberTable
from gossamer.node.peer.frames.frame_types import REPORT_FRAMES, FrameService
from gossamer.node.security.identity import key_text
from gossamer.node.transport.base.frames import encode_frame
from gossamer.node.transport.base.schema import Frame
from gossamer.node.transport.links import ConnectionPool

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


class ClusterReports(FrameService):
    """What members say of themselves; `run` asks them.

    Args:
        members: those met so far.
        pool: connections to them.
        own: the report of this peer as of now.
        cluster_name: what the cluster is called.
    """

    frames = REPORT_FRAMES

    def __init__(
        self,
        members: MemberTable,
        pool: ConnectionPool,
        own: Callable[[], Report],
        cluster_name: str = "",
    ) -> None:
        self._cluster_name = cluster_name
        self._members = members
        self._pool = pool
        self._own = own
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
