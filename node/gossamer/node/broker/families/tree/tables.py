"""What a tree broker tells of its tables, as plain values for people and programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import Any

from gossamer.node.broker.contract.tables import ROWS, Label, filter_text, hop_text, id_text
from gossamer.protocol.brokers.core.messages import Id
from gossamer.protocol.brokers.tree import TreeBroker
from gossamer.protocol.brokers.tree.state import Link


def tables(broker: TreeBroker, label: Label) -> dict[str, Any]:
    """The tables of a broker, each cut after `ROWS` rows.

    Args:
        broker: which is not changed.
        label: names brokers for people.
    """
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
