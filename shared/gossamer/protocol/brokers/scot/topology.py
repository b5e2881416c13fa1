"""The structured cyclic overlay topology, SCOT: a tree of regions in every cluster (Sec. 3, 4)."""

from __future__ import annotations

import itertools
import re
from collections import deque
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Final, NamedTuple

from attrs import define, field, frozen

from gossamer.protocol.kernel.errors import ConfigError

# The two graphs whose Cartesian product a SCOT is, and what is asked of them (Sec. 3.2).

Vertex = str | int


@frozen
class Factor:
    """An undirected graph without loops or parallel edges.

    Attributes:
        vertices: in the order given.
        edges: each with the vertex that comes first among the vertices first.
    """

    vertices: tuple[Vertex, ...]
    edges: tuple[tuple[Vertex, Vertex], ...]

    @classmethod
    def of(
        cls,
        vertices: Iterable[Vertex],
        edges: Iterable[tuple[Vertex, Vertex]],
        field: str = "factor",
    ) -> Factor:
        """A factor, checked; raises `ConfigError` that names `field`."""
        known = tuple(vertices)
        if not known:
            raise ConfigError(field, known, "at least one vertex")
        place: dict[Vertex, int] = {}
        texts: set[str] = set()
        for vertex in known:
            if str(vertex) in texts:
                raise ConfigError(field, vertex, "labels that differ, and this one is there twice")
            texts.add(str(vertex))
            place[vertex] = len(place)
        held: dict[tuple[Vertex, Vertex], None] = {}
        for one, other in edges:
            for end in (one, other):
                if end not in place:
                    raise ConfigError(field, (one, other), f"edges of vertices, and {end} is none")
            edge = (one, other) if place[one] < place[other] else (other, one)
            if one == other or edge in held:
                raise ConfigError(field, edge, "edges between two vertices, each once")
            held[edge] = None
        return cls(known, tuple(held))

    @classmethod
    def path(cls, vertices: Iterable[Vertex]) -> Factor:
        """Vertices in a row."""
        row = tuple(vertices)
        return cls.of(row, itertools.pairwise(row))

    @classmethod
    def complete(cls, number: int) -> Factor:
        """The complete graph of 0, 1, ... `number` - 1: a connectivity factor."""
        numbers = range(number)
        return cls.of(numbers, ((i, j) for i in numbers for j in range(i + 1, number)))

    def neighbours(self) -> dict[Vertex, tuple[Vertex, ...]]:
        """Who is adjacent to each vertex, in the order of vertices."""
        found: dict[Vertex, set[Vertex]] = {vertex: set() for vertex in self.vertices}
        for one, other in self.edges:
            found[one].add(other)
            found[other].add(one)
        return {
            vertex: tuple(other for other in self.vertices if other in adjacent)
            for vertex, adjacent in found.items()
        }

    def distances(self, start: Vertex) -> dict[Vertex, int]:
        """Hops from a vertex to each that it reaches."""
        neighbours = self.neighbours()
        found = {start: 0}
        reached = deque([start])
        while reached:
            vertex = reached.popleft()
            for other in neighbours[vertex]:
                if other not in found:
                    found[other] = found[vertex] + 1
                    reached.append(other)
        return found


def check_factors(acyclic: Factor, connectivity: Factor) -> None:
    """Check all four properties of a SCOT (Sec. 3.2).

    Raises:
        ConfigError: the factors are given in the wrong order, or one lacks its property.
    """
    if _cannot_cluster(connectivity) and not _cannot_cluster(acyclic) and _is_tree(connectivity):
        raise ConfigError(
            "factors",
            (acyclic.vertices, connectivity.vertices),
            "the acyclic factor first and the connectivity factor second",
        )
    check_acyclic(acyclic)
    check_connectivity(connectivity)
    check_index(connectivity)


def check_acyclic(factor: Factor) -> None:
    """Acyclic property: the factor is a tree; raises `ConfigError`.

    Departs from the paper: it says "acyclic", which a graph in several parts is too; but then
    subscriptions would not reach all brokers of a cluster.
    """
    root = {vertex: vertex for vertex in factor.vertices}

    def root_of(vertex: Vertex) -> Vertex:
        while root[vertex] != vertex:
            root[vertex] = root[root[vertex]]
            vertex = root[vertex]
        return vertex

    for one, other in factor.edges:
        ends = root_of(one), root_of(other)
        if ends[0] == ends[1]:
            raise ConfigError(
                "acyclic factor", (one, other), "a tree, and this edge closes a cycle"
            )
        root[ends[0]] = ends[1]
    first = factor.vertices[0]
    for vertex in factor.vertices:
        if root_of(vertex) != root_of(first):
            raise ConfigError(
                "acyclic factor", vertex, f"a tree, and no path leads there from {first!r}"
            )


