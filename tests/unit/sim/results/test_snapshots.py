"""Snapshots are read back as they were, and exports are read by other programs."""

from __future__ import annotations

import csv
from pathlib import Path

import attrs
import networkx as nx
import numpy as np
import pyarrow.parquet as pq
import pytest

from gossamer.sim.errors import ResultsError, ScenarioError
from gossamer.sim.results import overlay_files
from gossamer.sim.results.overlay_files import SUFFIXES, export_overlay, format_of
from gossamer.sim.results.results import Results
from support.made_up_runs import KINDS, WatchedRun, made_up_overlay


def results(folder: Path) -> Results:
    return Results(folder, {"systems": {"mine": {}}})


def watched(folder: Path, every: int | None, rounds: int, size: int = 30) -> list[int]:
    """The rounds that there are snapshots of after a run."""
    run = WatchedRun("mine", 0, rounds, size)
    writer = overlay_files.SnapshotWriter(folder, every)
    for now in range(rounds + 1):
        run.round = now
        writer(run)
    return overlay_files.snapshot_rounds(results(folder), "mine")


def test_there_are_snapshots_every_so_many_rounds_and_at_the_end(tmp_path: Path) -> None:
    assert watched(tmp_path / "a", 3, 8) == [0, 3, 6, 8]
    assert (watched(tmp_path / "b", 4, 8), watched(tmp_path / "c", None, 8)) == ([0, 4, 8], [8])
    assert watched(tmp_path / "d", None, 1, overlay_files.MOST_NODES + 1) == []
    assert watched(tmp_path / "e", 1, 1, overlay_files.MOST_NODES + 1) == [0, 1]


def test_snapshots_are_read_back_as_written_and_are_one_table(tmp_path: Path) -> None:
    overlay = made_up_overlay(50)
    overlay_files.write_snapshot(overlay, 7, tmp_path / "mine")
    overlay_files.write_snapshot(made_up_overlay(60), 5, tmp_path / "mine")
    back = overlay_files.read_snapshot(results(tmp_path), "mine")
    assert back.kinds == overlay.kinds
    for kept, written in ((back.links, overlay.links), (back.nodes, overlay.nodes)):
        for name, column in written.items():
            assert np.array_equal(kept[name], column)
    assert len(overlay_files.read_snapshot(results(tmp_path), "mine", 5).nodes["node"]) == 60
    assert watched(tmp_path / "a", 2, 4) == [0, 2, 4]
    table = pq.read_table(tmp_path / "a" / "mine" / overlay_files.LINKS)
    assert table.column_names == ["round", "source", "target", "kind"]
    assert table["round"].unique().to_pylist() == [0, 2, 4]
    assert set(table["kind"].unique().to_pylist()) == {"ring", "friend & foe"}


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="expected a run with --snapshots"):
        overlay_files.read_snapshot(results(tmp_path), "mine")
    watched(tmp_path, 2, 4)
    with pytest.raises(ScenarioError, match="--round is 3, expected a round with a snapshot: 0, 2"):
        overlay_files.read_snapshot(results(tmp_path), "mine", 3)
    file = tmp_path / "mine" / overlay_files.LINKS / "00000004.parquet"
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(ResultsError, match="is not a readable snapshot"):
        overlay_files.read_snapshot(results(tmp_path), "mine", 4)


OVERLAY = made_up_overlay(40, degree=1)
ENDS = (OVERLAY.links[name].tolist() for name in ("source", "target", "kind"))
LINKS = {(source, target, KINDS[kind]) for source, target, kind in zip(*ENDS, strict=True)}
PLACES = dict(zip(OVERLAY.nodes["node"].tolist(), OVERLAY.nodes["place"].tolist(), strict=True))


def test_networkx_reads_graphml_and_gexf_and_edge_lists_have_a_line_a_link(tmp_path: Path) -> None:
    graphml, gexf = tmp_path / "o.graphml", tmp_path / "o.gexf"
    export_overlay(OVERLAY, "graphml", graphml)
    export_overlay(OVERLAY, "gexf", gexf)
    # networkx knows 1.2 at most, from which nothing differs here.
    gexf.write_text(gexf.read_text().replace("gexf.net/1.3", "www.gexf.net/1.2draft"))
    for graph, kind in (
        (nx.read_graphml(graphml, node_type=int), "kind"),
        (nx.read_gexf(gexf, node_type=int), "link"),
    ):
        assert graph.is_directed()
        assert dict(graph.nodes(data="place")) == PLACES
        links = {(int(one), int(other), data[kind]) for one, other, data in graph.edges(data=True)}
        assert links == LINKS
    export_overlay(OVERLAY, "edges", tmp_path / "o.csv")
    with (tmp_path / "o.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {(int(row["source"]), int(row["target"]), row["kind"]) for row in rows} == LINKS
    assert len(rows) == len(OVERLAY.links["source"])


@pytest.mark.parametrize("chosen", SUFFIXES)
def test_an_overlay_of_nobody_is_a_graph_of_nobody(chosen: str, tmp_path: Path) -> None:
    export_overlay(attrs.evolve(made_up_overlay(0), kinds=()), chosen, tmp_path / "o")
    if chosen == "graphml":
        assert len(nx.read_graphml(tmp_path / "o")) == 0


def test_an_export_is_whole_or_not_there(tmp_path: Path) -> None:
    broken = attrs.evolve(OVERLAY, links={**OVERLAY.links, "kind": np.full(40, 7)})
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
    assert (format_of(None, None), format_of(None, Path("a.GEXF"))) == ("graphml", "gexf")
    assert format_of("edges", Path("a.txt")) == "edges"
    with pytest.raises(ScenarioError, match="--format is 'dot', expected one of graphml, gexf"):
        format_of("dot", None)
    with pytest.raises(ScenarioError, match=r"--out is 'a.txt', expected a name that ends with"):
        format_of(None, Path("a.txt"))
