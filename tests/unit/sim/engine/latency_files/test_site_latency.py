"""Latencies from files: matrices in every form that is published, topologies and coordinates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.sim.engine.latency import Latency, trip_ticks
from gossamer.sim.engine.latency_files.matrices import read_matrix
from gossamer.sim.engine.latency_files.router_files import fill_unmeasured
from gossamer.sim.engine.latency_files.site_latency import SiteFile, site_latency
from gossamer.sim.errors import ScenarioError
from support.checkout import ROOT

BRITE = """\
Topology: ( 4 Nodes, 4 Edges )
Model (1 - RTWaxman):  4 1000 100 1  2  0.15 0.2 1 1 10.0 1024.0

Nodes: ( 4 )
0\t1.00\t9.00\t2\t2\t-1\tRT_NODE
1\t2.00\t8.00\t2\t2\t-1\tRT_NODE
2\t3.00\t7.00\t2\t2\t-1\tRT_NODE
3\t4.00\t6.00\t2\t2\t-1\tRT_NODE

Edges: ( 4 )
0\t0\t1\t600.0\t2.0\t10.0\t-1\t-1\tE_RT\tU
1\t1\t2\t600.0\t3.0\t10.0\t-1\t-1\tE_RT\tU
2\t2\t3\t600.0\t4.0\t10.0\t-1\t-1\tE_RT\tU
3\t0\t3\t600.0\t20.0\t10.0\t-1\t-1\tE_RT\tU
"""
ALT_HEAD = """\
GRAPH (#nodes #edges id uu vv ww xx yy zz):
4 8 transtub(0,0,0) 0 0 0 0 0 0

VERTICES (index name u v w x y z):
0 T:0.0/0 12 5
1 T:0.1/0 13 5
2 S:0.0/0.0/0 14 5
3 S:0.1/0.0/0 15 5

EDGES (from-node to-node length a b):
"""
WAYS = ("0 1 20", "0 2 2", "1 0 20", "1 3 3", "2 0 2", "2 3 90", "3 1 3", "3 2 90")
ALT = ALT_HEAD + "".join(f"{way} 0 0\n" for way in WAYS)
NO_EDGES = BRITE[: BRITE.index("Edges:")]
APART = ALT_HEAD.replace("4 8", "4 2") + "1 3 3 0 0\n3 1 3 0 0\n"
ZOO = ROOT.parent / "shared" / "data" / "topologies"


def ticks(latency: Latency, nodes: int) -> list[list[int]]:
    rows = range(nodes)
    return [[int(trip_ticks(latency, one, other, 1, 1)) for other in rows] for one in rows]


def written(folder: Path, text: str | bytes, name: str = "file") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def in_order(path: Path, model: str = "topology", **how: Any) -> SiteFile:
    """A file at whose sites nodes stand in order."""
    return SiteFile(model=model, path=path, placing="in order", **how)


def test_a_brite_file_gives_the_shortest_ways_between_sites_of_nodes(tmp_path: Path) -> None:
    path = written(tmp_path, BRITE, "a.brite")
    ways = [[0, 2, 5, 9], [2, 0, 3, 7], [5, 3, 0, 4], [9, 7, 4, 0]]
    assert ticks(site_latency(in_order(path), 4, 1), 4) == ways
    slower = site_latency(in_order(path, access_s=0.01, unit_s=0.01), 2, 1)
    assert ticks(slower, 2) == [[20, 40], [40, 20]]
    file = SiteFile(model="topology", path=path)
    assert len(site_latency(file, 1, 1).matrix) == 1
    many = site_latency(file, 100_000, 1)
    assert (many.matrix.shape, ticks(site_latency(file, 3, 1), 3)) == ((4, 4), ticks(many, 3))


def test_nodes_stand_at_the_stubs_of_a_gt_itm_file(tmp_path: Path) -> None:
    latency = site_latency(in_order(written(tmp_path, ALT, "ts")), 6, 1)
    assert latency.matrix.tolist() == [[0, 25], [25, 0]]
    assert latency.site.tolist() == [0, 1, 0, 1, 0, 1]


def test_a_graph_gives_the_field_that_is_named(tmp_path: Path) -> None:
    """Against NetworkX's own shortest ways, of random weights, both kinds of file."""
    graph = nx.random_geometric_graph(15, 0.6, seed=2)
    assert nx.is_connected(graph)
    draws = np.random.default_rng(2)
    for one, other in graph.edges:
        graph.edges[one, other]["delay"] = float(draws.integers(1, 90))
    for _, fields in graph.nodes(data=True):
        fields.clear()
    expected = dict(nx.all_pairs_dijkstra_path_length(graph, weight="delay"))
    for ending, write in ((".graphml", nx.write_graphml), (".gml", nx.write_gml)):
        path = tmp_path / f"g{ending}"
        write(graph, path)
        found = ticks(site_latency(in_order(path, edge_latency="delay"), 15, 1), 15)
        assert found == [[round(expected[i][j]) for j in range(15)] for i in range(15)]


@pytest.mark.shared_data
@pytest.mark.skipif(not ZOO.is_dir(), reason="there is no data folder beside the checkout")
def test_light_takes_its_time_through_a_network_of_the_zoo() -> None:
    latency = site_latency(in_order(ZOO / "Abilene.gml"), 11, 1)
    assert latency.matrix.shape == (11, 11)
    # New York to Seattle, over the land: some 4,000 km and more, 5 ms a thousand.
    assert 20 <= latency.matrix[0, 3] <= 35


def test_coordinates_are_distances(tmp_path: Path) -> None:
    path = written(tmp_path, "# x, y\n0, 0\n3, 4\n6, 8\n", "places.csv")
    latency = site_latency(in_order(path, "coordinates", unit_s=0.01, access_s=0.001), 3, 1)
    assert ticks(latency, 3) == [[2, 52, 102], [52, 2, 52], [102, 52, 2]]


@pytest.mark.parametrize(
    ("model", "name", "text", "message"),
    [
        ("topology", "a.txt", "hello\n", "the topology is of no known kind, expected BRITE"),
        ("topology", "a.brite", NO_EDGES, "is without one, expected a heading"),
        ("topology", "a.alt", APART, "the way from site 3 to site 4 is missing"),
        ("topology", "none.brite", None, "the topology is No such file"),
        ("coordinates", "c", "0\n1e15\n", "reach of the coordinates is"),
    ],
)
def test_faults(model: str, name: str, text: str | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    with pytest.raises(ScenarioError) as caught:
        site_latency(in_order(path, model), 8, 1)
    assert str(path) in str(caught.value)
    assert message in str(caught.value)


WHOLE = [[1, 20.5, 300], [20.5, 2, 40], [300, 40, 0]]
FORMS = {
    "triangular": "# three sites\n1\n20.5 2   # the second\n\n300 4e1 0\n",
    "falling": "1,20.5,300\n2,40\n0\n",
    "with a heading": "3\n1;20.5;300\n20.5;2;40\n300;40;0\n",
    "triangular with a heading": "3\n1\n20.5 2\n300 40 0\n",
    "pairs": "1 1 1\n1 2 20.5\n3 1 300\n2 2 2\n2 3 40\n3 3 0\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_told_by_its_lines(form: str, tmp_path: Path) -> None:
    assert read_matrix(written(tmp_path, FORMS[form], "king.txt")).tolist() == WHOLE


@given(st.integers(2, 9), st.integers(0, 1 << 30), st.sampled_from(["\t", ",", "; "]))
def test_forms_agree_on_random_matrices(
    tmp_path_factory: pytest.TempPathFactory, sites: int, seed: int, between: str
) -> None:
    matrix = np.random.default_rng(seed).integers(0, 500, (sites, sites)).astype(float)
    matrix = np.maximum(matrix, matrix.T)
    texts = {
        "full": [between.join(map(str, row)) for row in matrix],
        "triangular": [between.join(map(str, row[: i + 1])) for i, row in enumerate(matrix)],
        "pairs": [
            between.join(map(str, (i + 1, j + 1, matrix[i, j])))
            for i in range(sites)
            for j in range(i + 1)
        ],
    }
    path = tmp_path_factory.mktemp("matrices") / "matrix"
    for form, lines in texts.items():
        path.write_text("\n".join(lines) + "\n")
        np.testing.assert_array_equal(read_matrix(path, form), matrix, err_msg=form)


def test_a_triangle_follows_the_number_of_sites_and_pairs_are_to_be_named(tmp_path: Path) -> None:
    """As PeerSim's parser reads it."""
    path = written(tmp_path, "4\n5\n6 7\n8 9 10\n")
    found = fill_unmeasured("file", read_matrix(path))[0]
    assert found.tolist() == [[0, 5, 6, 8], [5, 0, 7, 9], [6, 7, 0, 10], [8, 9, 10, 0]]
    path = written(tmp_path, "1 2 5\n2 3 6\n3 1 7\n")
    assert (read_matrix(path).shape, read_matrix(path, "pairs")[0, 2]) == ((3, 3), 7)


@pytest.mark.parametrize(
    ("text", "form", "message"),
    [
        ("1\n2 1e300\n", None, "line 2, column 2: the latency is '1e300', expected a"),
        ("1\n2 -3\n", None, "line 2, column 2: the latency is '-3', expected"),
        ("1\n2 3\n\n# c\n4\n", None, "line 5: number of latencies is 1, expected 3"),
        ("1 2\n3\n", "full", "line 2: number of latencies is 1, expected 2"),
        ("1 2 3\n1 4\n", "pairs", "line 2: number of columns is 2, expected 3, two sites"),
        ("1 2 3\n1 2 4\n", None, "line 2: the pair is '1 2', expected one that is not given"),
        ("# nothing\n", None, "the latency matrix is empty, expected at least one line"),
        ("1\n2 3".encode("utf-16"), None, "the latency matrix is not UTF-8 but UTF-16, expected"),
        (b"1\n2 \xff\n", None, "the latency matrix is not UTF-8 at byte 5, expected text in UTF-8"),
        (None, None, "king.txt: the latency matrix is No such file"),
    ],
)
def test_faults_of_a_matrix_file_are_named(
    tmp_path: Path, text: str | bytes | None, form: str | None, message: str
) -> None:
    path = tmp_path / "king.txt" if text is None else written(tmp_path, text, "king.txt")
    with pytest.raises(ScenarioError) as caught:
        read_matrix(path, form)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)


@pytest.mark.parametrize("missing", [3, 40])
def test_pairs_that_were_not_measured_take_the_shortest_way_if_there_is_one(missing: int) -> None:
    """Against Floyd and Warshall's three loops; what was measured stays, detour or not."""
    draws = np.random.default_rng(5)
    matrix = draws.integers(0, 100, (9, 9)).astype(float)
    np.fill_diagonal(matrix, 0)
    places = draws.integers(0, 9, (missing, 2))
    places = places[places[:, 0] != places[:, 1]]
    matrix[places[:, 0], places[:, 1]] = np.nan
    ways = np.where(np.isnan(matrix), np.inf, matrix)
    for k in range(9):
        for i in range(9):
            for j in range(9):
                ways[i, j] = min(ways[i, j], ways[i, k] + ways[k, j])
    full, count = fill_unmeasured("file", matrix)
    assert count == np.isnan(matrix).sum() > 0
    np.testing.assert_allclose(full, np.where(np.isnan(matrix), ways, matrix))
    matrix = np.array([[0, 5, np.nan], [5, 0, np.nan], [np.nan, np.nan, 0]])
    with pytest.raises(ScenarioError, match="file: the way from site 1 to site 3 is missing"):
        fill_unmeasured("file", matrix)
