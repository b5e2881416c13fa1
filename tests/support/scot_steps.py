"""Brokers of a small SCOT that take over each other's clients, asked message by message."""

from __future__ import annotations

from typing import Any

from gossamer.protocol.brokers.core.effects import Deliver, Effect, Refuse, Send, Settled
from gossamer.protocol.brokers.core.identifiers import Id, client, neighbour
from gossamer.protocol.brokers.core.messages import Attach, NeighbourDown, Subscribe
from gossamer.protocol.brokers.scot import BrokerLabel, Factor, Scot, ScotBroker, ScotSettings
from gossamer.protocol.brokers.scot.memory import messages as m
from gossamer.protocol.brokers.scot.overlay.labels import ClusterBitVector
from gossamer.protocol.content.filters import parse
from support.plain_index import PlainIndex

HOME, BACKUP, THIRD, BESIDE = "B(a,0)", "B(a,1)", "B(a,2)", "B(b,0)"
ADA = client("ada")
SCOT = Scot(Factor.path("ab"), Factor.complete(3))
CHAIN = Scot(Factor.path("abc"), Factor.complete(3))
SETTINGS = ScotSettings(routing="static", around_failures=True, take_over=True)
WANTED = parse("present(x)")


def a_broker(cluster: int = 0) -> ScotBroker:
    broker = without_links("a", cluster)
    up(broker, f"B(b,{cluster})", *(f"B(a,{other})" for other in range(3) if other != cluster))
    return broker


def without_links(region: str, cluster: int, scot: Scot = SCOT, **more: Any) -> ScotBroker:
    place = BrokerLabel(region, cluster)
    more = {"settings": SETTINGS, "new_index": PlainIndex, **more}
    return ScotBroker(str(place), scot.position(place), **more)


def subscription(number: int = 1, broker: str = HOME, cluster: int = 0) -> m.Subscription:
    return m.Subscription(Id(broker, number), WANTED, ClusterBitVector.of(cluster))


def down(broker: ScotBroker, *names: str) -> list[Effect]:
    """Let links to neighbours work no more; returns what follows from the last."""
    return [broker.handle(0, None, NeighbourDown(name)) for name in names][-1]


def take(broker: ScotBroker, source: str, *received: m.Message) -> list[Effect]:
    """Let a broker take messages of a neighbour; returns what follows from the last."""
    return [broker.handle(0, neighbour(source), message) for message in received][-1]


def with_ada(broker: ScotBroker) -> ScotBroker:
    broker.handle(0, ADA, Attach())
    acknowledge(broker, broker.handle(0, ADA, Subscribe("s", WANTED)))
    return broker


def numbered(effects: list[Effect]) -> dict[tuple[str, str], int]:
    return {
        (one.neighbour, type(one.message.message).__name__): one.message.number
        for one in effects
        if isinstance(one, Send) and isinstance(one.message, m.Numbered)
    }


def acknowledge(broker: ScotBroker, effects: list[Effect], *, safe: bool = True) -> list[Effect]:
    found: list[Effect] = []
    for (name, _), number in numbered(effects).items():
        found += take(broker, name, m.Acknowledge(number, safe))
    return found


def a_notification(number: int = 1) -> m.Notification:
    return m.Notification(Id("far", number), {"x": number})


def a_backup() -> ScotBroker:
    """The backup of a broker with ada, who is owed something."""
    backup = a_broker(1)
    owed = m.UnacknowledgedDelivery("ada", a_notification(1), ("s",))
    promised = m.Promised("ada", "s", Id(HOME, 1), WANTED)
    take(backup, HOME, m.Numbered(1, promised), m.Numbered(2, owed))
    return backup


def handed_back(effects: list[Effect]) -> m.Numbered:
    """What a backup hands to its broker, which is back."""
    sent = (one.message for one in effects if isinstance(one, Send))
    (handed,) = (message for message in sent if isinstance(message, m.Numbered))
    return handed


def refusal(effects: list[Effect]) -> Exception:
    (refused,) = effects
    assert isinstance(refused, Refuse)
    return refused.error


def sent_on(effects: list[Effect]) -> list[tuple[str, object]]:
    """What was sent, numbered or not, with its receivers."""
    return [
        (one.neighbour, one.message.message if isinstance(one.message, m.Numbered) else one.message)
        for one in effects
        if isinstance(one, Send)
    ]


def up(broker: ScotBroker, *names: str) -> list[Effect]:
    """Let links to neighbours work; returns what follows from the last."""
    labels = {name: BrokerLabel(name[2], int(name[4])) for name in names}
    ups = (m.NeighbourUp(name, label, synchronise=True) for name, label in labels.items())
    return [broker.handle(0, None, one) for one in ups][-1]


def delivered(effects: list[Effect]) -> list[int]:
    return [one.publication.id.number for one in effects if isinstance(one, Deliver)]


def whether_safe(effects: list[Effect]) -> list[bool]:
    return [one.safe for one in effects if isinstance(one, Settled)]
