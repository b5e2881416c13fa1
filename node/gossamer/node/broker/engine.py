"""One message after another through the broker's door, each stored before anything follows from it.

Whatever waits is taken at once: one commit for many messages. What the broker wants to happen is
carried out after that, in order, by whoever it concerns (`EffectHandler`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import trio
from attrs import define, frozen

from gossamer.node.broker.host import HostedBroker, Match
from gossamer.node.broker.journal import Entry, Journal
from gossamer.node.errors import StoreError
from gossamer.node.monitoring.logs import log
from gossamer.node.store.broker import QueuedDelivery
from gossamer.protocol.brokers.core.arrival_queue import Arrivals, no_message
from gossamer.protocol.brokers.core.effects import Awaits, Deliver, Refuse, SetTimer, Settled
from gossamer.protocol.brokers.core.messages import (
    Congestion,
    Hop,
    Id,
    Publish,
    TimerFired,
    UnsafeError,
)
from gossamer.protocol.kernel.errors import ProtocolError

# Messages between two commits, and between two turns of the event loop.
BATCH: Final = 512
TURN: Final = 32
# Deliveries from which on no more messages share a commit, which would hold the event loop.
DELIVERIES: Final = 1024
# Between two attempts to write to a disk that takes nothing.
RETRY_S: Final = 1.0
# Between two looks at the queues of a broker that is congested.
LOOK_S: Final = 0.05
MICROSECONDS: Final = 1_000_000


@frozen
class Outcome:
    """What came of a client's message.

    Attributes:
        id: what a subscription, advertisement or publication is called in the overlay.
        error: why it was refused, None if it was not.
    """

    id: Id
    error: ProtocolError | None


@define(eq=False)
class Input:
    """A message that waits for the broker.

    Attributes:
        source: who sent it, None for the host.
        message: what came.
        first: done before its effects are carried out, unless it was refused.
        done: set once what came of it is known and stored, where somebody waits for that.
        outcome: that.
    """

    source: Hop | None
    message: Any
    first: Callable[[], None] | None = None
    done: trio.Event | None = None
    outcome: Outcome | None = None


class EffectHandler(Protocol):
    """Carry out what a broker wants to happen."""

    def queued(self, effect: Deliver | Match) -> QueuedDelivery | None:
        """What is to be stored for the client of a delivery; None for one that keeps nothing."""

    def carry_out(self, told: Input, effects: list[Any]) -> None:
        """Do everything but timers, which followed from a message that is stored by now."""

    @property
    def backlog(self) -> int:
        """Frames in the longest queue to a neighbour."""


class Engine:
    """A broker, its inputs and its journal; `run` does the work.

    Attributes:
        broker: for looking at.
        busy: whether messages were taken and their effects not carried out yet.
        brought: messages that neighbours and clients have handed over so far.
        carried_out: of these, how many are stored and carried out.
    """

    def __init__(
        self,
        broker: HostedBroker,
        journal: Journal,
        handler: EffectHandler,
        *,
        now: int,
        congested_queue: int,
        room: int,
        passing: tuple[type, ...] = (),
        left: Callable[[Any], int] | None = None,
        patience_s: float = 0.0,
        goes_first: Callable[[Any], bool] = no_message,
        matched: Callable[[list[Any]], list[Any]] = lambda effects: effects,
    ) -> None:
        """An engine that has done nothing.

        Args:
            broker: nobody else may tell it anything.
            journal: where messages are stored.
            handler: carries effects out.
            now: microseconds from which the broker's time goes on.
            congested_queue: messages above which the broker is congested.
            room: messages that may wait before those who bring more have to wait; for those that
                go first there is as much room again.
            passing: messages of these classes are not stored.
            left: publications that the broker can still keep for others before it loses one.
            patience_s: for how long a client's publication waits where there is no room for it, as
                long as others keep making none.
            goes_first: whether a message may go before what others sent earlier.
            matched: puts matches of composite subscriptions in place of what was delivered for
                them.
        """
        self.broker = broker
        self.busy = False
        self.brought = self.carried_out = 0
        self._journal = journal
        self._handler = handler
        self._began = now - int(trio.current_time() * MICROSECONDS)
        self._congested_queue = congested_queue
        self._room = room
        self._passing = passing
        self._left = left
        self._patience_s = patience_s
        self._patient = True
        self._inputs: Arrivals[Input] = Arrivals(goes_first)
        self._matched = matched
        self._work = trio.Event()
        self._freed = trio.lowlevel.ParkingLot()
        self._congested = False
        self._timers: trio.Nursery | None = None
        self._awaited: dict[int, Input] = {}
        self._closing = False
        self._over = trio.Event()

    @property
    def now(self) -> int:
        """The broker's time in microseconds: it goes on from the last run, whatever clocks say."""
        return self._began + int(trio.current_time() * MICROSECONDS)

    @property
    def waiting(self) -> int:
        """Messages that wait for the broker."""
        return len(self._inputs)

    def submit(
        self, source: Hop | None, message: Any, first: Callable[[], None] | None = None
    ) -> None:
        """Hand the broker what cannot wait outside, such as news of the host."""
        self._add(Input(source, message, first))

    def submit_first(self, message: Any, first: Callable[[], None] | None = None) -> None:
        """The same for news that go before all that waits, other such news included."""
        self._inputs.add_before_all(Input(None, message, first))
        self._work.set()

    async def submit_with_patience(
        self, source: Hop, message: Any, *, still: Callable[[], bool] = lambda: True
    ) -> None:
        """Hand the broker a message; waits while too many do, which slows its sender down.

        ``still`` says then whether the message is one that the broker is to have yet.
        """
        told = Input(source, message)
        await self._wait_for_room(told)
        if still():
            self._add(told)
        await trio.lowlevel.checkpoint()

    async def ask(
        self,
        source: Hop,
        messages: Sequence[Any],
        first: Callable[[], None] | None = None,
    ) -> list[Outcome]:
        """Hand the broker messages of a client; returns what came of them, once it is stored.

        ``first`` is done for each that was not refused, even if nobody waits any more.
        """
        asked = [Input(source, message, first, done=trio.Event()) for message in messages]
        for told in asked:
            if isinstance(told.message, Publish) and self._left is not None:
                await self._wait_until_kept()
            await self._wait_for_room(told)
            self._add(told)
        return await self._outcomes(asked)

    async def ask_at_once(
        self, source: Hop, messages: Sequence[tuple[Any, Callable[[], None]]]
    ) -> list[Outcome]:
        """The same for messages that belong together, each with what is done if it is not refused.

        All of them are handed over, even if nobody waits any more.
        """
        asked = [Input(source, message, first, done=trio.Event()) for message, first in messages]
        for told in asked:
            self._add(told)
        return await self._outcomes(asked)

    async def _outcomes(self, asked: Sequence[Input]) -> list[Outcome]:
        outcomes = []
        for told in asked:
            assert told.done is not None
            await told.done.wait()
            assert told.outcome is not None
            outcomes.append(told.outcome)
        return outcomes

    async def _wait_until_kept(self) -> None:
        """Wait until what is published can be kept for others, which slows its publisher down.

        A neighbour that stays away does so once: after that there is room again, or what was kept
        longest is lost, as the counters say.
        """
        full = self._is_full()
        if not full or not self._patient:
            self._patient = self._patient or not full
            return
        with trio.move_on_after(self._patience_s):
            while self._is_full():
                await self._freed.park()
            return
        if self._patient:
            self._patient = False
            log.warning("no room for publications, the oldest that are kept for others are lost")

    def _is_full(self) -> bool:
        assert self._left is not None
        return self._left(self.broker) <= len(self._inputs)

    def _add(self, told: Input) -> None:
        self.brought += told.source is not None
        self._inputs.add(told.source, told.message, told)
        self._work.set()

    async def _wait_for_room(self, told: Input) -> None:
        while self._inputs.waiting_where(told.source, told.message) >= self._room:
            await self._freed.park()

    async def run(self) -> None:
        """Handle what comes, until closed or cancelled."""
        try:
            async with trio.open_nursery() as self._timers:
                while not self._closing:
                    await self._take_turn()
                self._timers.cancel_scope.cancel()
        finally:
            self._over.set()

    async def _take_turn(self) -> None:
        with trio.move_on_after(LOOK_S if self._congested else math.inf):
            await self._work.wait()
        self._report_congestion()
        if self._inputs and not self._closing:
            await self._step()
            assert self._timers is not None
            await self._journal.dump_if_due(self.broker, self.now, self._timers)

    async def close(self) -> bool:
        """Take nothing more; returns whether all that was taken is stored and carried out."""
        self._closing = True
        self._work.set()
        await self._over.wait()
        return not self.busy

    def _report_congestion(self) -> None:
        """Tell the broker how long the longest queue is, when that makes a difference."""
        queue = max(len(self._inputs), self._handler.backlog)
        if (queue > self._congested_queue) is not self._congested:
            self._congested = not self._congested
            self.submit_first(Congestion(queue))

    async def _step(self) -> None:
        """Take what waits; store it; carry out what follows."""
        self.busy = True
        entries: list[Entry] = []
        deliveries: list[QueuedDelivery] = []
        batch: list[tuple[Input, list[Any]]] = []
        room = BATCH
        while self._inputs and len(batch) < room and len(deliveries) < DELIVERIES:
            told = self._inputs.pop()
            now, expected = self.now, self.broker.next_id
            effects = self._matched(self.broker.handle(now, told.source, told.message))
            if not isinstance(told.message, self._passing):
                entries.append(Entry(now, told.source, told.message))
            deliveries += self._queued(effects)
            told.outcome = Outcome(expected, _refusal(told, effects))
            batch.append((told, effects))
            if self._inputs.goes_first(told.message):
                # It is not to wait until all the others are stored.
                room = min(BATCH, len(batch) + TURN)
            if len(batch) % TURN == 0:
                await trio.lowlevel.checkpoint()
        if not self._inputs:
            self._work = trio.Event()
        self._freed.unpark_all()
        await self._store(entries, deliveries)
        for told, effects in batch:
            self._finish(told, effects)
        self.busy = False

    def _queued(self, effects: list[Any]) -> list[QueuedDelivery]:
        made = (self._handler.queued(one) for one in effects if isinstance(one, Deliver | Match))
        return [one for one in made if one is not None]

    async def _store(self, entries: list[Entry], deliveries: list[QueuedDelivery]) -> None:
        """Store what happened; while the disk takes nothing, nothing follows from it."""
        while entries or deliveries:
            try:
                with trio.CancelScope(shield=True):
                    await self._journal.keep(entries, deliveries)
                return
            except StoreError as error:
                log.warning("what the broker did cannot be stored", cause=str(error))
                await trio.sleep(RETRY_S)

    def _finish(self, told: Input, effects: list[Any]) -> None:
        self.carried_out += told.source is not None
        done = told.done
        for effect in effects:
            if isinstance(effect, SetTimer):
                assert self._timers is not None
                self._timers.start_soon(self._fire, effect)
            elif isinstance(effect, Awaits) and done is not None:
                self._awaited[effect.ticket] = told
                done = None
        assert told.outcome is not None
        if told.first is not None and told.outcome.error is None:
            told.first()
        self._handler.carry_out(told, effects)
        if done is not None:
            done.set()
        for effect in effects:
            if isinstance(effect, Settled):
                self._settle(effect)

    def _settle(self, effect: Settled) -> None:
        """What followed from a client's message has come to an end: tell who waits for that."""
        told = self._awaited.pop(effect.ticket, None)
        if told is None:
            return
        assert told.outcome is not None
        assert told.done is not None
        if not effect.safe and isinstance(told.message, Publish):
            told.outcome = Outcome(told.outcome.id, UnsafeError(told.outcome.id))
        elif not effect.safe:
            kind = type(told.message).__name__.lower()
            log.warning("a client's wish is not known at every broker yet", wish=kind)
        told.done.set()

    async def _fire(self, timer: SetTimer) -> None:
        await trio.sleep(max(0, timer.at - self.now) / MICROSECONDS)
        self.submit(None, TimerFired(timer.timer, timer.token))


def _refusal(told: Input, effects: list[Any]) -> ProtocolError | None:
    for effect in effects:
        if isinstance(effect, Refuse) and effect.hop == told.source:
            return effect.error
    return None
