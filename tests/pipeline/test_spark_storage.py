"""Where results go: shared or not, full disks, lost workers, signals: nothing half-written."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from itertools import repeat
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import attrs
import psutil
import pytest

import gossamer.spark.masters as workers
import gossamer.spark.sweep.running as running
from gossamer.sim.errors import ResultsError
from gossamer.sim.results.results import read_results
from gossamer.sim.results.sweeps.plan import read_sweep
from gossamer.sim.row_tables.kinds import WorkloadRequest
from gossamer.spark import errors, handover, jobs, masters
from gossamer.spark.session import SessionSettings, spark_session
from gossamer.spark.sweep.running import SweepOptions, run_sweep
from gossamer.spark.sweep.task import run_on
from gossamer.spark.workload.writing import write_workload
from support import made_up_results, spark_processes, spark_results

LARGE = "nodes = 60\nrounds = 40\n[events]\nper_round = 20\nwarm_up_rounds = 6\n"
GUARD = "spark.driver.maxResultSize"
LEFT = re.compile(r"\..*\.([0-9a-f]{12}\.tmp|lock)")


def below(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


@attrs.frozen
class Apart:
    """A folder with results, in the place of which tasks see another one."""

    folder: Path
    seen: Path
    python: Path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Apart:
    """A folder, and a Python that sees one in its place which is empty at first."""
    scratch = tmp_path_factory.mktemp("apart")
    found = Apart(scratch / "ours", scratch / "theirs", scratch / "python")
    found.folder.mkdir()
    found.seen.mkdir()
    command = shlex.join([*spark_processes.apart_from(found.folder, found.seen), sys.executable])
    found.python.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    found.python.chmod(0o755)
    spark_results.sweep_file(found.folder, points=6)
    made_up_results.write_run(found.folder / "run")
    return found


@pytest.fixture
def apart(session: Any, made: Apart, monkeypatch: pytest.MonkeyPatch) -> Apart:
    """The folder, with that Python for the tasks of the session."""
    monkeypatch.setattr(session.sparkContext, "pythonExec", str(made.python))
    return made


@pytest.mark.parametrize(
    ("command", "given", "out", "unseen", "theirs"),
    [
        ("workload", "vinifera", "w", "w", None),
        ("sweep", "sweep.toml", "s", "s.unfinished", None),
        ("crunch", "run", "c", "run", None),
        ("crunch", "run", "c", "run", 2),
    ],
    ids=["a workload", "a sweep", "results", "results with others in their place"],
)
def test_what_executors_do_not_share_is_refused_and_nothing_is_left_anywhere(
    apart: Apart, command: str, given: str, out: str, unseen: str, theirs: int | None
) -> None:
    """Before, tables were called damaged, and the numbers of others of their name were taken."""
    if theirs is not None:
        made_up_results.write_run(apart.seen / "run", theirs)
    before = below(apart.folder), below(apart.seen)
    subject = given if command == "workload" else str(apart.folder / given)
    done = spark_processes.run_spark_here(command, subject, "--out", str(apart.folder / out))
    assert done.returncode == 2, done.stderr
    (sentence,) = spark_processes.sentences(done.stderr)
    assert f"executors do not see the folder {apart.folder / unseen} of the driver (on " in sentence
    assert "), expected storage that all machines share" in sentence
    assert (below(apart.folder), below(apart.seen)) == before


def test_results_larger_than_spark_carries_are_kept(session: Any, tmp_path: Path) -> None:
    """Before, the files of a point travelled as rows, and broke on the guard that is low here."""
    guards = session.sparkContext._jsc.sc().conf()
    before = guards.get(GUARD)
    guards.set(GUARD, "30k")
    try:
        with pytest.raises(Exception, match=GUARD):
            session.range(100_000).collect()
        file, out = spark_results.sweep_file(tmp_path, 1, LARGE), tmp_path / "out"
        done = spark_processes.run_spark_here("sweep", str(file), "--out", str(out))
    finally:
        guards.set(GUARD, before)
    assert (done.returncode, spark_processes.sentences(done.stderr)) == (0, [])
    assert "1 points: 1 ran" in done.stdout
    (run,) = (out / "runs").iterdir()
    assert sum(path.stat().st_size for path in run.rglob("*.parquet")) > 60_000
    assert read_results(run).summary["seed"] == 1
    assert not [path for path in tmp_path.rglob("*") if LEFT.fullmatch(path.name)]


def is_java(process: psutil.Process) -> bool:
    """Whether a process was started to be the Java of a session."""
    try:
        return "pyspark-shell" in process.cmdline()
    except psutil.NoSuchProcess:  # one that was asked for its version only
        return False


@spark_processes.needs_spark
@pytest.mark.parametrize(
    ("number", "group", "java_starts"),
    [
        (signal.SIGTERM, True, True),
        pytest.param(signal.SIGINT, True, True, marks=pytest.mark.campaign),
        pytest.param(signal.SIGTERM, False, False, marks=pytest.mark.campaign),
        pytest.param(signal.SIGTERM, True, False, marks=pytest.mark.campaign),
        pytest.param(signal.SIGHUP, True, False, marks=pytest.mark.campaign),
        pytest.param(signal.SIGINT, True, False, marks=pytest.mark.campaign),
    ],
)
def test_a_workload_that_a_signal_ends_leaves_nothing(
    tmp_path: Path, number: signal.Signals, group: bool, java_starts: bool
) -> None:
    """Before, its folder was left half-written, with Spark's files, or Java went on forever."""
    scratch, work = tmp_path / "scratch", tmp_path / "work"
    scratch.mkdir()
    work.mkdir()
    large = ("--subscriptions", "100000000", "--events", "1", "--partitions", "50")
    command = ("workload", "vinifera", "--out", str(work / "w"), "--memory", "1g")
    java: list[psutil.Process] = []

    def act(process: subprocess.Popen[str]) -> None:
        def has_java() -> bool:
            # For a moment while a process becomes Java its command line is empty.
            java.extend(filter(is_java, psutil.Process(process.pid).children()))
            return bool(java)

        if java_starts:
            spark_processes.wait_in(process, has_java)
            assert len(java) == 1
        else:
            spark_processes.wait_in(process, lambda: any(work.rglob("attempt-*/*.parquet")))
            assert all(LEFT.fullmatch(path.name) for path in work.iterdir())
        if group:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)

    size = () if java_starts else large
    done = spark_processes.run_spark_meanwhile(act, 120.0, *command, *size, TMPDIR=str(scratch))
    assert done.returncode == 128 + number, done.stderr
    *costs, last = spark_processes.sentences(done.stderr)
    assert last == "gossamer: interrupted"
    assert ["rows of" in line for line in costs] == [True] * (not java_starts)
    assert not any(one.is_running() for one in java)
    assert (below(work), below(scratch)) == (set(), set())


