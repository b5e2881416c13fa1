"""Notices that this peer was away from others, and has it ask for what it missed.

Short breaks need nothing of this: whoever remembers the events of the last `delivery.replay_s`
seconds hands them to subscriptions that are asked of it anew. What is longer is asked for: when the
process did not run, when it was paused, and when peers come back that were out of reach, since then
the overlay may have been in parts. Parts acknowledge by themselves as soon as the others count as
failed in them, which is much sooner than connections are found to be dead. What they held is on no
path of the others afterwards, and nobody offers it: who was silent for as long as that is a reason
to ask, too, whether its connection ended or not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final, NamedTuple

import trio

from gossamer.node.errors import NoAnswerError
from gossamer.node.monitoring.logs import log
from gossamer.node.peer.runtime import Runtime
from gossamer.node.peer.unicast.messages import Unicast
from gossamer.node.security.encoding import decode, encode
from gossamer.protocol.peer.settings.config import Settings

# Of peers that were apart from others, who tell them for how long.
SERVICE: Final = "apart"
# Of peers that do not send all that they should, who tell whom they do not, since when.
NOT_SENT: Final = "not sent"
# Rounds until a peer that starts has its place and its subscriptions are known, and until parts of
# an overlay that were apart are one ring again.
ROUNDS_TO_START: Final = 6
ROUNDS_TO_MERGE: Final = 20
# Asked for in addition, for what was under way and as long as questions may be, and within how many
# an answer is prompt.
MARGIN_ROUNDS: Final = 8
SOON_ROUNDS: Final = 2
# Times that a peer that does not answer promptly is told the same.
MOST_TELLS: Final = 4
# Peers out of reach that are remembered, of each kind: more than there are connections.
MAX_LOST: Final = 1024


def quiet_rounds(settings: Settings) -> int:
    """Rounds without news of a neighbour that may soon count as failed.

    Rounds of different peers begin at different moments: by then it does so for some.
    """
    return max(1, settings.failure_age - 2)


class Silence(NamedTuple):
    """Of a peer that counts as failed or may soon do, though its connection has not ended.

    Attributes:
        since, noticed: when it was heard last, and when it counted as failed; of trio's clock.
    """

    since: float
    noticed: float


class CatchUp:
    """When to catch up; `run` has to be running.

    Attributes:
        is_whole: whether nothing is known to be missing: not while there is something to ask for.

    Args:
        runtime: of the peer.
        heard_at: by trio's clock, when anything came last from the peer of a key; None while it is
            not connected.
        round_s: seconds of a round.
        quiet_rounds: without news of a neighbour after which it may soon count as failed, here or
            elsewhere; more than pass without news of one that is well.
        silence_s: how long a connection may have been dead when it is found to be.
        replay_s: breaks up to this long are made good without asking.
        kept_s: how long events are kept, and can be asked for.
    """

    def __init__(
        self,
        runtime: Runtime,
        heard_at: Callable[[int], float | None],
        *,
        round_s: float,
        quiet_rounds: int,
        silence_s: float,
        replay_s: float,
        kept_s: float,
    ) -> None:
        self._runtime = runtime
        self._heard_at = heard_at
        self._round_s = round_s
        self._quiet_rounds = quiet_rounds
        self._silence_s = silence_s
        self._replay_s = replay_s
        self._kept_s = kept_s
        self._lost: dict[int, float] = {}
        self._silent: dict[int, Silence] = {}
        self._stopped: dict[int, None] = {}
        self._telling: trio.Nursery | None = None
        self._messages: Unicast | None = None
        self._since = math.inf
        self._settle_rounds = 0
        self._again = False
        self._needed = trio.Event()
        self._caught_up = trio.Event()
        self.is_whole = True
        runtime.on_caught_up = self._on_caught_up
        runtime.on_round = self._look

    @property
    def missing_s(self) -> float:
        """For how long until now something may be missing if this peer stops, and asks later.

        Peers that are out of reach may be gone for good, or the overlay may be in parts, of which
        this process would know when they come back, and the next one would not.
        """
        now = trio.current_time()
        silent = [silence.since for silence in self._silent.values()]
        losses = [now - since for since in (*self._lost.values(), *silent)]
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
        skipped = int(seconds // self._round_s)
        if skipped:
            self._runtime.skip_rounds(skipped)
        if seconds > self._replay_s - self._silence_s:
            self._catch_up(trio.current_time() - seconds, ROUNDS_TO_MERGE, again=True)

    @property
    def long_loss_s(self) -> float:
        """How old what is offered anew may be: all of it is remembered when it is wanted.

        Unless more events pass than there is memory for.
        """
        return self._replay_s / 2

    def was_not_sent(self, key: int, since: float, *, lasts: bool) -> None:
        """Frames for a peer were dropped here since then, and are still if it ``lasts``."""
        if not lasts:
            self._runtime.report_loss(key)
        if trio.current_time() - since >= self.long_loss_s or self._is_forgotten(since):
            self._tell([key], since, NOT_SENT)

    def _is_forgotten(self, since: float) -> bool:
        """Whether some event of after then may be remembered here no more."""
        now = trio.current_time()
        return now - since > self._runtime.remembered_rounds() * self._round_s

    def lost(self, key: int, alive_until: float, *, replaced: bool = False) -> None:
        """A connection ended in disorder: what was sent since it was last alive may be lost.

        Where it was ``replaced`` by another, the peer is back already.
        """
        self._runtime.report_loss(key)
        _make_room(self._lost)
        self._lost.setdefault(key, alive_until)
        if replaced:
            self._end_loss(key)

    def stopped(self, key: int) -> None:
        """A peer has said goodbye as it stops: it does nothing without the others until it is back.

        So nothing is missed because of it, although it counts as failed.
        """
        _make_room(self._stopped)
        self._stopped[key] = None
        self._silent.pop(key, None)

    def found(self, key: int) -> None:
        """A peer is connected."""
        self._stopped.pop(key, None)
        self._end_loss(key)
        silence = self._silent.pop(key, None)
        if silence is not None and self._ended(silence, trio.current_time()):
            self._tell([key], silence.since)

    def _end_loss(self, key: int) -> None:
        now = trio.current_time()
        since = self._lost.pop(key, math.inf)
        if now - since > self._replay_s:
            self._catch_up(since, ROUNDS_TO_MERGE, again=True)
        elif since < now and self._is_forgotten(since):
            self._tell([key], since, NOT_SENT)

    def _look(self) -> None:
        """Once a round: find who is silent, and who is so no more."""
        now = trio.current_time()
        for key in self._runtime.silent_peers(self._quiet_rounds):
            if key not in self._silent and key not in self._stopped:
                heard_at = self._heard_at(key)
                since = now - self._quiet_rounds * self._round_s if heard_at is None else heard_at
                _make_room(self._silent)
                self._silent[key] = Silence(since, now)
        if self._silent:
            self._end_silences(now)

    def listen(self, messages: Unicast) -> None:
        """Tell other peers by ``messages`` that this one was apart from them, and hear of it."""
        self._messages = messages
        messages.offer(SERVICE, self._hear_apart)
        messages.offer(NOT_SENT, self._hear_not_sent)

    def _hear_apart(self, _: int, body: bytes) -> bytes:
        # Longer, and the connection would have ended.
        since = _since(body, self._silence_s, self._silence_s)
        self._catch_up(since, ROUNDS_TO_MERGE, again=True)
        return _clock()

    def _hear_not_sent(self, _: int, body: bytes) -> bytes:
        # Longer, and it would have been told before.
        self._catch_up(_since(body, 4 * self._replay_s, self._silence_s), 0)
        return _clock()

    def _tell(self, keys: Iterable[int], since: float, service: str = SERVICE) -> None:
        """Others may not have noticed: news of this peer went round among them meanwhile."""
        if self._messages is not None and self._telling is not None:
            for key in keys:
                self._telling.start_soon(self._tell_one, self._messages, key, service, since)

    async def _tell_one(self, messages: Unicast, key: int, service: str, since: float) -> None:
        """Tell a peer for how long it has been; if that took long, by its own clock since when.

        Peers that are sent too much have much to read before, and by then it has been for longer.
        Those of earlier versions do not say what their clocks show: they are told anew.
        """
        by_its_clock: int | None = None
        for _ in range(MOST_TELLS):
            told_at = trio.current_time()
            told = math.ceil(told_at - since) if by_its_clock is None else [by_its_clock]
            answer = b""
            with suppress(NoAnswerError):
                answer = await messages.ask(key, (), service, encode(told), self._silence_s)
                if by_its_clock is not None:
                    return
            answered_at = trio.current_time()
            if answered_at - told_at <= SOON_ROUNDS * self._round_s:
                return
            with suppress(ValueError):
                # It showed that before the answer was here.
                by_its_clock = _whole(decode(answer)) - math.ceil((answered_at - since) * 1000)

    def _end_silences(self, now: float) -> None:
        silent = set(self._runtime.silent_peers(self._quiet_rounds))
        linked = set(self._runtime.linked_peers()) - silent
        apart_since = math.inf
        for key, silence in list(self._silent.items()):
            heard_at = self._heard_at(key)
            if heard_at is None or heard_at <= silence.noticed:
                heard_at = now if key in linked else None
            if heard_at is None:
                continue
            if self._ended(silence, heard_at):
                apart_since = min(apart_since, silence.since)
            elif key not in linked:
                # Under way when it counted as failed already, perhaps.
                self._silent[key] = Silence(heard_at, now)
                continue
            del self._silent[key]
        if apart_since < now and self._messages is not None:
            self._tell(self._messages.connected, apart_since)

    def _ended(self, silence: Silence, ended: float) -> bool:
        """Whether a silence was so long that something may have been missed, which is asked for."""
        was_long = ended - silence.since > self._quiet_rounds * self._round_s
        if was_long:
            self._catch_up(silence.since, ROUNDS_TO_MERGE, again=True)
        return was_long

    async def run(self) -> None:
        """Catch up whenever there is need, until cancelled."""
        async with trio.open_nursery() as self._telling:
            while True:
                await self._needed.wait()
                await self._catch_up_now()

    async def _catch_up_now(self) -> None:
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


def _clock() -> bytes:
    """What trio's clock shows here, which means nothing elsewhere: milliseconds."""
    return encode(math.floor(trio.current_time() * 1000))


def _since(body: bytes, longest_s: float, late_s: float) -> float:
    """Since when something is, as `CatchUp` tells it: for so many seconds, or by our clock.

    No longer than ``longest_s``, and by our clock than ``late_s`` more: so late it may be told.
    """
    told = decode(body)
    now = trio.current_time()
    if type(told) is list and len(told) == 1:
        seconds = now - _whole(told[0]) / 1000
        longest_s += late_s
    else:
        seconds = _whole(told)
    if seconds < 0:
        raise ValueError("no number of seconds")
    return now - min(seconds, longest_s)


def _whole(value: object) -> int:
    if type(value) is not int:
        raise ValueError("no number of seconds")
    return value


def _make_room(remembered: dict[int, Any]) -> None:
    """Forget the first of as many peers as are remembered."""
    if len(remembered) >= MAX_LOST:
        del remembered[next(iter(remembered))]