def check_connectivity(factor: Factor) -> None:
    """Connectivity property: the factor is complete; raises `ConfigError`."""
    held = set(factor.edges)
    for i, one in enumerate(factor.vertices):
        for other in factor.vertices[i + 1 :]:
            if (one, other) not in held:
                raise ConfigError(
                    "connectivity factor",
                    (one, other),
                    "an edge between every two vertices, and these have none",
                )


def check_index(factor: Factor) -> None:
    """Index property: vertices are labelled 0, 1, 2, ...; raises `ConfigError`."""
    expected = f"the whole numbers from 0 to {len(factor.vertices) - 1}, each once"
    for vertex in factor.vertices:
        if not _is_number(vertex) or not 0 <= int(vertex) < len(factor.vertices):
            raise ConfigError("label of the connectivity factor", vertex, expected)


def _cannot_cluster(factor: Factor) -> bool:
    """Whether labels or edges keep a factor from being a connectivity factor."""
    number = len(factor.vertices)
    return (
        not all(map(_is_number, factor.vertices)) or len(factor.edges) < number * (number - 1) // 2
    )


def _is_tree(factor: Factor) -> bool:
    reached = factor.distances(factor.vertices[0])
    return len(reached) == len(factor.vertices) == len(factor.edges) + 1


def _is_number(vertex: Vertex) -> bool:
    return isinstance(vertex, int) and not isinstance(vertex, bool)


MAX_CLUSTERS: Final = 62
"""Clusters whose vector is a whole number of 64 bits."""

_LABEL: Final = re.compile(r"B\(\s*([^\s,()]+)\s*,\s*([^\s,()]+)\s*\)")


class BrokerLabel(NamedTuple):
    """A broker B(region, cluster): a vertex of each factor, the acyclic one's first."""

    region: str
    cluster: int

    @classmethod
    def parse(cls, text: str) -> BrokerLabel:
        """The label that a text such as "B(a,0)" gives.

        Raises:
            ConfigError: the second part is no whole number from zero on, the parts are in the wrong
                order, or the text is no label at all.
        """
        found = _LABEL.fullmatch(text)
        if found is None:
            raise ConfigError("label", text, 'a region and a cluster, such as "B(a,0)"')
        region, cluster = found.groups()
        if cluster.isdecimal():
            return cls(region, int(cluster))
        if region.isdecimal():
            raise ConfigError("label", text, f"the region first, as in B({cluster},{region})")
        raise ConfigError("label", text, "a cluster number from 0 on in second place")

    def __str__(self) -> str:
        return f"B({self.region},{self.cluster})"


@frozen(order=True)
class ClusterBitVector:
    """A set of clusters, one bit for each, the rightmost for cluster 0 (Sec. 4.4, Fig. 4).

    A subscription's has the bit of its host cluster; a notification's has the bits of the target
    secondary clusters that it still has to reach by dynamic routing.

    Attributes:
        bits: the vector as a whole number, never negative.
    """

    bits: int = 0

    @classmethod
    def of(cls, *clusters: int) -> ClusterBitVector:
        """The vector of these clusters."""
        bits = 0
        for cluster in clusters:
            bits |= 1 << cluster
        return cls(bits)

    def __contains__(self, cluster: int) -> bool:
        return bool(self.bits >> cluster & 1)

    def __iter__(self) -> Iterator[int]:
        return (cluster for cluster in range(self.bits.bit_length()) if cluster in self)

    def __bool__(self) -> bool:
        return self.bits != 0

    def without(self, cluster: int) -> ClusterBitVector:
        """The vector with the bit of a cluster cleared."""
        return ClusterBitVector(self.bits & ~(1 << cluster))

    def text(self, clusters: int) -> str:
        """The bits, as many as a SCOT has clusters: "100" for cluster 2 of three."""
        return f"{self.bits:0{clusters}b}"


NO_CLUSTERS: Final = ClusterBitVector()

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
        """The brokers of a cluster; raises `ConfigError` if its number is out of range."""
        if index not in self.clusters:
            raise ConfigError("cluster", index, f"a number from 0 to {self.clusters[-1]}")
        return tuple(BrokerLabel(region, index) for region in self.regions)

    def region(self, index: str) -> tuple[BrokerLabel, ...]:
        """The brokers of a region; raises `ConfigError` if there is none of that name."""
        if index not in self._adjacent:
            raise ConfigError("region", index, f"one of {', '.join(self.regions)}")
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
        """What a broker knows of the overlay; raises `ConfigError`."""
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
            raise ConfigError(
                f"region of {broker}", broker.region, f"one of {', '.join(self.regions)}"
            )
        if broker.cluster not in self.clusters:
            raise ConfigError(
                f"cluster of {broker}", broker.cluster, f"a number from 0 to {self.clusters[-1]}"
            )
