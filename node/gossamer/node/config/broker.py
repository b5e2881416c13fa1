"""The sections `[node]` and `[broker]` of a node's configuration."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final

import attrs

from gossamer.node.config import checks
from gossamer.node.config.checks import DEFAULT_PORT, parse_address
from gossamer.protocol.kernel.errors import ConfigError

if TYPE_CHECKING:
    from gossamer.protocol.brokers.core.broker import NewIndex, SharedIndex


# The families of brokers that a node can run, by the names that `broker.overlay` has for them.
#
# Those of gossamer are in a table, and are loaded when somebody asks for their settings. Others are
# named in the environment variable ``GOSSAMER_BROKER_FAMILIES``, as ``module:name`` with commas
# between several; that is read once, when a node starts. Either is a `BrokerFamily`, in a module
# that loads little: `config.node` loads it to know the tables of node.toml.

NAMED: Final = "GOSSAMER_BROKER_FAMILIES"
MAX_SCHEMA: Final = 32
"""Characters of what is said for a schema when brokers meet."""

_FAMILIES: Final = "gossamer.node.broker.families"
_BUILT_IN: Final[Mapping[str, str]] = MappingProxyType(
    {
        "tree": f"{_FAMILIES}.tree_settings:TREE",
        "scot": f"{_FAMILIES}.scot_settings:SCOT",
        "graph": f"{_FAMILIES}.graph_settings:GRAPH",
    }
)


@attrs.frozen(kw_only=True)
class BrokerFamily:
    """A family of brokers, without what only such a broker has to load.

    Attributes:
        name: what `broker.overlay` says.
        schema: what such brokers say where peers tell the schema of their events, so that nobody
            takes another for its own.
        host: where, as ``module:name``, the function is that makes a
            `gossamer.node.broker.host.FamilyHost` of a configuration.
        section: its settings in a table of node.toml, a class of attrs; None without such a table.
        options: of `gossamer node run`, by the setting in that table that each gives.
        example: lines of a new node.toml.
    """

    name: str
    schema: str = attrs.field()
    host: str
    section: type[Any] | None = None
    options: Mapping[str, str] = attrs.field(factory=dict)
    example: str = ""

    @schema.validator
    def _fits_a_greeting(self, _: attrs.Attribute[str], schema: str) -> None:
        if not 0 < len(schema) <= MAX_SCHEMA:
            expected = f"1 to {MAX_SCHEMA} characters"
            raise ConfigError(f"the schema of the family {self.name!r}", schema, expected)

    def host_of(self, config: Any) -> Any:
        """The host of a broker that is configured so; raises `ConfigError`."""
        return load(self.host)(config)


def family_names() -> tuple[str, ...]:
    """The names of all families, those of gossamer first."""
    return tuple(_places())


def family_named(name: str) -> BrokerFamily:
    """A family; raises `KeyError`."""
    return _family(_places()[name])


def families() -> tuple[BrokerFamily, ...]:
    """All families."""
    return tuple(map(family_named, family_names()))


def load(place: str) -> Any:
    """What is at ``module:name``; raises `ConfigError` for what cannot be imported."""
    module, colon, name = place.partition(":")
    try:
        if not colon:
            raise ImportError("there is no colon")
        return getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        expected = f"module:name of something that can be imported ({error})"
        raise ConfigError(NAMED, place, expected) from error


@cache
def _places() -> Mapping[str, str]:
    named = [text.strip() for text in os.environ.get(NAMED, "").split(",") if text.strip()]
    own = {_family(place).name: place for place in named}
    return {**_BUILT_IN, **{name: place for name, place in own.items() if name not in _BUILT_IN}}


@cache
def _family(place: str) -> BrokerFamily:
    found = load(place)
    if not isinstance(found, BrokerFamily):
        raise ConfigError(NAMED, place, f"an object of {BrokerFamily.__name__}")
    return found


PEER, BROKER = "peer", "broker"
AUTO, ALWAYS, NEVER = "auto", "always", "never"
# Those of `protocol.brokers.tree.settings`, which a node that is no broker does not load.
COVERINGS: Final = ("off", "lazy", "active", "packed", "selective", "incremental", "paced")
CRITICAL_RULES: Final = ("below", "at_most")
DISPLACED: Final = ("triggered", "quenched")
AUTO, INTERPRETED, COMPILED = "auto", "interpreted", "compiled"
ANY, CLUSTER = "any", "cluster"


@attrs.frozen(kw_only=True)
class Node:
    """What this node is.

    Attributes:
        role: a peer of the Vinifera overlay, or a broker.
        compiled: whether a peer takes events by compiled rules: "auto" once it is busy, "always"
            from the start on, "never". The rules are the same.
    """

    SECTION: ClassVar = "node"
    role: str = attrs.field(default=PEER, validator=checks.one_of((PEER, BROKER)))
    compiled: str = attrs.field(default=AUTO, validator=checks.one_of((AUTO, ALWAYS, NEVER)))


@attrs.frozen(kw_only=True)
class BrokerSection:
    """How a broker behaves; brokers of one overlay may be set differently.

    Attributes:
        overlay: the family of the brokers, `BrokerFamily`; its settings are in the section of
            that name, if there is one.
        neighbours: brokers to connect to. It is enough that one end of a link names the other.
        covering: as of `protocol.brokers.tree.settings`; incremental, the papers' made
            against bursts; paced keeps queues shorter, and preserves nothing for nobody.
        critical_rule: as of `protocol.brokers.tree.settings`; "at_most" prunes a hop nearer
            to the subscriber, and less is sent on when a subscription goes.
        displaced: the same; "quenched" is what a broker examines again, which is many where
            interests overlap, although few are sent on then.
        content: "any" takes any attributes, "cluster" those of the cluster's schema only.
        index: "compiled" loads the compiler, which takes a second and 150 MB, and then a twentieth
            of the time for a subscription; "auto" does so where a broker starts with a thousand.
        retained_publications: for each neighbour, kept until it has them; 100,000 outlast an
            hour's absence at 25 a second, and take some 50 MB then.
        full_wait_s: for how long a client that publishes waits where as many are kept for a
            neighbour, before the oldest of these is lost; 0: it does not.
        congested_queue: messages above which unsubscriptions are held back; a guess.
        queue: messages that wait for the broker before those who bring more are slowed down.
        publications_first: take publications before what came earlier from others, so that they do
            not wait behind a burst of subscriptions; what one neighbour or client sent is taken in
            its order all the same.
        filters: subscriptions, and advertisements, of one client.
        drop_unpaid: give up what is kept for nobody and costs more than it saves.
        statistics_window_s: for how long a publication counts when critical distances are looked
            for; a guess, as the papers say "configurable".
        statistics_entries: publications that count; the papers' largest database had so many.
    """

    SECTION: ClassVar = "broker"
    overlay: str = attrs.field(default=family_names()[0], validator=checks.one_of(family_names()))
    neighbours: tuple[str, ...] = attrs.field(
        default=(), converter=checks.to_tuple, validator=checks.each(checks.address(lowest_port=1))
    )
    covering: str = attrs.field(default="incremental", validator=checks.one_of(COVERINGS))
    critical_rule: str = attrs.field(default="at_most", validator=checks.one_of(CRITICAL_RULES))
    displaced: str = attrs.field(default="quenched", validator=checks.one_of(DISPLACED))
    content: str = attrs.field(default=ANY, validator=checks.one_of((ANY, CLUSTER)))
    index: str = attrs.field(default=AUTO, validator=checks.one_of((AUTO, INTERPRETED, COMPILED)))
    retained_publications: int = attrs.field(
        default=100_000, validator=checks.whole_number(1, 10**7)
    )
    full_wait_s: float = attrs.field(default=30.0, validator=checks.seconds(0, 86_400))
    congested_queue: int = attrs.field(default=100, validator=checks.whole_number(0, 10**6))
    queue: int = attrs.field(default=1024, validator=checks.whole_number(1, 10**6))
    publications_first: bool = attrs.field(default=False, validator=checks.yes_or_no)
    filters: int = attrs.field(default=10_000, validator=checks.whole_number(1, 10**6))
    drop_unpaid: bool = attrs.field(default=True, validator=checks.yes_or_no)
    statistics_window_s: float = attrs.field(default=600.0, validator=checks.seconds(1, 86_400))
    statistics_entries: int = attrs.field(default=28_000, validator=checks.whole_number(1, 10**7))

    def __attrs_post_init__(self) -> None:
        if len(set(self.neighbours)) < len(self.neighbours):
            raise ConfigError("broker.neighbours", self.neighbours, "each neighbour once")

    @property
    def endpoints(self) -> tuple[tuple[str, int], ...]:
        """`neighbours` as hosts and ports."""
        return tuple(parse_address(text, DEFAULT_PORT) for text in self.neighbours)

    def new_index(self) -> NewIndex:
        """What makes an empty index for a broker that has not many subscriptions."""
        from gossamer.protocol.brokers.core import broker as routing

        return _compiled_index if self.index == COMPILED else routing.SharedIndex

    def large_index(self) -> NewIndex:
        """The same for one that has."""
        from gossamer.protocol.brokers.core import broker as routing

        return routing.SharedIndex if self.index == INTERPRETED else _compiled_index


def _compiled_index() -> SharedIndex:
    """An empty index whose compiled rules are kept between starts of nodes."""
    from gossamer.compiled.store import keep_compiled_code
    from gossamer.protocol.brokers.core import broker as routing

    keep_compiled_code()
    routing.load_compiled_rules()
    return routing.compiled_index()
