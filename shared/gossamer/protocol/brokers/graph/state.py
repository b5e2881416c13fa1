"""The whole memory of a broker of a general graph, its counters among it."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque

from attrs import define, evolve, field, frozen

from gossamer.protocol.brokers.core import state as core
from gossamer.protocol.brokers.core.effects import Outbox
from gossamer.protocol.brokers.core.messages import Id
from gossamer.protocol.brokers.core.state import BrokerState, Session, first_number
from gossamer.protocol.brokers.graph import messages as m
from gossamer.protocol.brokers.graph.messages import Term, Version
from gossamer.protocol.brokers.graph.network_view import InterestTable, TopologyMap
from gossamer.protocol.brokers.graph.settings import GraphSettings
from gossamer.protocol.content.filters import Filter


@define(eq=False)
class Routes:
    """One version as a broker uses it.

    Attributes:
        plan: as it was made.
        groups: the tree of each subscription, those included that came later.
    """

    plan: m.Plan
    groups: dict[Id, int]
    _name: str
    _ways: dict[int, dict[str, str]] = field(factory=dict)

    def way(self, group: int, broker: str) -> str | None:
        """The neighbour by which a tree leads from here to a broker; None where it does not."""
        if group not in self._ways:
            self._ways[group] = self._ways_of(group)
        return self._ways[group].get(broker)

    def as_it_is(self) -> m.Plan:
        """The plan with the subscriptions that came later."""
        return evolve(self.plan, groups=dict(sorted(self.groups.items())))

    def _ways_of(self, group: int) -> dict[str, str]:
        names = self.plan.brokers
        beside: dict[str, list[str]] = {}
        for broker, above in zip(names, self.plan.trees[group], strict=True):
            if above >= 0:
                beside.setdefault(broker, []).append(names[above])
                beside.setdefault(names[above], []).append(broker)
        ways = {other: other for other in beside.get(self._name, ())}
        queue = deque(ways)
        while queue:
            one = queue.popleft()
            for other in beside[one]:
                if other not in ways and other != self._name:
                    ways[other] = ways[one]
                    queue.append(other)
        return ways


@define(eq=False)
class Versions:
    """All versions that a broker holds.

    Attributes:
        using: that in which it publishes documents.
        oldest: those before it are forgotten.
    """

    name: str
    using: Version = m.NO_VERSION
    oldest: Version = m.NO_VERSION
    _held: dict[Version, Routes] = field(factory=dict)

    def get(self, version: Version) -> Routes | None:
        """A version, or None if it is not held."""
        return self._held.get(version)

    @property
    def present(self) -> Routes | None:
        """The version in use, None before there are trees."""
        return self._held.get(self.using)

    @property
    def latest(self) -> Version:
        """The latest version held."""
        return max(self._held, default=m.NO_VERSION)

    def all(self) -> list[Routes]:
        """Everything held, the oldest first."""
        return [self._held[version] for version in sorted(self._held)]

    def hold(self, plan: m.Plan) -> None:
        """Hold a version from now on; of one that is held, take over what is new."""
        held = self._held.get(plan.version)
        if held is None:
            self._held[plan.version] = Routes(plan, dict(plan.groups), self.name)
        else:
            held.groups.update(plan.groups)

    def forget_before(self, version: Version) -> None:
        """Forget versions before one, but never that in use or a later one."""
        self.oldest = max(self.oldest, version)
        for one in [one for one in self._held if one < min(version, self.using)]:
            del self._held[one]


@define
class Counters(core.Counters):
    """Since the broker began.

    Duplicates are deliveries that were not made because the client had the document already; lost
    are documents that were given up: for brokers that stay away, or for want of room.

    Attributes:
        published: documents of its clients.
        reissued: documents that set out anew because a link or a tree had gone.
        unrouted: messages to the coordinator that had no way there.
        takeovers: times that this broker became coordinator.
        plans: trees made here; installed: of these, how many were worth it.
    """

    published: int = 0
    reissued: int = 0
    unrouted: int = 0
    takeovers: int = 0
    plans: int = 0
    installed: int = 0


@frozen
class TableSizes:
    """How large the tables of a broker are.

    Attributes:
        subscriptions: of all brokers.
        advertisements: of its clients.
        brokers: that are known.
        versions: of trees that are held; trees: in the version in use.
        in_flight: documents that are not confirmed; parked: that wait.
        clients: attached.
    """

    subscriptions: int
    advertisements: int
    brokers: int
    versions: int
    trees: int
    in_flight: int
    parked: int
    clients: int


@define(eq=False)
class GraphSession(Session):
    """An attached client, with its filters and advertisements by its own labels.

    Attributes:
        interest: its subscription, as all brokers know it.
    """

    interest: Id = field(kw_only=True)

    def labels(self, wanted: Filter) -> list[str]:
        """What the client calls a filter, which may be several things."""
        return [label for label, one in self.subscriptions.items() if one == wanted]


@define(eq=False)
class Link:
    """A link to a neighbour.

    Attributes:
        cost: of a document of size 1 there.
        up: whether it works.
        ready: whether the neighbour knows as much as this broker, so that it can take documents.
    """

    name: str
    cost: float
    up: bool = True
    ready: bool = False


@define(eq=False)
class InFlight:
    """A document that is not confirmed yet by all that it was sent to.

    Attributes:
        source: the neighbour that it came from, which gets the confirmation; None where this
            broker answers for it.
        pending: by neighbour, the brokers behind it that the document is for.
    """

    document: m.Document
    source: str | None
    pending: dict[str, frozenset[str]] = field(factory=dict)


@define(eq=False)
class Parked:
    """A document that waits for a link, or for other trees.

    Attributes:
        hop: the neighbour that it is for; "" where there were no trees yet.
        targets: the brokers that it is for; None for all that match.
    """

    document: m.Document
    hop: str
    targets: frozenset[str] | None


IDLE, PLANNING, PREPARING, SWITCHING = "idle", "planning", "preparing", "switching"


@define(eq=False)
class Coordination:
    """What the coordinator knows besides; other brokers have none.

    Attributes:
        phase: `PLANNING` while its host makes trees, `PREPARING` until all brokers hold them,
            `SWITCHING` until all use them and no document is under way on earlier ones.
        version: that these are about.
        question: number of the last `coordinator.MakePlan`.
        forced: whether its answer is installed whatever it saves.
        planned_at: when that was, in microseconds.
        reports: the last of each broker.
        samples: by identifier of the document, in the order in which they came.
    """

    term: Term
    phase: str = IDLE
    version: Version = m.NO_VERSION
    question: int = 0
    forced: bool = False
    planned_at: int | None = None
    reports: dict[str, m.Report] = field(factory=dict)
    samples: OrderedDict[Id, m.Sampled] = field(factory=OrderedDict)


@define(eq=False, kw_only=True)
class State(BrokerState):
    """Everything that a graph broker remembers.

    Attributes:
        settings: which do not change.
        update_number: of the last update of this broker.
        topology: who is linked to whom.
        interests: the subscriptions of all brokers.
        versions: the trees.
        term, number: of the last directive heard.
        reported: what the coordinator was last told.
        links: to neighbours.
        hosted: the clients by subscription.
        in_flight: documents that are not confirmed, by issue and group.
        under_way: how many of them are on the trees of each version.
        parked: documents that wait.
        delivered: which clients got which document, the latest.
        samples: own samples, the latest, and how many of them the coordinator was sent.
        coordination: what it knows besides as coordinator.
    """

    settings: GraphSettings
    update_number: int
    topology: TopologyMap
    interests: InterestTable
    versions: Versions
    term: Term = m.NO_TERM
    number: int = 0
    reported: m.Report | None = None
    links: dict[str, Link] = field(factory=dict)
    hosted: dict[Id, GraphSession] = field(factory=dict)
    in_flight: dict[tuple[Id, int], InFlight] = field(factory=dict)
    under_way: Counter[Version] = field(factory=Counter)
    parked: deque[Parked] = field(factory=deque)
    delivered: OrderedDict[Id, set[str]] = field(factory=OrderedDict)
    samples: deque[m.Sampled] = field(factory=deque)
    samples_sent: int = 0
    coordination: Coordination | None = None
    counters: Counters = field(factory=Counters)

    @classmethod
    def empty(
        cls, name: str, settings: GraphSettings, interests: InterestTable, incarnation: int
    ) -> State:
        """The memory of a broker that has seen nothing."""
        first = first_number(incarnation)
        topology = TopologyMap(name)
        topology.numbers[name] = first
        topology.links[name] = {}
        return cls(
            name=name,
            settings=settings,
            next_number=first,
            update_number=first,
            topology=topology,
            interests=interests,
            versions=Versions(name),
        )

    def ready(self, neighbour: str) -> bool:
        """Whether a neighbour can take documents now."""
        link = self.links.get(neighbour)
        return link is not None and link.up and link.ready

    def take_in_flight(self, in_flight: InFlight) -> None:
        """Hold a document until it is confirmed."""
        document = in_flight.document
        self.in_flight[document.issue, document.group] = in_flight
        self.under_way[document.version] += 1

    def release(self, in_flight: InFlight) -> None:
        """Hold a document no more."""
        document = in_flight.document
        del self.in_flight[document.issue, document.group]
        self.under_way[document.version] -= 1
        if not self.under_way[document.version]:
            del self.under_way[document.version]

    @property
    def oldest_in_use(self) -> Version:
        """The least version of those that documents are under way in, and that in use."""
        return min([self.versions.using, *self.under_way])


class GraphOutbox(Outbox[State]):
    """Collects effects, and counts them; nothing is sent on a link that does not work."""

    __slots__ = ()

    def send(self, neighbour: str, message: m.BetweenBrokers) -> None:
        """Send a message to a neighbour, if its link works."""
        link = self._state.links.get(neighbour)
        if link is not None and link.up:
            super().send(neighbour, message)

    def flood(self, message: m.BetweenBrokers, besides: str | None = None) -> None:
        """Send a message to all neighbours but one."""
        for name in sorted(self._state.links):
            if name != besides:
                self.send(name, message)
