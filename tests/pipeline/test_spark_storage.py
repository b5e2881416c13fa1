"""Where results go: storage that executors share or not, more than Spark carries, signals."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import psutil
import pytest

import gossamer.spark.sweep.running as running
from gossamer.sim.errors import ResultsError
from gossamer.sim.results.results import read_results
from gossamer.sim.results.sweeps.plan import read_sweep
from gossamer.spark.sweep.running import SweepOptions, run_sweep
from gossamer.spark.sweep.task import run_on
from support.made_up_results import write_run
from support.small_sweeps import sweep_file
from support.spark_processes import (
    apart_from,
    needs_spark,
    run_spark_here,
    run_spark_meanwhile,
    sentences,
    wait_in,
)

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
    command = shlex.join([*apart_from(found.folder, found.seen), sys.executable])
    found.python.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    found.python.chmod(0o755)
    sweep_file(found.folder, points=6)
    write_run(found.folder / "run")
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
        write_run(apart.seen / "run", theirs)
    before = below(apart.folder), below(apart.seen)
    subject = given if command == "workload" else str(apart.folder / given)
    done = run_spark_here(command, subject, "--out", str(apart.folder / out))
    assert done.returncode == 2, done.stderr
    (sentence,) = sentences(done.stderr)
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
        file, out = sweep_file(tmp_path, 1, LARGE), tmp_path / "out"
        done = run_spark_here("sweep", str(file), "--out", str(out))
    finally:
        guards.set(GUARD, before)
    assert (done.returncode, sentences(done.stderr)) == (0, [])
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


@needs_spark
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
            wait_in(process, has_java)
            assert len(java) == 1
        else:
            wait_in(process, lambda: any(work.rglob("attempt-*/*.parquet")))
            assert all(LEFT.fullmatch(path.name) for path in work.iterdir())
        if group:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)

    size = () if java_starts else large
    done = run_spark_meanwhile(act, 120.0, *command, *size, TMPDIR=str(scratch))
    assert done.returncode == 128 + number, done.stderr
    assert sentences(done.stderr) == ["gossamer: interrupted"]
    assert not any(one.is_running() for one in java)
    assert below(work) == set()
    assert below(scratch) == set()


@pytest.mark.usefixtures("session")
def test_a_sweep_is_alone_with_its_folder_and_keeps_points_when_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, a sweep resumed beside a live one ran its points again, and called them failed."""
    file, out = sweep_file(tmp_path, points=3), tmp_path / "out"
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
        done = run_spark_here(*command)
    assert done.returncode == 128 + signal.SIGTERM
    assert sentences(done.stderr)[0].startswith(
        "gossamer: interrupted; finished points are kept, go on by 'gossamer"
    )
    runs = tmp_path / "out.unfinished" / "runs"
    names = {path.name for path in runs.iterdir()}
    assert 1 <= len(names) < 3
    assert all(read_results(runs / name).summary for name in names)
    assert not [path for path in tmp_path.rglob("*") if LEFT.fullmatch(path.name)]
    done = run_spark_here(*command, "--resume")
    assert (done.returncode, sentences(done.stderr)) == (0, [])
    assert f"3 points: {3 - len(names)} ran, {len(names)} were there already" in done.stdout
