"""A SCOT broker's whole memory."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from attrs import define, field, frozen

from gossamer.protocol.brokers.core.effects import Outbox
from gossamer.protocol.brokers.core.messages import Id
from gossamer.protocol.brokers.core.state import BrokerState
from gossamer.protocol.brokers.scot import messages as m
from gossamer.protocol.brokers.scot.settings import DYNAMIC, Counters, ScotSettings
from gossamer.protocol.brokers.scot.table import Entry, RoutingTable
from gossamer.protocol.brokers.scot.take_over_memory import NO_TAKE_OVER, NoTakeOver, Task
from gossamer.protocol.brokers.scot.topology import BrokerLabel, Position
from gossamer.protocol.kernel.errors import RemoteProtocolError

# Which queues are congested: the link status table (Sec. 6.3), and what goes beyond it.


@frozen
class LinkStatus:
    """An output queue as it was at the end of the last window.

    Attributes:
        length: notifications in it.
        entered, left: notifications that entered and left it in the window.
    """

    length: int = 0
    entered: int = 0
    left: int = 0

    @property
    def congestion_element(self) -> float:
        """How the queue changed: above 1 it grew, below 1 it shrank.

        Departs from the paper: one is added to both numbers. The paper wants their ratio, and 1 for
        a queue where nothing happens; without the one that would be 0 / 0.
        """
        return (1 + self.entered) / (1 + self.left)

    @property
    def load(self) -> float:
        """Length times congestion element: 0 for an empty queue.

        Departs from the paper: its Eq. 3 is lost. It names these two, a threshold of 10 and a
        window of 50 milliseconds (Sec. 7.3), and calls a queue congestion-free at length 0 and
        element 1; a product above the threshold is our reading.
        """
        return self.length * self.congestion_element


_IDLE = LinkStatus()

WAY_AROUND: Final = 2.0
"""Load of two messages more: a way around is up to two hops longer, and waits there as well."""


def own_threshold(waiting: Collection[float]) -> float:
    """The load above which a link is overloaded, by how much waits at the other ends of all links.

    A notification that leaves a link waits where it goes instead, and takes the hops of a way
    around. It gains if it would wait longer here than at the least busy neighbour and on those.
    """
    return WAY_AROUND + min(waiting, default=0.0)


@define
class LinkStatusTable:
    """The paper's LST: the status of every link, replaced window by window.

    Beyond the paper, links may be as loaded as their output queue here and the input queue at the
    other end.

    Attributes:
        threshold: load above which a link is overloaded.
        inputs: whether input queues count.
        own: whether the threshold follows from what waits at the other ends.
    """

    threshold: float
    inputs: bool = False
    own: bool = False
    _status: dict[str, LinkStatus] = field(factory=dict)
    _waiting: dict[str, LinkStatus] = field(factory=dict)
    _overloaded: set[str] = field(factory=set)

    def update(self, reports: Iterable[m.QueueReport]) -> None:
        """Take over how output queues are at the end of a window."""
        for report in reports:
            status = LinkStatus(report.length, report.entered, report.left)
            self._status[report.neighbour] = status
        self._compare()

    @property
    def any_overloaded(self) -> bool:
        """Whether some link is overloaded."""
        return bool(self._overloaded)

    def status(self, neighbour: str) -> LinkStatus:
        """The status of a link; idle if nothing is known."""
        return self._status.get(neighbour, _IDLE)

    def overloaded(self, neighbour: str) -> bool:
        """Whether the link to a neighbour is overloaded."""
        return neighbour in self._overloaded

    def load_of(self, neighbour: str) -> float:
        """The load of a link: of its output queue, and of the input queue behind it if known."""
        return self.status(neighbour).load + self._waiting.get(neighbour, _IDLE).load

    def note_input(self, neighbour: str, report: m.InputQueue) -> None:
        """Take over how long a neighbour's input queue is, if that counts."""
        if self.inputs:
            self._waiting[neighbour] = LinkStatus(report.length, report.entered, report.left)
            self._compare()

    def forget_input(self, neighbour: str) -> None:
        """A link comes up: who was started again has an empty queue, and does not say so."""
        if self._waiting.pop(neighbour, None) is not None:
            self._compare()

    def least_loaded(self, neighbours: Iterable[str]) -> str:
        """The link with the least load; of equal ones the first by name."""
        return min(neighbours, key=lambda name: (self.load_of(name), name))

    def _compare(self) -> None:
        loads = {name: self.load_of(name) for name in {**self._status, **self._waiting}}
        waiting = [self._waiting.get(name, _IDLE).load for name in loads]
        limit = own_threshold(waiting) if self.own else self.threshold
        self._overloaded = {name for name, load in loads.items() if load > limit}


