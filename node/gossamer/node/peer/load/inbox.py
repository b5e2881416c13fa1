"""When a peer's timers fire, and events that wait to be dealt with where there are many.

To read an event costs a tenth of what it costs to deal with it. So events are read as they come,
and dealt with by turns: neighbours take turns, and so do the publishers whose events each of them
brings. What is on its way to its rendezvous node counts four times: who sends a lot that is new has
little of it taken while others bring what they have taken already, and so peers that are flooded at
once do not bury each other. New events of whom too much waits are not taken: nobody was promised
anything of them yet.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

import trio
from attrs import define

from gossamer.node.monitoring.metrics import Counters
from gossamer.node.peer.load.overload import Overloads
from gossamer.node.transport.schema import Frame
from gossamer.node.transport.send_queue import Backlog, FairQueue, Flow
from gossamer.protocol.kernel.errors import RemoteProtocolError
from gossamer.protocol.peer.step import TIMERS

# Events that may be dealt with at once before others have their turn: a few milliseconds' worth.
TURN: Final = 16
# Events that take their turn together, where they may be dealt with at once.
MOST_AT_ONCE: Final = 16
TURN_S: Final = 0.004
# For how long the first of one publisher's new events by one neighbour may have waited, and how
# many bytes of its events, some 200, and of all that this neighbour brings may wait, before what is
# new is not taken. What waits for longer has been published again by then.
LONGEST_S: Final = 1.0
MOST_OF_A_FLOW: Final = 128 << 10
MOST_OF_NEW: Final = 512 << 10
# Bytes that may wait of all that one neighbour brings, before no more is read from it.
MOST_OF_ALL: Final = 1 << 20
# So many events refused in a row cost their sender a pause, as it is work to read them in vain.
REFUSED_AT_ONCE: Final = 16
REFUSAL_PAUSE_S: Final = 0.02

# Takes an event from the peer of a key; raises `RemoteProtocolError` where that broke a rule.
Deal = Callable[[int, Frame], None]


class _Waiting(NamedTuple):
    """An event, who sent it, and since when it waits, by trio's clock."""

    sender: int
    frame: Frame
    since: float


@define(eq=False, slots=False)
class Inbox:
    """Events on their way from the wire to the protocol; `run` has to be running.

    Args:
        deal: with an event.
        cut: ends the connection to the peer of a key, who broke a rule, and says which.
        deal_with_many: with events at once, of which it leaves the last; says with how many.
    """

    _deal: Deal
    _overloads: Overloads
    _cut: Callable[[int, RemoteProtocolError], None]
    _deal_with_many: Callable[[Sequence[tuple[int, Frame]]], int] = lambda _: 0

    def __attrs_post_init__(self) -> None:
        self._backlog = Backlog()
        self._waiting: FairQueue[_Waiting] = FairQueue(self._backlog)
        self._dealt_with = 0
        self._refused: Counter[int] = Counter()
        self._work = trio.lowlevel.ParkingLot()
        self._progress = trio.lowlevel.ParkingLot()

    async def take(self, sender: int, frame: Frame, flow: Flow, *, new: bool) -> None:
        """Deal with an event, now if there are few, or let it wait for its turn.

        Returns once more may be read from its sender. One that is ``new``, on its way to its
        rendezvous node, is dropped where too much waits.

        Raises:
            RemoteProtocolError: the sender broke a rule; later, that costs it its connection.
        """
        if new and not self._has_room(flow):
            await self._refuse(sender)
            return
        self._refused.pop(sender, None)
        if not self._waiting and self._dealt_with < TURN:
            self._dealt_with += 1
            self._deal(sender, frame)
            return
        size = len(frame["words"]) + len(frame.get("event", b""))
        self._waiting.put(_Waiting(sender, frame, trio.current_time()), size, flow)
        self._work.unpark()
        while self._waiting.size_of(sender) >= MOST_OF_ALL:
            await self._progress.park()

    def may_take_together(self) -> bool:
        """Whether frames may be dealt with at once, which counts as dealing with one."""
        if self._waiting or self._dealt_with >= TURN:
            return False
        self._dealt_with += 1
        return True

    def forget(self, sender: int) -> None:
        """A peer is connected no more."""
        self._refused.pop(sender, None)

    def _has_room(self, flow: Flow) -> bool:
        """Whether a new event is taken; one that is not is counted."""
        first = self._waiting.first_of(flow)
        full = (
            (first is not None and trio.current_time() - first.since > LONGEST_S)
            or self._backlog.of(flow) >= MOST_OF_A_FLOW
            or self._waiting.size_of(flow.source) >= MOST_OF_NEW
        )
        if full:
            self._overloads.refuse(flow, "its events wait to be dealt with")
        return not full and self._overloads.has_room(flow)

    async def _refuse(self, sender: int) -> None:
        self._refused[sender] += 1
        if self._refused[sender] >= REFUSED_AT_ONCE:
            self._refused[sender] = 0
            await trio.sleep(REFUSAL_PAUSE_S)

    async def run(self) -> None:
        """Deal with what waits, by turns, until cancelled."""
        while True:
            if not self._waiting:
                self._dealt_with = 0
                await self._work.park()
            over_at = trio.current_time() + TURN_S
            for _ in range(TURN):
                self._deal_with_next([self._waiting.take() for _ in range(self._at_once())])
                if not self._waiting or trio.current_time() >= over_at:
                    break
            self._progress.unpark_all()
            await trio.lowlevel.checkpoint()

    def _at_once(self) -> int:
        return min(len(self._waiting), MOST_AT_ONCE)

    def _deal_with_next(self, turn: Sequence[_Waiting]) -> None:
        """Deal with events in their order, with many at once where that can be."""
        dealt_with = 0
        while dealt_with < len(turn):
            left = turn[dealt_with:]
            dealt_with += self._deal_with_many([(one.sender, one.frame) for one in left])
            if dealt_with < len(turn):
                self._deal_with_one(turn[dealt_with])
                dealt_with += 1

    def _deal_with_one(self, one: _Waiting) -> None:
        try:
            self._deal(one.sender, one.frame)
        except RemoteProtocolError as error:
            self._cut(one.sender, error)


