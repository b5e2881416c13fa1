"""Exports are read by other programs with the same nodes, links and kinds."""

from __future__ import annotations

import csv
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from gossamer.sim.errors import ScenarioError
from gossamer.sim.results.overlays.export import SUFFIXES, export_overlay, format_of
from gossamer.sim.results.results import ResultsError
from support.watched_runs import KINDS, made_up_overlay

OVERLAY = made_up_overlay(40, degree=1)
LINKS = {
    (int(source), int(target), KINDS[kind])
    for source, target, kind in zip(
        *(OVERLAY.links[name] for name in ("source", "target", "kind")), strict=True
    )
}
PLACES = dict(zip(OVERLAY.nodes["node"].tolist(), OVERLAY.nodes["place"].tolist(), strict=True))


def links_of(graph: nx.Graph, kind: str) -> set[tuple[int, int, str]]:
    """The links of a graph with what the attribute says."""
    return {(int(one), int(other), data[kind]) for one, other, data in graph.edges(data=True)}


def test_graphml_is_read_by_networkx(tmp_path: Path) -> None:
    export_overlay(OVERLAY, "graphml", tmp_path / "o.graphml")
    graph = nx.read_graphml(tmp_path / "o.graphml", node_type=int)
    assert graph.is_directed()
    assert dict(graph.nodes(data="place")) == PLACES
    assert links_of(graph, "kind") == LINKS


def test_gexf_is_read_by_networkx(tmp_path: Path) -> None:
    file = tmp_path / "o.gexf"
    export_overlay(OVERLAY, "gexf", file)
    # networkx knows 1.2 at most, from which nothing differs here.
    file.write_text(file.read_text().replace("gexf.net/1.3", "www.gexf.net/1.2draft"))
    graph = nx.read_gexf(file, node_type=int)
    assert graph.is_directed()
    assert dict(graph.nodes(data="place")) == PLACES
    assert links_of(graph, "link") == LINKS


def test_an_edge_list_has_a_line_a_link(tmp_path: Path) -> None:
    export_overlay(OVERLAY, "edges", tmp_path / "o.csv")
    with (tmp_path / "o.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {(int(row["source"]), int(row["target"]), row["kind"]) for row in rows} == LINKS
    assert len(rows) == len(OVERLAY.links["source"])


@pytest.mark.parametrize("chosen", SUFFIXES)
def test_an_overlay_of_nobody_is_a_graph_of_nobody(chosen: str, tmp_path: Path) -> None:
    empty = made_up_overlay(40)
    nobody = type(empty)(
        {name: column[:0] for name, column in empty.nodes.items()},
        {name: column[:0] for name, column in empty.links.items()},
        (),
    )
    export_overlay(nobody, chosen, tmp_path / "o")
    if chosen == "graphml":
        assert len(nx.read_graphml(tmp_path / "o")) == 0


def test_an_export_is_whole_or_not_there(tmp_path: Path) -> None:
    broken = type(OVERLAY)(OVERLAY.nodes, {**OVERLAY.links, "kind": np.full(40, 7)}, KINDS)
    with pytest.raises(IndexError):
        export_overlay(broken, "edges", tmp_path / "o.csv")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "o.csv").write_text("mine")
    with pytest.raises(ResultsError, match=r"o\.csv exists, expected a new file"):
        export_overlay(OVERLAY, "edges", tmp_path / "o.csv")
    assert (tmp_path / "o.csv").read_text() == "mine"
    with pytest.raises(ResultsError, match="is no folder"):
        export_overlay(OVERLAY, "edges", tmp_path / "away" / "o.csv")


def test_formats_go_by_name_or_by_the_name_of_the_file() -> None:
    assert format_of(None, None) == "graphml"
    assert format_of(None, Path("a.GEXF")) == "gexf"
    assert format_of("edges", Path("a.txt")) == "edges"
    with pytest.raises(ScenarioError, match="--format is 'dot', expected one of graphml, gexf"):
        format_of("dot", None)
    with pytest.raises(ScenarioError, match=r"--out is 'a.txt', expected a name that ends with"):
        format_of(None, Path("a.txt"))
