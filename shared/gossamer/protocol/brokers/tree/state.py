"""A broker's whole memory: links, what was sent on them, counters."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping

from attrs import define, field

from gossamer.protocol.brokers.core import state as core
from gossamer.protocol.brokers.core.broker import NewIndex
from gossamer.protocol.brokers.core.messages import Hop, Id, neighbour
from gossamer.protocol.brokers.core.state import BrokerState, first_number
from gossamer.protocol.brokers.tree.advertisements import AdvertisementTable
from gossamer.protocol.brokers.tree.messages import CriticalDistance, Publication
from gossamer.protocol.brokers.tree.settings import Statistics, TreeSettings
from gossamer.protocol.brokers.tree.tables import Marks, SubscriptionTable
from gossamer.protocol.content.filters import Filter


@define(eq=False)
class Aggregate:
    """A subscription that nobody holds any more, preserved for those that it quenches.

    Attributes:
        id, filter: the subscription.
        arrivals: publications that came on the link since then and match it.
        false_positives: those of them that nobody wanted.
    """

    id: Id
    filter: Filter
    arrivals: int = 0
    false_positives: int = 0


class Sent:
    """The subscriptions that stand at a neighbour because of this broker.

    Whatever could be sent and is not, is quenched: it hangs below one that was sent and covers it.
    Hanging is remembered, not searched for again, so that taking a subscription back finds exactly
    what it quenched, even where covering cannot be decided both ways.

    Attributes:
        aggregates: what is preserved for nobody (imprecise aggregation, selective paper,
            Sec. III-B).
    """

    def __init__(self, name: str, table: SubscriptionTable, indexed: bool) -> None:
        """Nothing is sent yet.

        Args:
            name: the neighbour.
            table: whose index holds what is sent.
            indexed: whether anybody will ask what covers what.
        """
        self._name = name
        self._table = table
        self._indexed = indexed
        self._filters: dict[Id, Filter] = {}
        self._coverer: dict[Id, Id] = {}
        self._quenched: dict[Id, dict[Id, None]] = {}
        self.aggregates: dict[Id, Aggregate] = {}

    def __len__(self) -> int:
        return len(self._filters)

    def __iter__(self) -> Iterator[Id]:
        return iter(self._filters)

    def __contains__(self, id_: Id) -> bool:
        return id_ in self._filters

    def filter_of(self, id_: Id) -> Filter:
        """The filter of a subscription that was sent."""
        return self._filters[id_]

    def add(self, id_: Id, wanted: Filter) -> None:
        """Remember that a subscription was sent."""
        self._filters[id_] = wanted
        if self._indexed:
            self._table.add_sent(self._name, id_, wanted)

    def remove(self, id_: Id) -> list[Id]:
        """Forget a subscription that was sent; returns what it quenched, which now hangs free."""
        wanted = self._filters.pop(id_)
        aggregate = self.aggregates.pop(id_, None)
        if self._indexed:
            self._table.remove_sent(self._name, id_, wanted, aggregate is not None)
        free = list(self._quenched.pop(id_, ()))
        for covered in free:
            del self._coverer[covered]
        return free

    def clear(self) -> None:
        """Forget everything."""
        for id_ in list(self._filters):
            self.remove(id_)

    def preserve(self, id_: Id) -> None:
        """From now on a subscription that was sent is kept for nobody."""
        wanted = self._filters[id_]
        self.aggregates[id_] = Aggregate(id_, wanted)
        if self._indexed:
            self._table.preserve(wanted)

    def coverer(self, wanted: Filter, besides: Id | None = None) -> Id | None:
        """What was sent and covers a filter, or None; rather not what is kept for nobody."""
        if not self._indexed:
            return None
        found = (id_ for id_ in self._table.sent_covering(self._name, wanted) if id_ != besides)
        return min(found, key=lambda id_: (id_ in self.aggregates, id_), default=None)

    def covered_by(self, wanted: Filter) -> list[Id]:
        """What was sent and a filter covers, in the order of identifiers."""
        return sorted(self._table.sent_covered_by(self._name, wanted)) if self._indexed else []

    def hang(self, id_: Id, coverer: Id) -> None:
        """Remember what quenches a subscription."""
        self._coverer[id_] = coverer
        self._quenched.setdefault(coverer, {})[id_] = None

    def quenched_by(self, id_: Id) -> list[Id]:
        """What a subscription that was sent quenches."""
        return list(self._quenched.get(id_, ()))

    def free(self, id_: Id) -> Id | None:
        """A subscription is not to be sent any more; returns what quenched it, or None."""
        coverer = self._coverer.pop(id_, None)
        if coverer is not None:
            del self._quenched[coverer][id_]
            if not self._quenched[coverer]:
                del self._quenched[coverer]
        return coverer

    def aggregates_matching(self, values: Mapping[str, object]) -> list[Aggregate]:
        """The aggregates that match a publication."""
        if not self.aggregates or not self._indexed:
            return []
        found = sorted(self._table.preserved_matching(self._name, values))
        return [self.aggregates[id_] for id_ in found if id_ in self.aggregates]


NOT_SENT = -1
"""Session and number of a publication that waits for its link."""


@define(eq=False)
class Retained:
    """A publication that a neighbour has not acknowledged, and its place on the link.

    Its advertisement is kept with it, because it may be taken back before that.
    """

    publication: Publication
    advertised: Filter
    session: int = NOT_SENT
    number: int = NOT_SENT


@define(eq=False)
class Link:
    """What a broker knows of a neighbour.

    Attributes:
        name: the neighbour.
        sent: subscriptions that stand there.
        up: whether frames can be sent.
        out_session, out_number: of the last frame sent.
        in_session, in_number: of the last frame taken.
        retained: publications that are not acknowledged.
        unacknowledged: publications taken since the last acknowledgement.
        batch: the session and number of the last frame of a batch that the neighbour has not
            acknowledged, and when it was sent (`covering`).
        window: subscriptions of the next batch; 0: as many as the settings say.
    """

    name: str
    sent: Sent
    up: bool = False
    out_session: int = 0
    out_number: int = 0
    in_session: int = 0
    in_number: int = 0
    retained: deque[Retained] = field(factory=deque)
    unacknowledged: int = 0
    batch: tuple[int, int, int] | None = None
    window: int = 0

    @property
    def hop(self) -> Hop:
        """The neighbour as a hop."""
        return neighbour(self.name)


# What a broker counts, for the claims of both pruning papers (Sec. V).


@define
class Counters(core.Counters):
    """Since the broker began; hops are counted where they begin.

    What is packed counts by itself as well. Duplicates are frames and publications, and lost are
    publications that were retained for a neighbour and had no room.

    Attributes:
        triggered_sent, triggered_received: subscriptions and unsubscriptions that nobody asked
            for, by kind; a packed message counts once if it holds any.
        triggered_onward: subscriptions that were sent on although nobody asked for them just then,
            each once, to however many neighbours, and those of one step as one where they are
            packed; what is repeated for a link that comes up is not among them.
        examined: subscriptions that were quenched by one that goes, looked at again for what
            covers them now, or for how many are displaced.
        false_positives: publications that a neighbour sent and that nobody here wanted.
        gaps: times that frames were found missing.
        cycles: advertisements refused because they came back on another link.
        held: unsubscriptions held back under congestion.
        preserved: times that a link kept a subscription for nobody.
        dropped: times that such a one was given up.
    """

    triggered_sent: dict[str, int] = field(factory=dict)
    triggered_received: dict[str, int] = field(factory=dict)
    triggered_onward: int = 0
    examined: int = 0
    false_positives: int = 0
    gaps: int = 0
    cycles: int = 0
    held: int = 0
    preserved: int = 0
    dropped: int = 0


@define
class TableSizes:
    """Entries of a broker's tables.

    Attributes:
        subscriptions: of the routing table (the papers' "routing table size").
        advertisements: of the advertisement table.
        sent: subscriptions that stand at neighbours because of this broker.
        preserved: those of them that are kept for nobody.
        statistics: publications in the statistics.
        clients: attached.
    """

    subscriptions: int
    advertisements: int
    sent: int
    preserved: int
    statistics: int
    clients: int


@define(eq=False, kw_only=True)
class State(BrokerState):
    """Tables, links and whatever else a tree broker remembers.

    Attributes:
        settings: which do not change.
        marks: of neighbours, in the index that both tables share.
        last_publications: number of the last publication from each broker; along a tree of first-in
            first-out links those of one publisher host broker only grow.
        queue: length of the input queue as the host last said.
        held: unsubscriptions that wait for congestion to subside, in order, by subscription.
    """

    settings: TreeSettings
    marks: Marks
    subscriptions: SubscriptionTable
    advertisements: AdvertisementTable
    statistics: Statistics
    links: dict[str, Link] = field(factory=dict)
    held: dict[Id, tuple[CriticalDistance, ...]] = field(factory=dict)
    counters: Counters = field(factory=Counters)
    last_publications: dict[str, int] = field(factory=dict)
    queue: int = 0

    @classmethod
    def empty(
        cls, name: str, settings: TreeSettings, new_index: NewIndex, incarnation: int
    ) -> State:
        """The memory of a broker that has seen nothing."""
        index, marks = new_index(), Marks()
        return cls(
            name=name,
            settings=settings,
            next_number=first_number(incarnation),
            marks=marks,
            subscriptions=SubscriptionTable(index, marks),
            advertisements=AdvertisementTable(index, marks),
            statistics=Statistics(settings.statistics_window, settings.statistics_entries),
        )

    @property
    def congested(self) -> bool:
        """Whether the input queue is longer than the settings allow."""
        return self.queue > self.settings.congested_queue

    def links_in_order(self) -> list[Link]:
        """All links, by name."""
        return [self.links[name] for name in sorted(self.links)]

    def new_link(self, name: str) -> Link:
        """A link to a neighbour that was unknown; its sessions begin after all earlier ones."""
        self.next_number += 1
        self.marks.assign(name)
        link = Link(name, Sent(name, self.subscriptions, self.settings.rules.quench))
        link.out_session = self.next_number
        self.links[name] = link
        return link

    def forget_link(self, link: Link) -> None:
        """A neighbour will not come back, and nothing that came from it is left."""
        link.sent.clear()
        self.marks.forget(link.name)
        del self.links[link.name]

    def sizes(self) -> TableSizes:
        """How large the tables are."""
        links = self.links.values()
        return TableSizes(
            subscriptions=len(self.subscriptions),
            advertisements=len(self.advertisements),
            sent=sum(len(link.sent) for link in links),
            preserved=sum(len(link.sent.aggregates) for link in links),
            statistics=len(self.statistics),
            clients=len(self.clients),
        )
