"""A family of brokers, with the settings of one broker, for the node around it."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, Protocol

import attrs
from attrs import asdict, frozen

from gossamer.node.broker.forked_work import Apart, in_a_process
from gossamer.node.broker.wire import OVERLAY_FRAMES
from gossamer.node.config.broker import BrokerFamily
from gossamer.node.peer.membership.services import Present
from gossamer.node.security.cluster import Membership
from gossamer.node.store.writer import StoreWriter
from gossamer.node.transport.base import Address, LocalPeer, Transport, Verify
from gossamer.node.transport.limits import Limits
from gossamer.node.transport.schema import FrameTypes
from gossamer.protocol.brokers.core.broker import NewIndex
from gossamer.protocol.brokers.core.codec import Codec
from gossamer.protocol.brokers.core.effects import Effect
from gossamer.protocol.brokers.core.messages import Hop, Id, NeighbourUp, Publish, Restarted
from gossamer.protocol.content import filters
from gossamer.protocol.content.filters import Filter

# How brokers tell of their tables: as plain values for people and programs, cut where long.


# Rows of each table that are told; how many there are is told as well.
ROWS: Final = 200
# Characters of a filter that are told.
CHARACTERS: Final = 300

Label = Callable[[str], str]
"""What people call a broker."""


def filter_text(wanted: Filter) -> str:
    """A filter for people, shortened."""
    text = filters.to_text(wanted)
    return text if len(text) <= CHARACTERS else f"{text[: CHARACTERS - 3]}..."


def hop_text(hop: Hop, label: Label) -> str:
    """A client or neighbour for people."""
    return f"client {hop.name}" if hop.is_client else f"broker {label(hop.name)}"


def id_text(id_: Id) -> str:
    """How subscriptions, advertisements and publications are named to people and clients."""
    return f"{id_.broker}:{id_.number}"


NEVER: Final = 1 << 62
"""More messages than ever wait."""


class HostedBroker(Protocol):
    """The state machine of a broker, as the engine drives it."""

    @property
    def name(self) -> str:
        """The broker's name."""

    @property
    def next_id(self) -> Id:
        """The identifier that the next thing of a client here gets."""

    @property
    def counters(self) -> Any:
        """What happened so far."""

    def handle(self, now: int, source: Hop | None, message: Any) -> list[Effect]:
        """Take a message, and say what is to happen because of it."""

    def dump(self) -> dict[str, object]:
        """Everything that it remembers, as plain data."""


@frozen
class ClientFilters:
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


