"""Runs crunched by Spark: the figures of their summaries, odd runs handled or refused."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gossamer.sim.results.interval_plots import axis_of, decided_by
from gossamer.sim.results.results import read_results, write_results
from gossamer.sim.results.storage.place import PlaceError
from gossamer.sim.studies.peers.measuring.records import (
    CYCLE_COLUMNS,
    DELIVERY_COLUMNS,
    EVENT_COLUMNS,
    NODE_COLUMNS,
    RunRecord,
    SystemRecord,
)
from gossamer.sim.study.records import empty_table
from gossamer.spark.crunch.crunching import Crunched, crunch_results
from gossamer.spark.crunch.folders import find_runs
from gossamer.spark.errors import JobError
from support.made_up_runs import made_up_run

ALL = 10**9


def write_runs(folder: Path, seeds: tuple[int, ...] = (1, 2, 3)) -> None:
    """Runs of two systems, one a seed."""
    for seed in seeds:
        write_results(made_up_run(seed, nodes=40, cycles=25), folder / f"{seed}", pictures=False)


def change(file: Path, changes: Mapping[str, Any]) -> None:
    """Replace columns of a table; None removes one."""
    table = pq.read_table(file)
    for name, column in changes.items():
        place = table.column_names.index(name)
        if column is None:
            table = table.remove_column(place)
        else:
            table = table.set_column(place, name, column(table[name]))
    pq.write_table(table, file)


def figures(found: Crunched) -> dict[tuple[str, str, str], float]:
    """Values by the last part of the run's name, system and measure."""
    return {(Path(one.run).name, one.system, one.measure): one.value for one in found.values}


def crunch(session: Any, results: Path, out: Path, **options: Any) -> Crunched:
    """Crunch without plots."""
    return crunch_results(
        session, find_runs([results]), out, **{"plots": False, "exact_up_to": ALL, **options}
    )


def test_figures_are_those_of_the_summaries(session: Any, tmp_path: Path) -> None:
    write_runs(tmp_path / "runs")
    found = crunch(session, tmp_path / "runs", tmp_path / "out", plots=True)
    values = figures(found)
    for seed in (1, 2, 3):
        summary = read_results(tmp_path / "runs" / f"{seed}").summary
        for system, entry in summary["systems"].items():
            compared = 0
            for name, wanted in entry.items():
                if (f"{seed}", system, name) in values and wanted is not None:
                    assert values[f"{seed}", system, name] == pytest.approx(wanted), name
                    compared += 1
            assert compared > 25
    assert {one.seeds for one in found.intervals} == {3}
    out = tmp_path / "out"
    with (out / "measures.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    table = pq.read_table(out / "measures.parquet").to_pylist()
    assert [float(row["value"]) for row in rows] == pytest.approx(
        [row["value"] for row in table], nan_ok=True
    )
    page = (out / "report.html").read_text()
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert {path.stem for path in (out / "plots").glob("*.png")} >= {
        "hit_ratio",
        "cdf-load",
        "lorenz-load",
        "cdf-path-length",
        "series-hit-ratio",
    }
    assert json.loads((out / "crunch.json").read_text())["runs"] == 3


def test_portions_of_runs_make_the_same_tables(session: Any, tmp_path: Path) -> None:
    """What the driver holds at a time is a portion, however many runs there are."""
    write_runs(tmp_path / "runs", (1, 2, 3, 4, 5))
    whole = crunch(session, tmp_path / "runs", tmp_path / "whole")
    import gossamer.spark.crunch.crunching as crunching
    import gossamer.spark.crunch.writing as writing

    held: list[int] = []

    def rows(*given: Any) -> pa.Table:
        found = read(*given)
        held.append(len(set(found["system"].to_pylist())))
        return found

    read = crunching._rows
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crunching, "_PORTION", 2)
        patch.setattr(crunching, "_rows", rows)
        patch.setattr(writing, "_PORTION", 7)
        portioned = crunch(session, tmp_path / "runs", tmp_path / "portioned")
    assert held == [4, 4, 2]
    assert figures(portioned) == pytest.approx(figures(whole), nan_ok=True)
    for name in ("measures", "intervals", "comparisons"):
        tables = [
            pq.read_table(tmp_path / out / f"{name}.parquet") for out in ("whole", "portioned")
        ]
        assert tables[0].schema == tables[1].schema
        csvs = [(tmp_path / out / f"{name}.csv").read_bytes() for out in ("whole", "portioned")]
        assert csvs[0] == csvs[1]
    curves = [
        pq.read_table(tmp_path / out / "curves.parquet").sort_by(
            [(key, "ascending") for key in ("run", "system", "part", "name", "x")]
        )
        for out in ("whole", "portioned")
    ]
    assert curves[0].drop_columns("value").equals(curves[1].drop_columns("value"))
    one, other = [curve["value"].to_numpy() for curve in curves]
    assert np.array_equal(one, other, equal_nan=True)
    assert len(curves[0]) > 5_000


