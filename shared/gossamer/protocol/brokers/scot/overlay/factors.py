"""The two graphs whose Cartesian product a SCOT is, and what is asked of them (Sec. 3.2)."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable

from attrs import frozen

from gossamer.protocol.brokers.scot.overlay.errors import (
    AcyclicError,
    ClusterIndexError,
    ConnectivityError,
    FactorError,
    LabelOrderError,
)

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
        """A factor, checked; raises `FactorError` that names `field`."""
        known = tuple(vertices)
        if not known:
            raise FactorError(field, known, "at least one vertex")
        place: dict[Vertex, int] = {}
        texts: set[str] = set()
        for vertex in known:
            if str(vertex) in texts:
                raise FactorError(field, vertex, "labels that differ, and this one is there twice")
            texts.add(str(vertex))
            place[vertex] = len(place)
        held: dict[tuple[Vertex, Vertex], None] = {}
        for one, other in edges:
            for end in (one, other):
                if end not in place:
                    raise FactorError(field, (one, other), f"edges of vertices, and {end} is none")
            edge = (one, other) if place[one] < place[other] else (other, one)
            if one == other or edge in held:
                raise FactorError(field, edge, "edges between two vertices, each once")
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
        LabelOrderError: the factors are given in the wrong order.
        AcyclicError, ConnectivityError, ClusterIndexError: one lacks its property.
    """
    if _cannot_cluster(connectivity) and not _cannot_cluster(acyclic) and _is_tree(connectivity):
        raise LabelOrderError(
            "factors",
            (acyclic.vertices, connectivity.vertices),
            "the acyclic factor first and the connectivity factor second",
        )
    check_acyclic(acyclic)
    check_connectivity(connectivity)
    check_index(connectivity)


def check_acyclic(factor: Factor) -> None:
    """Acyclic property: the factor is a tree; raises `AcyclicError`.

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
            raise AcyclicError(
                "acyclic factor", (one, other), "a tree, and this edge closes a cycle"
            )
        root[ends[0]] = ends[1]
    first = factor.vertices[0]
    for vertex in factor.vertices:
        if root_of(vertex) != root_of(first):
            raise AcyclicError(
                "acyclic factor", vertex, f"a tree, and no path leads there from {first!r}"
            )


def check_connectivity(factor: Factor) -> None:
    """Connectivity property: the factor is complete; raises `ConnectivityError`."""
    held = set(factor.edges)
    for i, one in enumerate(factor.vertices):
        for other in factor.vertices[i + 1 :]:
            if (one, other) not in held:
                raise ConnectivityError(
                    "connectivity factor",
                    (one, other),
                    "an edge between every two vertices, and these have none",
                )


def check_index(factor: Factor) -> None:
    """Index property: vertices are labelled 0, 1, 2, ...; raises `ClusterIndexError`."""
    expected = f"the whole numbers from 0 to {len(factor.vertices) - 1}, each once"
    for vertex in factor.vertices:
        if not _is_number(vertex) or not 0 <= int(vertex) < len(factor.vertices):
            raise ClusterIndexError("label of the connectivity factor", vertex, expected)


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
