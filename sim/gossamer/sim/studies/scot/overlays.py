"""The overlays of the SCOT paper, and any SCOT as a graph."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

import networkx as nx

from gossamer.protocol.brokers.scot import Factor, Scot
from gossamer.protocol.brokers.scot.memory.errors import (
    AcyclicError,
    ClusterIndexError,
    ConnectivityError,
    FactorError,
    LabelOrderError,
)
from gossamer.protocol.brokers.scot.memory.topology import Vertex
from gossamer.protocol.kernel.errors import ConfigError
from gossamer.sim.errors import ScenarioError

_ABOVE: Final = ("i", "ii", "iii", "iv", "v")
_INNER: Final = ("vi", "vii", "viii", "ix", "x")
_BELOW: Final = ("xi", "xii", "xiii", "xiv", "xv")


def figure_2() -> Scot:
    """Fig. 2 and 3: six regions a to f in a row, three clusters, 18 brokers.

    The figure is not in the text. That says 6 regions, 33 links, a and c beside b, and names two
    regions of edge brokers, which makes it the path.
    """
    return Scot(Factor.path("abcdef"), Factor.complete(3))


def figure_8() -> Scot:
    """Fig. 8: 15 regions of which vi to x are inner, five clusters, 75 brokers.

    The figure is not in the text. That says which regions are inner; as they are the middle ones
    of the fifteen, we put them in a row, with one edge region above and one below each.
    """
    rows = zip(_ABOVE, _INNER, _BELOW, strict=True)
    edges = [*itertools.pairwise(_INNER)]
    edges += [edge for above, inner, below in rows for edge in ((inner, above), (inner, below))]
    return Scot(Factor.of((*_ABOVE, *_INNER, *_BELOW), edges), Factor.complete(5))


def graph_of(scot: Scot) -> nx.Graph[str]:
    """A SCOT as a graph of brokers' names; nodes have ``region`` and ``cluster``.

    Links have ``inter``: whether they are between clusters.
    """
    graph: nx.Graph[str] = nx.Graph()
    for broker in scot.brokers:
        graph.add_node(str(broker), region=broker.region, cluster=broker.cluster)
    for one, other in scot.links():
        graph.add_edge(str(one), str(other), inter=one.cluster != other.cluster)
    return graph


FACTORS: Final = "factors"
OVERLAYS: Final = {"figure_8": figure_8, "figure_2": figure_2}
"""The overlays by the names that scenarios know."""


def scot_of(
    regions: Sequence[str],
    region_links: Sequence[Sequence[str]],
    clusters: Sequence[int],
    cluster_links: Sequence[Sequence[int]] | None,
) -> Scot:
    """The overlay of factors that a scenario gives; raises `ScenarioError` that names the fault.

    Without ``cluster_links`` all clusters are linked.
    """
    if cluster_links is None:
        cluster_links = list(itertools.combinations(clusters, 2))
    acyclic = _factor(regions, region_links, ("overlay.regions", "overlay.region_links"))
    connectivity = _factor(clusters, cluster_links, ("overlay.clusters", "overlay.cluster_links"))
    try:
        return Scot(acyclic, connectivity)
    except ConfigError as error:
        raise ScenarioError(None, _FIELDS[type(error)], error.value, error.expected) from None


_FIELDS: Final[dict[type, str]] = {
    AcyclicError: "overlay.region_links",
    ConnectivityError: "overlay.cluster_links",
    ClusterIndexError: "overlay.clusters",
    LabelOrderError: "overlay.clusters",
}


def _factor(
    vertices: Sequence[Vertex], edges: Sequence[Sequence[Vertex]], fields: tuple[str, str]
) -> Factor:
    try:
        return Factor.of(vertices, ((one, other) for one, other in edges))
    except FactorError as error:
        # What is wrong with a vertex stands by itself, what is wrong with an edge is a pair.
        field = fields[isinstance(error.value, tuple) and len(error.value) == 2]
        raise ScenarioError(None, field, error.value, error.expected) from None
