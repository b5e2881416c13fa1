"""Delta tables that commands append to at the same time, and that others read meanwhile."""

from __future__ import annotations

import importlib.util
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gossamer.sim.errors import ResultsError
from gossamer.sim.results.intervals import Value
from gossamer.sim.results.storage.place import LocalPlace, Place
from gossamer.sim.results.storage.remote import remote_place
from gossamer.sim.study.records import CDF, Row
from gossamer.spark.crunch import delta_tables
from gossamer.spark.crunch.crunching import Crunched
from gossamer.spark.crunch.curves import Curves, CurveWriter, Owner
from gossamer.spark.crunch.deliveries import as_table
from gossamer.spark.crunch.kept_runs import KnownRun, KnownSystem
from gossamer.spark.storage.delta import append_to, as_delta, opened_delta
from support import spark_processes
from support.made_up_results import write_run, write_runs
from support.object_store import BUCKET, ObjectStore
from support.spark_processes import run_spark_here, run_spark_well
from support.spark_results import crunch

pytest.importorskip("deltalake", reason="needs Delta tables: pip install '.[delta]'")
APPENDED = ("--format", "delta", "--append")
TABLES = ("curves", "measures", "runs")
MEASURES = ("hit_ratio", "load_gini")
ROWS = pa.schema([("run", pa.string()), ("x", pa.int64())])


def rows_of(out: Path, name: str) -> Any:
    from deltalake import DeltaTable

    return DeltaTable(out / name).to_pyarrow_table()


def crunched(runs: Path, out: Path, *options: str) -> str:
    done = run_spark_here("crunch", str(runs), "--out", str(out), "--format", "delta", *options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(*arguments: object) -> str:
    done = run_spark_here(*map(str, arguments))
    assert (done.returncode, done.stdout) == (2, "")
    (sentence,) = spark_processes.sentences(done.stderr)
    return sentence


@pytest.mark.campaign
def test_tables_have_what_parquet_has(session: Any, tmp_path: Path) -> None:
    runs, out = write_runs(tmp_path / "runs", 1, 2), tmp_path / "out"
    crunch(session, runs, tmp_path / "plain")
    crunched(runs / "1", out, "--partition-by", "nodes", "--partition-by", "system")
    crunched(runs, out, "--append")
    for name in ("curves", "measures"):
        own = rows_of(out, name)
        columns = [one for one in own.column_names if one != "nodes"]
        expected = pq.read_table(tmp_path / "plain" / f"{name}.parquet", columns=columns)
        keys = [(one, "ascending") for one in columns]
        own_rows, rows = (one.select(columns).sort_by(keys).to_pylist() for one in (own, expected))
        assert repr(own_rows) == repr(rows)  # some values are NaN
        assert set(own["nodes"].to_pylist()) == {"40"}


@pytest.mark.usefixtures("session")
def test_runs_are_added_by_the_command_or_refused(tmp_path: Path) -> None:
    runs, out = write_runs(tmp_path / "runs", 1, 2), tmp_path / "out"
    told = crunched(runs / "1", out, "--partition-by", "nodes", "--partition-by", "system")
    assert f"Crunched: {out}" in told
    assert "1 runs were there already: left out." in crunched(runs, out, "--append")
    assert {path.name for path in out.iterdir()} == {*TABLES}
    found = rows_of(out, "runs").to_pylist()
    assert [Counter(row[key] for row in found) for key in ("seed", "system")] == [
        Counter({1: 2, 2: 2}),
        Counter(dict.fromkeys({row["system"] for row in found}, 2)),
    ]
    assert all(dict(row["scenario"])["nodes"] == "40" for row in found)
    assert (out / "measures" / "nodes=40").is_dir()
    assert "already holds results" in refused("crunch", runs, "--out", out, "--format", "delta")
    again = ("crunch", runs, "--out", out, "--append")
    assert "is partitioned by nodes, system" in refused(
        *again, "--format", "delta", "--partition-by", "seed"
    )
    assert "cannot be appended to, expected crunched results with runs.json" in refused(*again)
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "runs.json").touch()
    plain = ("crunch", runs, "--out", tmp_path / "plain", *APPENDED)
    assert "cannot be appended to as Delta tables, expected Delta tables" in refused(*plain)
    shutil.rmtree(runs / "1")
    write_run(runs / "1", 3)
    assert "has changed since" in refused(*again, "--format", "delta")


