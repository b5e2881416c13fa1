"""A SCOT broker's whole memory."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import define, field

from gossamer.protocol.brokers.core.messages import Id
from gossamer.protocol.brokers.core.state import BrokerState
from gossamer.protocol.brokers.scot.memory.congestion import LinkStatusTable
from gossamer.protocol.brokers.scot.memory.settings import DYNAMIC, Counters, ScotSettings
from gossamer.protocol.brokers.scot.memory.table import RoutingTable
from gossamer.protocol.brokers.scot.memory.take_over_hooks import NO_TAKE_OVER, NoTakeOver
from gossamer.protocol.brokers.scot.memory.topology import BrokerLabel, Position
from gossamer.protocol.kernel.errors import RemoteProtocolError


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