@pytest.mark.usefixtures("session")
def test_a_sweep_is_alone_and_keeps_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before, a sweep resumed beside a live one ran its points again, and called them failed."""
    file, out = spark_results.sweep_file(tmp_path, points=3), tmp_path / "out"
    command = ("sweep", str(file), "--out", str(out), "--at-once", "1")
    asked: list[str] = []

    def run_one(session: Any, text: str, label: str, shared: Any) -> Path:
        asked.append(label)
        if len(asked) == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        else:
            sentence = f"is being worked on by process {os.getpid()}, expected to be alone with it"
            for resume in (False, True):
                with pytest.raises(ResultsError, match=sentence):
                    run_sweep(session, read_sweep(file), out, SweepOptions(resume=resume))
        return run_on(session, text, label, shared)

    with monkeypatch.context() as patch:
        patch.setattr(running, "run_on", run_one)
        done = spark_processes.run_spark_here(*command)
    assert done.returncode == 128 + signal.SIGTERM
    sentence = "gossamer: interrupted; finished points are kept, go on by 'gossamer"
    assert spark_processes.sentences(done.stderr)[0].startswith(sentence)
    runs = tmp_path / "out.unfinished" / "runs"
    names = {path.name for path in runs.iterdir()}
    assert 1 <= len(names) < 3
    assert all(read_results(runs / name).summary for name in names)
    assert not [path for path in tmp_path.rglob("*") if LEFT.fullmatch(path.name)]
    done = spark_processes.run_spark_here(*command, "--resume")
    assert (done.returncode, spark_processes.sentences(done.stderr)) == (0, [])
    assert f"3 points: {3 - len(names)} ran, {len(names)} were there already" in done.stdout


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one megabyte; skips the test where none can be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={2**20}", "tmpfs", str(folder)]
    try:
        subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"needs to mount a small disk: {getattr(error, 'stderr', None) or error}")
    yield folder
    # Lazily: Spark closes what it failed to write when it pleases.
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk: Path, left: int) -> None:
    """Fill a disk up to so many bytes."""
    (disk / "filling").write_bytes(bytes(shutil.disk_usage(disk).free - left))


def test_a_workload_that_fills_the_disk_leaves_nothing(session: Any, disk: Path) -> None:
    asked = WorkloadRequest(subscriptions=50_000, events=50_000)
    with pytest.raises(errors.JobError, match="writing events: no space is left on the device"):
        write_workload(session, "vinifera", asked, disk / "out", partitions=2)
    assert list(disk.iterdir()) == []


def test_figures_that_fill_the_disk_leave_nothing(session: Any, disk: Path, tmp_path: Path) -> None:
    fill(disk, 2 * 4096)
    run, out = made_up_results.write_run(tmp_path / "run"), disk / "out"
    with pytest.raises(OSError, match=r"No space left on device: '.*out'"), jobs.disk_errors(out):
        spark_results.crunch(session, run, out, exact_up_to=0, plots=True)
    assert [path.name for path in disk.iterdir()] == ["filling"]


def test_temporary_files_need_room(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark", reason="needs Spark: pip install '.[spark]'")
    monkeypatch.setattr(tempfile, "tempdir", str(disk))
    room = r"disk has room for 1 MiB more, expected 64 MiB .*TMPDIR"
    session = spark_session(SessionSettings(master="local[1]"))
    with pytest.raises(errors.JobError, match=room), session:
        pass
    assert list(disk.iterdir()) == []


def large_results(session: Any, text: str, label: str, shared: handover.SharedFolder) -> Path:
    results = spark_results.made_up_results(session, text, label, shared)
    (results / "events.parquet").write_bytes(bytes(350_000))
    return results


def test_a_sweep_that_fills_a_disk_keeps_runs(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "run_on", large_results)
    with pytest.raises(OSError, match="No space left on device"):
        spark_results.run_made_up(disk / "out", 5)
    runs = disk / "out.unfinished" / "runs"
    assert sorted(path.name for path in runs.iterdir()) == ["p0", "p1"]
    monkeypatch.setattr(running, "run_on", spark_results.made_up_results)
    outcome = spark_results.run_made_up(disk / "out", 5, resume=True)
    assert (outcome.ran, outcome.failed) == (3, {})


def test_a_sweep_on_a_full_disk_leaves_nothing(disk: Path) -> None:
    fill(disk, 0)
    with pytest.raises(OSError, match="No space left on device"):
        spark_results.run_made_up(disk / "out", 2)
    assert [path.name for path in disk.iterdir()] == ["filling"]


def context_with(executors: Iterable[int]) -> Mock:
    """A context of a cluster that has so many executors at each look, and one job without end."""
    context = Mock(master="spark://nowhere:1")
    context._jsc = context.sparkContext = context.sc.return_value = context
    context.isStopped.return_value = False
    tracker = context.statusTracker.return_value
    tracker.getActiveJobsIds.return_value = [7]
    tracker.getExecutorInfos.side_effect = (["driver"] * (1 + one) for one in executors)
    return context


def test_a_job_that_no_worker_comes_for_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_LOOKING_S", 0.01)
    context, told = context_with(repeat(0)), threading.Event()
    context.cancelJob.side_effect = lambda *_: told.set()
    with masters.workers_watched(context, patience_s=0.05):
        assert told.wait(60)
    ((job, reason), _) = context.cancelJob.call_args
    error = jobs.explained("crunching", RuntimeError(f"Job {job} cancelled {reason}"))
    assert (job, type(error)) == (7, errors.ClusterLost)
    waited = "the cluster has had no worker for 0.05 seconds, expected some to come (--patience)"
    assert str(error) == f"crunching: {waited}"


def test_a_job_with_a_worker_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = threading.Semaphore(0)

    def looked() -> Iterator[int]:
        while True:
            looks.release()
            yield 1

    monkeypatch.setattr(workers, "_LOOKING_S", 0.001)
    context = context_with(looked())
    with masters.workers_watched(context, patience_s=0):
        for _ in range(5):
            assert looks.acquire(timeout=60)
    context.cancelJob.assert_not_called()
