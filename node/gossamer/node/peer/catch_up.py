"""Notices that this peer was away from others, and has it ask for what it missed.

Short breaks need nothing of this: whoever remembers the events of the last `delivery.replay_s`
seconds hands them to subscriptions that are asked of it anew. What is longer is asked for: when the
process did not run, when it was paused, and when peers come back that were out of reach, since then
the overlay may have been in parts.
"""

from __future__ import annotations

import math
from typing import Final

import trio

from gossamer.node.monitoring.logs import log
from gossamer.node.peer.runtime import Runtime

# Rounds until a peer that starts has its place and its subscriptions are known, and until parts of
# an overlay that were apart are one ring again.
ROUNDS_TO_START: Final = 6
ROUNDS_TO_MERGE: Final = 20
# Asked for in addition, for what was under way.
MARGIN_ROUNDS: Final = 4
# Peers out of reach that are remembered: more than there are connections.
MAX_LOST: Final = 1024


class CatchUp:
    """When to catch up; `run` has to be running.

    Attributes:
        is_whole: whether nothing is known to be missing: not while there is something to ask for.

    Args:
        runtime: of the peer.
        round_s: seconds of a round.
        silence_s: how long a connection may have been dead when it is found to be.
        replay_s: breaks up to this long are made good without asking.
        kept_s: how long events are kept, and can be asked for.
    """

    def __init__(
        self,
        runtime: Runtime,
        *,
        round_s: float,
        silence_s: float,
        replay_s: float,
        kept_s: float,
    ) -> None:
        self._runtime = runtime
        self._round_s = round_s
        self._silence_s = silence_s
        self._replay_s = replay_s
        self._kept_s = kept_s
        self._lost: dict[int, float] = {}
        self._since = math.inf
        self._settle_rounds = 0
        self._again = False
        self._needed = trio.Event()
        self._caught_up = trio.Event()
        self.is_whole = True
        runtime.on_caught_up = self._on_caught_up

    @property
    def missing_s(self) -> float:
        """For how long until now something may be missing if this peer stops, and asks later.

        Peers that are out of reach may be gone for good, or the overlay may be in parts, of which
        this process would know when they come back, and the next one would not.
        """
        now = trio.current_time()
        losses = [now - since for since in self._lost.values()]
        return max((lost_s for lost_s in losses if lost_s <= self._kept_s), default=0.0)

    def was_stopped(self, seconds: float) -> None:
        """The peer did not run for so long."""
        self._catch_up(trio.current_time() - max(0.0, seconds), ROUNDS_TO_START)

    def was_away(self, away_s: float, kept_s: float) -> None:
        """The peer did not run for ``away_s``, infinite if nobody knows how long that was.

        Events are asked for as far back as they are kept, for ``kept_s``.
        """
        if math.isinf(away_s):
            log.warning("the clock was set back: events are asked for as far back as they are kept")
        elif away_s > kept_s:
            log.warning(
                "away for longer than events are kept: older ones are missed",
                away_s=f"{away_s:.0f}",
                kept_s=f"{kept_s:.0f}",
            )
        self.was_stopped(min(away_s, kept_s))

    def was_paused(self, seconds: float) -> None:
        """The process, or its machine, was paused for so long."""
        if seconds > self._replay_s - self._silence_s:
            self._catch_up(trio.current_time() - seconds, ROUNDS_TO_MERGE, again=True)

    def lost(self, key: int, alive_until: float) -> None:
        """A connection ended in disorder: what was sent since it was last alive may be lost."""
        self._runtime.report_loss(key)
        if len(self._lost) >= MAX_LOST:
            del self._lost[next(iter(self._lost))]
        self._lost.setdefault(key, alive_until)

    def found(self, key: int) -> None:
        """A peer is connected."""
        since = self._lost.pop(key, None)
        if since is not None and trio.current_time() - since > self._replay_s:
            self._catch_up(since, ROUNDS_TO_MERGE, again=True)

    async def run(self) -> None:
        """Catch up whenever there is need, until cancelled."""
        while True:
            await self._needed.wait()
            noticed = trio.current_time()
            await self._runtime.heard_back.wait()
            await trio.sleep(self._settle_rounds * self._round_s)
            since, again = self._since, self._again
            self._since, self._settle_rounds, self._again = math.inf, 0, False
            self._needed = trio.Event()
            await self._ask(since)
            if again:
                # What was published while the parts found together went to one of them only.
                await trio.sleep(ROUNDS_TO_MERGE * self._round_s)
                await self._ask(noticed)
            self.is_whole = not self._needed.is_set()

    def _catch_up(self, since: float, settle_rounds: int, *, again: bool = False) -> None:
        self._since = min(self._since, since)
        self._settle_rounds = max(self._settle_rounds, settle_rounds)
        self._again = self._again or again
        self.is_whole = False
        self._needed.set()

    async def _ask(self, since: float) -> None:
        """Ask for what was missed; return once all of it is here."""
        self._caught_up = trio.Event()
        rounds = math.ceil((trio.current_time() - since) / self._round_s)
        self._runtime.catch_up(rounds + MARGIN_ROUNDS)
        await self._caught_up.wait()

    def _on_caught_up(self) -> None:
        self._caught_up.set()
