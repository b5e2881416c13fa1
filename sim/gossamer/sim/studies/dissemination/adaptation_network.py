"""Brokers of a general graph under a simulated clock: links of finite latency, and what they carry.

Brokers take no time; a link takes its latency, and delivers in order. The trees that a coordinator
asks for are there after a while. Nothing is drawn at random, so that a run is fixed by what is
scheduled.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import attrs
import cbor2

from gossamer.protocol.brokers.core.broker import NewIndex, SharedIndex
from gossamer.protocol.brokers.core.effects import Deliver, Effect, Refuse, Send, SetTimer
from gossamer.protocol.brokers.core.messages import (
    NeighbourDown,
    Restarted,
    TimerFired,
    client,
    neighbour,
)
from gossamer.protocol.brokers.graph.broker import GraphBroker
from gossamer.protocol.brokers.graph.codec import CODEC
from gossamer.protocol.brokers.graph.coordinator import MakePlan
from gossamer.protocol.brokers.graph.messages import (
    BetweenBrokers,
    Confirm,
    Document,
    Message,
    NeighbourUp,
    Return,
)
from gossamer.protocol.brokers.graph.planning import solve
from gossamer.protocol.brokers.graph.settings import GraphSettings
from gossamer.protocol.content.filters import Filter
from gossamer.protocol.content.matching.search import HELD
from gossamer.sim.errors import SimulationError

# How many bytes messages between brokers take, as nodes send them.


_REMEMBERED: Final = 4_096


class MessageSizes:
    """Sizes of messages; what floods is the same message on many links, and measured once."""

    def __init__(self) -> None:
        self._known: OrderedDict[int, tuple[BetweenBrokers, int]] = OrderedDict()

    def of(self, message: BetweenBrokers) -> int:
        """Bytes of a message, without what a transport adds."""
        known = self._known.get(id(message))
        if known is not None:
            return known[1]
        size = len(cbor2.dumps(CODEC.plain_message(message)))
        # With the message itself, so that its identity is not another's meanwhile.
        self._known[id(message)] = message, size
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return size


SECOND: Final = 1_000_000


@attrs.frozen
class Timing:
    """How long things take, in microseconds.

    Attributes:
        latency: of a link, for each unit of its cost.
        planning: between the question for trees and the answer.
    """

    latency: int = 5_000
    planning: int = 200_000


@attrs.define
class Traffic:
    """What links carried in a stretch of time.

    Attributes:
        copies: documents, once for each link, weighed by the link's cost (Eq. 1).
        copies_bytes, confirm_bytes, control_bytes: of documents, of confirmations, of all else.
        control: messages of all other kinds.
    """

    copies: float = 0.0
    copies_bytes: int = 0
    confirm_bytes: int = 0
    control: int = 0
    control_bytes: int = 0


class TreeNetwork:
    """Runs brokers of a graph.

    Args:
        links: by both ends, and what a document costs there.
        settings: of all brokers.
        timing: how long things take.
        delivered: told the time and what a client was handed.
        new_index: makes a broker's index of filters.

    Attributes:
        now: microseconds since the run began.
        brokers: by name, those that run.
        traffic: since it was last taken with `take_traffic`.
        may_plan: whether coordinators get the trees that they ask for, when the present ones do.
    """

    def __init__(
        self,
        links: Mapping[tuple[str, str], float],
        settings: GraphSettings,
        timing: Timing,
        delivered: Callable[[int, Deliver], None],
        new_index: NewIndex = SharedIndex,
    ) -> None:
        self.now = 0
        self.traffic = Traffic()
        self.may_plan = True
        back = {(other, one): cost for (one, other), cost in links.items()}
        self._costs = {**links, **back}
        names = sorted({end for pair in links for end in pair})
        self.brokers = {name: GraphBroker(name, settings, new_index=new_index) for name in names}
        self._timing = timing
        self._delivered = delivered
        self._sizes = MessageSizes()
        self._agenda: list[tuple[int, int, Callable[[], None]]] = []
        self._scheduled = 0
        # Counted up when a link fails, so that what was under way on it does not arrive.
        self._lives = dict.fromkeys(self._costs, 0)
        for name in names:
            self.tell(name, Restarted())
        for one, other in sorted(self._costs):
            self.tell(one, NeighbourUp(other, self._costs[one, other]))

    # What a run is made of.

    def call(self, at: int, action: Callable[[], None]) -> None:
        """Do something at a time."""
        # Numbered, so that what falls together happens in the order in which it was scheduled.
        self._scheduled += 1
        heapq.heappush(self._agenda, (max(at, self.now), self._scheduled, action))

    def run_until(self, end: int) -> None:
        """Let everything happen up to a time."""
        while self._agenda and self._agenda[0][0] <= end:
            self.now, _, action = heapq.heappop(self._agenda)
            action()
        self.now = end

    def send(self, name: str, broker: str, message: Message) -> None:
        """Let a client send its broker a message, now."""
        self._carry_out(broker, self.brokers[broker].handle(self.now, client(name), message))

    def tell(self, broker: str, message: Message) -> None:
        """Tell a broker what happened to it, now."""
        self._carry_out(broker, self.brokers[broker].handle(self.now, None, message))

    def take_traffic(self) -> Traffic:
        """What links carried since the last time."""
        taken, self.traffic = self.traffic, Traffic()
        return taken

    # What fails.

    def stop_broker(self, name: str) -> None:
        """Let a broker stop for good, now, and its neighbours know."""
        del self.brokers[name]
        for one, other in sorted(self._costs):
            if other == name:
                self.break_link(one, other)

    def break_link(self, one: str, other: str) -> None:
        """Let a link work no more, now; what is under way on it is lost, and both ends know."""
        for name, end in ((one, other), (other, one)):
            self._lives[name, end] += 1
            if name in self.brokers:
                self.tell(name, NeighbourDown(end))

    # How it happens.

    def _carry_out(self, broker: str, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case Send(name, sent):
                    self._transmit(broker, name, sent)
                case Deliver():
                    self._delivered(self.now, effect)
                case SetTimer(timer, token, at):
                    self.call(at, self._later(broker, TimerFired(timer, token)))
                case MakePlan():
                    self._make_plan(broker, effect)
                case Refuse():
                    raise SimulationError(f"broker {broker} refused a message: {effect.error}")

    def _later(self, broker: str, message: Message) -> Callable[[], None]:
        def tell() -> None:
            if broker in self.brokers:
                self.tell(broker, message)

        return tell

    def _make_plan(self, broker: str, asked: MakePlan) -> None:
        if asked.problem.present is not None and not self.may_plan:
            return
        answer = solve(asked.number, asked.problem)
        self.call(self.now + self._timing.planning, self._later(broker, answer))

    def _transmit(self, one: str, other: str, message: BetweenBrokers) -> None:
        self._count(self._costs[one, other], message)
        life = self._lives[one, other]

        def arrive() -> None:
            if other in self.brokers and self._lives[one, other] == life:
                effects = self.brokers[other].handle(self.now, neighbour(one), message)
                self._carry_out(other, effects)

        self.call(self.now + int(self._timing.latency * self._costs[one, other]), arrive)

    def _count(self, cost: float, message: BetweenBrokers) -> None:
        traffic, size = self.traffic, self._sizes.of(message)
        match message:
            case Document():
                traffic.copies += cost
                traffic.copies_bytes += size
            case Confirm() | Return():
                traffic.confirm_bytes += size
            case _:
                traffic.control += 1
                traffic.control_bytes += size


# An index of filters that remembers what matched, for publications that say the same again.


_Key = tuple[int, tuple[tuple[str, object], ...]]


class RememberingIndex(SharedIndex):
    """A `SharedIndex` with the same answers.

    It saves most of the matching where few different publications are routed, as in a burst by
    topic, while the filters do not change.
    """

    def __init__(self) -> None:
        """An empty index."""
        super().__init__()
        self._matched: dict[_Key, list[int]] = {}
        self._ask = self.match
        self.match = self._remember

    def add(self, wanted: Filter, marks: int) -> int:
        """Hold a filter that is new, with these marks; returns its place."""
        self._matched.clear()
        return super().add(wanted, marks)

    def remove(self, place: int) -> bool:
        """Hold a filter once less; returns whether it is gone."""
        self._matched.clear()
        return super().remove(place)

    def _remember(self, publication: Mapping[str, object], marked: int = HELD) -> list[int]:
        key = marked, tuple(sorted(publication.items()))
        found = self._matched.get(key)
        if found is None:
            found = self._matched[key] = self._ask(publication, marked)
        return found