@pytest.mark.campaign
@pytest.mark.usefixtures("session")
def test_two_commands_append_while_others_read(tmp_path: Path) -> None:
    """Commands that crunch at the same time are both there in the end."""
    out, runs = tmp_path / "out", [write_runs(tmp_path / f"{one}", one) for one in range(1, 4)]
    crunched(runs[0], out)
    options = ("--out", str(out), *APPENDED)
    read_meanwhile(out, [partial(run_spark_well, "crunch", str(one), *options) for one in runs[1:]])
    assert sorted(set(rows_of(out, "runs")["seed"].to_pylist())) == [1, 2, 3]


def read_meanwhile(out: Path, writing: Sequence[Callable[[], object]]) -> None:
    """Let functions append runs of equal sizes while DuckDB reads by way of Arrow."""
    duckdb = pytest.importorskip("duckdb", reason="needs DuckDB: pip install duckdb")
    from deltalake import DeltaTable

    snapshot = DeltaTable(out / "measures").to_pyarrow_dataset()
    before = snapshot.count_rows()
    over, failed = threading.Event(), list[tuple[int, int]]()
    seen = set[int]()

    def read() -> None:
        while not over.is_set():
            table = DeltaTable(out / "measures").to_pyarrow_dataset()
            found = duckdb.connect().from_arrow(table).aggregate("count(*), count(distinct run)")
            ((count, different),) = found.fetchall()
            seen.add(different)
            if count != different * before:
                failed.append((count, different))

    threads = [threading.Thread(target=one) for one in (read, *writing)]
    for thread in threads:
        thread.start()
    for thread in threads[1:]:
        thread.join()
    over.set()
    threads[0].join()
    assert (failed, seen <= {*range(1, len(threads) + 1)}) == ([], True)
    assert snapshot.count_rows() == before
    assert rows_of(out, "measures").num_rows == len(threads) * before


@attrs.frozen
class Found:
    """A run that was crunched, and what was found of it, without Spark."""

    folder: Path

    def add_to(self, out: Path, run: str) -> None:
        owner = Owner(run, (("nodes", 5),), 1, "kindred")
        rows = as_table(0, [Row(CDF, "delay", one, 2 * one) for one in (0.0, 1.0)], "exact")
        with CurveWriter(self.folder / f"{run}.parquet", {0: owner}) as curves:
            curves.write(rows)
        values = [
            Value(**attrs.asdict(owner, recurse=False), measure=one, value=0.5, method="exact")
            for one in MEASURES
        ]
        found = Crunched(
            folder=LocalPlace(out),
            runs=1,
            values=values,
            intervals=(),
            comparisons=(),
            curves=Curves(LocalPlace(self.folder / f"{run}.parquet"), {}),
            notes=(),
        )
        system = KnownSystem(number=0, system="kindred", kind="peers", lacking=())
        known = KnownRun(
            name=run,
            digest=f"of {run}",
            seed=1,
            scenario={"nodes": 5, "on": True},
            crunched_by="1",
            systems=(system,),
        )
        delta_tables.add_runs(LocalPlace(out), ["nodes"], [known], found, {"by": run})


def test_runs_are_added_at_the_same_time_and_read_meanwhile(tmp_path: Path) -> None:
    """Before, one process at a time could work on a folder, and wrote all of it again."""
    out, found = tmp_path / "out", Found(tmp_path)
    found.add_to(out, "a")
    read_meanwhile(out, [partial(found.add_to, out, one) for one in "bc"])
    found.add_to(out, "b")  # is there
    runs = rows_of(out, "runs").to_pylist()
    assert sorted(row["run"] for row in runs) == ["a", "b", "c"]
    assert {tuple(row["scenario"]) for row in runs} == {(("nodes", "5"), ("on", "true"))}
    assert {row["nodes"] for row in runs} == {"5"}
    own = {"run": "c", "seed": 1, "system": "kindred", "nodes": "5"}
    for name, rest in (
        ("measures", [{"measure": one, "value": 0.5, "method": "exact"} for one in MEASURES]),
        ("curves", [{"part": CDF, "name": "delay", "x": x, "value": 2 * x} for x in (0.0, 1.0)]),
    ):
        there = [row for row in rows_of(out, name).to_pylist() if row["run"] == "c"]
        assert there == [own | row for row in rest]
    assert [version_of(out, name) for name in TABLES] == [3, 3, 3]


def version_of(out: Path, name: str) -> int:
    from deltalake import DeltaTable

    return int(DeltaTable(out / name).version())


