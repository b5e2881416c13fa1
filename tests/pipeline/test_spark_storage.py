"""Where results go: storage that executors share or not, more than Spark carries, signals."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import attrs
import psutil
import pytest

from gossamer.sim.results.results import read_results, write_results
from gossamer.spark.java import find_java_home
from support.made_up_runs import made_up_run
from support.spark_processes import (
    Cluster,
    apart_from,
    as_seen_by,
    kill_group,
    run_spark_command,
    sentences,
    standalone_cluster,
    start_spark_command,
    wait_for,
)

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("pyspark") is None,
        reason="needs Spark: pip install 'gossamer[spark]'",
    ),
]
SCENARIO = "nodes = 24\nrounds = 12\n[events]\nper_round = 2\nwarm_up_rounds = 6\n"
LARGE = "nodes = 150\nrounds = 80\n[events]\nper_round = 60\nwarm_up_rounds = 6\n"
LEFT = re.compile(r"\..*\.([0-9a-f]{12}\.tmp|lock)")


def sweep_file(folder: Path, scenario: str = SCENARIO, points: int = 6) -> Path:
    """A sweep of so many points."""
    (folder / "base.toml").write_text(scenario)
    seeds = list(range(1, points + 1))
    (folder / "sweep.toml").write_text(f'scenario = "base.toml"\nseeds = {seeds}\n')
    return folder / "sweep.toml"


def below(folder: Path) -> set[str]:
    """Everything below a folder."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


@attrs.frozen
class Apart:
    """A cluster whose worker sees another folder in the place of one of ours."""

    cluster: Cluster
    folder: Path

    def seen(self) -> Path:
        """The folder that the worker sees."""
        return as_seen_by(self.cluster.workers[0], self.folder)

    def refused(self, *arguments: str, folder: Path) -> None:
        """Run a command that has to be refused for ``folder``, and to leave nothing anywhere."""
        ours, theirs = below(self.folder), below(self.seen())
        done = run_spark_command(*arguments, "--master", self.cluster.master)
        assert done.returncode == 2, done.stderr
        assert len(sentences(done.stderr)) == 1
        sentence = f"executors do not see the folder {folder} of the driver (on "
        assert sentence in done.stderr
        assert "), expected storage that all machines share" in done.stderr
        assert (below(self.folder), below(self.seen())) == (ours, theirs)


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apart]:
    """A worker to which a folder is empty that has results here."""
    folder = tmp_path_factory.mktemp("ours")
    inside = apart_from(folder)
    scratch = tmp_path_factory.mktemp("cluster")
    sweep_file(folder)
    write_results(made_up_run(1), folder / "run", pictures=False)
    with standalone_cluster(scratch, find_java_home(scratch), 1, inside) as cluster:
        yield Apart(cluster, folder)


def test_a_workload_for_executors_that_do_not_share_the_folder_is_refused(apart: Apart) -> None:
    """Before, the tables were "damaged", and stayed where the executors had written them."""
    out = apart.folder / "w"
    apart.refused("workload", "vinifera", "--out", str(out), folder=out)


@pytest.mark.campaign
def test_a_sweep_for_executors_that_do_not_share_the_folder_is_refused(apart: Apart) -> None:
    out = apart.folder / "s"
    file = str(apart.folder / "sweep.toml")
    unfinished = apart.folder / "s.unfinished"
    apart.refused("sweep", file, "--out", str(out), folder=unfinished)


@pytest.mark.campaign
def test_results_that_executors_do_not_see_are_not_crunched(apart: Apart) -> None:
    """Before, they were called damaged."""
    run, out = apart.folder / "run", str(apart.folder / "c")
    apart.refused("crunch", str(run), "--out", out, folder=run)


@pytest.mark.campaign
def test_other_results_of_the_same_name_are_not_crunched(apart: Apart) -> None:
    """Before, the numbers were those that the executors had."""
    run, out = apart.folder / "run", str(apart.folder / "c")
    write_results(made_up_run(2), apart.seen() / "run", pictures=False)
    apart.refused("crunch", str(run), "--out", out, folder=run)


def test_results_larger_than_spark_carries_are_kept(tmp_path: Path) -> None:
    """Before, the files of a point travelled as rows, and broke on the guard that is low here."""
    guard = "spark.driver.maxResultSize=100k"
    file, out = sweep_file(tmp_path, LARGE, points=1), tmp_path / "out"
    done = run_spark_command("sweep", str(file), "--out", str(out), "--conf", guard)
    assert (done.returncode, sentences(done.stderr)) == (0, [])
    assert "1 points: 1 ran" in done.stdout
    (run,) = (out / "runs").iterdir()
    assert sum(path.stat().st_size for path in run.rglob("*.parquet")) > 200_000
    assert read_results(run).summary["seed"] == 1
    assert not [path for path in tmp_path.rglob("*") if LEFT.fullmatch(path.name)]


