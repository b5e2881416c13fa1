"""The section `[scot]` of a node's configuration: a structured cyclic overlay, a place in it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar, Final

import attrs

from gossamer.node.config import checks
from gossamer.node.config.broker import BrokerFamily
from gossamer.protocol.kernel.errors import ConfigError

if TYPE_CHECKING:
    from gossamer.protocol.brokers.scot import Position, ScotSettings


# Those of `protocol.brokers.scot.settings`, which a node that is no such broker does not load.
ROUTINGS: Final = ("bid", "static", "dynamic")
MAX_CLUSTERS: Final = 62
MAX_BACKUPS: Final = 16
_MICROSECONDS: Final = 1_000_000
_IN_WORDS: Final = re.compile(r"(?P<clusters>[0-9]+) clusters of (?P<tree>.+), (?P<routing>.+)")


def _edge(_instance: Any, field: attrs.Attribute[Any], value: Any) -> None:
    ends = value.split("-") if isinstance(value, str) else []
    if len(ends) != 2 or not all(end.isidentifier() for end in ends):
        raise ConfigError(f"scot.{field.name}", value, "two regions such as 'a-b'")


def _threshold(_instance: Any, _: attrs.Attribute[Any], value: Any) -> None:
    if type(value) not in (int, float) or not value >= 0:
        raise ConfigError("scot.threshold", value, "a number of at least 0")


def is_part(one: str, other: str) -> bool:
    """Whether an overlay has no broker and link that another has not, and routes likewise.

    Args:
        one: as `ScotSection.overlay` says it.
        other: the same; anything else is part of nothing but of what is said in the same words.
    """
    small, large = _IN_WORDS.fullmatch(one), _IN_WORDS.fullmatch(other)
    if small is None or large is None:
        return one == other
    trees = [set(found["tree"].split()) for found in (small, large)]
    regions = [{region for edge in tree for region in edge.split("-")} for tree in trees]
    edges = [{edge for edge in tree if "-" in edge} for tree in trees]
    return (
        int(small["clusters"]) <= int(large["clusters"])
        and regions[0] <= regions[1]
        and edges[0] <= edges[1]
        and small["routing"] == large["routing"]
    )


@attrs.frozen(kw_only=True)
class ScotSection:
    """A structured cyclic overlay, and where in it this broker is.

    Bid routing has every broker of an overlay or none. But for the time in which they are restarted
    one after another all else but their places is the same, too. Of clusters and edges there may be
    more from then on.

    Attributes:
        region: of this broker; it has to be told where there is more than one.
        cluster: of this broker; 0 is the first.
        clusters: how many there are; each is linked to each in every region.
        edges: the tree of regions, which every cluster is a copy of, such as "a-b". None: there is
            one region.
        routing: dynamic, static, or bid for the overlay without clusters.
        threshold: load above which an output queue is overloaded; Sec. 7.3 sets 10.
        window_s: seconds between two looks at the output queues; Sec. 7.3 sets 0.05.
        spare_links: whether a carrier may take a link in its cluster that nobody is behind; off,
            like all that is beyond the paper.
        covering: whether subscriptions that others cover stay where they are within a cluster.
        cluster_detours: whether copies go around overloaded links within a cluster.
        around_failures: whether notifications go around links and brokers that do not answer.
        input_queues: whether brokers tell their neighbours how long their input queues are, and
            these count in the loads of links.
        own_threshold: whether each broker takes its threshold from the loads of its links.
        take_over: whether a broker of its region takes over the clients of a dead one.
        backups: how many brokers of its region keep what a broker has promised its clients.
    """

    SECTION: ClassVar = "scot"
    region: str = attrs.field(default="", validator=checks.short_text(64))
    cluster: int = attrs.field(default=0, validator=checks.whole_number(0, MAX_CLUSTERS - 1))
    clusters: int = attrs.field(default=1, validator=checks.whole_number(1, MAX_CLUSTERS))
    edges: tuple[str, ...] = attrs.field(
        default=(), converter=checks.to_tuple, validator=checks.each(_edge)
    )
    routing: str = attrs.field(default="dynamic", validator=checks.one_of(ROUTINGS))
    threshold: float = attrs.field(default=10.0, validator=_threshold)
    window_s: float = attrs.field(default=0.05, validator=checks.seconds(0.001, 60))
    spare_links: bool = attrs.field(default=False, validator=checks.yes_or_no)
    covering: bool = attrs.field(default=False, validator=checks.yes_or_no)
    cluster_detours: bool = attrs.field(default=False, validator=checks.yes_or_no)
    around_failures: bool = attrs.field(default=False, validator=checks.yes_or_no)
    input_queues: bool = attrs.field(default=False, validator=checks.yes_or_no)
    own_threshold: bool = attrs.field(default=False, validator=checks.yes_or_no)
    take_over: bool = attrs.field(default=False, validator=checks.yes_or_no)
    backups: int = attrs.field(default=1, validator=checks.whole_number(1, MAX_BACKUPS))

    def position(self) -> Position:
        """Where the broker is, and which brokers are its neighbours.

        Raises:
            ConfigError: the factors are no tree and number of clusters, or it is nowhere in them.
        """
        from gossamer.protocol.brokers.scot import BrokerLabel, Factor, Scot

        ends = [edge.split("-") for edge in self.edges]
        pairs = [(one, other) for one, other in ends]
        regions = dict.fromkeys(end for pair in pairs for end in pair)
        if not self.region:
            expected = f"the region of this broker, one of {', '.join(regions) or 'a, b, ...'}"
            raise ConfigError("scot.region", self.region, expected)
        tree = Factor.of(regions or [self.region], pairs, "scot.edges")
        scot = Scot(tree, Factor.complete(self.clusters))
        return scot.position(BrokerLabel(self.region, self.cluster))

    def settings(self) -> ScotSettings:
        """What the broker is told; raises `ConfigError` for switches that need others."""
        from gossamer.protocol.brokers.scot import ScotSettings

        return ScotSettings(
            routing=self.routing,
            threshold=self.threshold,
            window=int(self.window_s * _MICROSECONDS),
            spare_links=self.spare_links,
            covering=self.covering,
            cluster_detours=self.cluster_detours,
            around_failures=self.around_failures,
            input_queues=self.input_queues,
            own_threshold=self.own_threshold,
            take_over=self.take_over,
            backups=self.backups,
        )

    @property
    def overlay(self) -> str:
        """What has to be the same at all brokers, in words; `is_part` reads them."""
        edges = sorted("-".join(sorted(edge.split("-"))) for edge in self.edges)
        tree = " ".join(edges) or self.region
        routing = "bid routing" if self.routing == "bid" else "static or dynamic routing"
        return f"{self.clusters} clusters of {tree}, {routing}"


SCOT: Final = BrokerFamily(
    name=ScotSection.SECTION,
    schema="that of SCOT brokers, version 2",
    host="gossamer.node.broker.families.scot:host_of",
    section=ScotSection,
    options={
        "--region": "region",
        "--cluster": "cluster",
        "--clusters": "clusters",
        "--edge": "edges",
    },
    example="""\
[scot]
# Of brokers with overlay = "scot", see docs/scot-node.md: where this broker is, how many clusters
# there are, and the tree of regions.
# region = "a"
# cluster = 0
# clusters = 3
# edges = ["a-b", "b-c"]
""",
)
