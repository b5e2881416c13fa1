"""Workloads written by Spark, here and in stores that fail: whole or not at all; their lineage."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import gossamer.sim.results.storage.remote as options
import gossamer.spark.session as session_module
import gossamer.spark.workload.writing as writing
from gossamer.sim import churn, errors
from gossamer.sim.errors import ResultsError
from gossamer.sim.results.storage.place import LocalPlace, place_of
from gossamer.sim.results.storage.remote import RemotePlace
from gossamer.sim.row_tables.kinds import KINDS, WorkloadRequest, make_workload
from gossamer.sim.row_tables.vinifera import ChurnRows
from gossamer.spark.commands.cli import app
from gossamer.spark.crunch.crunching import Crunched
from gossamer.spark.crunch.folders import find_runs
from gossamer.spark.crunch.workloads import workload_rows
from gossamer.spark.errors import JobError
from gossamer.spark.storage.folders import MARKER
from gossamer.spark.storage.lineage import LINEAGE_FILE, read_lineage, running_command
from gossamer.spark.sweep.running import SweepOptions, read_sweep_at, run_sweep
from gossamer.spark.workload.writing import write_row_table, write_workload
from support.draws import larger
from support.made_up_results import contents, write_run, write_runs
from support.object_store import BUCKET, ObjectStore
from support.spark_processes import run_spark_here
from support.spark_results import crunch, sweep_file

WISHES = {
    "churn": WorkloadRequest(subscriptions=2_000, seed=3, settings={"crowd_nodes": 50}),
    "keywords": WorkloadRequest(subscriptions=100, events=500, seed=3, settings={"brokers": 60}),
}
COMMON = WorkloadRequest(subscriptions=3_000, events=2_000, seed=3)
# One of each shape: subscriptions and events, nested ones, sessions, and words.
EVERY_TIME = ("vinifera", "covering", "churn", "keywords")
LARGE = attrs.evolve(COMMON, subscriptions=larger(20_000, 200_000))


def read(folder: Path) -> pa.Table:
    return pa.concat_tables([pq.read_table(file) for file in sorted(folder.glob("*.parquet"))])


@pytest.mark.parametrize(
    "kind",
    [one if one in EVERY_TIME else pytest.param(one, marks=pytest.mark.campaign) for one in KINDS],
)
def test_files_hold_the_rows_of_one_process(session: Any, tmp_path: Path, kind: str) -> None:
    asked = WISHES.get(kind, COMMON)
    written = write_workload(session, kind, asked, tmp_path / "out", partitions=1)
    for table in make_workload(kind, asked).tables():
        found = read(tmp_path / "out" / table.name)
        assert found.equals(table.table().cast(found.schema)), table.name
        assert written.rows[table.name] == len(found)
    assert [check for check in written.checks if not check.holds] == []
    told = json.loads((tmp_path / "out" / "workload.json").read_text())
    assert told["tables"].keys() == written.rows.keys()
    crunched = workload_rows(session, find_runs([tmp_path / "out"])[0].systems, exact_up_to=0)
    assert {"ranks", "cdf", "measure"} <= {*crunched["part"].to_pylist()}
    assert not list(tmp_path.glob(".out*"))


@pytest.mark.parametrize(
    "settings",
    [{"width_decades": 2.0}, {"attributes": 2, "aspect": 30.0}, {"kind": "topics", "places": 40}],
)
def test_widths_of_any_ranges(session: Any, tmp_path: Path, settings: dict[str, object]) -> None:
    asked = attrs.evolve(COMMON, settings=settings)
    written = write_workload(session, "vinifera", asked, tmp_path / "out", partitions=1)
    assert [check for check in written.checks if not check.holds] == []
    assert [one.found for one in written.checks if one.name.startswith("ranges too")] == [0]


@pytest.mark.parametrize(
    ("asked", "files"),
    [(LARGE, 1), (LARGE, 7), (LARGE, 32), (WorkloadRequest(subscriptions=3, events=0), 5)],
)
def test_files_of_a_table(session: Any, tmp_path: Path, asked: WorkloadRequest, files: int) -> None:
    """Before, 200,000 rows had four files however many were asked for."""
    for table in make_workload("vinifera", asked).tables():
        folder = tmp_path / table.name
        rows = write_row_table(session, table, folder, files, tmp_path)
        names = sorted(file.name for file in folder.iterdir())
        assert names == [f"part-{number:05}.parquet" for number in range(files)]
        assert rows == table.units
        found = read(folder)
        assert found.equals(table.table().cast(found.schema))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 300), st.integers(1, 12), st.integers(1, 60), st.integers(1, 4))
def test_rows_are_the_same_in_any_chunks(units: int, files: int, chunk: int, groups: int) -> None:
    asked = WorkloadRequest(subscriptions=units, events=0, seed=3)
    table = make_workload("siena", asked).tables()[0]
    smaller = mock.patch.multiple(writing, CHUNK=chunk, GROUP_UNITS=chunk * groups)
    with tempfile.TemporaryDirectory() as scratch, smaller:
        names = [Path(scratch) / writing.file_name(part) for part in range(files)]
        rows = [writing.write_part(table, name, part, files) for part, name in enumerate(names)]
        assert sum(rows) == units
        found = read(Path(scratch))
    assert found.equals(table.table().cast(found.schema))


def test_churn_is_a_trace_that_the_simulator_reads(session: Any, tmp_path: Path) -> None:
    asked = WISHES["churn"]
    write_workload(session, "churn", asked, tmp_path / "out")
    workload = make_workload("churn", asked)
    assert isinstance(workload, ChurnRows)
    made, read_back = workload.spec.trace(), churn.read_trace(tmp_path / "out" / "trace.parquet")
    assert (read_back.duration_s, len(read_back.node)) == (made.duration_s, len(made.node))
    assert sorted(read_back.start_s.tolist()) == sorted(made.start_s.tolist())


def test_a_folder_has_any_name_and_is_refused_if_taken(session: Any, tmp_path: Path) -> None:
    out = tmp_path / "a b%2 ü+#?[x]*{y}"
    written = write_workload(session, "covering", COMMON, out / "out")
    assert all(check.holds for check in written.checks)
    shutil.rmtree(out)
    (tmp_path / "kept").write_text("mine")
    with pytest.raises(errors.ResultsError, match="already holds results"):
        write_workload(session, "vinifera", COMMON, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


@attrs.frozen
class Failing:
    """Columns that cannot be made, as where no space is left or the process is gone."""

    reason: str

    def __call__(self, _units: Any) -> Any:
        if self.reason == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        raise OSError(28, self.reason)


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        ("No space left on device", "writing events: no space is left on the device"),
        ("gone", "writing events: .*gone"),
        ("killed", "writing events: a worker was lost while it was at work"),
    ],
)
def test_what_fails_half_way_leaves_nothing(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str, sentence: str
) -> None:
    subscriptions, events = make_workload("vinifera", COMMON).tables()
    half = subscriptions, attrs.evolve(events, make=Failing(reason))
    workload = SimpleNamespace(tables=lambda: half)
    monkeypatch.setattr(writing, "make_workload", lambda _kind, _wish: workload)
    with pytest.raises(JobError, match=sentence) as failed:
        write_workload(session, "vinifera", COMMON, tmp_path / "out")
    assert "\n" not in str(failed.value)
    assert list(tmp_path.iterdir()) == []


def test_results_tell_of_what_they_were_made_from(session: Any, tmp_path: Path) -> None:
    """By the commands of users: what made a folder is theirs, whoever reads arguments for them."""
    commands: dict[str, list[str]] = {
        "w": ["workload", "covering", "--seed", "7", "--subscriptions", "60", "--events", "40"],
        "c": ["crunch", str(tmp_path / "w"), "--no-plots"],
        "s": ["sweep", str(sweep_file(tmp_path, 1))],
    }
    for name, words in commands.items():
        done = run_spark_here(*words, "--out", str(tmp_path / name))
        assert done.returncode == 0, done.stderr
        command = read_lineage(LocalPlace(tmp_path / name))["command"]
        assert command["name"] == f"gossamer spark {words[0]}"
        assert command["options"]["out"] == str(tmp_path / name)
    made = read_lineage(LocalPlace(tmp_path / "w"))
    told = read_lineage(LocalPlace(tmp_path / "c"))
    assert [made["command"]["options"][one] for one in ("kind", "seed")] == ["covering", 7]
    assert (told["command"]["options"]["results"], told["command"]["options"]["plots"]) == (
        [str(tmp_path / "w")],
        False,
    )
    assert set(told["versions"]) >= {"gossamer", "pyspark", "spark", "pyarrow", "numpy", "python"}
    assert told["versions"]["spark"] == session.version
    (one,) = told["inputs"]
    digest = hashlib.sha256((tmp_path / "w" / "workload.json").read_bytes()).hexdigest()
    assert (one["sha256"], one["seed"], told["seeds"]) == (digest, 7, [7])
    assert (one["lineage"], made["inputs"]) == (made, [])
    shown, printed = (
        CliRunner().invoke(app, ["lineage", str(tmp_path / "c"), *options])
        for options in ([], ["--json"])
    )
    assert (shown.exit_code, json.loads(printed.output)) == (0, told)
    assert f"from {tmp_path}/w, seed 7, sha256 {digest[:12]}" in shown.output


def test_credentials_are_not_kept() -> None:
    with ThreadPoolExecutor() as fresh:  # where no command was interrupted before
        assert fresh.submit(running_command).result() is None
    commands, found = typer.Typer(), list[object]()

    @commands.command()
    def crunch(conf: list[str], seed: int = 1, master: str | None = None) -> None:
        assert (len(conf), seed, master) == (2, 3, None)
        found.append(running_command())

    conf = ["spark.hadoop.fs.s3a.secret.key=abc", "spark.sql.shuffle.partitions=3"]
    assert CliRunner().invoke(commands, [*conf, "--seed", "3"]).exit_code == 0
    shown = ["spark.hadoop.fs.s3a.secret.key=(hidden)", "spark.sql.shuffle.partitions=3"]
    assert found == [{"name": "crunch", "options": {"conf": shown, "seed": 3}}]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, f"tells no lineage, expected {LINEAGE_FILE} in it"),
        ("{", "is not a lineage"),
        ("[]", "has no versions, expected a lineage"),
        ('{"versions": {}, "seeds": []}', "has no inputs, expected a lineage"),
    ],
)
def test_no_or_bad_lineage_is_refused(tmp_path: Path, content: str | None, sentence: str) -> None:
    if content is not None:
        (tmp_path / LINEAGE_FILE).write_text(content)
    with pytest.raises(errors.ResultsError, match=sentence):
        read_lineage(LocalPlace(tmp_path))


ASKED = WorkloadRequest(subscriptions=300, events=200, seed=3)
FAILURES = {("error", "PUT"), ("cut", "PUT"), ("slow", "PUT"), ("error", "GET"), ("cut", "GET")}


@pytest.fixture
def folder(store: ObjectStore, request: pytest.FixtureRequest) -> Iterator[RemotePlace]:
    name = request.node.name.replace("[", "-").rstrip("]")
    made = place_of(f"s3a://{BUCKET}/{name}/out", store.options())
    assert isinstance(made, RemotePlace)
    yield made
    store.heal()


def stored(place: RemotePlace) -> dict[str, bytes]:
    return {one.name: (place / one.name).read_bytes() for one in place.files()}


@pytest.mark.parametrize("kind", [pytest.param("vinifera", marks=pytest.mark.campaign), "churn"])
def test_workloads_in_a_store(session: Any, tmp_path: Path, folder: RemotePlace, kind: str) -> None:
    written = write_workload(session, kind, ASKED, folder, partitions=3)
    assert all(check.holds for check in written.checks)
    write_workload(session, kind, ASKED, tmp_path / "w", partitions=3)
    found, here = stored(folder), contents(tmp_path / "w")
    marker = json.loads(found.pop(MARKER))
    assert found == here
    assert marker == {"files": {name: len(found[name]) for name in sorted(found)}}
    with pytest.raises(ResultsError, match="already holds results"):
        write_workload(session, kind, ASKED, folder)


@pytest.mark.parametrize(
    ("failures", "times"),
    [
        (FAILURES, 1),
        *(pytest.param({one}, 2, marks=pytest.mark.campaign) for one in sorted(FAILURES)),
    ],
)
def test_a_store_that_fails_now_and_then_is_asked_again(
    session: Any, store: ObjectStore, folder: RemotePlace, failures: set[Any], times: int
) -> None:
    for how, method in failures:
        store.fail(method=method, contains="part-", how=how, times=times, seconds=0.2)
    written = write_workload(session, "vinifera", ASKED, folder, partitions=2)
    assert store.heal() == times * len(failures)
    assert written.rows == {"subscriptions": 300, "events": 200}
    assert all(check.holds for check in written.checks)
    assert MARKER in stored(folder)


@pytest.mark.parametrize("how", ["refused", pytest.param("error", marks=pytest.mark.campaign)])
@pytest.mark.parametrize("contains", ["events/part-", MARKER])
def test_a_store_that_goes_on_failing_is_named_and_nothing_is_left(
    session: Any, store: ObjectStore, folder: RemotePlace, contains: str, how: str
) -> None:
    store.fail(method="PUT", contains=contains, how=how, times=10_000)
    with pytest.raises((JobError, ResultsError), match=str(folder)) as failed:
        write_workload(session, "vinifera", ASKED, folder, partitions=2)
    assert "\n" not in str(failed.value)
    assert stored(folder) == {}


def test_only_what_a_killed_process_left_is_replaced(session: Any, folder: RemotePlace) -> None:
    (folder / "mine").write_bytes(b"1")
    with pytest.raises(ResultsError, match=r"already holds files \(mine\)"):
        write_workload(session, "vinifera", ASKED, folder)
    assert stored(folder) == {"mine": b"1"}
    (folder / "_WRITING").write_bytes(b"all or nothing\n")  # as the killed process had begun
    write_workload(session, "vinifera", ASKED, folder, partitions=1)
    files = {f"{table}/part-00000.parquet" for table in ("subscriptions", "events")}
    assert set(stored(folder)) == {MARKER, "lineage.json", "workload.json", *files}


def test_a_sweep_in_a_store_is_resumed(session: Any, tmp_path: Path, folder: RemotePlace) -> None:
    plan = read_sweep_at(place_of(sweep_file(tmp_path, 2)))
    outcome = run_sweep(session, plan, folder, SweepOptions(at_once=1))
    assert (outcome.ran, str(outcome.folder)) == (2, str(folder))
    run_sweep(session, plan, tmp_path / "out", SweepOptions(at_once=1))
    table = (tmp_path / "out" / "points.csv").read_bytes()
    assert (folder / "points.csv").read_bytes() == table
    for made in (folder, LocalPlace(tmp_path / "out")):
        told = read_lineage(made)
        assert told["seeds"] == [1, 2]
        assert set(told["versions"]) >= {"gossamer", "pyspark", "spark", "numpy", "python"}
        places = ["sweep.json", *(f"runs/{point.name}" for point in plan.points)]
        assert [one["place"] for one in told["inputs"]] == places
        for one, point in zip(told["inputs"][1:], plan.points, strict=True):
            content = (made / one["place"] / "summary.json").read_bytes()
            digest, versions = hashlib.sha256(content).hexdigest(), json.loads(content)["versions"]
            found = one["sha256"], one["seed"], one["versions"]
            assert found == (digest, point.values["seed"], versions)
    whole = stored(folder)
    summary = f"runs/{plan.points[0].name}/summary.json"
    for name in (MARKER, LINEAGE_FILE, "points.csv", "points.parquet", summary):
        (folder / name).delete()
    with pytest.raises(ResultsError, match="holds an unfinished sweep; go on with it by --resume"):
        run_sweep(session, plan, folder, SweepOptions())
    with pytest.raises(ResultsError, match="is of another sweep"):
        run_sweep(session, attrs.evolve(plan, name="other"), folder, SweepOptions(resume=True))
    assert run_sweep(session, plan, folder, SweepOptions(resume=True, at_once=1)).ran == 1
    assert (stored(folder)["points.csv"], stored(folder).keys()) == (table, whole.keys())


def test_a_sweep_in_a_store_is_read_with_its_scenario(tmp_path: Path, folder: RemotePlace) -> None:
    plan = read_sweep_at(place_of(sweep_file(tmp_path, 2)))
    for name in ("sweep.toml", "base.toml"):
        (folder / name).write_bytes((tmp_path / name).read_bytes())
    assert read_sweep_at(folder / "sweep.toml") == plan
    (folder / "base.toml").delete()
    with pytest.raises(ResultsError, match=r"base\.toml does not exist, expected a file"):
        read_sweep_at(folder / "sweep.toml")


def test_a_file_that_a_workload_needs_is_fetched(tmp_path: Path, folder: RemotePlace) -> None:
    (folder / "graph.gml").write_bytes(b"graph [ ]")
    with (folder / "graph.gml").fetched() as copy:
        assert (copy.name, copy.read_bytes()) == ("graph.gml", b"graph [ ]")
    assert not copy.exists()
    absent = (folder / "absent.gml").fetched()
    with pytest.raises(ResultsError, match=r"absent\.gml does not exist, expected a file"), absent:
        pytest.fail("was fetched")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def here(session: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Crunched]:
    """Runs of two seeds, and what is crunched of them on this machine."""
    runs = write_runs(tmp_path_factory.mktemp("here") / "runs", 1, 2)
    return runs, crunch(session, runs, runs.parent / "c")


def test_crunching_a_store(session: Any, here: tuple[Path, Crunched], folder: RemotePlace) -> None:
    runs, crunched = here
    for name, content in contents(runs).items():
        (folder / "runs" / name).write_bytes(content)
    there = crunch(session, folder / "runs", folder / "c")
    assert [repr(attrs.evolve(one, run="")) for one in there.values] == [
        repr(attrs.evolve(one, run="")) for one in crunched.values
    ]
    found, whole = stored(folder / "c"), contents(runs.parent / "c")
    assert {*found} == {*whole, MARKER}
    assert found["intervals.csv"] == whole["intervals.csv"]


def test_results_in_a_store_grow_whole_or_not_at_all(
    session: Any, store: ObjectStore, here: tuple[Path, Crunched], folder: RemotePlace
) -> None:
    first, second = here[0] / "1", here[0] / "2"
    crunch(session, first, folder, partition_by=("seed",), append=True)
    whole = stored(folder)
    store.fail(method="PUT", contains="_append/", how="refused", times=10_000)
    with pytest.raises(ResultsError, match="is refused to these credentials"):
        crunch(session, second, folder, append=True)
    store.heal()
    assert stored(folder) == whole
    store.fail(method="PUT", contains="measures/seed", how="error", times=1)
    crunch(session, second, folder, append=True)
    assert store.heal() == 1
    found = stored(folder)
    listed = json.loads(found.pop(MARKER))["files"]
    assert listed == {name: len(found[name]) for name in sorted(found)}
    parts = {name.split("/")[1] for name in found if name.startswith("measures/")}
    assert parts == {"seed=1", "seed=2"}
    at_once = contents(here[0].parent / "c")
    for name in ("measures.csv", "intervals.csv", "comparisons.csv"):
        assert found[name] == at_once[name]


def test_a_damaged_table_in_a_store_is_not_its_fault(tmp_path: Path, folder: RemotePlace) -> None:
    for name, content in contents(write_run(tmp_path / "run")).items():
        (folder / name).write_bytes(content[:-9] if name.endswith("events.parquet") else content)
    with pytest.raises(ResultsError, match=r"events\.parquet is damaged or no Parquet table"):
        find_runs([folder])


@pytest.mark.parametrize(
    ("bucket", "changes", "sentence"),
    [
        (BUCKET, {"access_key": "another"}, "is refused to these credentials"),
        ("absent", {}, "cannot be used, as there is no bucket absent"),
        (
            BUCKET,
            {"endpoint": "http://127.0.0.1:9"},
            "cannot be reached: nobody answers at http://127.0.0.1:9, or connections break",
        ),
    ],
)
def test_what_keeps_from_writing_is_said_before_spark_starts(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch, bucket: str, changes: Any, sentence: str
) -> None:
    monkeypatch.setattr(session_module, "spark_session", lambda _: pytest.fail("was begun"))
    monkeypatch.setattr(options, "_ATTEMPTS", 1)
    url = f"s3a://{bucket}/refused/w"
    done = run_spark_here("workload", "vinifera", "--out", url, *store.conf(**changes))
    assert (done.returncode, done.stderr) == (2, f"gossamer: {url} {sentence}\n")
