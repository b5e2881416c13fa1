"""Runs crunched by Spark, at once or added later: the figures of summaries, odd ones refused."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from gossamer.sim.errors import ResultsError, ScenarioError
from gossamer.sim.results import interval_plots, results
from gossamer.sim.results.storage.place import LocalPlace
from gossamer.sim.studies.peers.measuring import records
from gossamer.sim.study.plot import PlotOptions, plots_as
from gossamer.sim.study.records import empty_table
from gossamer.spark.commands.cli import app
from gossamer.spark.crunch import deliveries
from gossamer.spark.crunch import folders as crunch_folders
from gossamer.spark.crunch.crunching import Crunched
from gossamer.spark.crunch.folders import find_runs
from gossamer.spark.crunch.kept_runs import RUNS_FILE, check_is_appendable
from gossamer.spark.errors import JobError
from gossamer.spark.storage import folders, lineage
from support.made_up_results import change, contents, damage, spoil, write_run, write_runs
from support.spark_processes import needs_spark
from support.spark_results import crunch


def figures(found: Crunched) -> dict[tuple[str, str, str], float]:
    """Values by the last part of the run's name, system and measure."""
    return {(Path(one.run).name, one.system, one.measure): one.value for one in found.values}


@attrs.frozen
class Corpus:
    """Runs that are crunched once for all tests, changed as `corpus` says."""

    runs: Path
    few: pa.Table
    out: Path
    found: Crunched

    @property
    def values(self) -> dict[tuple[str, str, str], float]:
        return figures(self.found)


@pytest.fixture(scope="module")
def corpus(session: Any, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    folder = tmp_path_factory.mktemp("corpus")
    runs = write_runs(folder / "runs", 1, 2, 3, 4, 5)
    shutil.copytree(runs / "1", runs / "again")
    # A table of 3 is a hundred times as large, a system of 4 has tables of an older version, and
    # one of 5 has delays of many values.
    large = runs / "3" / "baseline" / "deliveries.parquet"
    few = pq.read_table(large)
    pq.write_table(pa.concat_tables([few] * 100), large, row_group_size=5_000)
    old = runs / "4" / "kindred"
    change(old / "deliveries.parquet", {"tree_hops": None, "hops": lambda c: c.cast(pa.int64())})
    change(old / "events.parquet", {"duplicates": None, "event": lambda c: c.cast(pa.int32())})
    change(old / "cycles.parquet", {"ring_correct": None})
    change(old / "nodes.parquet", {"load": lambda c: c.cast(pa.float32())})
    draws = np.random.default_rng(1)
    change(
        runs / "5" / "kindred" / "deliveries.parquet",
        {"time_s": lambda old: pa.array(old.to_numpy() + draws.random(len(old)))},
    )
    return Corpus(runs, few, folder / "out", crunch(session, runs, folder / "out"))


def is_of_summaries(corpus: Corpus, run: str, systems: Iterable[str]) -> None:
    """Figures of a run are those that its summary has of these systems."""
    summary, values = results.read_results(corpus.runs / run).summary, corpus.values
    for system in systems:
        wanted = {
            name: value
            for name, value in summary["systems"][system].items()
            if (run, system, name) in values and value is not None
        }
        assert len(wanted) > 25
        assert {name: values[run, system, name] for name in wanted} == pytest.approx(wanted), run


def test_figures_are_those_of_the_summaries(corpus: Corpus) -> None:
    for run in "12":
        is_of_summaries(corpus, run, ("kindred", "baseline"))
    assert {one.seeds for one in corpus.found.intervals if one.system == "baseline"} == {5}
    with (corpus.out / "measures.csv").open(newline="") as stream:
        rows = [float(row["value"]) for row in csv.DictReader(stream)]
    table = pq.read_table(corpus.out / "measures.parquet")["value"].to_pylist()
    assert rows == pytest.approx(table, nan_ok=True)
    assert json.loads((corpus.out / "crunch.json").read_text())["runs"] == 6


def test_figures_are_drawn_and_put_on_a_page(session: Any, corpus: Corpus, tmp_path: Path) -> None:
    drawn = tmp_path / "out"
    with plots_as(PlotOptions(formats=("svg",))):
        crunch(session, corpus.runs / "1", drawn, plots=True)
    assert "http://" not in (drawn / "report.html").read_text().replace("http://www.w3.org", "")
    plots = {path.stem for path in (drawn / "plots").glob("*.svg")}
    assert plots >= {"hit_ratio", "cdf-load", "lorenz-load", "cdf-path-length", "series-hit-ratio"}


def test_the_same_run_twice_counts_once_and_one_may_be_far_larger(corpus: Corpus) -> None:
    assert "2 systems were run again with the same seed: left out." in corpus.found.notes
    hops = corpus.few["hops"].to_numpy()
    assert corpus.values["3", "baseline", "deliveries"] == 100 * len(hops)
    assert corpus.values["3", "baseline", "path_length_mean"] == pytest.approx(hops.mean())


def test_versions_of_tables_may_be_mixed(corpus: Corpus) -> None:
    values = corpus.values
    summary = results.read_results(corpus.runs / "4").summary["systems"]["kindred"]
    is_of_summaries(corpus, "4", ("baseline",))
    whole = {name: value for name, value in summary.items() if isinstance(value, int | float)}
    compared = 0
    for measure in {measure for run, _, measure in values if run == "1"}:
        key = ("4", "kindred", measure)
        if measure.startswith("tree_length"):
            assert key not in values
        elif "duplicate" in measure or measure == "ring_correct_final":
            assert np.isnan(values[key])
        elif measure in whole:
            compared += 1
            assert values[key] == pytest.approx(whole[measure], rel=1e-6, nan_ok=True), measure
    assert compared > 20
    notes = corpus.found.notes
    assert any("1 of 12 tables have no column deliveries.tree_hops" in note for note in notes)


def test_portions_of_runs_make_equal_tables(session: Any, corpus: Corpus, tmp_path: Path) -> None:
    """What the driver holds at a time is a portion, however many runs there are."""
    import gossamer.spark.crunch.crunching as crunching
    import gossamer.spark.crunch.kept_runs as writing

    held: list[int] = []

    def rows(*given: Any) -> pa.Table:
        found = read(*given)
        held.append(len(set(found["system"].to_pylist())))
        return found

    read = crunching._rows
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crunching, "_PORTION", 3)
        patch.setattr(crunching, "_rows", rows)
        patch.setattr(writing, "_PORTION", 7)
        portioned = crunch(session, corpus.runs, tmp_path / "portioned")
    assert held == [6, 6]
    assert figures(portioned) == pytest.approx(corpus.values, nan_ok=True)
    folders = (corpus.out, tmp_path / "portioned")
    for name in ("measures", "intervals", "comparisons"):
        schemas = [pq.read_schema(folder / f"{name}.parquet") for folder in folders]
        csvs = [(folder / f"{name}.csv").read_bytes() for folder in folders]
        assert (schemas[0], csvs[0]) == (schemas[1], csvs[1])
    order = [(key, "ascending") for key in ("run", "system", "part", "name", "x")]
    curves = [pq.read_table(folder / "curves.parquet").sort_by(order) for folder in folders]
    assert curves[0].drop_columns("value").equals(curves[1].drop_columns("value"))
    one, other = [curve["value"].to_numpy() for curve in curves]
    assert np.array_equal(one, other, equal_nan=True)
    assert len(curves[0]) > 5_000


