"""A broker of each family that has a client ada and a neighbour C, and what others send it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from attrs import frozen

from gossamer.protocol.brokers import scot
from gossamer.protocol.brokers.core import messages as m
from gossamer.protocol.brokers.core.messages import Id, client
from gossamer.protocol.brokers.graph import messages as g
from gossamer.protocol.brokers.graph.broker import GraphBroker
from gossamer.protocol.brokers.graph.settings import GraphSettings
from gossamer.protocol.brokers.scot.messages import Unsubscription, WindowEnded
from gossamer.protocol.brokers.scot.topology import Position
from gossamer.protocol.brokers.tree import TreeBroker, TreeSettings
from gossamer.protocol.brokers.tree.messages import Frame, SynchroniseRequest
from support.flooding import Flooded, FloodingBroker
from support.plain_index import PlainIndex

TREE = TreeSettings(retained_publications=5)
TAKING_OVER = scot.ScotSettings(routing="static", around_failures=True, take_over=True)
GRAPH = GraphSettings(probability=1.0)
POSITION = Position(scot.BrokerLabel("R", 0), 2, frozenset({"S"}))
OTHER = Id("X", 1)


@frozen
class Family:
    """How brokers named A are made and loaded, and what neighbours and the host send them."""

    new: Callable[[], Any]
    load: Callable[[Any], Any]
    up: Any
    from_neighbour: Any
    from_host: Any

    def broker(self, *asked: m.Attach) -> Any:
        made = self.new()
        for message in (m.Restarted(), self.up):
            made.handle(0, None, message)
        for attach in asked:
            made.handle(0, client("ada"), attach)
        return made


def family(broker: Any, *how: Any) -> Callable[[Any, Any, Any], Family]:
    """The family of a class of brokers that take these arguments, once it is said what comes."""
    new = partial(broker, "A", *how, new_index=PlainIndex)
    return partial(Family, new, lambda data: broker.load(data, *how, new_index=PlainIndex))


def scot_family(settings: scot.ScotSettings) -> Family:
    up = scot.NeighbourUp("C", scot.BrokerLabel("S", 0))
    return family(scot.ScotBroker, POSITION, settings)(up, Unsubscription(OTHER), WindowEnded(()))


FAMILIES = {
    "flooding": Family(
        *(partial(FloodingBroker, "A"), FloodingBroker.load),
        *(m.NeighbourUp("C"), Flooded(OTHER, {}), m.Restarted()),
    ),
    "tree": family(TreeBroker, TREE)(
        m.NeighbourUp("C"), Frame(1, 1, SynchroniseRequest()), m.Congestion(0)
    ),
    "SCOT": scot_family(scot.ScotSettings()),
    "SCOT that takes over": scot_family(TAKING_OVER),
    "graph": family(GraphBroker, GRAPH)(
        g.NeighbourUp("C"), g.Confirm(OTHER, 0), m.TimerFired("tick", 1)
    ),
}