def test_a_sketch_is_near_and_said_to_be_one(session: Any, tmp_path: Path) -> None:
    record = made_up_run(1, nodes=60, cycles=40, names=("vinifera",))
    write_results(record, tmp_path / "run", pictures=False)
    draws = np.random.default_rng(1)
    change(
        tmp_path / "run" / "vinifera" / "deliveries.parquet",
        {"time_s": lambda old: pa.array(old.to_numpy() + draws.random(len(old)))},
    )
    exact = figures(crunch(session, tmp_path / "run", tmp_path / "exact"))
    import gossamer.spark.crunch.deliveries as deliveries

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deliveries, "_FEW", 0.0)
        sketched = crunch(session, tmp_path / "run", tmp_path / "sketched", exact_up_to=0)
    near = figures(sketched)
    assert near.keys() == exact.keys()
    for key, value in near.items():
        measure = key[2]
        tolerance = 0.01 if measure.startswith("delay") else 0.0
        assert value == pytest.approx(exact[key], abs=tolerance, nan_ok=True), measure
    (note,) = [note for note in sketched.notes if "Sketched" in note]
    assert "delay_p99_s" in note


def empty_run() -> RunRecord:
    """A run of one node to which nothing happened."""
    node = {name: np.zeros(1, kind) for name, kind in NODE_COLUMNS.items()}
    system = SystemRecord(
        name="vinifera",
        settings={},
        events=empty_table(EVENT_COLUMNS),
        deliveries=empty_table(DELIVERY_COLUMNS),
        nodes=node,
        cycles=empty_table(CYCLE_COLUMNS),
    )
    return RunRecord({"name": "empty"}, "", 1, {}, 0.0, 0, {"vinifera": system})


def test_a_run_of_one_node_to_which_nothing_happened(session: Any, tmp_path: Path) -> None:
    write_results(empty_run(), tmp_path / "empty", pictures=False)
    values = figures(crunch(session, tmp_path / "empty", tmp_path / "out", plots=True))
    assert values["empty", "vinifera", "nodes"] == 1
    assert values["empty", "vinifera", "load_gini"] == 0
    assert np.isnan(values["empty", "vinifera", "hit_ratio"])
    assert ("empty", "vinifera", "path_length_mean") not in values


def test_versions_of_tables_may_be_mixed(session: Any, tmp_path: Path) -> None:
    write_runs(tmp_path / "runs", (1, 2))
    old = tmp_path / "runs" / "1" / "vinifera"
    whole = figures(crunch(session, tmp_path / "runs", tmp_path / "whole"))
    change(old / "deliveries.parquet", {"tree_hops": None, "hops": lambda c: c.cast(pa.int64())})
    change(old / "events.parquet", {"duplicates": None, "event": lambda c: c.cast(pa.int32())})
    change(old / "cycles.parquet", {"ring_correct": None})
    change(old / "nodes.parquet", {"load": lambda c: c.cast(pa.float32())})
    found = crunch(session, tmp_path / "runs", tmp_path / "mixed")
    mixed = figures(found)
    for key, value in whole.items():
        run, system, measure = key
        if (run, system) != ("1", "vinifera"):
            assert mixed[key] == pytest.approx(value, nan_ok=True)
        elif measure.startswith("tree_length"):
            assert key not in mixed
        elif "duplicate" in measure or measure == "ring_correct_final":
            assert np.isnan(mixed[key])
        else:
            assert mixed[key] == pytest.approx(value, rel=1e-6, nan_ok=True), measure
    assert any("1 of 4 tables have no column deliveries.tree_hops" in one for one in found.notes)


def test_one_run_may_be_far_larger_than_the_others(session: Any, tmp_path: Path) -> None:
    write_runs(tmp_path / "runs", (1, 2))
    file = tmp_path / "runs" / "2" / "baseline" / "deliveries.parquet"
    table = pq.read_table(file)
    many = pa.concat_tables([table] * 400)
    pq.write_table(many, file, row_group_size=20_000)
    values = figures(crunch(session, tmp_path / "runs", tmp_path / "out"))
    hops = table["hops"].to_numpy()
    assert values["2", "baseline", "deliveries"] == 400 * len(hops)
    assert values["2", "baseline", "path_length_mean"] == pytest.approx(hops.mean())


