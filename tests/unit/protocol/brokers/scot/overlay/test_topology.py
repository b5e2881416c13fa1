"""The SCOT as a graph: its four properties, its counts, its kinds of brokers and links."""

from __future__ import annotations

import doctest
import random
from collections.abc import Callable

import networkx as nx
import pytest

from gossamer.protocol.brokers import scot as scot_package
from gossamer.protocol.brokers.scot import BrokerLabel, ClusterBitVector, Factor, Scot, ScotSettings
from gossamer.protocol.brokers.scot.overlay import errors
from gossamer.protocol.kernel.errors import ConfigError
from gossamer.sim.studies.scot.overlays import figure_2
from support.scot_overlay import random_tree

PATH = Factor.path("abc")
TRIANGLE = Factor.complete(3)


def graph_of(factor: Factor) -> nx.Graph:
    graph = nx.Graph()
    graph.add_nodes_from(factor.vertices)
    graph.add_edges_from(factor.edges)
    return graph


@pytest.mark.parametrize("seed", range(20))
def test_links_neighbours_and_distances_are_those_of_networkx(seed: int) -> None:
    draw = random.Random(seed)
    tree, clusters = random_tree(draw.randrange(1, 9), draw), draw.randrange(1, 6)
    scot = Scot(tree, Factor.complete(clusters))
    product = nx.cartesian_product(graph_of(tree), nx.complete_graph(clusters))
    assert {tuple(broker) for broker in scot.brokers} == set(product)
    links = list(scot.links())
    assert {frozenset(map(tuple, link)) for link in links} == set(map(frozenset, product.edges))
    assert len(links) == scot.intra_cluster_count + scot.inter_cluster_count
    assert scot.broker_count == len(product)
    lengths = dict(nx.all_pairs_shortest_path_length(product))
    for broker in scot.brokers:
        near = {*scot.primary_neighbours(broker), *scot.secondary_neighbours(broker)}
        assert near == set(product[broker])
        assert all(scot.distance(broker, other) == lengths[broker][other] for other in scot.brokers)
    assert scot.diameter == nx.diameter(graph_of(tree))


def test_clusters_are_copies_of_the_tree_and_regions_of_the_complete_graph() -> None:
    scot = figure_2()
    assert [broker.region for broker in scot.cluster(1)] == list("abcdef")
    assert [broker.cluster for broker in scot.region("d")] == [0, 1, 2]
    assert {broker for index in scot.clusters for broker in scot.cluster(index)} == set(
        scot.brokers
    )


def test_a_broker_knows_only_its_place_and_its_direct_neighbours() -> None:
    position = figure_2().position(BrokerLabel("b", 0))
    assert not position.is_edge
    near = {
        label
        for label in figure_2().brokers
        if position.is_primary(label) or position.is_secondary(label)
    }
    assert near == {("a", 0), ("c", 0), ("b", 1), ("b", 2)}
    assert not position.is_secondary(BrokerLabel("b", 3))


def test_a_single_broker_and_a_single_cluster_are_scots() -> None:
    alone = Scot(Factor.path("a"), Factor.complete(1))
    assert (alone.broker_count, list(alone.links()), alone.diameter) == (1, [], 0)
    assert alone.position(BrokerLabel("a", 0)).is_edge
    assert Scot(PATH, Factor.complete(1)).inter_cluster_count == 0


