"""What differs between kinds of brokers, tree, graph and SCOT brokers, for the node around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, Protocol

from attrs import asdict, frozen

from gossamer.node.broker.families.tables import tables
from gossamer.node.config.broker import BROKERS
from gossamer.node.errors import ConfigurationError
from gossamer.protocol.brokers.core.index import NewIndex
from gossamer.protocol.brokers.core.messages import Restarted
from gossamer.protocol.brokers.tree import Broker, BrokerSettings, Hop, Id
from gossamer.protocol.brokers.tree.codec import plain_message, read_message
from gossamer.protocol.content.filters import Filter


class Machine(Protocol):
    """A broker of any kind, as the engine drives it."""

    @property
    def name(self) -> str:
        """The broker's name."""
        ...

    @property
    def next_id(self) -> Id:
        """The identifier that the next thing of a client here gets."""
        ...

    @property
    def counters(self) -> Any:
        """What happened so far."""
        ...

    def handle(self, now: int, source: Hop | None, message: Any) -> list[Any]:
        """Take a message, and say what is to happen because of it."""
        ...

    def dump(self) -> dict[str, object]:
        """Everything that it remembers, as plain data."""
        ...


@frozen
class Standing:
    """What a client has asked for and announced, by its labels.

    Attributes:
        home: where its broker is, which is dead; "" for a client of this one.
    """

    client: str
    subscriptions: Mapping[str, Filter]
    advertisements: Mapping[str, Filter]
    home: str = ""


Counted = Mapping[str, tuple[str, str]]
"""By field of the counters: the label, if any, and what is counted."""


class Kind(Protocol):
    """A kind of brokers, with its settings.

    Attributes:
        schema: what such brokers say where peers tell the schema of their events, so that nobody
            takes another for its own.
        cyclic: whether links form cycles.
        keeps: whether the broker wants to know what its clients have taken.
        congested_queue: messages above which a broker is told that it is congested.
        counted: its counters, for Prometheus.
    """

    schema: ClassVar[str]
    cyclic: ClassVar[bool]
    counted: ClassVar[Counted]

    @property
    def keeps(self) -> bool: ...

    @property
    def congested_queue(self) -> int: ...

    def settings(self) -> dict[str, Any]:
        """The settings as plain data."""
        ...

    def new(self, name: str, incarnation: int, new_index: NewIndex) -> Machine:
        """A broker that has seen nothing."""
        ...

    def before(self, settings: dict[str, Any], path: object) -> Kind:
        """The same kind with settings that were stored.

        Raises:
            ConfigurationError: tables that were made with those cannot go on with these.
        """
        ...

    def load(self, dump: dict[str, Any], new_index: NewIndex) -> Machine:
        """The broker that was dumped; raises `DumpError`."""
        ...

    def plain_message(self, message: Any) -> list[object]:
        """Whatever the broker takes, as plain data."""
        ...

    def read_message(self, data: object) -> Any:
        """What `plain_message` made plain data of."""
        ...

    def restarted(self) -> object:
        """What the broker is told first."""
        ...

    def task(self, effect: Any) -> Callable[[], Any] | None:
        """What an effect wants to be worked out in a thread; the broker is told the result."""
        ...

    def subscriptions(self, dump: dict[str, Any]) -> int:
        """Entries of the subscription table in a dump."""
        ...

    def sizes(self, broker: Any) -> Mapping[str, tuple[int, str]]:
        """Entries of tables by name, and what each holds."""
        ...

    def clients(self, broker: Any) -> Sequence[Standing]:
        """What the attached clients ask for and announce."""
        ...

    def tables(self, broker: Any, label: Callable[[str], str]) -> dict[str, Any]:
        """The tables as plain values."""
        ...


_SIZES: Final[Mapping[str, str]] = {
    "subscriptions": "Entries of the subscription table.",
    "advertisements": "Entries of the advertisement table.",
    "sent": "Subscriptions that stand at neighbours.",
    "preserved": "Those of them that are kept for nobody.",
    "statistics": "Publications in the statistics.",
    "clients": "Clients attached.",
}


@frozen
class TreeKind:
    """Brokers that form a tree: `gossamer.protocol.brokers.tree`."""

    of: BrokerSettings
    schema: ClassVar[str] = BROKERS
    cyclic: ClassVar[bool] = False
    keeps: ClassVar[bool] = False
    counted: ClassVar[Counted] = {
        "sent": ("kind", "Messages sent to neighbours."),
        "received": ("kind", "Messages taken from neighbours."),
        "triggered_sent": ("kind", "Messages sent that nobody asked for."),
        "triggered_received": ("kind", "Messages taken that nobody asked for."),
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

    def settings(self) -> dict[str, Any]:
        return asdict(self.of, filter=lambda field, _: field.init)

    def new(self, name: str, incarnation: int, new_index: NewIndex) -> Broker:
        return Broker(name, self.of, incarnation=incarnation, new_index=new_index)

    def before(self, settings: dict[str, Any], path: object) -> Kind:
        before = BrokerSettings(**settings)
        if before.covering != self.of.covering:
            expected = f"{before.covering!r}, with which the tables in {path} were made"
            raise ConfigurationError("", "broker.covering", self.of.covering, expected)
        return TreeKind(before)

    def load(self, dump: dict[str, Any], new_index: NewIndex) -> Broker:
        return Broker.load(dump, self.of, new_index=new_index)

    def plain_message(self, message: Any) -> list[object]:
        return plain_message(message)

    def read_message(self, data: object) -> Any:
        return read_message(data)

    def restarted(self) -> Restarted:
        return Restarted()

    def task(self, effect: Any) -> None:
        del effect

    def subscriptions(self, dump: dict[str, Any]) -> int:
        return len(dump["subscriptions"])

    def sizes(self, broker: Broker) -> Mapping[str, tuple[int, str]]:
        sizes = broker.sizes()
        return {name: (getattr(sizes, name), text) for name, text in _SIZES.items()}

    def clients(self, broker: Broker) -> Sequence[Standing]:
        wanted = {entry.id: entry.filter for entry in broker.subscriptions()}
        offered = {offer.id: offer.filter for offer in broker.advertisements()}
        return [
            Standing(
                one.name,
                {label: wanted[id_] for label, id_ in one.subscriptions.items()},
                {label: offered[id_] for label, id_ in one.advertisements.items()},
            )
            for one in broker.clients()
        ]

    def tables(self, broker: Broker, label: Callable[[str], str]) -> dict[str, Any]:
        return tables(broker, label)
