"""Workloads, sweeps and crunching on a server of S3, which fails as object stores do."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

import gossamer.sim.results.storage.options as options
import gossamer.spark.session as session_module
from gossamer.sim.errors import ResultsError
from gossamer.sim.results.storage.place import LocalPlace, place_of
from gossamer.sim.results.storage.remote import RemotePlace
from gossamer.sim.row_tables.kinds import WorkloadRequest
from gossamer.spark.crunch.crunching import Crunched
from gossamer.spark.crunch.folders import find_runs
from gossamer.spark.errors import JobError
from gossamer.spark.storage.folders import MARKER
from gossamer.spark.storage.lineage import LINEAGE_FILE, read_lineage
from gossamer.spark.sweep.running import SweepOptions, read_sweep_at, run_sweep
from gossamer.spark.workload.writing import write_workload
from support.made_up_results import contents, write_run, write_runs
from support.object_store import BUCKET, ObjectStore
from support.small_sweeps import sweep_file
from support.spark_processes import run_spark_here
from support.spark_results import crunch

ASKED = WorkloadRequest(subscriptions=300, events=200, seed=3)


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
def test_a_workload_in_a_store_is_that_of_this_machine(
    session: Any, tmp_path: Path, folder: RemotePlace, kind: str
) -> None:
    written = write_workload(session, kind, ASKED, folder, partitions=3)
    assert all(check.holds for check in written.checks)
    write_workload(session, kind, ASKED, tmp_path / "w", partitions=3)
    found, here = stored(folder), contents(tmp_path / "w")
    marker = json.loads(found.pop(MARKER))
    assert found == here
    assert marker == {"files": {name: len(found[name]) for name in sorted(found)}}
    with pytest.raises(ResultsError, match="already holds results"):
        write_workload(session, kind, ASKED, folder)


FAILURES = {("error", "PUT"), ("cut", "PUT"), ("slow", "PUT"), ("error", "GET"), ("cut", "GET")}


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


def test_what_a_killed_process_left_is_replaced_and_other_files_are_not(
    session: Any, folder: RemotePlace
) -> None:
    (folder / "mine").write_bytes(b"1")
    with pytest.raises(ResultsError, match=r"already holds files \(mine\)"):
        write_workload(session, "vinifera", ASKED, folder)
    assert stored(folder) == {"mine": b"1"}
    (folder / "_WRITING").write_bytes(b"all or nothing\n")  # as the killed process had begun
    write_workload(session, "vinifera", ASKED, folder, partitions=1)
    files = {f"{table}/part-00000.parquet" for table in ("subscriptions", "events")}
    assert set(stored(folder)) == {MARKER, "lineage.json", "workload.json", *files}


def test_a_sweep_in_a_store_is_resumed_to_the_same_table(
    session: Any, tmp_path: Path, folder: RemotePlace
) -> None:
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
            assert one["sha256"] == hashlib.sha256(content).hexdigest()
            assert one["seed"] == point.values["seed"]
            assert one["versions"] == json.loads(content)["versions"]
    whole = stored(folder)
    summary = f"runs/{plan.points[0].name}/summary.json"
    for name in (MARKER, LINEAGE_FILE, "points.csv", "points.parquet", summary):
        (folder / name).delete()
    with pytest.raises(ResultsError, match="holds an unfinished sweep; go on with it by --resume"):
        run_sweep(session, plan, folder, SweepOptions())
    with pytest.raises(ResultsError, match="is of another sweep"):
        run_sweep(session, attrs.evolve(plan, name="other"), folder, SweepOptions(resume=True))
    resumed = run_sweep(session, plan, folder, SweepOptions(resume=True, at_once=1))
    assert resumed.ran == 1
    assert (folder / "points.csv").read_bytes() == table
    assert stored(folder).keys() == whole.keys()


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
    with (
        pytest.raises(ResultsError, match=r"absent\.gml does not exist, expected a file"),
        (folder / "absent.gml").fetched(),
    ):
        pytest.fail("was fetched")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def here(session: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Crunched]:
    """Runs of two seeds, and what is crunched of them on this machine."""
    runs = write_runs(tmp_path_factory.mktemp("here") / "runs", 1, 2)
    return runs, crunch(session, runs, runs.parent / "c")


def test_results_in_a_store_are_crunched_into_it(
    session: Any, here: tuple[Path, Crunched], folder: RemotePlace
) -> None:
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
    store: ObjectStore,
    monkeypatch: pytest.MonkeyPatch,
    bucket: str,
    changes: dict[str, str],
    sentence: str,
) -> None:
    monkeypatch.setattr(session_module, "spark_session", lambda _: pytest.fail("was begun"))
    monkeypatch.setattr(options, "_ATTEMPTS", 1)
    url = f"s3a://{bucket}/refused/w"
    done = run_spark_here("workload", "vinifera", "--out", url, *store.conf(**changes))
    assert (done.returncode, done.stderr) == (2, f"gossamer: {url} {sentence}\n")
