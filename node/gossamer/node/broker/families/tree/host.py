"""Tree brokers for the node around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

import trio
from attrs import field, frozen

from gossamer.node.broker.contract.host import NEVER, ClientFilters, Counted, FamilyHost
from gossamer.node.broker.contract.tables import Label
from gossamer.node.broker.engine.engine import Engine
from gossamer.node.broker.families.tree.links import TreeNeighbours
from gossamer.node.broker.families.tree.settings import TREE
from gossamer.node.broker.families.tree.tables import tables
from gossamer.node.config.node import NodeConfig
from gossamer.protocol.brokers.core.messages import Id
from gossamer.protocol.brokers.core.routing import NewIndex
from gossamer.protocol.brokers.tree import TreeBroker, TreeSettings
from gossamer.protocol.brokers.tree.codec import CODEC
from gossamer.protocol.brokers.tree.messages import Frame, Publication, Synchronise

_MICROSECONDS: Final = 1_000_000

_SIZES: Final[Mapping[str, str]] = {
    "subscriptions": "Entries of the subscription table.",
    "advertisements": "Entries of the advertisement table.",
    "sent": "Subscriptions that stand at neighbours.",
    "preserved": "Those of them that are kept for nobody.",
    "statistics": "Publications in the statistics.",
    "clients": "Clients attached.",
}


@frozen
class TreeHost(FamilyHost):
    """Brokers that form a tree: `gossamer.protocol.brokers.tree`."""

    of: TreeSettings = field()
    registered = TREE
    codec = CODEC
    cyclic = False
    counted: ClassVar[Counted] = {
        "sent": ("kind", "Messages sent to neighbours."),
        "received": ("kind", "Messages taken from neighbours."),
        "triggered_sent": ("kind", "Messages sent that nobody asked for."),
        "triggered_received": ("kind", "Messages taken that nobody asked for."),
        "triggered_onward": ("", "Subscriptions sent on that nobody had asked for just then."),
        "examined": ("", "Subscriptions looked at again since one that quenched them goes."),
        "delivered": ("", "Publications handed to clients."),
        "false_positives": ("", "Publications that came and that nobody here wanted."),
        "duplicates": ("", "Frames and publications that came again."),
        "stale": ("", "Messages about what is not known any more."),
        "gaps": ("", "Times that frames were found missing."),
        "cycles": ("", "Advertisements that came back on another link."),
        "refused": ("", "Messages of clients that were refused."),
        "held": ("", "Unsubscriptions held back under congestion."),
        "preserved": ("", "Times that a subscription was kept for nobody."),
        "dropped": ("", "Times that such a one was given up."),
        "lost": ("", "Publications retained for a neighbour that had no room."),
    }

    @property
    def congested_queue(self) -> int:
        return self.of.congested_queue

    def left(self, broker: TreeBroker) -> int:
        most = self.of.retained_publications
        kept = (len(link.retained) for link in broker.links())
        return most - max(kept, default=0) if most else NEVER

    def described(self) -> Mapping[str, str]:
        return {"covering": self.of.covering}

    def new(self, name: str, incarnation: int, new_index: NewIndex) -> TreeBroker:
        return TreeBroker(name, self.of, incarnation=incarnation, new_index=new_index)

    def load(self, dump: dict[str, Any], new_index: NewIndex) -> TreeBroker:
        return TreeBroker.load(dump, self.of, new_index=new_index)

    def before(self, settings: dict[str, Any], path: object) -> FamilyHost:
        del path
        return TreeHost(TreeSettings(**settings))

    def go_on(
        self, before: FamilyHost, dump: dict[str, Any], new_index: NewIndex, now: int
    ) -> TreeBroker:
        broker = self.load(dump, new_index)
        if before.settings()["covering"] != self.of.covering:
            broker.cover_anew(now)
        return broker

    def neighbours(self, nursery: trio.Nursery, engine: Callable[[], Engine]) -> TreeNeighbours:
        return TreeNeighbours(nursery, engine, self)

    def begins(self, message: Frame) -> bool:
        return isinstance(message.message, Synchronise)

    def carried(self, message: Any) -> Id | None:
        carried = message.message if isinstance(message, Frame) else message
        return carried.id if isinstance(carried, Publication) else None

    def subscriptions(self, dump: dict[str, Any]) -> int:
        return len(dump["subscriptions"])

    def sizes(self, broker: TreeBroker) -> Mapping[str, tuple[int, str]]:
        sizes = broker.sizes()
        return {name: (getattr(sizes, name), text) for name, text in _SIZES.items()}

    def clients(self, broker: TreeBroker) -> Sequence[ClientFilters]:
        wanted = {entry.id: entry.filter for entry in broker.subscriptions()}
        offered = {offer.id: offer.filter for offer in broker.advertisements()}
        return [
            ClientFilters(
                one.name,
                {label: wanted[id_] for label, id_ in one.subscriptions.items()},
                {label: offered[id_] for label, id_ in one.advertisements.items()},
            )
            for one in broker.clients()
        ]

    def tables(self, broker: TreeBroker, label: Label) -> dict[str, Any]:
        return tables(broker, label)


def host_of(config: NodeConfig) -> TreeHost:
    """A tree broker as it is configured."""
    broker = config.broker
    return TreeHost(
        TreeSettings(
            covering=broker.covering,
            critical_rule=broker.critical_rule,
            displaced=broker.displaced,
            retained_publications=broker.retained_publications,
            congested_queue=broker.congested_queue,
            drop_unpaid=broker.drop_unpaid,
            statistics_window=int(broker.statistics_window_s * _MICROSECONDS),
            statistics_entries=broker.statistics_entries,
        )
    )
