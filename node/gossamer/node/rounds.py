"""When a peer's timers fire."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final, Protocol

import attrs
import trio

from gossamer.node.metrics import Counters
from gossamer.protocol.peer import TIMERS

# A round begun later than this part of its length counts as late.
_LATE: Final = 0.5


class Rounds(Protocol):
    """Gossip rounds as they begin and as their timers fire."""

    def __aiter__(self) -> AsyncIterator[tuple[int, int]]:
        """Number of the round and kind of the timer, each when it is due."""
        ...


@attrs.frozen
class SteadyRounds:
    """A round every ``round_s`` seconds of trio's clock, all timers at its beginning.

    Rounds that were slept through, as by a paused process, are left out: gossip that is late is
    of no use, and all of it at once would flood the neighbours.

    Attributes:
        round_s: seconds.
        phase_s: when the first begins, so that not all peers of a machine begin at once.
        counters: where rounds are counted.
    """

    round_s: float
    phase_s: float
    counters: Counters

    async def __aiter__(self) -> AsyncIterator[tuple[int, int]]:
        number = 0
        due = trio.current_time() + self.phase_s
        while True:
            await trio.sleep_until(due)
            late = trio.current_time() - due
            if late > _LATE * self.round_s:
                self.counters.rounds_late += 1
                due += late // self.round_s * self.round_s
            for kind in TIMERS:
                yield number, kind
            self.counters.rounds += 1
            number += 1
            due += self.round_s
