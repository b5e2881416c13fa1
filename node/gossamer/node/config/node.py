"""What a node can be told, section by section, and the presets.

The defaults are the preset `lan`; the other presets are visible differences from it (`PRESETS`).
Every default has its reason beside it. Times are in seconds, sizes in what their name says.
Impossible values raise `ConfigError` naming the dotted field; `config_file` adds where they stood.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Final, TypeVar

import attrs

from gossamer.node.config import checks
from gossamer.node.config.broker import BrokerSection, Node, families
from gossamer.node.config.checks import (
    DEFAULT_JOIN_PORT,
    DEFAULT_PAGE_PORT,
    DEFAULT_PORT,
    Check,
    is_loopback,
    parse_address,
)
from gossamer.node.config.delivery import DECIDED_BY_DELIVERY, Delivery
from gossamer.protocol.content.schema import Schema
from gossamer.protocol.kernel.errors import ConfigError, choice
from gossamer.protocol.peer.settings import presets
from gossamer.protocol.peer.settings.config import Settings

# Of the name of a node in its log.
NAME_LENGTH: Final = 64
LOG_LEVELS: Final = ("debug", "info", "warning", "error")
LOG_FORMATS: Final = ("auto", "text", "json")

T = TypeVar("T")

# Settings of the protocol that [protocol] takes, and those that other sections decide.
DECIDED_ELSEWHERE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "attributes": "the tables [attributes.NAME]",
        **DECIDED_BY_DELIVERY,
    }
)
PROTOCOL_SETTINGS: Final = tuple(
    field.name for field in attrs.fields(Settings) if field.name not in DECIDED_ELSEWHERE
)


def _list_of(check: Check, *default: str) -> Any:
    return attrs.field(default=default, converter=checks.to_tuple, validator=checks.each(check))


@attrs.frozen(kw_only=True)
class Identity:
    """Who this peer is.

    Attributes:
        folder: holds key, certificate, the cluster's CA certificate and the state file. The
            configuration file's own folder by default: what belongs together lies together.
        name: what people call this peer, in logs and on the page; "" shows its key instead.
    """

    SECTION: ClassVar = "identity"
    folder: Path = attrs.field(default=Path("."), converter=checks.to_path, validator=checks.path)
    name: str = attrs.field(default="", validator=checks.short_text(64))


@attrs.frozen(kw_only=True)
class Listen:
    """Where other peers reach this one.

    Attributes:
        addresses: where to listen; every address of both IP versions, since on a LAN nobody
            wants to write addresses down. A version that the machine lacks is left out.
        advertise: addresses told to other peers; none means those of the interfaces in use.
        join_addresses: where those who want to join are answered; used only by the peer that holds
            the cluster's authority. A port of its own, since strangers may knock there.
        interface: name or address of the one network interface to use; "" uses all.
        plain_text: speak without TLS. Off, and allowed on loopback addresses only, since
            anybody on the way could read and change what peers say.
    """

    SECTION: ClassVar = "listen"
    addresses: tuple[str, ...] = _list_of(
        checks.address(lowest_port=0), f"0.0.0.0:{DEFAULT_PORT}", f"[::]:{DEFAULT_PORT}"
    )
    advertise: tuple[str, ...] = _list_of(checks.address(lowest_port=1))
    join_addresses: tuple[str, ...] = _list_of(
        checks.address(lowest_port=0), f"0.0.0.0:{DEFAULT_JOIN_PORT}", f"[::]:{DEFAULT_JOIN_PORT}"
    )
    interface: str = attrs.field(default="", validator=checks.short_text(64))
    plain_text: bool = attrs.field(default=False, validator=checks.yes_or_no)

    def __attrs_post_init__(self) -> None:
        hosts = [host for host, _ in self.endpoints]
        if not hosts:
            raise ConfigError("listen.addresses", self.addresses, "at least one address")
        if self.plain_text and not all(map(is_loopback, hosts)):
            expected = "false unless all of listen.addresses are loopback addresses"
            raise ConfigError("listen.plain_text", True, expected)

    @property
    def endpoints(self) -> tuple[tuple[str, int], ...]:
        """`addresses` as hosts and ports."""
        return tuple(parse_address(text, DEFAULT_PORT) for text in self.addresses)

    @property
    def join_endpoints(self) -> tuple[tuple[str, int], ...]:
        """`join_addresses` as hosts and ports."""
        return tuple(parse_address(text, DEFAULT_JOIN_PORT) for text in self.join_addresses)


@attrs.frozen(kw_only=True)
class Discovery:
    """How this peer finds others.

    Attributes:
        multicast: announce this peer and look for others by multicast DNS; on, since it makes a
            LAN work without a single address being configured.
        peers: addresses of peers to try first; none, as multicast finds them on a LAN.
        remember: try the peers known before a restart; on, as most of them are still there.
        found_limit: peers found by multicast that are kept; 256 is more than a LAN has and less
            than what hurts when somebody announces nonsense.
        found_per_s: new peers taken from multicast in a second; 20 lets a whole LAN in within
            seconds and makes no dialling storm.
    """

    SECTION: ClassVar = "discovery"
    multicast: bool = attrs.field(default=True, validator=checks.yes_or_no)
    peers: tuple[str, ...] = _list_of(checks.address(lowest_port=1))
    remember: bool = attrs.field(default=True, validator=checks.yes_or_no)
    found_limit: int = attrs.field(default=256, validator=checks.whole_number(1, 65536))
    found_per_s: int = attrs.field(default=20, validator=checks.whole_number(1, 1000))

    @property
    def static_peers(self) -> tuple[tuple[str, int], ...]:
        """`peers` as hosts and ports."""
        return tuple(parse_address(text, DEFAULT_PORT) for text in self.peers)


@attrs.frozen(kw_only=True)
class Protocol:
    """How the overlay behaves; all peers of a cluster have to agree on it.

    Attributes:
        preset: of `protocol.peer.settings.presets`; kindred, which takes the shortest paths, and
            delivers under churn as resilient does.
        peers_expected: the number of fingers follows from it, and that of friend links: one to
            each peer that is expected, at most `MOST_FRIENDS`. 64 suits any number from 30 on.
        round_s: length of a gossip round. Half a second forms an overlay of 40 peers within 5 s
            and finds a dead neighbour within `failure_age` rounds, 5 s, for some 20 small
            messages a second.
        settings: any other field of `Settings`, over the preset and `NODE_SETTINGS`.
    """

    SECTION: ClassVar = "protocol"
    # What differs from the preset because the host is a node: applications hold many
    # subscriptions, and their ranges are told apart to keep false positives down. Connections
    # lose nothing unnoticed, so that what has not changed is repeated every fourth round only, as
    # heartbeats are; it is forgotten when three repetitions did not come, as in the preset. Of so
    # many subscriptions each is fewer intervals of keys, among which every event is looked up. All
    # peers stand on the ring: in a cluster of which few subscribe, and are away, nobody else would
    # hold events for them. What comes in spurts waits in queues, so that who misses events asks for
    # all of them. Connections lose nothing unless they break, and then both ends know: neighbours
    # that offer each other what they took, and hops that are acknowledged, would only bring second
    # copies of what is on its way, the more of them the longer it takes (of 200 quotes a second to
    # 40 peers three copies came to each peer in place of one and a half). Boxes merge where there
    # is no room for all, and merged ones bring copies by two ways: 40 peers of five subscriptions
    # each need 460 entries; 256 of them brought half as many copies again.
    NODE_SETTINGS: ClassVar[Mapping[str, object]] = MappingProxyType(
        {
            "subscriptions": 256,
            "profile_ranges": 4,
            "key_intervals": 4,
            "boxes_per_neighbour": 128,
            "routing_table_entries": 2048,
            "entry_links": 0,
            "replay_backoff": False,
            "ring_offers": False,
            "acknowledged_hops": 0,
            "refresh_rounds": 4,
            "entry_lifetime": 12,
        }
    )
    # So many more events a second, that it does not want, a successor takes than its predecessor
    # before that one moves towards it: half a percent of a core. Every move makes new paths, and
    # with the threshold of the presets 40 peers never rested: at 60 events a second moves were a
    # fifth of all they did, and the slowest deliveries took three times as long.
    SHIFT_EVENTS_PER_S: ClassVar[float] = 25.0
    # A neighbour that has not answered for so long, and 2 rounds, counts as failed, and what was
    # published is tried again. Busy peers of busy machines take half of that: with rounds of 0.2 s
    # and suspicion after one of them six peers of two processors broke their ring several times a
    # second as long as much was published, and sent everything twice.
    PATIENCE_S: ClassVar[float] = 1.0
    # The paper's log2(N) - 2 keeps a million peers' links few, and `kindred` has none. Real peers
    # stay connected to those they know of anyway. With 24 friends instead of 4 `resilient` reaches
    # 40 peers in half the hops and with a tenth fewer copies; with 32 beside ring and fingers
    # everybody knows all of 40, and `kindred` reaches them in 1.9 hops in place of 2.7, with two
    # thirds of the copies that nobody wants. Gossip takes no longer.
    MOST_FRIENDS: ClassVar[Mapping[str, int]] = MappingProxyType({"resilient": 24, "kindred": 32})
    # Of two neighbours that rest one may hear nothing of the other for two intervals, and then
    # suspects it: a silent host is found out within the 20 s that pings take (`limits`).
    LONGEST_REST_S: ClassVar[float] = 8.0
    preset: str = attrs.field(default="kindred", validator=checks.one_of(tuple(presets.PRESETS)))
    peers_expected: int = attrs.field(default=64, validator=checks.whole_number(2, 1 << 20))
    round_s: float = attrs.field(default=0.5, validator=checks.seconds(0.05, 3600))
    settings: Mapping[str, object] = attrs.field(factory=dict, converter=checks.to_mapping)

    @settings.validator
    def _check_names(self, _: object, settings: Mapping[str, object]) -> None:
        for name, value in settings.items():
            if name in DECIDED_ELSEWHERE:
                expected = f"{DECIDED_ELSEWHERE[name]} in its place"
                raise ConfigError(f"protocol.{name}", value, expected)
            if name not in PROTOCOL_SETTINGS:
                raise ConfigError(f"protocol.{name}", value, choice(name, PROTOCOL_SETTINGS))

    def settings_for(self, attributes: int, delivery: Delivery) -> Settings:
        """What every rule reads, for a schema with so many attributes.

        Raises:
            ConfigError: a setting is impossible.
        """
        patience = max(2, math.ceil(self.PATIENCE_S / self.round_s))
        derived: dict[str, object] = {
            "shift_threshold": self.SHIFT_EVENTS_PER_S * self.round_s,
            "retry_rounds": patience,
        }
        if self.preset == "kindred":
            derived["suspect_rounds"] = patience
            # Peers whose load moves them would leave what they want, for whom nobody counts hops.
            derived["load_shifting"] = False
        if self.preset in self.MOST_FRIENDS:
            most = self.MOST_FRIENDS[self.preset]
            derived["friend_links"] = max(1, min(self.peers_expected - 1, most))
        decided = {"attributes": attributes, **delivery.settings(self.round_s)}
        try:
            made = presets.PRESETS[self.preset](
                self.peers_expected,
                **{**self.NODE_SETTINGS, **derived, **self.settings, **decided},
            )
        except ConfigError as error:
            field = DECIDED_ELSEWHERE.get(error.field, f"protocol.{error.field}")
            raise ConfigError(field, error.value, error.expected) from None
        if made.rest_rounds > 1 and made.rest_rounds * self.round_s > self.LONGEST_REST_S:
            most = max(1, int(self.LONGEST_REST_S / self.round_s))
            expected = (
                f"at most {most} with rounds of {self.round_s:g} s, since peers that rest for more "
                f"than {self.LONGEST_REST_S:g} s find out too late who is gone"
            )
            raise ConfigError("protocol.rest_rounds", made.rest_rounds, expected)
        if made.ring_links == 0:
            expected = "from 1 to 16, since a peer off the ring finds no rendezvous nodes"
            raise ConfigError("protocol.ring_links", 0, expected)
        if made.replay_backoff:
            expected = "false, since what a peer does not ask for is lost to it"
            raise ConfigError("protocol.replay_backoff", True, expected)
        if made.entry_links > 0:
            expected = "0, since a peer off the ring holds no events for those that are away"
            raise ConfigError("protocol.entry_links", made.entry_links, expected)
        return made


@attrs.frozen(kw_only=True)
class Local:
    """The socket by which applications on this machine use the peer.

    Attributes:
        address: "" is a Unix socket in the identity folder, which only this user can open; a
            loopback address such as 127.0.0.1:0 is for systems without them, with a token that
            only this user can read.
        clients: connected at a time; 64 are more than one machine's applications need.
        subscriptions: of one client; 32, as each is one of the peer's own.
        requests_per_s: taken from a client in the long run, one for each KiB begun. Faster ones
            are slowed down, and cut after ten seconds of it.
        queue_bytes: waiting for one client: 4 MiB are some 20,000 events, and a client that lets
            more wait is cut.
        window: events sent to a client with a name and not yet acknowledged; 256 keep a loopback
            socket busy, and are what a client may see again after a crash of its own.
        publishing: events of one client being published at a time; more wait their turn.
    """

    SECTION: ClassVar = "local"
    address: str = attrs.field(default="", validator=checks.loopback_or_nothing)
    clients: int = attrs.field(default=64, validator=checks.whole_number(1, 4096))
    subscriptions: int = attrs.field(default=32, validator=checks.whole_number(1, 256))
    requests_per_s: int = attrs.field(default=20_000, validator=checks.whole_number(1, 10**7))
    queue_bytes: int = attrs.field(default=4 << 20, validator=checks.whole_number(2 << 20, 1 << 30))
    window: int = attrs.field(default=256, validator=checks.whole_number(1, 65536))
    publishing: int = attrs.field(default=256, validator=checks.whole_number(1, 65536))


@attrs.frozen(kw_only=True)
class Page:
    """The page and the metrics that this peer serves to browsers and to Prometheus.

    Attributes:
        enabled: serve them; on, as they cost nothing until somebody looks.
        address: loopback, since the page shows who talks to whom and asks for no password.
        hosts: host names by which browsers may call the page beside its address; none. Others
            are refused, so that a web site cannot read the page by a name that it controls.
    """

    SECTION: ClassVar = "page"
    enabled: bool = attrs.field(default=True, validator=checks.yes_or_no)
    address: str = attrs.field(
        default=f"127.0.0.1:{DEFAULT_PAGE_PORT}", validator=checks.address(lowest_port=0)
    )
    hosts: tuple[str, ...] = _list_of(checks.host)

    @property
    def endpoint(self) -> tuple[str, int]:
        """`address` as host and port."""
        return parse_address(self.address, DEFAULT_PAGE_PORT)


@attrs.frozen(kw_only=True)
class Logging:
    """What the node tells on standard error.

    Attributes:
        level: info says what starts, stops, comes and goes, and nothing per event.
        format: auto writes text to a terminal and JSON lines elsewhere.
        repeat_s: a warning is written once in this time and its repetitions are counted; 60 s
            keep a flood of bad frames from becoming a flood of lines.
        name: said in every line, for several nodes that log to one place; "" for none. `node run`
            of several folders gives each the name of its folder.
        event_lines: an event is written so often in `repeat_s`, whatever its cause, and counted
            beyond that; 200 are more than a cluster has to say of one thing in a minute.
    """

    SECTION: ClassVar = "logging"
    level: str = attrs.field(default="info", validator=checks.one_of(LOG_LEVELS))
    format: str = attrs.field(default="auto", validator=checks.one_of(LOG_FORMATS))
    repeat_s: float = attrs.field(default=60.0, validator=checks.seconds(0, 86400))
    name: str = attrs.field(default="", validator=checks.short_text(NAME_LENGTH))
    event_lines: int = attrs.field(default=200, validator=checks.whole_number(1, 10**6))


SECTIONS: Final[tuple[type[Any], ...]] = (
    Identity,
    Listen,
    Discovery,
    Protocol,
    Delivery,
    Local,
    Page,
    Logging,
    Node,
    BrokerSection,
)
# Those of the families of brokers, of which each broker uses one.
FAMILY_SECTIONS: Final[tuple[type[Any], ...]] = tuple(
    one.section for one in families() if one.section is not None
)


def _default_families() -> dict[str, Any]:
    return {section.SECTION: section() for section in FAMILY_SECTIONS}


@attrs.frozen(kw_only=True)
class NodeConfig:
    """Everything that a node can be told.

    Attributes:
        preset: the one that the defaults come from.
        families: settings of the families of brokers, by name.
        schema: what events are made of; None takes the cluster's, kept in the identity folder.
        limits: fields of the transport's limits that differ from their defaults; checked by
            `limits_as`, since this layer does not know them.
    """

    preset: str = "lan"
    identity: Identity = attrs.field(factory=Identity)
    listen: Listen = attrs.field(factory=Listen)
    discovery: Discovery = attrs.field(factory=Discovery)
    protocol: Protocol = attrs.field(factory=Protocol)
    delivery: Delivery = attrs.field(factory=Delivery)
    local: Local = attrs.field(factory=Local)
    page: Page = attrs.field(factory=Page)
    logging: Logging = attrs.field(factory=Logging)
    node: Node = attrs.field(factory=Node)
    broker: BrokerSection = attrs.field(factory=BrokerSection)
    families: Mapping[str, Any] = attrs.field(factory=_default_families)
    schema: Schema | None = None
    limits: Mapping[str, object] = attrs.field(factory=dict, converter=checks.to_mapping)

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.preset, str) or self.preset not in PRESETS:
            raise ConfigError("preset", self.preset, choice(self.preset, PRESETS))
        self.protocol.settings_for(1 if self.schema is None else len(self.schema), self.delivery)

    def section(self, name: str) -> Any:
        """The section of that name, which is that of a family if it is no other's."""
        return self.families[name] if name in self.families else getattr(self, name)

    def settings(self, schema: Schema) -> Settings:
        """The protocol's settings for a cluster with this schema; see `Protocol.settings_for`."""
        return self.protocol.settings_for(len(schema), self.delivery)

    def limits_as(self, kind: Callable[..., T]) -> T:
        """The limits as an object of the transport's own class.

        Raises:
            ConfigError: the class has no such field, or refuses its value.
        """
        names = inspect.signature(kind).parameters
        for name, value in self.limits.items():
            if name not in names:
                raise ConfigError(f"limits.{name}", value, choice(name, names))
        try:
            return kind(**self.limits)
        except ConfigError as error:
            field = f"limits.{error.field.rpartition('.')[2]}"
            raise ConfigError(field, error.value, error.expected) from None


# Each preset by what it has different from the defaults above, by dotted field.
PRESETS: Final[Mapping[str, Mapping[str, object]]] = MappingProxyType(
    {
        # Peers of one local network: the base that the others are compared with.
        "lan": {},
        # Peers far apart. Multicast does not cross routers; latencies of 0.3 s and lossy hours
        # ask for slower rounds, and people in other time zones for longer absences.
        "wan": {
            "discovery.multicast": False,
            "protocol.round_s": 2.0,
            "delivery.acknowledge_s": 40.0,
            "delivery.replay_s": 60.0,
            "delivery.retention_s": 86400.0,
        },
        # Several peers of one machine, for trying things out and for tests: loopback only, ports
        # that never collide, and rounds short enough to watch.
        "local": {
            "listen.addresses": ("127.0.0.1:0",),
            "listen.join_addresses": ("127.0.0.1:0",),
            "listen.interface": "127.0.0.1",
            "protocol.round_s": 0.2,
            "delivery.retention_s": 600.0,
            "page.address": "127.0.0.1:0",
        },
    }
)
