"""Brokers of a SCOT, for the node around them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar, Final

from attrs import asdict, frozen

from gossamer.node.broker.families.kinds import Counted, Kind, Standing
from gossamer.node.broker.families.tables import ROWS, Label, filter_text, hop_text, id_text
from gossamer.node.config.broker import SCOT_BROKERS
from gossamer.node.errors import ConfigurationError
from gossamer.protocol.brokers.core.index import NewIndex
from gossamer.protocol.brokers.scot import Position, ScotBroker, ScotSettings
from gossamer.protocol.brokers.scot.codec import plain_message, read_message
from gossamer.protocol.brokers.scot.memory.messages import Restarted
from gossamer.protocol.brokers.scot.memory.settings import BID

# SCOT brokers are told of their output queues in another way.
_NEVER: Final = 1 << 62


@frozen
class ScotKind:
    """Brokers of a SCOT: `gossamer.protocol.brokers.scot`.

    Attributes:
        position: where the broker is.
        of: its settings.
        overlay: the factors and what else has to be the same at all brokers, in words.
    """

    position: Position
    of: ScotSettings
    overlay: str
    schema: ClassVar[str] = SCOT_BROKERS
    cyclic: ClassVar[bool] = True
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
    def keeps(self) -> bool:
        return self.of.take_over

    @property
    def congested_queue(self) -> int:
        return _NEVER

    def settings(self) -> dict[str, Any]:
        return asdict(self.of)

    def new(self, name: str, incarnation: int, new_index: NewIndex) -> ScotBroker:
        return ScotBroker(
            name, self.position, self.of, incarnation=incarnation, new_index=new_index
        )

    def before(self, settings: dict[str, Any], path: object) -> Kind:
        before = ScotSettings(**settings)
        for field in ("routing", "take_over", "covering"):
            then, now = getattr(before, field), getattr(self.of, field)
            if then != now and (field != "routing" or BID in (then, now)):
                expected = f"{then!r}, with which the tables in {path} were made"
                raise ConfigurationError("", f"scot.{field}", now, expected)
        return ScotKind(self.position, before, self.overlay)

    def load(self, dump: dict[str, Any], new_index: NewIndex) -> ScotBroker:
        return ScotBroker.load(dump, self.position, self.of, new_index=new_index)

    def plain_message(self, message: Any) -> list[object]:
        return plain_message(message)

    def read_message(self, data: object) -> Any:
        return read_message(data)

    def restarted(self) -> Restarted:
        return Restarted()

    def task(self, effect: Any) -> None:
        del effect

    def subscriptions(self, dump: dict[str, Any]) -> int:
        return len(dump["table"])

    def sizes(self, broker: ScotBroker) -> Mapping[str, tuple[int, str]]:
        found = {
            "subscriptions": (broker.table_size, "Entries of the routing table."),
            "clients": (len(broker.clients()), "Clients attached."),
        }
        if broker.keeping is not None:
            keeping = broker.keeping
            owed = sum(map(len, keeping.owed.values()))
            kept = sum(len(one) for kept in keeping.replicas.values() for one in kept.owed.values())
            found["owed"] = (owed, "Publications that clients have not taken.")
            found["kept"] = (kept, "Those that are kept for clients of other brokers.")
            found["unsafe"] = (len(keeping.copies), "Messages that are not acknowledged.")
        return found

    def clients(self, broker: ScotBroker) -> Sequence[Standing]:
        wanted = {entry.id: entry.filter for entry in broker.table() if entry.hop.is_client}
        guests = _guests(broker)
        return [
            guests.get(one.name)
            or Standing(
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


def _guests(broker: ScotBroker) -> dict[str, Standing]:
    """Clients that are here because their brokers are dead."""
    if broker.keeping is None:
        return {}
    label = broker.position.label
    return {
        name: Standing(
            name,
            {one.label: one.filter for one in kept.promised.get(name, {}).values()},
            {},
            str(label._replace(cluster=cluster)),
        )
        for cluster, kept in broker.keeping.replicas.items()
        for name in kept.guests
    }


def _replicas(broker: ScotBroker) -> list[dict[str, Any]]:
    if broker.keeping is None:
        return []
    region = broker.position.label.region
    return [
        {
            "place": f"B({region},{cluster})",
            "client": name,
            "subscriptions": len(kept.promised.get(name, {})),
            "owed": len(kept.owed.get(name, {})),
            "here": name in kept.guests,
        }
        for cluster, kept in sorted(broker.keeping.replicas.items())
        for name in kept.clients
    ]
