"""When a peer's timers fire."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

import trio

from gossamer.node.monitoring.metrics import Counters
from gossamer.protocol.peer.step import TIMERS

# A round begun later than this part of its length counts as late.
_LATE: Final = 0.5
# Which part of the last minute's rounds is many.
MANY: Final = 0.1
MINUTE_S: Final = 60.0


class GossipTimer(Protocol):
    """Gossip rounds, timer by timer."""

    async def next_timer(self) -> tuple[int, int]:
        """Wait until a timer is due; return the number of the round and the timer's kind."""
        ...


class SteadyTimer:
    """A round every ``round_s`` seconds of trio's clock, all timers at its beginning.

    Rounds that were slept through, as by a paused process, are left out: gossip that is late is
    of no use, and all of it at once would flood the neighbours.

    Args:
        round_s: seconds.
        phase_s: when the first begins, so that not all peers of a machine begin at once.
        counters: where rounds are counted.
        on_late: told by how many seconds a round was late that was counted as such.
    """

    def __init__(
        self,
        round_s: float,
        phase_s: float,
        counters: Counters,
        on_late: Callable[[float], None] = lambda _: None,
    ) -> None:
        self._round_s = round_s
        self._counters = counters
        self._on_late = on_late
        self._due = trio.current_time() + phase_s
        self._number = -1
        self._left: list[int] = []
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

    async def next_timer(self) -> tuple[int, int]:
        if not self._left:
            await self._wait()
            self._left = list(reversed(TIMERS))
            self._number += 1
            self._counters.rounds += 1
        return self._number, self._left.pop()

    async def _wait(self) -> None:
        await trio.sleep_until(self._due)
        late = trio.current_time() - self._due
        if late > _LATE * self._round_s:
            self._counters.rounds_late += 1
            self._late_at.append(trio.current_time())
            self._on_late(late)
            self._due += late // self._round_s * self._round_s
        self._due += self._round_s
