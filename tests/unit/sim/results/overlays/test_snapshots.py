"""Snapshots are written when it is time, read back as they were, and refused where they are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from gossamer.sim.errors import ScenarioError
from gossamer.sim.results.overlays import snapshots
from gossamer.sim.results.results import Results, ResultsError
from support.watched_runs import WatchedRun, made_up_overlay


def results(folder: Path) -> Results:
    """A folder as if it were one of results."""
    return Results(folder, {"systems": {"mine": {}}})


def watched(folder: Path, every: int | None, rounds: int, size: int = 30) -> list[int]:
    """The rounds that there are snapshots of after a run."""
    run = WatchedRun("mine", 0, rounds, size)
    writer = snapshots.SnapshotWriter(folder, every)
    for now in range(rounds + 1):
        run.round = now
        writer(run)
    return snapshots.snapshot_rounds(results(folder), "mine")


@pytest.mark.parametrize(
    ("every", "rounds", "taken"),
    [(3, 8, [0, 3, 6, 8]), (4, 8, [0, 4, 8]), (1, 2, [0, 1, 2]), (None, 8, [8])],
)
def test_there_are_snapshots_every_so_many_rounds_and_of_the_end(
    every: int | None, rounds: int, taken: list[int], tmp_path: Path
) -> None:
    assert watched(tmp_path, every, rounds) == taken


def test_nobody_keeps_the_overlay_of_a_large_run_unasked(tmp_path: Path) -> None:
    assert watched(tmp_path / "a", None, 1, snapshots.MOST_NODES + 1) == []
    assert watched(tmp_path / "b", 1, 1, snapshots.MOST_NODES + 1) == [0, 1]


def test_a_snapshot_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    overlay = made_up_overlay(50)
    snapshots.write_snapshot(overlay, 7, tmp_path / "mine")
    snapshots.write_snapshot(made_up_overlay(60), 5, tmp_path / "mine")
    back = snapshots.read_snapshot(results(tmp_path), "mine")
    assert back.kinds == overlay.kinds
    for name, column in overlay.links.items():
        assert np.array_equal(back.links[name], column)
    for name, column in overlay.nodes.items():
        assert np.array_equal(back.nodes[name], column)
    assert len(snapshots.read_snapshot(results(tmp_path), "mine", 5).nodes["node"]) == 60


def test_all_snapshots_are_one_table_for_whoever_reads_the_folder(tmp_path: Path) -> None:
    assert watched(tmp_path, 2, 4) == [0, 2, 4]
    table = pq.read_table(tmp_path / "mine" / snapshots.LINKS)
    assert table.column_names == ["round", "source", "target", "kind"]
    assert table["round"].unique().to_pylist() == [0, 2, 4]
    assert set(table["kind"].unique().to_pylist()) == {"ring", "friend & foe"}


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="expected a run with --snapshots"):
        snapshots.read_snapshot(results(tmp_path), "mine")
    watched(tmp_path, 2, 4)
    with pytest.raises(ScenarioError, match="--round is 3, expected a round with a snapshot: 0, 2"):
        snapshots.read_snapshot(results(tmp_path), "mine", 3)
    file = tmp_path / "mine" / snapshots.LINKS / "00000004.parquet"
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(ResultsError, match="is not a readable snapshot"):
        snapshots.read_snapshot(results(tmp_path), "mine", 4)
