"""The time that a peer's events carry: its clock's, as far as its neighbours' agree.

Peers ask each other what time it is when they are connected, when a clock is seen to jump, and now
and then. What follows from the answers is `patterns.cluster_clock`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import trio
from attrs import define

from gossamer.node.errors import NoAnswerError
from gossamer.node.peer.unicast.messages import Unicast
from gossamer.node.security.identity import decode, encode
from gossamer.protocol.patterns.last_values import ClusterClock

SERVICE: Final = "clock"
ANSWER_S: Final = 5.0
# Until neighbours are asked again, and what of a clock is no jump.
AGAIN_S: Final = 300.0
JUMP_S: Final = 1.0
# Clocks of peers say at most this, in microseconds: the year 9999.
LATEST: Final = 253_402_300_800_000_000


def steady_time() -> float:
    """Seconds that go on while the machine sleeps, where the system counts them."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


@define(eq=False, slots=False)
class ClusterTime:
    """The event clock of one peer; `run` asks its neighbours.

    Args:
        own: this machine's clock, seconds since 1970.
        steady: seconds that only grow, and at the pace of ``own``.
    """

    _messages: Unicast
    _own: Callable[[], float]
    _steady: Callable[[], float] = steady_time

    def __attrs_post_init__(self) -> None:
        self._clock = ClusterClock()
        self._ahead_s = self._own() - self._steady()
        self._skewed_since: float | None = None
        self._asked: dict[int, float] = {}  # since when they are connected
        self._news = trio.Event()
        self._messages.offer(SERVICE, self._answer)

    def now(self) -> float:
        """The time that an event gets which is published now."""
        return self._clock.believed_s(*self._times())

    def latest(self) -> float:
        """The latest time of an event that can be believed."""
        return self._clock.latest_s(*self._times())

    def see(self, published_at: float) -> None:
        """An event of this time came: later ones of this peer get later times."""
        self._clock.see(published_at, *self._times())

    def skew_s(self) -> float:
        """How far this machine's clock is ahead of all of its neighbours'; below 0, behind."""
        return self._clock.skew_s(*self._times())

    def complaint(self) -> str:
        """What is wrong with this machine's clock, in a sentence; "" where nothing is."""
        skew_s, now = self.skew_s(), self._steady()
        if not skew_s:
            self._skewed_since = None
            return ""
        self._skewed_since = now if self._skewed_since is None else self._skewed_since
        if now - self._skewed_since < ANSWER_S:
            return ""  # others are asked, whose clocks may have been set, too
        how = "ahead of" if skew_s > 0 else "behind"
        used = "; events get the neighbours' time" if skew_s > 0 else ""
        return (
            f"this machine's clock is {_duration(abs(skew_s))} {how} those of all connected "
            f"peers{used}: set it (NTP)"
        )

    def connected(self) -> None:
        """A neighbour is connected, and is asked soon."""
        self._news.set()

    async def run(self) -> None:
        """Ask those who are connected, until cancelled."""
        async with trio.open_nursery() as nursery:
            while True:
                self._news = trio.Event()
                connected = dict(self._messages.connected)
                self._clock.keep(frozenset(connected))
                for key, since in connected.items():
                    if self._asked.get(key) != since:
                        nursery.start_soon(self._ask, key)
                self._asked = connected
                with trio.move_on_after(AGAIN_S) as patience:
                    await self._news.wait()
                if patience.cancelled_caught:
                    self._asked = {}

    async def _ask(self, key: int) -> None:
        """Ask a neighbour, and tell it; nothing is known where it does not answer."""
        asked_at = self._steady()
        try:
            raw = await self._messages.ask(key, (), SERVICE, self._say(), ANSWER_S)
            says_s = _read(raw)
        except (NoAnswerError, ValueError):
            return
        now = self._steady()
        self._clock.heard(key, says_s + (now - asked_at) / 2, now)

    def _answer(self, sender: int, body: bytes) -> bytes:
        self._clock.heard(sender, _read(body), self._steady())
        return self._say()

    def _say(self) -> bytes:
        return encode([min(max(0, round(self._own() * 1e6)), LATEST)])

    def _times(self) -> tuple[float, float]:
        """This machine's clock and the steady one; who knows the former hears of its jumps."""
        own, steady = self._own(), self._steady()
        if abs(own - steady - self._ahead_s) > JUMP_S:
            self._clock.keep(frozenset(self._messages.connected))
            self._asked = {}
            self._news.set()
        self._ahead_s = own - steady
        return own, steady


def _read(body: bytes) -> float:
    parts = decode(body)
    if type(parts) is not list or [type(one) for one in parts] != [int]:
        raise ValueError("no time")
    (says,) = parts
    if not 0 <= says <= LATEST:
        raise ValueError("no time of a clock")
    return float(says) / 1e6


def _duration(seconds: float) -> str:
    for unit, size in (("days", 86_400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"