class FamilyHost(ABC):
    """What a node has to know of a broker's family; one object for each broker.

    Attributes:
        registered: as what nodes know the family.
        codec: the messages of the family.
        counted: its counters, for Prometheus.
        cyclic: whether links form cycles.
        frames: what its brokers send each other.
        passing: classes of messages of which nothing has to be remembered.
        tables_of: what each of the broker's `sizes` counts, where it has them.
    """

    registered: ClassVar[BrokerFamily]
    codec: ClassVar[Codec]
    counted: ClassVar[Counted]
    cyclic: ClassVar[bool] = True
    frames: ClassVar[FrameTypes] = OVERLAY_FRAMES
    passing: ClassVar[tuple[type, ...]] = ()
    tables_of: ClassVar[Mapping[str, str]] = {}

    @property
    def keeps_deliveries(self) -> bool:
        """Whether the broker wants to know which deliveries its clients have acknowledged."""
        return False

    @property
    def congested_queue(self) -> int:
        """Messages above which the broker is told that it is congested."""
        return NEVER

    @property
    @abstractmethod
    def of(self) -> Any:
        """The settings of the broker, an attrs class."""

    def settings(self) -> dict[str, Any]:
        """The settings as plain data."""
        return asdict(self.of, filter=lambda field, _: field.init)

    def left(self, broker: Any) -> int:
        """Publications that a broker can still keep for others before it loses one."""
        del broker
        return NEVER

    def described(self) -> Mapping[str, str]:
        """How the broker is set, in a few words, for `gossamer node status`."""
        return {}

    # Brokers

    @abstractmethod
    def new(self, name: str, incarnation: int, new_index: NewIndex) -> HostedBroker:
        """A broker that has seen nothing."""

    @abstractmethod
    def load(self, dump: dict[str, Any], new_index: NewIndex) -> HostedBroker:
        """The broker that was dumped; raises `DumpError`."""

    def before(self, settings: dict[str, Any], path: object) -> FamilyHost:
        """The same family with settings that were stored in the file at ``path``.

        Raises:
            ConfigurationError: tables that were made with those cannot go on with these.
        """
        del path
        own: Any = self
        found: FamilyHost = attrs.evolve(own, of=type(self.of)(**settings))
        return found

    def go_on(
        self, before: FamilyHost, dump: dict[str, Any], new_index: NewIndex, now: int
    ) -> HostedBroker:
        """The broker that was dumped with the settings of ``before``, from now on with these.

        ``now`` is its time in microseconds.
        """
        del before, now
        return self.load(dump, new_index)

    def restarted(self) -> object:
        """What the broker is told first."""
        return Restarted()

    # Links

    def neighbours(self, nursery: Any, engine: Any) -> Any:
        """The links of the broker, `links.links.Neighbours` or derived from that; None: those."""
        del nursery, engine

    def link_up(self, neighbour: str) -> object:
        """What the broker is told when a link works."""
        return NeighbourUp(neighbour)

    def begins(self, message: Any) -> bool:
        """Whether a message tells a neighbour everything that stands, and so may be long."""
        del message
        return False

    @abstractmethod
    def carried(self, message: Any) -> Id | None:
        """The publication that a message between brokers carries, if it carries one."""

    def publishes(self, message: Any) -> bool:
        """Whether a message brings a publication, of a client or from another broker."""
        return isinstance(message, Publish) or self.carried(message) is not None

    # What is told

    @abstractmethod
    def subscriptions(self, dump: dict[str, Any]) -> int:
        """Entries of the subscription table in a dump."""

    def sizes(self, broker: Any) -> Mapping[str, tuple[int, str]]:
        """Entries of tables by name, and what each holds; `subscriptions` is among them."""
        sizes = broker.sizes()
        return {name: (getattr(sizes, name), text) for name, text in self.tables_of.items()}

    @abstractmethod
    def clients(self, broker: Any) -> Sequence[ClientFilters]:
        """What the attached clients ask for and announce."""

    @abstractmethod
    def tables(self, broker: Any, label: Label) -> dict[str, Any]:
        """The tables as plain values, with brokers as people call them."""


# What follows for a client from publications that match composite subscriptions.


@frozen
class Match:
    """Hand publications that match a composite subscription together to a client.

    Attributes:
        client: its name.
        body: what it gets, as of `gossamer.node.broker.deliveries`.
    """

    client: str
    body: bytes


@frozen
class ForComposites:
    """A client wants a publication for its composite subscriptions only, and does not get it."""

    client: str
    id: Id


# What a broker's node is made with.


@attrs.frozen(kw_only=True)
class BrokerDependencies:
    """What a broker's node is made with.

    Attributes:
        key: its permanent key, by which the overlay knows it.
        name, cluster, version: what it is called, where it belongs, what it runs.
        family: of the broker, with its settings.
        new_index: makes an empty index of filters.
        large_index: the same for a broker that starts with many subscriptions.
        apart: where work that takes long is done.
        neighbours: where to dial.
        queue: messages that may wait for the broker.
        full_wait_s: how long a client that publishes waits for room to keep that for others.
        publications_first: whether they go before what others sent earlier.
        retention_s: how long a client with a name may be away.
        limits: of the transport.
        make_transport: the transport that says this of the node, and admits by this.
        listen: where to listen.
        advertise: where others reach it, from where it really listens.
        member: its membership; None without certificates.
        present: has the transport show a renewed certificate on the next connections.
        writer: of its state file.
        draws: what is left to chance: how long to wait before dialling again.
        now: Unix seconds.
    """

    key: int
    name: str
    cluster: str
    version: str
    family: FamilyHost
    new_index: NewIndex
    large_index: NewIndex
    apart: Apart = in_a_process
    neighbours: Sequence[Address]
    queue: int = 1024
    full_wait_s: float = 30.0
    publications_first: bool = False
    retention_s: float = 7200.0
    limits: Limits
    make_transport: Callable[[LocalPeer, Verify], Transport]
    listen: Sequence[Address]
    advertise: Callable[[Sequence[Address]], Sequence[Address]]
    member: Membership | None = None
    present: Present = lambda _transport, _member: None
    writer: StoreWriter
    draws: random.Random
    now: Callable[[], float]

    @property
    def cluster_name(self) -> str:
        """What the cluster is called by people."""
        return self.cluster if self.member is None else self.member.authority.name