def test_many_delays_are_exact_in_parts(session: Any, corpus: Corpus, tmp_path: Path) -> None:
    """No task gets all counts of a system where they are many; the same is found."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deliveries, "_MOST_TOGETHER", 50)
        found = figures(crunch(session, corpus.runs / "5", tmp_path / "parts", exact_up_to=0))
    wanted = {key: value for key, value in corpus.values.items() if key[0] == "5"}
    means = {key: wanted.pop(key) for key in list(wanted) if key[2] == "delay_mean_s"}
    assert {key: found.pop(key) for key in means} == pytest.approx(means, rel=1e-14)
    assert found == pytest.approx(wanted, rel=0, abs=0, nan_ok=True)


def empty_run() -> records.RunRecord:
    node = {name: np.zeros(1, kind) for name, kind in records.NODE_COLUMNS.items()}
    tables = [
        empty_table(columns)
        for columns in (records.EVENT_COLUMNS, records.DELIVERY_COLUMNS, records.CYCLE_COLUMNS)
    ]
    events, deliveries, cycles = tables
    system = records.SystemRecord("kindred", {}, events, deliveries, node, cycles)
    scenario = {"name": "empty"}
    return records.RunRecord(
        scenario=scenario, scenario_text="", seed=1, wall_s=0.0, systems={"kindred": system}
    )


@pytest.mark.parametrize("plots", [False, pytest.param(True, marks=pytest.mark.campaign)])
def test_other_runs_are_crunched(session: Any, tmp_path: Path, plots: bool) -> None:
    """Those of brokers, of a kind unknown, and of one node to which nothing happened."""
    results.write_results(empty_run(), tmp_path / "runs" / "empty", pictures=False)
    for run, delays in (("a", [0.5, 1.5, 0.5]), ("b", [2.0])):
        folder = tmp_path / "runs" / run / "active"
        folder.mkdir(parents=True)
        counts = {"table": [3, 5], "handled": [10, 30], "publications": [4, 4]}
        tables: dict[str, dict[str, Iterable[float]]] = {
            "deliveries": {"publication": range(len(delays)), "delay_s": delays},
            "queues": {"time_s": [1.0, 2.0], f"core-{run}": [4, 7]},
            "brokers": {**counts, "false_positives": [0, 2], "triggered": [1, 1]},
        }
        for name, columns in tables.items():
            arrays = {column: pa.array(list(values)) for column, values in columns.items()}
            pq.write_table(pa.table(arrays), folder / f"{name}.parquet")
        (tmp_path / "runs" / run / "SINGLE").mkdir()
        told = {"cost": 2.5, "name": "text", "on": True, "none": None}
        systems = {"active": {"totals": {"x": 1}}, "SINGLE": told}
        summary = {"scenario": {"kind": "brokers"}, "seed": ord(run), "result_hash": ""}
        (tmp_path / "runs" / run / "summary.json").write_text(
            json.dumps({**summary, "systems": systems})
        )
    found = crunch(session, tmp_path / "runs", tmp_path / "out", plots=plots)
    wanted = {
        ("a", "active", "delay_p50_s"): 0.5,
        ("a", "active", "delay_mean_s"): pytest.approx(2.5 / 3),
        ("b", "active", "delay_max_s"): 2.0,
        ("b", "active", "queue_max"): 7,
        ("a", "active", "false_positive_ratio"): 0.25,
        ("a", "active", "total_x"): 1,
        ("a", "SINGLE", "cost"): 2.5,
        **{("a", "SINGLE", name): None for name in ("name", "on", "none")},
        ("empty", "kindred", "nodes"): 1,
        ("empty", "kindred", "load_gini"): 0,
        ("empty", "kindred", "hit_ratio"): pytest.approx(np.nan, nan_ok=True),
        ("empty", "kindred", "path_length_mean"): None,
    }
    values = figures(found)
    assert {key: values.get(key) for key in wanted} == wanted
    assert "The measures of 2 systems are those of their summaries alone." in found.notes


def test_lines_are_drawn_along_what_takes_most_values() -> None:
    kinds = [(a, kind) for a in (1, 2, 3) for kind in ("random", "skewed")]
    conditions = [(("attributes", a), ("kind", kind), ("width", 0.1 * a)) for a, kind in kinds]
    assert interval_plots.axis_of(conditions) == "attributes"
    assert interval_plots.decided_by("attributes", conditions) == {"attributes", "width"}
    assert interval_plots.axis_of([(("kind", "random"),), (("kind", "skewed"),)]) is None


DELIVERIES, EVENTS = "1/baseline/deliveries.parquet", "2/baseline/events.parquet"
AS_TEXT = {"received": lambda column: column.cast(pa.string())}


@pytest.mark.parametrize(
    ("file", "how", "sentence"),
    [
        ("1/kindred/nodes.parquet", lambda _: b"", "is damaged"),
        (DELIVERIES, {"hops": None}, "has no column hops, expected one of whole numbers"),
        (EVENTS, AS_TEXT, "has a column received of string, expected whole numbers"),
        ("1/kindred/deliveries.parquet", None, "does not exist, expected a table of the results"),
        ("1/summary.json", lambda _: b"{", "is not the summary of a run"),
        ("1/summary.json", lambda _: b'{"systems": {}}', "has no seed"),
    ],
)
def test_what_cannot_be_read_is_refused_first(
    tmp_path: Path, file: str, how: Any, sentence: str
) -> None:
    spoil(write_runs(tmp_path / "runs", 1, 2) / file, how)
    with pytest.raises(ResultsError, match=re.escape(f"{file[2:]} {sentence}")):
        find_runs([tmp_path / "runs"])
    (tmp_path / "none").mkdir()
    with pytest.raises(ResultsError, match="holds no results"):
        find_runs([tmp_path / "none"])


def test_footers_of_many_tables_are_read_by_tasks(
    session: Any, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same is found, and told of what is damaged; the driver opens no table."""
    with monkeypatch.context() as patch:
        patch.setattr(crunch_folders, "_MOST_FOOTERS", 0)
        patch.setattr(crunch_folders, "opened_table", None)
        patch.setattr(deliveries, "opened_table", None)
        found = crunch(session, corpus.runs, tmp_path / "out")
        for name in ("measures.csv", "runs.json"):
            assert (tmp_path / "out" / name).read_bytes() == (corpus.out / name).read_bytes()
        assert found.notes == corpus.found.notes
        spoil(write_runs(tmp_path / "runs", 1) / DELIVERIES, {"hops": None})
        with pytest.raises(JobError, match=r"baseline/deliveries\.parquet has no column hops, exp"):
            crunch(session, tmp_path / "runs", tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_system_without_tables_is_known_by_its_summary_alone(tmp_path: Path) -> None:
    shutil.rmtree(write_run(tmp_path / "run") / "kindred")
    assert [one.kind for one in find_runs([tmp_path])[0].systems] == ["others", "peers"]


def test_a_table_that_is_damaged_inside_leaves_nothing(session: Any, tmp_path: Path) -> None:
    damage(write_run(tmp_path / "runs") / "kindred" / "deliveries.parquet")
    with pytest.raises((JobError, ResultsError), match=r"deliveries\.parquet is damaged") as failed:
        crunch(session, tmp_path / "runs", tmp_path / "out")
    assert "\n" not in str(failed.value)
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


def write_two_systems(folder: Path) -> tuple[list[Path], list[Path]]:
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
        found = found.set_column(found.column_names.index(one), one, found[one].cast(pa.string()))
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
    first, later = write_two_systems(folder / "runs")
    out, whole = folder / "out", folder / "whole"
    crunch(session, first, out, partition_by=keys or None, append=True)
    crunch(session, later, out, append=True, plots=plots)
    assert crunch(session, [*first, *later], whole).runs == 5
    return Appended(first, later, out, whole)


@pytest.fixture(scope="module")
def partitioned(session: Any, tmp_path_factory: pytest.TempPathFactory) -> Appended:
    return appended(session, tmp_path_factory.mktemp("appended"), ("nodes", "system"), plots=False)


def is_the_same(one: Appended) -> None:
    for name in ("measures.csv", "intervals.csv", "comparisons.csv"):
        assert (one.out / name).read_bytes() == (one.whole / name).read_bytes(), name
    for name in ("measures", "curves"):
        assert all_rows(one.out, name).equals(all_rows(one.whole, name)), name
    assert json.loads((one.out / "crunch.json").read_text())["runs"] == 5


@pytest.mark.campaign
def test_runs_added_are_as_runs_crunched_at_once(session: Any, tmp_path: Path) -> None:
    is_the_same(appended(session, tmp_path, (), plots=True))


def test_runs_added_in_partitions_are_as_all_at_once(session: Any, partitioned: Appended) -> None:
    is_the_same(partitioned)
    out, whole = partitioned.out, partitioned.whole
    told = lineage.read_lineage(LocalPlace(out))
    runs = [*partitioned.first, *partitioned.later]
    assert [Path(one["place"]).name for one in told["inputs"]] == [run.name for run in runs]
    assert (told["seeds"], len(told["earlier"])) == ([1, 2, 3], 1)
    assert "appended to what was made by" in CliRunner().invoke(app, ["lineage", str(out)]).output
    assert not (out / "measures.parquet").exists()
    frame = session.read.parquet(f"file://{out}/measures")
    assert frame.count() == len(pq.read_table(whole / "measures.parquet"))
    assert frame.where("nodes = 40 and system = 'kindred'").select("seed").distinct().count() == 3
    partitions = {path.name for path in (out / "measures" / "nodes=60").iterdir()}
    assert partitions == {"system=baseline", "system=kindred", "system=third"}
    # Runs that are there already are left out.
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
    with folders.grown_folder(LocalPlace(tmp_path / "out")):
        done = CliRunner().invoke(app, ["crunch", str(run), *words])
        (tmp_path / ".out.lock").stat()
    assert isinstance(done.exception, ResultsError)
    sentence = f"is being worked on by process {os.getpid()}, expected to be alone with it"
    assert sentence in str(done.exception)


@pytest.mark.parametrize(
    ("kept", "asked", "sentence"),
    [
        (None, None, "cannot be appended to, expected crunched results with runs.json"),
        ({"format": 2}, None, "is of format 2, expected 1; crunch all"),
        ({"runs": [{}]}, None, "is no list of crunched runs"),
        ({"runs": 7}, None, "is no list of crunched runs"),
        ({}, ["seed"], "is partitioned by nodes, expected the same --partition-by, none"),
        (
            {"partition_by": []},
            ["seed"],
            "is partitioned by nothing, expected the same --partition-by, none",
        ),
        ({"partition_by": ["width"]}, None, "'width', expected system, seed, or a key of the sce"),
    ],
)
def test_what_cannot_be_appended_to_is_refused_and_stays(
    tmp_path: Path, kept: dict[str, object] | None, asked: list[str] | None, sentence: str
) -> None:
    run = write_run(tmp_path / "run")
    (tmp_path / "out").mkdir()
    told = json.dumps({"format": 1, "partition_by": ["nodes"], "runs": []} | (kept or {}))
    name, content = ("mine", "1") if kept is None else (RUNS_FILE, told)
    (tmp_path / "out" / name).write_text(content)
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