class WrongNeighbourError(RemoteProtocolError):
    """A broker that is no direct neighbour came as one, or took the place of another.

    State is untouched.

    Attributes:
        name: the broker that came.
        label: where it says it is.
        reason: what is wrong with that.
    """

    def __init__(self, name: str, label: str, reason: str) -> None:
        self.name = name
        self.label = label
        self.reason = reason
        super().__init__(f"broker {name!r} at {label} {reason}")


@define(eq=False, kw_only=True)
class State(BrokerState):
    """Routing table, links and whatever else a SCOT broker remembers.

    Attributes:
        position: its place, and which brokers are its direct neighbours.
        settings: which do not change.
        labels: where each neighbour is, by name, while its link works.
        primary: names of the primary neighbours.
        secondary: names of the secondary neighbours, by cluster.
        down: neighbours whose link does not work now.
        links: the link status table.
        revision: see `ScotBroker.revision`.
        covered: subscriptions that were not sent on, as others cover them (`covering`).
        bid_hops: in an unclustered SCOT the neighbour on the way to each broker.
        bid_numbers: in an unclustered SCOT the number of the last subscription from each broker.
        behind: neighbours that may have told others what this broker missed while it was dead.
        heard: neighbours that told all that stands since the broker was started.
        take_over: has a say at the points that `NoTakeOver` names.
        waited: whether the host said that it waits for no more neighbours.
        returned: whether it may have forgotten an earlier life.
        joined: whether it came to an overlay in which others had subscribed before.
        unknown: neighbours whose link works for the first time that the broker remembers; they may
            remember an earlier one.
        not_taking_over: neighbours that said of themselves that they take over nobody's clients.
    """

    position: Position
    settings: ScotSettings
    table: RoutingTable
    links: LinkStatusTable
    revision: int = 0
    covered: set[Id] = field(factory=set)
    labels: dict[str, BrokerLabel] = field(factory=dict)
    primary: list[str] = field(factory=list)
    secondary: dict[int, str] = field(factory=dict)
    down: set[str] = field(factory=set)
    bid_hops: dict[str, str] = field(factory=dict)
    bid_numbers: dict[str, int] = field(factory=dict)
    counters: Counters = field(factory=Counters)
    behind: set[str] = field(factory=set)
    heard: set[str] = field(factory=set)
    take_over: NoTakeOver = NO_TAKE_OVER
    waited: bool = False
    returned: bool = False
    joined: bool = False
    unknown: set[str] = field(factory=set)
    not_taking_over: set[str] = field(factory=set)

    @property
    def cluster(self) -> int:
        """The broker's own cluster."""
        return self.position.label.cluster

    @property
    def complete(self) -> bool:
        """Whether all neighbours have told all that stands since the broker was started."""
        return len(self.heard) == len(self.position.primary) + self.position.clusters - 1

    @property
    def knows_all(self) -> bool:
        """Whether nothing of what happened before the broker was started is still to be told."""
        return self.complete or not (self.behind or self.has_missed)

    @property
    def has_missed(self) -> bool:
        """Whether there may be subscriptions of which neighbours that it has yet to meet know."""
        return self.returned or self.joined

    @property
    def goes_by_loads(self) -> bool:
        """Whether the loads of links decide where a notification goes now."""
        congested = self.settings.routing == DYNAMIC and self.links.any_overloaded
        return congested or bool(self.down)

    def takes_over(self, name: str) -> bool:
        """Whether this broker, or a neighbour, takes over the clients of others."""
        if name == self.name:
            return self.settings.take_over
        return name not in self.not_taking_over

    def named(self, label: BrokerLabel) -> str | None:
        """The neighbour at a place, or None."""
        return next((name for name, place in self.labels.items() if place == label), None)

    def primary_in(self, region: str) -> str | None:
        """The primary neighbour of a region, or None."""
        return next((name for name in self.primary if self.labels[name].region == region), None)

    def add_neighbour(self, name: str, label: BrokerLabel) -> None:
        """Take a broker in as a direct neighbour, by its label as a primary or a secondary one.

        Raises `WrongNeighbourError`, and leaves everything as it was, for a broker that belongs to
        neither, or at a place where another neighbour is already.
        """
        if self.labels.get(name, label) != label:
            raise WrongNeighbourError(name, str(label), f"was at {self.labels[name]} before")
        for other, known in self.labels.items():
            if known == label and other != name:
                raise WrongNeighbourError(name, str(label), f"finds broker {other!r} at its place")
        if self.position.is_primary(label):
            self.primary = sorted({*self.primary, name})
        elif self.position.is_secondary(label):
            self.secondary[label.cluster] = name
        else:
            expected = f"is no neighbour of {self.position.label}, expected {self._expected()}"
            raise WrongNeighbourError(name, str(label), expected)
        self.labels[name] = label
        self.down.discard(name)

    def forget_neighbour(self, name: str) -> None:
        """A neighbour will not come back, and another may take its place."""
        label = self.labels.pop(name)
        self.down.discard(name)
        self.heard.discard(name)
        self.behind.discard(name)
        self.not_taking_over.discard(name)
        if label.cluster == self.cluster:
            self.primary.remove(name)
        else:
            del self.secondary[label.cluster]

    def _expected(self) -> str:
        label, clusters = self.position.label, self.position.clusters
        regions = ", ".join(sorted(self.position.primary)) or "none"
        return (
            f"cluster {label.cluster} and a region of {regions}, "
            f"or region {label.region} and another cluster from 0 to {clusters - 1}"
        )


