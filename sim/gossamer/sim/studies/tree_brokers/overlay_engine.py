"""Brokers under a simulated clock: input queues, service times, links of finite capacity.

Each broker serves its input queue one message at a time, first in first out, or publications first
(`Links.publications_first`). A message is handled
when its service begins and takes effect when it ends; timers and other words of the host cost
nothing. Links keep the order of what they carry. Nothing is drawn at random, so that a run is fixed
by what is scheduled.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol

import attrs
import networkx as nx

from gossamer.protocol.brokers.core.arrival_queue import Arrivals, no_message
from gossamer.protocol.brokers.core.effects import Deliver, Effect, Moved, Refuse, Send, SetTimer
from gossamer.protocol.brokers.core.messages import (
    Congestion,
    Hop,
    NeighbourUp,
    Publish,
    TimerFired,
    client,
    neighbour,
)
from gossamer.protocol.brokers.tree.messages import Frame, Message, Publication
from gossamer.protocol.brokers.tree.state import Counters, TableSizes
from gossamer.sim.errors import SimulationError
from gossamer.sim.studies.tree_brokers.service_times import ServiceTimes, Work

# What happens at an instant, in the order in which what falls together is done.
_ARRIVAL, _DONE, _TIMER, _CALL = range(4)


class BrokerLike(Protocol):
    """The one door of a broker, and what the engine asks about it."""

    def handle(self, now: int, source: Hop | None, message: Message) -> Iterable[Effect]:
        """Take a message at ``now`` (microseconds) and say what is to happen."""

    def sizes(self) -> TableSizes:
        """How large its tables are."""

    @property
    def counters(self) -> Counters:
        """What happened so far."""


@attrs.define
class Observer:
    """What is told what clients get, by derived classes; times are microseconds.

    Nothing is to be refused, and no client to move with all that it has.
    """

    def delivered(self, now: int, broker: str, effect: Deliver) -> None:
        """A client was handed a publication."""

    def refused(self, now: int, broker: str, effect: Refuse) -> None:
        """Whoever caused it was told that a message was not carried out."""
        raise SimulationError(f"broker {broker} refused a message at {now}: {effect.error}")

    def moved(self, now: int, broker: str, effect: Moved) -> None:  # noqa: ARG002
        """A client left, with what it may attach with elsewhere."""
        raise SimulationError(f"broker {broker} moved a client, expected that none asks for it")


@attrs.frozen
class Links:
    """What all links between brokers have in common.

    Attributes:
        latency: microseconds from one end to the other.
        gap: microseconds between two messages that leave in one direction; 0: any number at once.
        queue: messages that a broker's input queue holds; those from neighbours that find it full
            are dropped and counted. 0: no bound.
        congested: input queue from which a broker is told how congested it is.
        publications_first: whether brokers serve these before what others sent earlier, as nodes do
            with `broker.publications_first` (beyond the papers).
    """

    latency: int = 1_000
    gap: int = 0
    queue: int = 0
    congested: int = 100
    publications_first: bool = False


@attrs.define(eq=False)
class _Station:
    """A broker, its input queue with the work that each message stands for, and what it is
    doing."""

    broker: BrokerLike
    waiting: Arrivals[tuple[Hop, Message, int]]
    work: int = 0
    busy: bool = False
    told_congested: bool = False
    dropped: int = 0
    handled: int = 0


class BrokerNetwork:
    """Runs brokers on an overlay.

    Args:
        graph: the overlay; its nodes are the brokers' names.
        brokers: the brokers, by name.
        service: what messages cost.
        links: what links do.
        observer: told what clients get.

    Attributes:
        now: microseconds since the run began.
        service: what messages cost; may change between two calls of `run`.
    """

    def __init__(
        self,
        graph: nx.Graph[str],
        brokers: Mapping[str, BrokerLike],
        service: ServiceTimes,
        links: Links,
        observer: Observer,
    ) -> None:
        self.now = 0
        self.links = links
        self.service = service
        self._observer = observer
        first = _is_published if links.publications_first else no_message
        self._stations: Final = {name: _Station(brokers[name], Arrivals(first)) for name in graph}
        self._agenda: list[tuple[int, int, int, str, Any]] = []
        self._scheduled = 0
        self._free_at: dict[tuple[str, str], int] = {}
        for name in graph:
            for other in graph[name]:
                self._tell(name, NeighbourUp(other))

    # What a run is made of.

    def send(self, at: int, name: str, broker: str, message: Message) -> None:
        """Let the client ``name`` send a message to a broker, which gets it at ``at``."""
        self._schedule(at, _ARRIVAL, broker, (client(name), message))

    def call(self, at: int, action: Callable[[], None]) -> None:
        """Do something at ``at``: schedule what depends on how the run went so far."""
        self._schedule(at, _CALL, "", action)

    def run(self, until: int) -> None:
        """Let everything happen that falls before ``until``, microseconds."""
        while self._agenda and self._agenda[0][0] < until:
            self.now, _, what, broker, content = heapq.heappop(self._agenda)
            if what == _ARRIVAL:
                self._arrive(broker, *content)
            elif what == _DONE:
                self._finish(broker, content)
            elif what == _TIMER:
                self._tell(broker, content)
            else:
                content()
        self.now = max(self.now, until)

    def run_until_idle(self) -> None:
        """Let everything happen, timers included, until nothing is left to happen."""
        while self._agenda:
            self.run(self._agenda[0][0] + 1)

    # What can be seen.

    def queue(self, broker: str) -> int:
        """Messages waiting or in work at a broker."""
        station = self._stations[broker]
        return len(station.waiting) + station.busy

    def dropped(self, broker: str) -> int:
        """Messages that found a broker's input queue full."""
        return self._stations[broker].dropped

    def handled(self, broker: str) -> int:
        """Messages from clients and neighbours that a broker has taken."""
        return self._stations[broker].handled

    # How it happens.

    def _schedule(self, at: int, what: int, broker: str, content: object) -> None:
        # Numbered, so that what falls together happens in the order in which it was scheduled.
        self._scheduled += 1
        heapq.heappush(self._agenda, (max(at, self.now), self._scheduled, what, broker, content))

    def _arrive(self, broker: str, source: Hop, message: Message) -> None:
        station = self._stations[broker]
        full = self.links.queue and len(station.waiting) >= self.links.queue
        if full and not source.is_client:
            station.dropped += 1
            return
        work = self.service.expected(message)
        station.waiting.add(source, message, (source, message, work))
        station.work += work
        self._tell_congestion(broker, station)
        if not station.busy:
            self._serve(broker, station)

    def _serve(self, broker: str, station: _Station) -> None:
        source, message, work = station.waiting.pop()
        station.handled += 1
        station.work -= work
        examined = station.broker.counters.examined
        begun = time.perf_counter()
        effects = tuple(station.broker.handle(self.now, source, message))
        wall_s = time.perf_counter() - begun
        examined = station.broker.counters.examined - examined
        cost = self.service.of(
            Work(message, station.broker.sizes, wall_s, examined, waiting=station.work)
        )
        if cost == 0:
            self._carry_out(broker, effects)
            self._after(broker, station)
        else:
            station.busy = True
            self._schedule(self.now + cost, _DONE, broker, effects)

    def _finish(self, broker: str, effects: tuple[Effect, ...]) -> None:
        station = self._stations[broker]
        station.busy = False
        self._carry_out(broker, effects)
        self._after(broker, station)

    def _after(self, broker: str, station: _Station) -> None:
        self._tell_congestion(broker, station)
        if station.waiting and not station.busy:
            self._schedule(self.now, _CALL, "", lambda: self._serve_next(broker, station))

    def _serve_next(self, broker: str, station: _Station) -> None:
        if station.waiting and not station.busy:
            self._serve(broker, station)

    def _tell_congestion(self, broker: str, station: _Station) -> None:
        congested = len(station.waiting) > self.links.congested
        if congested != station.told_congested:
            station.told_congested = congested
            self._tell(broker, Congestion(len(station.waiting)))

    def _tell(self, broker: str, message: Message) -> None:
        effects = self._stations[broker].broker.handle(self.now, None, message)
        self._carry_out(broker, tuple(effects))

    def _carry_out(self, broker: str, effects: tuple[Effect, ...]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                self._transmit(broker, effect.neighbour, effect.message)
            elif isinstance(effect, Deliver):
                self._observer.delivered(self.now, broker, effect)
            elif isinstance(effect, SetTimer):
                fired = TimerFired(effect.timer, effect.token)
                self._schedule(effect.at, _TIMER, broker, fired)
            elif isinstance(effect, Refuse):
                self._observer.refused(self.now, broker, effect)
            elif isinstance(effect, Moved):
                self._observer.moved(self.now, broker, effect)

    def _transmit(self, source: str, target: str, frame: Frame) -> None:
        leaves = max(self.now, self._free_at.get((source, target), 0))
        if self.links.gap:
            self._free_at[source, target] = leaves + self.links.gap
        arrival = (neighbour(source), frame)
        self._schedule(leaves + self.links.latency, _ARRIVAL, target, arrival)


def _is_published(message: Message) -> bool:
    """Whether a message brings a publication, of a client or from another broker."""
    return isinstance(message, Publish) or (
        isinstance(message, Frame) and isinstance(message.message, Publication)
    )