def test_runs_of_brokers_and_of_kinds_unknown_are_crunched(session: Any, tmp_path: Path) -> None:
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
        summary = {
            "scenario": {"kind": "brokers"},
            "seed": ord(run),
            "result_hash": "",
            "systems": {"active": {"totals": {"x": 1}}, "SINGLE": {"cost": 2.5, "name": "text"}},
        }
        (tmp_path / "runs" / run / "summary.json").write_text(json.dumps(summary))
    found = crunch(session, tmp_path / "runs", tmp_path / "out", plots=True)
    values = figures(found)
    assert values["a", "active", "delay_p50_s"] == 0.5
    assert values["a", "active", "delay_mean_s"] == pytest.approx(2.5 / 3)
    assert values["b", "active", "delay_max_s"] == 2.0
    assert values["b", "active", "queue_max"] == 7
    assert values["a", "active", "false_positive_ratio"] == 0.25
    assert values["a", "active", "total_x"] == 1
    assert values["a", "SINGLE", "cost"] == 2.5
    assert "The measures of 2 systems are those of their summaries alone." in found.notes


def test_few_delays_are_counted_however_many_deliveries(session: Any, tmp_path: Path) -> None:
    record = made_up_run(1, nodes=40, cycles=25, names=("vinifera",))
    write_results(record, tmp_path / "run", pictures=False)
    file = tmp_path / "run" / "vinifera" / "deliveries.parquet"
    pq.write_table(pa.concat_tables([pq.read_table(file)] * 50), file)
    found = crunch(session, tmp_path / "run", tmp_path / "out", exact_up_to=0)
    assert {one.method for one in found.values} == {"exact", "summary"}


def test_lines_are_drawn_along_what_takes_most_values() -> None:
    conditions = [
        (("attributes", a), ("kind", kind), ("width", 0.1 * a))
        for a in (1, 2, 3)
        for kind in ("random", "skewed")
    ]
    assert axis_of(conditions) == "attributes"
    assert decided_by("attributes", conditions) == {"attributes", "width"}
    assert axis_of([(("kind", "random"),), (("kind", "skewed"),)]) is None


def test_the_same_run_twice_counts_once(session: Any, tmp_path: Path) -> None:
    write_runs(tmp_path / "runs", (1, 2))
    shutil.copytree(tmp_path / "runs" / "1", tmp_path / "runs" / "again")
    found = crunch(session, tmp_path / "runs", tmp_path / "out")
    assert {one.seeds for one in found.intervals} == {2}
    assert "2 systems were run again with the same seed: left out." in found.notes


def without_runs(runs: Path) -> None:
    for name in "12":
        shutil.rmtree(runs / name)


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda runs: shutil.rmtree(runs / "1" / "vinifera"), None),
        (
            lambda runs: (runs / "1/vinifera/nodes.parquet").write_bytes(b""),
            "nodes.parquet is damaged",
        ),
        (
            lambda runs: change(runs / "1/baseline/deliveries.parquet", {"hops": None}),
            "baseline/deliveries.parquet has no column hops, expected one of whole numbers",
        ),
        (
            lambda runs: change(
                runs / "2/baseline/events.parquet", {"received": lambda c: c.cast(pa.string())}
            ),
            "baseline/events.parquet has a column received of string, expected whole numbers",
        ),
        (
            lambda runs: (runs / "1/vinifera/deliveries.parquet").unlink(),
            "vinifera/deliveries.parquet does not exist, expected a table of the results",
        ),
        (lambda runs: (runs / "1/summary.json").write_text("{"), "is not the summary of a run"),
        (lambda runs: (runs / "1/summary.json").write_text('{"systems": {}}'), "has no seed"),
        (without_runs, "holds no results"),
    ],
)
def test_what_cannot_be_read_is_refused_before_anything_is_done(
    tmp_path: Path, damage: Any, sentence: str | None
) -> None:
    write_runs(tmp_path / "runs", (1, 2))
    damage(tmp_path / "runs")
    if sentence is None:  # a system without tables is known by its summary alone
        kinds = [one.kind for one in find_runs([tmp_path / "runs"])[0].systems]
        assert kinds == ["others", "peers"]
        return
    with pytest.raises(PlaceError, match=sentence.replace(".", r"\.")):
        find_runs([tmp_path / "runs"])


def test_a_table_that_is_damaged_inside_leaves_nothing(session: Any, tmp_path: Path) -> None:
    write_runs(tmp_path / "runs", (1,))
    file = tmp_path / "runs" / "1" / "vinifera" / "deliveries.parquet"
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 0xFF
    file.write_bytes(bytes(content))
    runs = find_runs([tmp_path / "runs"])
    with pytest.raises((JobError, PlaceError), match=r"deliveries\.parquet is damaged") as failed:
        crunch_results(session, runs, tmp_path / "out", plots=False, exact_up_to=ALL)
    assert "\n" not in str(failed.value)
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]