def ended(process: subprocess.Popen[str], number: signal.Signals, *, group: bool) -> str:
    """What a command says that is ended by a signal; its exit code is the one by convention."""
    if group:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    try:
        _, told = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        kill_group(process)
        raise
    assert process.returncode == 128 + number, told
    return told


def java_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """What a command has started that is its Java, or will be."""
    return [child for child in psutil.Process(process.pid).children() if is_java(child)]


def is_java(process: psutil.Process) -> bool:
    """Whether a process was started to be the Java of a session."""
    try:
        return "pyspark-shell" in process.cmdline()
    except psutil.NoSuchProcess:  # one that was asked for its version only
        return False


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("number", "group"),
    [
        (signal.SIGTERM, False),
        (signal.SIGTERM, True),
        (signal.SIGHUP, True),
        (signal.SIGINT, True),
    ],
)
def test_a_workload_that_a_signal_ends_leaves_nothing(
    tmp_path: Path, number: signal.Signals, group: bool
) -> None:
    """Before, SIGTERM and SIGHUP left its folder half-written, and Spark's files."""
    scratch, work = tmp_path / "scratch", tmp_path / "work"
    scratch.mkdir()
    work.mkdir()
    size = ("--subscriptions", "100000000", "--events", "1", "--partitions", "50")
    command = ("workload", "vinifera", "--out", str(work / "w"), *size, "--memory", "1g")
    with start_spark_command(*command, TMPDIR=str(scratch)) as process:
        wait_for(lambda: process.poll() is not None or list(work.rglob("attempt-*/*.parquet")))
        assert {path.name for path in work.iterdir() if not LEFT.fullmatch(path.name)} == set()
        assert sentences(ended(process, number, group=group)) == ["gossamer: interrupted"]
    assert below(work) == set()
    assert below(scratch) == set()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_java_starts_leaves_no_java(tmp_path: Path, number: signal.Signals) -> None:
    """Before, Java went on forever, and held on to standard error."""
    scratch, work = tmp_path / "scratch", tmp_path / "work"
    scratch.mkdir()
    work.mkdir()
    command = ("workload", "vinifera", "--out", str(work / "w"), "--memory", "1g")
    with start_spark_command(*command, TMPDIR=str(scratch)) as process:
        # For a moment while it becomes Java its command line is empty.
        found: list[psutil.Process] = []

        def is_java_there() -> bool:
            if process.poll() is None:
                found.extend(java_of(process))
                return bool(found)
            return True

        wait_for(is_java_there)
        (java,) = found
        assert sentences(ended(process, number, group=True)) == ["gossamer: interrupted"]
        assert not java.is_running()
    assert below(work) == set()
    assert below(scratch) == set()


def test_a_sweep_is_alone_with_its_folder_and_keeps_points_when_ended(tmp_path: Path) -> None:
    """Before, a sweep resumed beside a live one ran its points again, and called them failed."""
    file, out = sweep_file(tmp_path), tmp_path / "out"
    command = ("sweep", str(file), "--out", str(out), "--at-once", "1", "--memory", "1g")
    runs = tmp_path / "out.unfinished" / "runs"
    with start_spark_command(*command) as process:
        wait_for(lambda: process.poll() is not None or runs.is_dir())
        os.kill(process.pid, signal.SIGSTOP)  # so that it is still there
        for more in ((), ("--resume",)):
            second = run_spark_command(*command, *more)
            assert second.returncode == 2
            assert second.stderr == (
                f"gossamer: {out} is being worked on by process {process.pid}, "
                "expected to be alone with it\n"
            )
        os.kill(process.pid, signal.SIGCONT)
        wait_for(lambda: process.poll() is not None or list(runs.glob("0*")))
        told = ended(process, signal.SIGTERM, group=False)
    assert sentences(told)[0].startswith(
        "gossamer: interrupted; finished points are kept, go on by 'gossamer"
    )
    names = {path.name for path in runs.iterdir()}
    assert 1 <= len(names) < 6
    assert all(read_results(runs / name).summary for name in names)
    assert not [path for path in tmp_path.rglob("*") if LEFT.fullmatch(path.name)]
    done = run_spark_command(*command, "--resume")
    assert (done.returncode, sentences(done.stderr)) == (0, [])
    assert f"6 points: {6 - len(names)} ran, {len(names)} were there already" in done.stdout
