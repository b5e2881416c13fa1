"""Brokers of a small SCOT that take over each other's clients, asked message by message."""

from __future__ import annotations

from gossamer.protocol.brokers.core.effects import Effect, Send
from gossamer.protocol.brokers.core.identifiers import Id, client, neighbour
from gossamer.protocol.brokers.core.messages import Attach, Subscribe
from gossamer.protocol.brokers.scot import (
    BrokerLabel,
    Factor,
    NeighbourUp,
    Scot,
    ScotBroker,
    ScotSettings,
)
from gossamer.protocol.brokers.scot.memory import messages as m
from gossamer.protocol.brokers.scot.overlay.labels import ClusterBitVector
from gossamer.protocol.content.filters import parse
from support.plain_index import PlainIndex

SCOT = Scot(Factor.path("ab"), Factor.complete(3))
CHAIN = Scot(Factor.path("abc"), Factor.complete(3))
SETTINGS = ScotSettings(routing="static", around_failures=True, take_over=True)
ADA, BACKUP, THIRD, BESIDE = client("ada"), "B(a,1)", "B(a,2)", "B(b,0)"
WANTED = parse("present(x)")


def a_broker(cluster: int = 0) -> ScotBroker:
    """A broker of region a with all its links up."""
    place = BrokerLabel("a", cluster)
    broker = ScotBroker(str(place), SCOT.position(place), SETTINGS, new_index=PlainIndex)
    for label in (*SCOT.primary_neighbours(place), *SCOT.secondary_neighbours(place)):
        broker.handle(0, None, NeighbourUp(str(label), label, synchronise=True))
    return broker


def with_ada(broker: ScotBroker) -> ScotBroker:
    """The broker with a subscriber whose subscription is acknowledged."""
    broker.handle(0, ADA, Attach())
    acknowledge(broker, broker.handle(0, ADA, Subscribe("s", WANTED)))
    return broker


def numbered(effects: list[Effect]) -> dict[tuple[str, str], int]:
    """Numbers of what was sent, by receiver and kind."""
    return {
        (one.neighbour, type(one.message.message).__name__): one.message.number
        for one in effects
        if isinstance(one, Send) and isinstance(one.message, m.Numbered)
    }


def acknowledge(broker: ScotBroker, effects: list[Effect], *, safe: bool = True) -> list[Effect]:
    """Let neighbours acknowledge all that was sent; returns what follows."""
    found: list[Effect] = []
    for (name, _), number in numbered(effects).items():
        found += broker.handle(0, neighbour(name), m.Acknowledge(number, safe))
    return found


def a_notification(number: int = 1) -> m.Notification:
    """A publication of a broker far away."""
    return m.Notification(Id("far", number), {"x": number})


def vector(cluster: int) -> ClusterBitVector:
    """The bit of a cluster."""
    return ClusterBitVector.of(cluster)


def a_backup() -> ScotBroker:
    """The backup of a broker with ada, who is owed something."""
    backup = a_broker(1)
    home = neighbour("B(a,0)")
    backup.handle(0, home, m.Numbered(1, m.Promised("ada", "s", Id("B(a,0)", 1), WANTED)))
    backup.handle(
        0, home, m.Numbered(2, m.UnacknowledgedDelivery("ada", a_notification(1), ("s",)))
    )
    return backup


def sent_on(effects: list[Effect]) -> list[tuple[str, object]]:
    """What was sent, numbered or not, with its receivers."""
    return [
        (one.neighbour, one.message.message if isinstance(one.message, m.Numbered) else one.message)
        for one in effects
        if isinstance(one, Send)
    ]


def up(broker: ScotBroker, *names: str) -> list[Effect]:
    """Let links to neighbours work; returns what follows from the last."""
    effects: list[Effect] = []
    for name in names:
        label = BrokerLabel(name[2], int(name[4]))
        effects = broker.handle(0, None, NeighbourUp(name, label, synchronise=True))
    return effects