def wrong_clusters(
    kind: str, neighbour: str, found: Iterable[int], expected: str
) -> RemoteProtocolError:
    """The error of a message that names clusters which it cannot name on its link."""
    shown = ", ".join(map(str, found)) or "none"
    return RemoteProtocolError(
        f"{kind} from broker {neighbour!r} names clusters {shown}, {expected}"
    )


class ScotOutbox(Outbox[State]):
    """Collects effects, and counts them; who takes over has a say in what is sent and delivered.

    Attributes:
        task: because of which messages are sent now; None if nobody waits for their end.
        lost_before: copies that the broker had lost when that task was taken up.
    """

    __slots__ = ("lost_before", "task")

    def __init__(self, state: State, now: int) -> None:
        super().__init__(state, now)
        self.task: Task | None = None
        self.lost_before = 0

    def send(self, neighbour: str, message: m.BetweenBrokers) -> None:
        self._state.take_over.send(self._state, self, neighbour, message)

    def deliver_to(self, notification: m.Handed, entries: Iterable[Entry]) -> None:
        """Hand a notification to the clients of these subscriptions, to each client once."""
        labels: dict[str, list[str]] = {}
        for entry in sorted(entries, key=_by_id):
            labels.setdefault(entry.hop.name, []).append(entry.label)
        for name in sorted(labels):
            self._state.take_over.give(self._state, self, name, notification, tuple(labels[name]))


def _by_id(entry: Entry) -> Id:
    return entry.id
