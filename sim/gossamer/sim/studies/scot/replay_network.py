"""SCOT brokers under a simulated clock: service times, output queues, links of finite rate.

Each broker serves its input queue one message at a time, first in first out; a message is handled,
and takes effect, when its service ends. Each link has an output queue at either end, from which
messages leave one after the other. At the end of every window brokers are told how their output
queues are. Nothing is drawn at random but how fast brokers are, by their names, so that a run is
fixed by what is scheduled.
"""

from __future__ import annotations

import functools
import heapq
import random
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

import attrs

from gossamer.protocol.brokers.core.effects import Deliver, Effect, Refuse, Send
from gossamer.protocol.brokers.core.messages import Hop, NeighbourDown, Publish, client, neighbour
from gossamer.protocol.brokers.scot import Scot, ScotBroker, ScotSettings
from gossamer.protocol.brokers.scot.messages import (
    BetweenBrokers,
    BidNotification,
    InputQueue,
    Message,
    NeighbourUp,
    Notification,
    OverlayGrown,
    QueueReport,
    WindowEnded,
)
from gossamer.protocol.brokers.scot.table import Catalogue
from gossamer.sim.errors import SimulationError
from gossamer.sim.studies.scot.replay_tables import (
    CONSTANT,
    InputQueues,
    RememberingCatalogue,
    spread_of,
)

T = TypeVar("T")

# What brokers work on a notification of does not depend on what it says.
_PUBLISH: Final = Publish({})


@attrs.frozen
class Links:
    """What all links have in common; times are microseconds.

    Attributes:
        latency: from one end to the other.
        gap: how long a message takes the link that it leaves on.
        uplink_gap: how long it takes the broker that sends it, whatever the link; so a broker that
            makes many copies is overwhelmed ("case (i)" of Sec. 6.3).
        bid_gap: what each BID that a notification carries adds to both.
    """

    latency: int = 500
    gap: int = 500
    uplink_gap: int = 250
    bid_gap: int = 20


@attrs.frozen
class ServiceTimes:
    """How long brokers work on a message, in microseconds.

    Attributes:
        matching: on a notification that is matched with the routing table.
        forwarding: on one that is only passed on, by its BIDs.
        bid: on each BID that a notification carries, to split the list.
        subscription: on a subscription or unsubscription, duplicates included.
        spread: "constant": a message takes its time exactly; "exponential": times its draw of an
            exponential distribution of mean 1, see `spread_of`.
        unevenness: brokers take from 2 ** -unevenness to 2 ** unevenness times as long, each
            always the same; drawn by its name.
    """

    matching: int = 200
    forwarding: int = 50
    bid: int = 2
    subscription: int = 100
    spread: str = CONSTANT
    unevenness: float = 0.0

    def of(self, broker: str, message: Message) -> int:
        """The time that a broker works on a message."""
        return round(self._usual(broker, message) * self.factor(broker))

    def factor(self, broker: str) -> float:
        """How much longer than usual a broker takes for everything."""
        return _factor(broker, self.unevenness) if self.unevenness else 1.0

    def _usual(self, broker: str, message: Message) -> int:
        match message:
            case BidNotification():
                hosts = broker in message.bids
                once = self.matching if hosts else self.forwarding
                return once + self.bid * len(message.bids)
            case Notification() | Publish():
                return self.matching
            case _:
                return self.subscription


@functools.cache
def _factor(broker: str, unevenness: float) -> float:
    return float(2 ** random.Random(broker).uniform(-unevenness, unevenness))


class Unobserved:
    """What is told what happens, by derived classes; times are microseconds.

    This one is for runs in which brokers refuse nothing, and whose end is all that counts.
    """

    def handled(
        self,
        now: int,
        arrived: int,
        broker: str,
        source: Hop,
        message: Message,
        effects: list[Effect],
    ) -> None:
        """A broker has taken a message of a client or neighbour that had come at ``arrived``."""

    def delivered(self, now: int, effect: Deliver) -> None:
        """A client was handed a notification."""

    def refused(self, now: int, broker: str, effect: Refuse) -> None:
        """What is refused is a fault of the scenario."""
        raise SimulationError(f"broker {broker} at {now} µs: {effect.error}")

    def window_ended(self, now: int, queues: dict[tuple[str, str], QueueReport]) -> None:
        """How the output queues that were in use are, by link."""


@attrs.define(eq=False)
class _OutputQueue:
    """The output queue of a link in one direction.

    Attributes:
        leaving: when each message in it will have left.
        free_at: when the last of them has.
        entered, left: messages of the current window.
    """

    leaving: deque[int] = attrs.field(factory=deque)
    free_at: int = 0
    entered: int = 0
    left: int = 0

    def append(self, leaves: int) -> None:
        """Let a message enter that leaves at that time."""
        self.free_at = leaves
        self.leaving.append(leaves)
        self.entered += 1

    def expire(self, now: int) -> None:
        """Let go what has left."""
        while self.leaving and self.leaving[0] <= now:
            self.leaving.popleft()
            self.left += 1

    def end_window(self, neighbour: str) -> QueueReport:
        """Report the window, and begin the next."""
        report = QueueReport(neighbour, len(self.leaving), self.entered, self.left)
        self.entered = self.left = 0
        return report


