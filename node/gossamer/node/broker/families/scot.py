"""Brokers of a structured cyclic overlay for the node around them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar

import trio
from attrs import field, frozen

from gossamer.node.broker.engine import Engine
from gossamer.node.broker.families.scot_links import SCOT_FRAMES, ScotNeighbours
from gossamer.node.broker.families.scot_settings import SCOT
from gossamer.node.broker.host import (
    ROWS,
    ClientFilters,
    Counted,
    FamilyHost,
    Label,
    filter_text,
    hop_text,
    id_text,
)
from gossamer.node.config.node import NodeConfig
from gossamer.node.errors import ConfigurationError
from gossamer.protocol.brokers.core.broker import NewIndex
from gossamer.protocol.brokers.core.messages import Id
from gossamer.protocol.brokers.scot import Position, ScotBroker, ScotSettings
from gossamer.protocol.brokers.scot.codec import CODEC
from gossamer.protocol.brokers.scot.messages import (
    Acknowledge,
    BidNotification,
    Bypass,
    Detour,
    HandBack,
    InputQueue,
    Notification,
    Numbered,
    ProxyNotification,
    Relay,
    Replica,
    Synchronise,
    WindowEnded,
)
from gossamer.protocol.brokers.scot.settings import BID


@frozen
class ScotHost(FamilyHost):
    """Brokers of a SCOT: `gossamer.protocol.brokers.scot`.

    Attributes:
        position: where the broker is.
        of: its settings.
        overlay: the factors and what else has to be the same at all brokers, in words.

    Others may take over clients while this broker does not, and the other way round: brokers are
    restarted one after another.
    """

    position: Position
    of: ScotSettings = field()
    overlay: str
    registered = SCOT
    codec = CODEC
    frames = SCOT_FRAMES
    passing = (WindowEnded, Acknowledge, InputQueue)
    counted: ClassVar[Counted] = {
        "sent": ("kind", "Messages sent to neighbours."),
        "received": ("kind", "Messages taken from neighbours."),
        "matched": ("", "Publications matched with the routing table."),
        "delivered": ("", "Publications handed to clients."),
        "duplicates": ("", "Subscriptions that had come on another link."),
        "stale": ("", "Messages about what is not known any more."),
        "kept_back": ("", "Subscriptions that were not sent on, as others covered them."),
        "detours": ("", "Copies that went around an overloaded link within the cluster."),
        "lost": ("", "Copies of publications that had no link to go on."),
        "refused": ("", "Messages that were refused."),
        "cases": ("case", "Publications with an overloaded target link, by case of Algorithm 4."),
    }

    @property
    def keeps_deliveries(self) -> bool:
        return self.of.take_over

    def described(self) -> Mapping[str, str]:
        return {"place": str(self.position.label), "overlay": self.overlay}

    def new(self, name: str, incarnation: int, new_index: NewIndex) -> ScotBroker:
        return ScotBroker(
            name,
            self.position,
            self.of,
            incarnation=incarnation,
            new_index=new_index,
            mixed=True,
        )

    def before(self, settings: dict[str, Any], path: object) -> FamilyHost:
        before = ScotSettings(**settings)
        then, now = before.routing, self.of.routing
        if then != now and BID in (then, now):
            expected = f"{then!r}, with which the tables in {path} were made"
            raise ConfigurationError("", "scot.routing", now, expected)
        # Who does not take over does not learn whether what covers others is known everywhere.
        if before.take_over != self.of.take_over and (before.covering or self.of.covering):
            expected = f"{before.take_over} until covering is off at all brokers"
            raise ConfigurationError("", "scot.take_over", self.of.take_over, expected)
        return ScotHost(self.position, before, self.overlay)

    def go_on(
        self, before: FamilyHost, dump: dict[str, Any], new_index: NewIndex, now: int
    ) -> ScotBroker:
        del now
        broker = self.load(dump, new_index)
        if before.settings()["covering"] != self.of.covering:
            broker.uncover()
        return broker

    def load(self, dump: dict[str, Any], new_index: NewIndex) -> ScotBroker:
        return ScotBroker.load(dump, self.position, self.of, new_index=new_index, mixed=True)

    def neighbours(self, nursery: trio.Nursery, engine: Callable[[], Engine]) -> ScotNeighbours:
        return ScotNeighbours(nursery, engine, self, self.of, self.position.label, self.overlay)

    def begins(self, message: Any) -> bool:
        carried = message.message if isinstance(message, Numbered) else message
        return isinstance(carried, Synchronise | Replica | HandBack)

    def carried(self, message: Any) -> Id | None:
        match message:
            case Numbered(_, inner):
                return self.carried(inner)
            case Detour(notification) | Bypass(notification) | ProxyNotification(notification):
                return notification.id
            case Relay(ProxyNotification(notification)):
                return notification.id
            case Notification(id_) | BidNotification(id_):
                return id_
        return None

    def subscriptions(self, dump: dict[str, Any]) -> int:
        return len(dump["table"])

    def sizes(self, broker: ScotBroker) -> Mapping[str, tuple[int, str]]:
        found = {
            "subscriptions": (broker.table_size, "Entries of the routing table."),
            "clients": (len(broker.clients()), "Clients attached."),
        }
        memory = broker.take_over_memory
        if memory is not None:
            own = sum(map(len, memory.unacknowledged.values()))
            replicated = sum(
                len(one)
                for kept in memory.replicas.values()
                for one in kept.unacknowledged.values()
            )
            found["unacknowledged"] = (own, "Publications that clients have not acknowledged.")
            found["kept"] = (replicated, "Those that are kept for clients of other brokers.")
            found["unsafe"] = (len(memory.copies), "Messages that are not acknowledged.")
        return found

    def clients(self, broker: ScotBroker) -> Sequence[ClientFilters]:
        wanted = {entry.id: entry.filter for entry in broker.table() if entry.hop.is_client}
        guests = _guests(broker)
        return [
            guests.get(one.name)
            or ClientFilters(
                one.name,
                {label: wanted[id_] for label, id_ in one.subscriptions.items()},
                one.advertisements,
            )
            for one in broker.clients()
        ]

    def tables(self, broker: ScotBroker, label: Callable[[str], str]) -> dict[str, Any]:
        table = sorted(broker.table(), key=lambda one: (one.hop, one.id))
        return {
            "broker": label(broker.name),
            "place": str(broker.position.label),
            "overlay": self.overlay,
            "sizes": {
                "subscriptions": len(table),
                "by last hop": dict(Counter(hop_text(one.hop, label) for one in table)),
            },
            "subscriptions": [
                {
                    "id": id_text(one.id),
                    "from": hop_text(one.hop, label),
                    "filter": filter_text(one.filter),
                    "host cluster": ", ".join(map(str, one.host)),
                }
                for one in islice(table, ROWS)
            ],
            "links": _links(broker, label),
            "replicas": list(islice(_replicas(broker), ROWS)),
        }


def _links(broker: ScotBroker, label: Label) -> list[dict[str, Any]]:
    return [
        {
            "neighbour": label(name),
            "place": str(place),
            "within": "cluster" if broker.position.is_primary(place) else "region",
            "up": name not in broker.down,
            "load": round(broker.load_of(name), 1),
        }
        for name, place in sorted(broker.neighbours().items(), key=lambda one: one[1])
    ]


def _guests(broker: ScotBroker) -> dict[str, ClientFilters]:
    """Clients that are here because their brokers are dead."""
    if broker.take_over_memory is None:
        return {}
    label, found = broker.position.label, dict[str, ClientFilters]()
    for cluster, kept in broker.take_over_memory.replicas.items():
        for name in kept.guests:
            # Of a guest of several dead brokers, its own is the one that promised it something.
            if kept.promised.get(name) or name not in found:
                asked = {one.label: one.filter for one in kept.promised.get(name, {}).values()}
                home = str(label._replace(cluster=cluster))
                found[name] = ClientFilters(name, asked, {}, home)
    return found


def _replicas(broker: ScotBroker) -> list[dict[str, Any]]:
    if broker.take_over_memory is None:
        return []
    region = broker.position.label.region
    return [
        {
            "place": f"B({region},{cluster})",
            "client": name,
            "subscriptions": len(kept.promised.get(name, {})),
            "unacknowledged": len(kept.unacknowledged.get(name, {})),
            "here": name in kept.guests,
        }
        for cluster, kept in sorted(broker.take_over_memory.replicas.items())
        for name in kept.clients
    ]


def host_of(config: NodeConfig) -> ScotHost:
    """A SCOT broker as it is configured; raises `ConfigError` for one that has no place."""
    section = config.section("scot")
    return ScotHost(section.position(), section.settings(), section.overlay)