WRONG: dict[str, tuple[Callable[[], object], type[ConfigError], str]] = {
    "a cycle": (
        lambda: Scot(Factor.of("abc", [("a", "b"), ("b", "c"), ("c", "a")]), TRIANGLE),
        errors.AcyclicError,
        "acyclic factor is ('a', 'c'), expected a tree, and this edge closes a cycle",
    ),
    "two parts": (
        lambda: Scot(Factor.of("abc", [("a", "b")]), TRIANGLE),
        errors.AcyclicError,
        "acyclic factor is 'c', expected a tree, and no path leads there from 'a'",
    ),
    "a missing link between clusters": (
        lambda: Scot(PATH, Factor.path([0, 1, 2])),
        errors.ConnectivityError,
        "connectivity factor is (0, 2), expected an edge between every two vertices, "
        "and these have none",
    ),
    "a cluster that is no number": (
        lambda: Scot(PATH, Factor.of([0, "x"], [(0, "x")])),
        errors.ClusterIndexError,
        "label of the connectivity factor is 'x', expected the whole numbers from 0 to 1, each "
        "once",
    ),
    "clusters from one on": (
        lambda: Scot(PATH, Factor.of([1, 2], [(1, 2)])),
        errors.ClusterIndexError,
        "label of the connectivity factor is 2, expected the whole numbers from 0 to 1, each once",
    ),
    "factors the other way round": (
        lambda: Scot(TRIANGLE, PATH),
        errors.LabelOrderError,
        "factors is ((0, 1, 2), ('a', 'b', 'c')), expected the acyclic factor first and the "
        "connectivity factor second",
    ),
    "a label the other way round": (
        lambda: BrokerLabel.parse("B(0,a)"),
        errors.LabelOrderError,
        "label is 'B(0,a)', expected the region first, as in B(a,0)",
    ),
    "a label without a number": (
        lambda: BrokerLabel.parse("B(a,b)"),
        errors.ClusterIndexError,
        "label is 'B(a,b)', expected a cluster number from 0 on in second place",
    ),
    "no label": (
        lambda: BrokerLabel.parse("a,0"),
        errors.LabelOrderError,
        "label is 'a,0', expected a region and a cluster, such as \"B(a,0)\"",
    ),
    "a cluster out of range": (
        lambda: Scot(PATH, TRIANGLE).cluster(3),
        errors.UnknownBrokerError,
        "cluster is 3, expected a number from 0 to 2",
    ),
    "a broker's cluster out of range": (
        lambda: Scot(PATH, TRIANGLE).position(BrokerLabel("a", 3)),
        errors.UnknownBrokerError,
        "cluster of B(a,3) is 3, expected a number from 0 to 2",
    ),
    "an unknown region": (
        lambda: Scot(PATH, TRIANGLE).primary_neighbours(BrokerLabel("z", 0)),
        errors.UnknownBrokerError,
        "region of B(z,0) is 'z', expected one of a, b, c",
    ),
    "no vertices": (
        lambda: Factor.of([], []),
        errors.FactorError,
        "factor is (), expected at least one vertex",
    ),
    "a vertex twice": (
        lambda: Factor.of(["a", "a"], []),
        errors.FactorError,
        "factor is 'a', expected labels that differ, and this one is there twice",
    ),
    "a number and its text": (
        lambda: Factor.of([1, "1"], []),
        errors.FactorError,
        "factor is '1', expected labels that differ, and this one is there twice",
    ),
    "an edge to nowhere": (
        lambda: Factor.of("ab", [("a", "c")]),
        errors.FactorError,
        "factor is ('a', 'c'), expected edges of vertices, and c is none",
    ),
    "a loop": (
        lambda: Factor.of("ab", [("a", "a")]),
        errors.FactorError,
        "factor is ('a', 'a'), expected edges between two vertices, each once",
    ),
    "an edge twice": (
        lambda: Factor.of("ab", [("a", "b"), ("b", "a")]),
        errors.FactorError,
        "factor is ('a', 'b'), expected edges between two vertices, each once",
    ),
    "an unknown routing": (
        lambda: ScotSettings(routing="fast"),
        ConfigError,
        "routing is 'fast', expected one of bid, static, dynamic",
    ),
    "a threshold that is no number": (
        lambda: ScotSettings(threshold=float("nan")),
        ConfigError,
        "threshold is nan, expected a number from 0 on",
    ),
    "an empty window": (
        lambda: ScotSettings(window=0),
        ConfigError,
        "window is 0, expected a number of microseconds above 0",
    ),
}


@pytest.mark.parametrize("fault", WRONG)
def test_what_is_wrong_is_said_in_one_sentence(fault: str) -> None:
    build, kind, text = WRONG[fault]
    with pytest.raises(ConfigError) as caught:
        build()
    assert type(caught.value) is kind
    assert str(caught.value) == text


def test_a_bit_vector_is_a_set_of_clusters() -> None:
    vector = ClusterBitVector.of(0, 3)
    assert (list(vector), 3 in vector, 2 in vector, bool(vector)) == ([0, 3], True, False, True)
    assert vector.without(0) == ClusterBitVector.of(3)
    assert not vector.without(0).without(3)


def test_the_examples_of_the_package_are_true() -> None:
    found = doctest.testmod(scot_package)
    assert found.failed == 0
    assert found.attempted > 0
