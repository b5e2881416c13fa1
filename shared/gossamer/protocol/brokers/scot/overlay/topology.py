"""The structured cyclic overlay topology, SCOT: a tree of regions in every cluster (Sec. 3, 4)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from attrs import define, field, frozen

from gossamer.protocol.brokers.scot.overlay.errors import UnknownBrokerError
from gossamer.protocol.brokers.scot.overlay.factors import Factor, check_factors
from gossamer.protocol.brokers.scot.overlay.labels import BrokerLabel

Link = tuple[BrokerLabel, BrokerLabel]


@frozen
class Position:
    """All that a broker knows of the overlay: its own place, and its direct neighbours' (Sec. 4.3).

    Attributes:
        label: its own place.
        clusters: how many clusters there are.
        primary: regions of its primary neighbours, which are in its own cluster.
    """

    label: BrokerLabel
    clusters: int
    primary: frozenset[str]

    @property
    def is_edge(self) -> bool:
        """Whether the broker has at most one primary neighbour; otherwise it is an inner broker."""
        return len(self.primary) <= 1

    def is_primary(self, other: BrokerLabel) -> bool:
        """Whether another broker is a primary neighbour."""
        return other.cluster == self.label.cluster and other.region in self.primary

    def is_secondary(self, other: BrokerLabel) -> bool:
        """Whether another broker is a secondary neighbour: the same region in another cluster."""
        return (
            other.region == self.label.region
            and other.cluster != self.label.cluster
            and 0 <= other.cluster < self.clusters
        )


@define(frozen=True, slots=False, eq=False)
class Scot:
    """The Cartesian product of an acyclic factor and a complete connectivity factor.

    The copies of the acyclic factor are the clusters, one for each vertex of the connectivity
    factor; the copies of the connectivity factor are the regions. Links within a cluster are
    intra-cluster links (the paper's aCOLs), those within a region inter-cluster ones (iCOLs).

    Raises `ConfigError`s that name the property which the factors lack (see `check_factors`).

    Attributes:
        acyclic: its vertices are the regions.
        connectivity: its vertices are the clusters.
    """

    acyclic: Factor = field()
    connectivity: Factor = field()

    def __attrs_post_init__(self) -> None:
        check_factors(self.acyclic, self.connectivity)

    @cached_property
    def regions(self) -> tuple[str, ...]:
        """Indexes of all regions."""
        return tuple(map(str, self.acyclic.vertices))

    @property
    def clusters(self) -> range:
        """Indexes of all clusters."""
        return range(len(self.connectivity.vertices))

    @property
    def brokers(self) -> tuple[BrokerLabel, ...]:
        """All brokers, cluster by cluster (Eq. 1)."""
        return tuple(broker for index in self.clusters for broker in self.cluster(index))

    def cluster(self, index: int) -> tuple[BrokerLabel, ...]:
        """The brokers of a cluster; raises `UnknownBrokerError` if its number is out of range."""
        if index not in self.clusters:
            raise UnknownBrokerError("cluster", index, f"a number from 0 to {self.clusters[-1]}")
        return tuple(BrokerLabel(region, index) for region in self.regions)

    def region(self, index: str) -> tuple[BrokerLabel, ...]:
        """The brokers of a region; raises `UnknownBrokerError` if there is none of that name."""
        if index not in self._adjacent:
            raise UnknownBrokerError("region", index, f"one of {', '.join(self.regions)}")
        return tuple(BrokerLabel(index, cluster) for cluster in self.clusters)

    def intra_cluster_links(self, cluster: int) -> tuple[Link, ...]:
        """The links within a cluster."""
        self.cluster(cluster)
        return tuple(
            (BrokerLabel(str(one), cluster), BrokerLabel(str(other), cluster))
            for one, other in self.acyclic.edges
        )

    def inter_cluster_links(self, region: str) -> tuple[Link, ...]:
        """The links within a region."""
        brokers = self.region(region)
        return tuple((one, other) for i, one in enumerate(brokers) for other in brokers[i + 1 :])

    def links(self) -> Iterator[Link]:
        """All links, those within clusters first (Eq. 2)."""
        for cluster in self.clusters:
            yield from self.intra_cluster_links(cluster)
        for region in self.regions:
            yield from self.inter_cluster_links(region)

    @property
    def broker_count(self) -> int:
        """|V(acyclic)| |V(connectivity)|."""
        return len(self.regions) * len(self.clusters)

    @property
    def intra_cluster_count(self) -> int:
        """Links within clusters: |E(acyclic)| |V(connectivity)|."""
        return len(self.acyclic.edges) * len(self.clusters)

    @property
    def inter_cluster_count(self) -> int:
        """Links between clusters: |V(acyclic)| |E(connectivity)|."""
        return len(self.regions) * len(self.connectivity.edges)

    def position(self, broker: BrokerLabel) -> Position:
        """What a broker knows of the overlay; raises `UnknownBrokerError`."""
        self._check(broker)
        return Position(broker, len(self.clusters), frozenset(self._adjacent[broker.region]))

    def primary_neighbours(self, broker: BrokerLabel) -> tuple[BrokerLabel, ...]:
        """Those in the same cluster."""
        self._check(broker)
        return tuple(
            BrokerLabel(region, broker.cluster) for region in self._adjacent[broker.region]
        )

    def secondary_neighbours(self, broker: BrokerLabel) -> tuple[BrokerLabel, ...]:
        """Those in the same region."""
        self._check(broker)
        return tuple(other for other in self.region(broker.region) if other != broker)

    def distance(self, one: BrokerLabel, other: BrokerLabel) -> int:
        """Hops between two brokers: those between their regions, and one between clusters."""
        self._check(one)
        self._check(other)
        return self._distances[one.region][other.region] + (one.cluster != other.cluster)

    @cached_property
    def diameter(self) -> int:
        """Hops between the brokers of a cluster that are farthest apart: diam(acyclic factor)."""
        return max(max(row.values()) for row in self._distances.values())

    @cached_property
    def _adjacent(self) -> dict[str, tuple[str, ...]]:
        found = self.acyclic.neighbours()
        return {str(region): tuple(map(str, others)) for region, others in found.items()}

    @cached_property
    def _distances(self) -> dict[str, dict[str, int]]:
        return {
            str(start): {str(end): hops for end, hops in self.acyclic.distances(start).items()}
            for start in self.acyclic.vertices
        }

    def _check(self, broker: BrokerLabel) -> None:
        if broker.region not in self._adjacent:
            raise UnknownBrokerError(
                f"region of {broker}", broker.region, f"one of {', '.join(self.regions)}"
            )
        if broker.cluster not in self.clusters:
            raise UnknownBrokerError(
                f"cluster of {broker}", broker.cluster, f"a number from 0 to {self.clusters[-1]}"
            )
