"""To whom frames were not sent since too much waited for them, and what is done about it.

Once no more are dropped, what is remembered here is offered to that peer anew. It may be too much
again, and what was dropped at first may be remembered no more by then: so what is dropped soon
after still counts as of the same loss, and the peer is told since when that is, so that it asks.
"""

from __future__ import annotations

import math
from typing import Final, Protocol

import attrs
import trio

# Seconds without anything dropped after which that is over, and after which what was offered since
# has arrived.
QUIET_S: Final = 5.0
SETTLED_S: Final = 10.0


class OnLoss(Protocol):
    """What is told of losses."""

    def __call__(self, key: int, since: float, *, lasts: bool) -> None:
        """Frames for a peer were dropped since then, by trio's clock, and are still if it lasts."""


@attrs.define(eq=False)
class _Loss:
    """What one peer was not sent.

    Attributes:
        since, last_at: trio's time when the first and the last frame was dropped.
        offered_at: when that was over; infinite while it is not.
    """

    since: float
    last_at: float
    offered_at: float = math.inf


class Losses:
    """What peers were not sent.

    Args:
        on_loss: told of each once it is over, and while it lasts each time that it has done so for
            `long_s`; that is then seen to.
        long_s: seconds.
    """

    def __init__(self, on_loss: OnLoss, long_s: float = math.inf) -> None:
        self._on_loss = on_loss
        self._long_s = long_s
        self._losses: dict[int, _Loss] = {}

    def note(self, key: int) -> None:
        """A frame for the peer ``key`` was dropped."""
        now = trio.current_time()
        loss = self._losses.setdefault(key, _Loss(now, now))
        loss.last_at, loss.offered_at = now, math.inf

    def new_round(self) -> None:
        """Look what is over, and what lasts."""
        now = trio.current_time()
        for key, loss in list(self._losses.items()):
            if loss.offered_at < math.inf:
                if now - loss.offered_at >= SETTLED_S:
                    del self._losses[key]
            elif now - loss.last_at >= QUIET_S:
                loss.offered_at = now
                self._on_loss(key, loss.since, lasts=False)
            elif now - loss.since >= self._long_s:
                self._on_loss(key, loss.since, lasts=True)
                loss.since = now
