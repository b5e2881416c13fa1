"""A broker's whole memory."""

from __future__ import annotations

from attrs import define, field

from gossamer.protocol.brokers.core.identifiers import Id
from gossamer.protocol.brokers.core.index import NewIndex
from gossamer.protocol.brokers.core.state import BrokerState, first_number
from gossamer.protocol.brokers.tree.memory.advertisements import AdvertisementTable
from gossamer.protocol.brokers.tree.memory.counters import Counters, TableSizes
from gossamer.protocol.brokers.tree.memory.link import Link
from gossamer.protocol.brokers.tree.memory.marks import Marks
from gossamer.protocol.brokers.tree.memory.messages import CriticalDistance
from gossamer.protocol.brokers.tree.memory.sent import Sent
from gossamer.protocol.brokers.tree.memory.settings import TreeSettings
from gossamer.protocol.brokers.tree.memory.statistics import Statistics
from gossamer.protocol.brokers.tree.memory.subscriptions import SubscriptionTable


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
