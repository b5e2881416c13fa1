"""Tree brokers for the node around them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar, Final

import trio
from attrs import field, frozen

from gossamer.node.broker.engine import Engine
from gossamer.node.broker.families.tree_settings import TREE
from gossamer.node.broker.host import (
    NEVER,
    ROWS,
    ClientFilters,
    Counted,
    FamilyHost,
    Label,
    filter_text,
    hop_text,
    id_text,
)
from gossamer.node.broker.links import Neighbour, Neighbours
from gossamer.node.config.node import NodeConfig
from gossamer.protocol.brokers.core.broker import NewIndex
from gossamer.protocol.brokers.core.effects import Refuse
from gossamer.protocol.brokers.core.messages import CycleError, Id
from gossamer.protocol.brokers.tree import TreeBroker, TreeSettings
from gossamer.protocol.brokers.tree.codec import CODEC
from gossamer.protocol.brokers.tree.messages import Frame, Publication, Synchronise
from gossamer.protocol.brokers.tree.state import Link

# Links of a tree broker: one that would close a cycle is refused.


class TreeNeighbours(Neighbours):
    """All neighbours of a tree broker."""

    def unfit(self, effect: Refuse) -> tuple[Neighbour, str] | None:
        """Who advertises what came another way already."""
        one = self.source_of(effect)
        if one is None or not isinstance(effect.error, CycleError):
            return None
        error: Any = effect.error
        other = self.label(error.known.name) if not error.known.is_client else "a client here"
        return one, (
            f"this link would close a cycle: what {self.label(error.advertisement.broker)} "
            f"advertises came by way of {other} already, expected brokers to form a tree"
        )


# What a tree broker tells of its tables, as plain values for people and programs.


def tables(broker: TreeBroker, label: Label) -> dict[str, Any]:
    """The tables of a broker, each cut after `ROWS` rows."""
    subscriptions = sorted(broker.subscriptions(), key=lambda one: (one.hop, one.order))
    advertisements = broker.advertisements()
    coverers = _coverers(broker.links())
    return {
        "broker": label(broker.name),
        "sizes": {
            "subscriptions": len(subscriptions),
            "advertisements": len(advertisements),
            "by last hop": dict(Counter(hop_text(one.hop, label) for one in subscriptions)),
        },
        "advertisements": [
            {
                "id": id_text(one.id),
                "from": hop_text(one.hop, label),
                "filter": filter_text(one.filter),
            }
            for one in islice(advertisements, ROWS)
        ],
        "subscriptions": [
            {
                "id": id_text(one.id),
                "from": hop_text(one.hop, label),
                "filter": filter_text(one.filter),
                "held back": one.held,
                "quenched": [
                    f"at {label(at)} by {id_text(by)}" for at, by in coverers.get(one.id, ())
                ],
            }
            for one in islice(subscriptions, ROWS)
        ],
        "links": [_link(link, label) for link in broker.links()],
        "aggregates": list(islice(_aggregates(broker.links(), label), ROWS)),
    }


def _link(link: Link, label: Label) -> dict[str, Any]:
    return {
        "neighbour": label(link.name),
        "up": link.up,
        "sent": len(link.sent),
        "quenched": sum(len(link.sent.quenched_by(id_)) for id_ in link.sent),
        "kept for nobody": len(link.sent.aggregates),
        "publications not acknowledged": len(link.retained),
    }


def _aggregates(links: Iterable[Link], label: Label) -> Iterable[dict[str, Any]]:
    for link in links:
        for one in link.sent.aggregates.values():
            yield {
                "neighbour": label(link.name),
                "id": id_text(one.id),
                "filter": filter_text(one.filter),
                "quenches": len(link.sent.quenched_by(one.id)),
                "arrivals": one.arrivals,
                "false positives": one.false_positives,
            }


def _coverers(links: Iterable[Link]) -> dict[Id, list[tuple[str, Id]]]:
    """What quenches each subscription, and at which neighbour."""
    found: dict[Id, list[tuple[str, Id]]] = {}
    for link in links:
        for id_ in link.sent:
            for quenched in link.sent.quenched_by(id_):
                found.setdefault(quenched, []).append((link.name, id_))
    return found


_MICROSECONDS: Final = 1_000_000


@frozen
class TreeHost(FamilyHost):
    """Brokers that form a tree: `gossamer.protocol.brokers.tree`."""

    of: TreeSettings = field()
    registered = TREE
    codec = CODEC
    cyclic = False
    tables_of: ClassVar[Mapping[str, str]] = {
        "subscriptions": "Entries of the subscription table.",
        "advertisements": "Entries of the advertisement table.",
        "sent": "Subscriptions that stand at neighbours.",
        "preserved": "Those of them that are kept for nobody.",
        "statistics": "Publications in the statistics.",
        "clients": "Clients attached.",
    }
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