class ScotNetwork:
    """Runs the brokers of a SCOT; brokers are named by their labels.

    Args:
        scot: the overlay.
        settings: of all brokers.
        links: what links do.
        service: what messages cost brokers.
        observer: told what happens.
        catalogue: of the subscriptions of all brokers; a new one if None.

    Attributes:
        now: microseconds since the run began.
        brokers: by name.
        settings, times, service, catalogue: as given.
        window: microseconds.
        taken: messages that each broker has taken in, by name.
        dropped: messages that links or brokers had when they failed, or got afterwards.
    """

    def __init__(
        self,
        scot: Scot,
        settings: ScotSettings,
        links: Links,
        service: ServiceTimes,
        observer: Unobserved,
        catalogue: Catalogue | None = None,
    ) -> None:
        self.now = 0
        shared = RememberingCatalogue() if catalogue is None else catalogue
        self.catalogue: Final = shared
        self.settings: Final = settings
        self.brokers: Final = {
            str(label): ScotBroker(str(label), scot.position(label), settings, catalogue=shared)
            for label in scot.brokers
        }
        self.times: Final = links
        self.service: Final = service
        self.window: Final = settings.window
        self._observer = observer
        self._agenda: list[tuple[int, int, Callable[[], None]]] = []
        self._scheduled = 0
        self.taken: Final = dict.fromkeys(self.brokers, 0)
        self._places: Final = {name: place for place, name in enumerate(self.brokers)}
        self._spread: Final = spread_of(service.spread)
        self._free_at = dict.fromkeys(self.brokers, 0)
        self._uplinks = dict.fromkeys(self.brokers, 0)
        self._queues: dict[tuple[str, str], _OutputQueue] = {}
        self._broken: set[tuple[str, str]] = set()
        self._stopped: set[str] = set()
        self.dropped = 0
        self._in_use: dict[tuple[str, str], None] = {}
        self._window_set = False
        self._inputs: InputQueues | None = None
        for one, other in scot.links():
            for a, b in _both(one, other):
                self._queues[str(a), str(b)] = _OutputQueue()
                self.brokers[str(a)].handle(0, None, NeighbourUp(str(b), b))

    # What a run is made of.

    def send(self, at: int, name: str, broker: str, message: Message) -> None:
        """Let the client ``name`` send a message to a broker, which gets it at ``at``."""
        source = client(name)
        self.call(at, lambda: self._arrive(broker, source, message))

    def call(self, at: int, action: Callable[[], None]) -> None:
        """Do something at ``at``."""
        # Numbered, so that what falls together happens in the order in which it was scheduled.
        self._scheduled += 1
        heapq.heappush(self._agenda, (max(at, self.now), self._scheduled, action))

    def run_until_idle(self) -> None:
        """Let everything happen, until no message is left anywhere."""
        agenda = self._agenda
        while agenda:
            self.now, _, action = heapq.heappop(agenda)
            action()

    # What comes and fails.

    def grow(self, scot: Scot) -> None:
        """Add the brokers and links that a larger overlay has besides, now.

        Brokers with new neighbours are told first; then links come up, over which brokers tell what
        stands. Nothing may have failed.

        Raises `SimulationError` for an overlay in which a broker or link of this one is missing.
        """
        labels = {str(label): label for label in scot.brokers}
        pairs = [(str(a), str(b)) for one, other in scot.links() for a, b in _both(one, other)]
        gone = [*sorted({*self.brokers} - labels.keys())]
        gone += [f"{one} - {other}" for one, other in sorted({*self._queues} - {*pairs})]
        if gone:
            raise SimulationError(f"the larger overlay lacks {gone[0]}, expected that nothing goes")
        for name, broker in self.brokers.items():
            wide = scot.position(labels[name])
            if wide != broker.position:
                grown = OverlayGrown(wide.clusters, tuple(sorted(wide.primary)))
                self._carry_out(name, broker.handle(self.now, None, grown))
        for name in [name for name in labels if name not in self.brokers]:
            self.brokers[name] = ScotBroker(
                name, scot.position(labels[name]), self.settings, catalogue=self.catalogue
            )
            self._places[name] = len(self._places)
            self.taken[name] = self._free_at[name] = self._uplinks[name] = 0
        added = [ends for ends in pairs if ends not in self._queues]
        self._queues.update((ends, _OutputQueue()) for ends in added)
        for name, other in added:
            up = NeighbourUp(other, labels[other])
            self._carry_out(name, self.brokers[name].handle(self.now, None, up))

    def break_link(self, one: str, other: str) -> None:
        """Let a link work no more, now; what is under way on it is dropped, and both ends know."""
        for name, end in _both(one, other):
            self._broken.add((name, end))
            if name not in self._stopped:
                effects = self.brokers[name].handle(self.now, None, NeighbourDown(end))
                self._carry_out(name, effects)

    def stop_broker(self, name: str) -> None:
        """Let a broker and all its links work no more, now; its clients publish in vain."""
        self._stopped.add(name)
        for one, other in self._queues:
            if one == name and (one, other) not in self._broken:
                self.break_link(one, other)

    # What can be seen.

    def waiting(self) -> int:
        """Messages in all output queues."""
        for queue in self._queues.values():
            queue.expire(self.now)
        return sum(len(queue.leaving) for queue in self._queues.values())

    def links(self) -> Iterable[tuple[str, str]]:
        """All links in either direction, by the names of their ends."""
        return self._queues.keys()

    def added(self, message: BetweenBrokers) -> int:
        """What a message takes of a link and an uplink beyond the usual, microseconds."""
        bids = len(message.bids) if isinstance(message, BidNotification) else 0
        return self.times.bid_gap * bids

    # How it happens.

    def _cross(self, one: str, other: str, message: BetweenBrokers) -> None:
        if (one, other) in self._broken:
            self.dropped += 1
        else:
            self._arrive(other, neighbour(one), message)

    def _arrive(self, broker: str, source: Hop, message: Message) -> None:
        done = max(self._free_at[broker], self.now) + self._work(broker, message)
        self._free_at[broker] = done
        arrived = self.now
        self.call(done, lambda: self._handle(arrived, broker, source, message))

    def _work(self, broker: str, message: Message) -> int:
        draw = 7919 * self._places[broker] + self.taken[broker]
        self.taken[broker] += 1
        thousandths = int(self._spread[draw % len(self._spread)])
        return self.service.of(broker, message) * thousandths // 1_000

    def _handle(self, arrived: int, broker: str, source: Hop, message: Message) -> None:
        if broker in self._stopped:
            self.dropped += 1
            return
        effects = self.brokers[broker].handle(self.now, source, message)
        self._observer.handled(self.now, arrived, broker, source, message, effects)
        self._carry_out(broker, effects)

    def _carry_out(self, broker: str, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Send(name, sent):
                    self._transmit(broker, name, sent)
                case Deliver():
                    self._observer.delivered(self.now, effect)
                case Refuse():
                    self._observer.refused(self.now, broker, effect)

    def _transmit(self, one: str, other: str, message: BetweenBrokers) -> None:
        leaves = self._enqueue(one, other, message)
        self.call(leaves + self.times.latency, lambda: self._cross(one, other, message))
        if not self._window_set:
            self._window_set = True
            self.call((self.now // self.window + 1) * self.window, self._end_window)

    def _enqueue(self, one: str, other: str, message: BetweenBrokers) -> int:
        queue = self._queues[one, other]
        added = self.added(message)
        self._uplinks[one] = max(self._uplinks[one], self.now) + self.times.uplink_gap + added
        begins = max(queue.free_at, self.now)
        leaves = max(begins + self.times.gap + added, self._uplinks[one])
        queue.append(leaves)
        self._in_use[one, other] = None
        return leaves

    def _waiting(self) -> dict[str, InputQueue]:
        if not self.settings.input_queues:
            return {}
        names = list(self.brokers)
        if self._inputs is None or len(self._inputs.works) != len(names):
            self._inputs = InputQueues([self.service.of(name, _PUBLISH) for name in names])
        lengths = self._inputs.at(self.now, list(self._free_at.values()), list(self.taken.values()))
        return {names[place]: told for place, told in lengths.items()}

    def _end_window(self) -> None:
        reports: dict[tuple[str, str], QueueReport] = {}
        told: dict[str, list[QueueReport]] = {}
        for ends in list(self._in_use):
            queue = self._queues[ends]
            queue.expire(self.now)
            reports[ends] = report = queue.end_window(ends[1])
            told.setdefault(ends[0], []).append(report)
            if report.length == report.entered == report.left == 0:
                del self._in_use[ends]
        tell_queues(self.brokers, self.now, told, self._waiting())
        self._observer.window_ended(self.now, reports)
        self._window_set = bool(self._in_use)
        if self._window_set:
            self.call(self.now + self.window, self._end_window)


def _both(one: T, other: T) -> tuple[tuple[T, T], tuple[T, T]]:
    """A link in either direction."""
    return (one, other), (other, one)


def tell_queues(
    brokers: Mapping[str, ScotBroker],
    now: int,
    told: Mapping[str, Sequence[QueueReport]],
    waiting: Mapping[str, InputQueue],
) -> None:
    """Tell brokers of their queues; what they tell each other of input queues takes no time."""
    sent: list[tuple[str, Send]] = []
    for name in {**told, **waiting}:
        ended = WindowEnded(tuple(told.get(name, ())), waiting.get(name))
        effects = brokers[name].handle(now, None, ended)
        sent += [(name, effect) for effect in effects if isinstance(effect, Send)]
    for name, effect in sent:
        brokers[effect.neighbour].handle(now, neighbour(name), effect.message)
