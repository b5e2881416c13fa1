"""Brokers of a general graph, whose documents go on trees, for the node around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar, Final

from attrs import asdict, frozen

from gossamer.node.broker.families.kinds import Counted, Kind, Standing
from gossamer.node.broker.families.tables import ROWS, Label, filter_text, id_text
from gossamer.node.config.broker import GRAPH_BROKERS
from gossamer.protocol.brokers.core.index import NewIndex
from gossamer.protocol.brokers.core.messages import Restarted
from gossamer.protocol.brokers.graph.broker import GraphBroker
from gossamer.protocol.brokers.graph.codec import plain_message, read_message
from gossamer.protocol.brokers.graph.coordinator.planning import solve
from gossamer.protocol.brokers.graph.memory.effects import MakePlan
from gossamer.protocol.brokers.graph.memory.routes import Routes
from gossamer.protocol.brokers.graph.memory.settings import GraphSettings

# These brokers do not hold anything back when they are congested.
_NEVER: Final = 1 << 62

_SIZES: Final[Mapping[str, str]] = {
    "subscriptions": "Subscriptions of the clients of all brokers.",
    "advertisements": "Advertisements of clients.",
    "brokers": "Brokers that are known.",
    "versions": "Versions of trees that are held.",
    "trees": "Trees in use.",
    "in_flight": "Publications that others have not confirmed.",
    "parked": "Publications that wait for a link.",
    "clients": "Clients attached.",
}


@frozen
class GraphKind:
    """Brokers of a general graph: `gossamer.protocol.brokers.graph`."""

    of: GraphSettings
    schema: ClassVar[str] = GRAPH_BROKERS
    cyclic: ClassVar[bool] = True
    keeps: ClassVar[bool] = False
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

    @property
    def congested_queue(self) -> int:
        return _NEVER

    def settings(self) -> dict[str, Any]:
        return asdict(self.of)

    def new(self, name: str, incarnation: int, new_index: NewIndex) -> GraphBroker:
        return GraphBroker(name, self.of, incarnation=incarnation, new_index=new_index)

    def before(self, settings: dict[str, Any], path: object) -> Kind:
        del path
        return GraphKind(GraphSettings(**settings))

    def load(self, dump: dict[str, Any], new_index: NewIndex) -> GraphBroker:
        return GraphBroker.load(dump, self.of, new_index=new_index)

    def plain_message(self, message: Any) -> list[object]:
        return plain_message(message)

    def read_message(self, data: object) -> Any:
        return read_message(data)

    def restarted(self) -> Restarted:
        return Restarted()

    def task(self, effect: Any) -> Callable[[], Any] | None:
        if not isinstance(effect, MakePlan):
            return None
        number, problem = effect.number, effect.problem
        return lambda: solve(number, problem)

    def subscriptions(self, dump: dict[str, Any]) -> int:
        return sum(len(interests) for *_, interests in dump["records"])

    def sizes(self, broker: GraphBroker) -> Mapping[str, tuple[int, str]]:
        sizes = broker.sizes()
        return {name: (getattr(sizes, name), text) for name, text in _SIZES.items()}

    def clients(self, broker: GraphBroker) -> Sequence[Standing]:
        return [
            Standing(one.name, one.subscriptions, one.advertisements) for one in broker.clients()
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