# When a peer's timers fire.


# The number of a round, and the kind of one of its timers.
Timer = tuple[int, int]
# Waits until a timer is due.
NextTimer = Callable[[], Awaitable[Timer]]
# A round begun later than this part of its length counts as late.
_LATE: Final = 0.5
# Which part of the last minute's rounds is many.
MANY: Final = 0.1
MINUTE_S: Final = 60.0


@define(eq=False, slots=False)
class SteadyTimer:
    """A round every ``round_s`` seconds of trio's clock, all timers at its beginning.

    Those that nothing is to be done in may be slept through: their timers come late, all at once.
    Rounds that were not meant to be, as by a paused process, are left out: gossip that is late is
    of no use, and all of it at once would flood the neighbours.

    Args:
        phase_s: when the first begins, so that not all peers of a machine begin at once.
        on_late: told by how many seconds a round was late that was counted as such.
        quiet_rounds: says for how many rounds from now there is nothing to do if nothing comes.
    """

    _round_s: float
    _phase_s: float
    _counters: Counters
    _on_late: Callable[[float], None] = lambda _: None
    _quiet_rounds: Callable[[], int] = lambda: 0

    def __attrs_post_init__(self) -> None:
        self._due = trio.current_time() + self._phase_s
        self._number = -1
        self._left: deque[Timer] = deque()
        self._quiet = 0  # rounds from the next one on that are slept through
        self._sleep = trio.CancelScope()
        self._late_at: deque[float] = deque()

    def complaint(self) -> str:
        """Whether many rounds were late in the last minute, in a sentence; "" where few were."""
        now = trio.current_time()
        while self._late_at and now - self._late_at[0] > MINUTE_S:
            self._late_at.popleft()
        late, of = len(self._late_at), MINUTE_S / self._round_s
        if late <= MANY * of:
            return ""
        return f"this node is too slow: {late} of the last {of:.0f} rounds began late"

    async def next_timer(self) -> Timer:
        while not self._left:
            await self._wait()
        return self._left.popleft()

    @property
    def sleeps(self) -> bool:
        """Whether there are rounds yet to be slept through."""
        return self._quiet > 0

    def sleep(self, rounds: int | None = None) -> None:
        """Sleep through so many rounds from the next one on; None: all that may be."""
        self._quiet = self._quiet_rounds() if rounds is None else rounds
        self._sleep.deadline = self._wakes_at

    def passed(self) -> list[Timer]:
        """The timers of the rounds slept through that have begun by now, as of `next_timer`."""
        found: list[Timer] = []
        while self._quiet > 0 and self._due <= trio.current_time():
            found += self._sleep_through()
        return found

    @property
    def _wakes_at(self) -> float:
        return self._due + self._quiet * self._round_s

    def _sleep_through(self) -> list[Timer]:
        self._quiet -= 1
        self._due += self._round_s
        return self._begin()

    def _begin(self) -> list[Timer]:
        self._number += 1
        self._counters.rounds += 1
        return [(self._number, kind) for kind in TIMERS]

    async def _wait(self) -> None:
        self._quiet = self._quiet_rounds()
        # What came when it was to wake may have let it sleep on.
        while True:
            with trio.CancelScope(deadline=self._wakes_at) as self._sleep:
                await trio.sleep_forever()
            if trio.current_time() >= self._wakes_at:
                break
        if self._quiet > 0:
            while self._quiet > 0:
                self._left.extend(self._sleep_through())
            return
        late = trio.current_time() - self._due
        if late > _LATE * self._round_s:
            self._counters.rounds_late += 1
            self._late_at.append(trio.current_time())
            self._on_late(late)
            self._due += late // self._round_s * self._round_s
        self._due += self._round_s
        self._left.extend(self._begin())


class Rest:
    """Lets a peer that rests be as if each round had passed in its time, whatever comes.

    Args:
        timer: sleeps through rounds; None for one that does not.
        fire: lets one of its timers fire.
    """

    def __init__(
        self, timer: SteadyTimer | None = None, fire: Callable[[int, int], None] | None = None
    ) -> None:
        self._timer = timer
        self._fire = fire
        self._catches_up = False

    def catch_up(self) -> None:
        """Something comes: let the rounds pass first that were slept through."""
        if self._catches_up or self._timer is None or self._fire is None:
            return
        if self._timer.sleeps:
            self._catches_up = True
            try:
                for number, kind in self._timer.passed():
                    self._fire(number, kind)
            finally:
                self._catches_up = False

    def look_again(self, *, soon: bool = False) -> None:
        """Something has come: there may be something to do, in the next round if ``soon``."""
        if self._timer is not None and self._timer.sleeps and not self._catches_up:
            self._timer.sleep(0 if soon else None)