def test_what_a_killed_command_left_is_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, found = tmp_path / "out", Found(tmp_path)

    def killed(place: Place, *arguments: Any) -> None:
        if place.name != "curves":
            raise KeyboardInterrupt
        append_to(place, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(delta_tables, "append_to", killed)
        with pytest.raises(KeyboardInterrupt):
            found.add_to(out, "a")
    assert delta_tables.read_tables(LocalPlace(out), append=True).runs == ()
    found.add_to(out, "a")
    assert [rows_of(out, name).num_rows for name in TABLES] == [2, 2, 1]
    kept = delta_tables.read_tables(LocalPlace(out), append=True)
    assert [(run.name, run.digest) for run in kept.runs] == [("a", "of a")]


def batches(*runs: str) -> Any:
    table = pa.table({"run": [*runs], "x": [1] * len(runs)}, ROWS)
    return pa.RecordBatchReader.from_batches(ROWS, table.to_batches())


def test_the_second_of_two_that_add_the_same_is_refused(tmp_path: Path) -> None:
    place = LocalPlace(tmp_path / "t")
    first, second, third = (opened_delta(place, ROWS, ["run"]) for _ in range(3))
    append_to(place, first, batches("a"), ["a"], {"by": "one"})
    append_to(place, second, batches("b"), ["b"], {})
    with pytest.raises(ResultsError, match="t got some of these runs from another process"):
        append_to(place, third, batches("a", "c"), ["a", "c"], {})
    now = opened_delta(place, ROWS, [])
    assert sorted(now.to_pyarrow_table()["run"].to_pylist()) == ["a", "b"]
    assert [now.transaction_version(one) for one in "abc"] == [1, 1, None]
    assert now.metadata().partition_columns == ["run"]
    assert "one" in [told.get("by") for told in now.history()]


def test_tables_are_in_a_store_as_well(store: ObjectStore) -> None:
    place = remote_place(f"s3a://{BUCKET}/delta/t", store.options())
    tables = [opened_delta(place, ROWS, []) for _ in range(2)]
    append_to(place, tables[0], batches("a"), ["a"], {})
    with pytest.raises(ResultsError, match="got some of these runs from another process"):
        append_to(place, tables[1], batches("a"), ["a"], {})
    found = opened_delta(place, ROWS, []).to_pyarrow_table()
    assert found.to_pylist() == [{"run": "a", "x": 1}]


@pytest.mark.usefixtures("session")
def test_a_workload_is_a_delta_table_of_the_same_files(tmp_path: Path) -> None:
    made = ("workload", "churn", "--subscriptions", "20", "--format", "delta")
    done = run_spark_here(*made, "--out", str(tmp_path / "w"))
    assert done.returncode == 0, done.stderr
    (file,) = (tmp_path / "w" / "sessions").glob("*.parquet")
    assert rows_of(tmp_path / "w", "sessions").equals(pq.read_table(file))


@pytest.mark.campaign
def test_a_workload_of_delta_tables_is_crunched_as_any(session: Any, tmp_path: Path) -> None:
    made = ("workload", "siena", "--subscriptions", "30", "--events", "20")
    for name, options in (("plain", ()), ("delta", ("--format", "delta"))):
        assert run_spark_here(*made, "--out", str(tmp_path / name), *options).returncode == 0
    kinds = ("plain", "delta")
    files = [
        {one.name: one.read_bytes() for one in tmp_path.glob(f"{kind}/*/*.parquet")}
        for kind in kinds
    ]
    assert files[0] == files[1] != {}
    found = [crunch(session, tmp_path / kind, tmp_path / f"of-{kind}").values for kind in kinds]
    assert repr(found[0]).replace("plain", "delta") == repr(found[1])


def test_a_folder_of_no_parquet_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="nowhere cannot be a Delta table"):
        as_delta(LocalPlace(tmp_path / "nowhere"))


def test_formats_are_known_and_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crunching_to = ("crunch", tmp_path, "--out", tmp_path / "out", "--format")
    assert "--format is 'csv', expected parquet or delta" in refused(*crunching_to, "csv")
    claims = refused(*crunching_to, "delta", "--claim", "V3")
    assert "--claim is 'V3', expected no --format delta beside it" in claims
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "deltalake" else find(name)
    )
    sentence = '`--format delta` needs deltalake, which is not installed: "pip install'
    assert sentence in refused(*crunching_to, "delta")
