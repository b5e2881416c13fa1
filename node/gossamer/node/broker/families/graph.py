"""Brokers of a general graph, whose documents go on trees, for the node around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar

from attrs import field, frozen

from gossamer.node.broker.families.graph_settings import GRAPH
from gossamer.node.broker.host import (
    ROWS,
    ClientFilters,
    Counted,
    FamilyHost,
    Label,
    filter_text,
    id_text,
)
from gossamer.node.config.node import NodeConfig
from gossamer.protocol.brokers.core.broker import NewIndex
from gossamer.protocol.brokers.core.messages import Id
from gossamer.protocol.brokers.graph.broker import GraphBroker
from gossamer.protocol.brokers.graph.codec import CODEC
from gossamer.protocol.brokers.graph.messages import (
    Directive,
    Document,
    NeighbourUp,
    Record,
    Summary,
)
from gossamer.protocol.brokers.graph.settings import GraphSettings
from gossamer.protocol.brokers.graph.state import Routes


@frozen
class GraphHost(FamilyHost):
    """Brokers of a general graph: `gossamer.protocol.brokers.graph`."""

    of: GraphSettings = field()
    registered = GRAPH
    codec = CODEC
    tables_of: ClassVar[Mapping[str, str]] = {
        "subscriptions": "Subscriptions of the clients of all brokers.",
        "advertisements": "Advertisements of clients.",
        "brokers": "Brokers that are known.",
        "versions": "Versions of trees that are held.",
        "trees": "Trees in use.",
        "in_flight": "Publications that others have not confirmed.",
        "parked": "Publications that wait for a link.",
        "clients": "Clients attached.",
    }
    counted: ClassVar[Counted] = {
        "sent": ("kind", "Messages sent to neighbours."),
        "received": ("kind", "Messages taken from neighbours."),
        "published": ("", "Publications of clients."),
        "delivered": ("", "Publications handed to clients."),
        "duplicates": ("", "Deliveries that a client had had already."),
        "reissued": ("", "Publications that set out anew around a failure."),
        "lost": ("", "Publications given up, for brokers that stayed away or for want of room."),
        "stale": ("", "Messages about what is known better."),
        "unrouted": ("", "Messages to the coordinator that had no way there."),
        "refused": ("", "Messages that were refused."),
        "takeovers": ("", "Times that this broker became coordinator."),
        "plans": ("", "Times that trees were made here."),
        "installed": ("", "Times that such trees were worth it."),
    }

    def left(self, broker: GraphBroker) -> int:
        return self.of.waiting - broker.parked

    def described(self) -> Mapping[str, str]:
        return {"overlay": "graph"}

    def new(self, name: str, incarnation: int, new_index: NewIndex) -> GraphBroker:
        return GraphBroker(name, self.of, incarnation=incarnation, new_index=new_index)

    def load(self, dump: dict[str, Any], new_index: NewIndex) -> GraphBroker:
        return GraphBroker.load(dump, self.of, new_index=new_index)

    def link_up(self, neighbour: str) -> NeighbourUp:
        return NeighbourUp(neighbour)

    def begins(self, message: Any) -> bool:
        return isinstance(message, Summary | Record | Directive)

    def carried(self, message: Any) -> Id | None:
        return message.id if isinstance(message, Document) else None

    def subscriptions(self, dump: dict[str, Any]) -> int:
        return sum(len(interests) for *_, interests in dump["records"])

    def clients(self, broker: GraphBroker) -> Sequence[ClientFilters]:
        return [
            ClientFilters(one.name, one.subscriptions, one.advertisements)
            for one in broker.clients()
        ]

    def tables(self, broker: GraphBroker, label: Callable[[str], str]) -> dict[str, Any]:
        present = broker.present
        return {
            "broker": label(broker.name),
            "coordinator": label(broker.term.broker) if broker.term.broker else "nobody yet",
            "term": broker.term.number,
            "phase": broker.phase,
            "reachable": [label(name) for name in sorted(broker.reachable)],
            "sizes": {name: size for name, (size, _) in self.sizes(broker).items()},
            "trees": [] if present is None else list(_trees(broker, present, label)),
            "subscriptions": [
                {
                    "id": id_text(interest),
                    "at": label(interest.broker),
                    "filters": [filter_text(one) for one in broker.interests().filters(interest)],
                    "tree": None if present is None else present.groups.get(interest),
                }
                for interest in islice(broker.interests(), ROWS)
            ],
            "links": [
                {
                    "neighbour": label(link.name),
                    "up": link.up,
                    "takes publications": link.ready,
                    "cost": link.cost,
                }
                for link in broker.links()
            ],
        }


def _trees(broker: GraphBroker, present: Routes, label: Label) -> Sequence[dict[str, Any]]:
    """The trees in use, by this broker's neighbours on each."""
    names = present.plan.brokers
    found = []
    for number, tree in enumerate(present.plan.trees[:ROWS]):
        beside = [
            names[above] if name == broker.name else name
            for name, above in zip(names, tree, strict=True)
            if above >= 0 and broker.name in (name, names[above])
        ]
        wanted = sum(group == number for group in present.groups.values())
        found.append(
            {
                "tree": number,
                "neighbours": [label(name) for name in sorted(beside)],
                "subscriptions": wanted,
            }
        )
    return found


def host_of(config: NodeConfig) -> GraphHost:
    """A graph broker as it is configured."""
    section = config.section("graph")
    return GraphHost(section.settings(config.broker.retained_publications))
