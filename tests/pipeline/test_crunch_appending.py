"""Runs that are added to crunched ones: what comes of it is what comes of all at once."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from gossamer.sim.errors import ResultsError, ScenarioError
from gossamer.sim.results.storage.place import LocalPlace
from gossamer.spark.commands.cli import app
from gossamer.spark.crunch.folders import find_runs
from gossamer.spark.crunch.kept_runs import RUNS_FILE, check_is_appendable
from gossamer.spark.storage.folders import grown_folder
from gossamer.spark.storage.lineage import read_lineage
from support.made_up_results import contents, write_run
from support.spark_processes import needs_spark
from support.spark_results import crunch

CSV = ("measures.csv", "intervals.csv", "comparisons.csv")


def write_runs(folder: Path) -> tuple[list[Path], list[Path]]:
    """Runs of two systems: two seeds of one size; another seed, and other sizes and systems."""
    chosen = ((40, 1, "kindred"), (40, 2, "kindred"), (40, 3, "kindred"))
    made = [
        write_run(folder / f"{nodes}-{seed}", seed, nodes=nodes, names=(one, "baseline"))
        for nodes, seed, one in (*chosen, (60, 1, "kindred"), (60, 2, "third"))
    ]
    return made[:2], made[2:]


def all_rows(folder: Path, name: str) -> pa.Table:
    """A table in an order of its own, whole or in partitions; all as text, as NaN is not NaN."""
    found = pq.read_table(folder / name if (folder / name).is_dir() else folder / f"{name}.parquet")
    columns = ["run", "system", *(["part", "name", "x"] if name == "curves" else ["measure"])]
    for one in ("run", "system", "value"):
        place = found.column_names.index(one)
        found = found.set_column(place, one, found[one].cast(pa.string()))
    chosen = found.select([*columns, "value", "condition"])
    return chosen.sort_by([(one, "ascending") for one in columns]).combine_chunks()


@attrs.frozen
class Appended:
    """Runs of two commands in one folder, and those of one command in another."""

    first: list[Path]
    later: list[Path]
    out: Path
    whole: Path


def appended(session: Any, folder: Path, keys: tuple[str, ...], plots: bool) -> Appended:
    """Crunch runs, and others into the same folder; and all at once."""
    first, later = write_runs(folder / "runs")
    out, whole = folder / "out", folder / "whole"
    crunch(session, first, out, partition_by=keys or None, append=True)
    crunch(session, later, out, append=True, plots=plots)
    at_once = crunch(session, [*first, *later], whole)
    assert at_once.runs == 5
    return Appended(first, later, out, whole)


@pytest.fixture(scope="module")
def partitioned(session: Any, tmp_path_factory: pytest.TempPathFactory) -> Appended:
    return appended(session, tmp_path_factory.mktemp("appended"), ("nodes", "system"), plots=False)


def is_the_same(one: Appended) -> None:
    for name in CSV:
        assert (one.out / name).read_bytes() == (one.whole / name).read_bytes(), name
    for name in ("measures", "curves"):
        assert all_rows(one.out, name).equals(all_rows(one.whole, name)), name
    assert json.loads((one.out / "crunch.json").read_text())["runs"] == 5


@pytest.mark.campaign
def test_runs_added_are_as_runs_crunched_at_once(session: Any, tmp_path: Path) -> None:
    is_the_same(appended(session, tmp_path, (), plots=True))


def test_runs_added_in_partitions_are_as_runs_crunched_at_once(
    session: Any, partitioned: Appended
) -> None:
    is_the_same(partitioned)
    out, whole = partitioned.out, partitioned.whole
    told = read_lineage(LocalPlace(out))
    runs = [*partitioned.first, *partitioned.later]
    assert [Path(one["place"]).name for one in told["inputs"]] == [run.name for run in runs]
    assert told["seeds"] == [1, 2, 3]
    assert len(told["earlier"]) == 1
    shown = CliRunner().invoke(app, ["lineage", str(out)])
    assert "appended to what was made by" in shown.output
    assert not (out / "measures.parquet").exists()
    frame = session.read.parquet(f"file://{out}/measures")
    assert frame.count() == len(pq.read_table(whole / "measures.parquet"))
    small = frame.where("nodes = 40 and system = 'kindred'")
    assert small.select("seed").distinct().count() == 3
    partitions = {path.name for path in (out / "measures" / "nodes=60").iterdir()}
    assert partitions == {"system=baseline", "system=kindred", "system=third"}


def test_runs_that_are_there_already_are_left_out(session: Any, partitioned: Appended) -> None:
    known = [partitioned.first[0], partitioned.later[0]]
    again = crunch(session, known, partitioned.out, append=True)
    assert "2 runs were there already: left out." in again.notes
    is_the_same(partitioned)


@needs_spark
def test_a_second_append_and_one_with_claims_give_way_before_spark_starts(tmp_path: Path) -> None:
    words = ["--out", str(tmp_path / "out"), "--append"]
    done = CliRunner().invoke(app, ["crunch", "r", *words, "--claim", "V3"])
    assert isinstance(done.exception, ScenarioError)
    assert "no --append beside it" in str(done.exception)
    run = write_run(tmp_path / "run")
    with grown_folder(LocalPlace(tmp_path / "out")):
        done = CliRunner().invoke(app, ["crunch", str(run), *words])
        (tmp_path / ".out.lock").stat()
    assert isinstance(done.exception, ResultsError)
    sentence = f"is being worked on by process {os.getpid()}, expected to be alone with it"
    assert sentence in str(done.exception)


OTHERWISE = "expected the same --partition-by, none"


@pytest.mark.parametrize(
    ("kept", "asked", "sentence"),
    [
        (None, None, "cannot be appended to, expected crunched results with runs.json"),
        ({"format": 2}, None, "is of format 2, expected 1; crunch all"),
        ({"runs": [{}]}, None, "is no list of crunched runs"),
        ({"runs": 7}, None, "is no list of crunched runs"),
        ({}, ["seed"], f"is partitioned by nodes, {OTHERWISE}"),
        ({"partition_by": []}, ["seed"], f"is partitioned by nothing, {OTHERWISE}"),
        ({"partition_by": ["width"]}, None, "'width', expected system, seed, or a key of the sce"),
    ],
)
def test_what_cannot_be_appended_to_is_refused_and_stays(
    tmp_path: Path, kept: dict[str, object] | None, asked: list[str] | None, sentence: str
) -> None:
    run = write_run(tmp_path / "run")
    (tmp_path / "out").mkdir()
    if kept is None:
        (tmp_path / "out" / "mine").write_text("1")
    else:
        told = {"format": 1, "partition_by": ["nodes"], "runs": []} | kept
        (tmp_path / "out" / RUNS_FILE).write_text(json.dumps(told))
    before = contents(tmp_path)
    with pytest.raises((ResultsError, ScenarioError)) as refused:
        check_is_appendable(LocalPlace(tmp_path / "out"), find_runs([run]), asked)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)
    assert contents(tmp_path) == before


def test_a_changed_run_is_refused(session: Any, partitioned: Appended, tmp_path: Path) -> None:
    runs, out = tmp_path / "runs", tmp_path / "out"
    shutil.copytree(partitioned.first[0].parent, runs)
    shutil.copytree(partitioned.whole, out)
    kept = (out / RUNS_FILE).read_text()
    (out / RUNS_FILE).write_text(kept.replace(str(partitioned.first[0].parent), str(runs)))
    before = contents(out)
    changed = runs / partitioned.first[0].name
    shutil.rmtree(changed)
    write_run(changed, 9)
    sentence = r"40-1 has changed since .* took it in, expected the same"
    with pytest.raises(ResultsError, match=sentence):
        crunch(session, [changed], out, append=True)
    assert contents(out) == before
    (out / "measures.parquet").unlink()
    with pytest.raises(ResultsError, match=r"measures\.parquet does not exist, expected a table"):
        crunch(session, [runs / partitioned.first[1].name], out, append=True)
