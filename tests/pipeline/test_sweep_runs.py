"""Sweeps run by Spark: no point twice, none missing, each as if it were run by hand."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import attrs
import pyarrow.parquet as pq
import pytest

import gossamer.spark.sweep.running as running
from gossamer.command.main import main
from gossamer.sim.errors import ResultsError, ScenarioError, SimulationError
from gossamer.sim.results import results
from gossamer.sim.results import results as summary
from gossamer.sim.results.sweeps.plan import Point, read_sweep
from gossamer.sim.studies.peers.inputs.scenario import Scenario
from gossamer.sim.studies.peers.study import simulate
from gossamer.sim.study.scenarios import read_scenario
from gossamer.sim.study.tasks import run_tasks
from gossamer.spark import errors, gateway, handover, jobs
from gossamer.spark.sweep.running import SweepOptions, run_sweep, tasks_on_spark
from support import checkout, installed_command, spark_results
from support.spark_processes import (
    HUNG_S,
    Cluster,
    kill_spark_when,
    run_spark_meanwhile,
    standalone_cluster,
    wait_for,
    wait_in,
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    varied = '[grid]\nnodes = [20, 24]\nsystem = ["kindred", "baseline"]\n'
    return spark_results.sweep_file(tmp_path, 2, more=varied)


def hashes(folder: Path) -> dict[str, str]:
    runs = sorted((folder / "runs").iterdir())
    return {run.name: results.read_results(run).summary["result_hash"] for run in runs}


def tables(folder: Path) -> dict[str, bytes]:
    files = sorted((folder / "runs").rglob("*.parquet"))
    return {str(one.relative_to(folder)): one.read_bytes() for one in files}


def by_hand(point: Point, folder: Path) -> str:
    file = folder / "point.toml"
    file.write_text(point.text)
    scenario, text = read_scenario(file, {})
    assert isinstance(scenario, Scenario)
    return summary.result_hash(simulate(scenario, text))


def killed_half_way(arguments: tuple[str, ...], unfinished: Path, enough: int) -> dict[str, int]:
    """The points that a sweep finished before it was killed, and which folders they are."""
    runs, left = unfinished / "runs", unfinished.parent / f"left-by-{unfinished.stem}"
    kill_spark_when(lambda: len(list(runs.glob("0*"))) >= enough, "sweep", *arguments, scratch=left)
    return {run.name: os.stat(run).st_ino for run in runs.glob("0*")}


def with_executors_killed(*arguments: str, cluster: Cluster) -> subprocess.CompletedProcess[str]:
    """What became of a command all of whose executors were killed when tasks had begun."""
    killed: list[int] = []

    def some_killed() -> bool:
        for executor in cluster.busy_executors():
            executor.kill()
            killed.append(executor.pid)
        return bool(killed)

    wait_for(lambda: not cluster.busy_executors())  # those of a command that was killed before
    done = run_spark_meanwhile(lambda one: wait_in(one, some_killed), HUNG_S, *arguments)
    assert killed, f"it ended before it had begun: {done.stderr}"
    return done


@pytest.mark.campaign
@pytest.mark.parametrize("full", [False, True], ids=["8 points", "60 points"])
def test_a_killed_sweep_is_resumed(session: Any, file: Path, tmp_path: Path, full: bool) -> None:
    swept = checkout.ROOT / "examples" / "spark" / "sizes.toml" if full else file
    plan, out = read_sweep(swept), tmp_path / "out"
    enough = 30 if full else 3
    arguments: tuple[str, ...] = (str(swept), "--out", str(out), "--at-once", "1", "--memory", "1g")
    there = killed_half_way(arguments, tmp_path / "out.unfinished", enough)
    assert enough <= len(there) < len(plan.points)

    outcome = run_sweep(session, plan, out, SweepOptions(resume=True))
    assert (outcome.ran, outcome.failed) == (len(plan.points) - len(there), {})
    found = hashes(out)
    assert list(found) == [point.name for point in plan.points]
    assert {name: os.stat(out / "runs" / name).st_ino for name in there} == there
    for point in plan.points[:: 11 if full else 7]:
        assert by_hand(point, tmp_path) == found[point.name]
    rows = pq.read_table(out / "points.parquet").to_pylist()
    assert [row["result_hash"] for row in rows] == list(found.values())
    assert not list(tmp_path.glob("*.unfinished"))

    with standalone_cluster(tmp_path, gateway.find_java_home(tmp_path), workers=2) as cluster:
        again = tmp_path / "cluster"
        arguments = (str(swept), "--out", str(again), "--master", cluster.master)
        resumed: dict[str, int] = {}
        if full:
            resumed = killed_half_way(arguments, tmp_path / "cluster.unfinished", enough)
            assert enough <= len(resumed) < len(plan.points)
            arguments = (*arguments, "--resume")
        done = with_executors_killed("sweep", *arguments, cluster=cluster)
    assert done.returncode == 0, done.stderr
    name = read_sweep(swept).name
    assert all(line.startswith(f"gossamer: {name} ") for line in done.stderr.splitlines())
    assert f"{len(plan.points)} points: {len(plan.points) - len(resumed)} ran" in done.stdout
    assert {name: os.stat(again / "runs" / name).st_ino for name in resumed} == resumed
    assert tables(again) == tables(out)
    assert (again / "points.csv").read_bytes() == (out / "points.csv").read_bytes()


def test_only_the_same_sweep_is_resumed(session: Any, file: Path, tmp_path: Path) -> None:
    plan, out = read_sweep(file), tmp_path / "out"
    with pytest.raises(ResultsError, match="does not exist, expected an unfinished sweep"):
        run_sweep(session, plan, out, SweepOptions(resume=True))
    (tmp_path / "out.unfinished" / "runs" / "0001").mkdir(parents=True)
    with pytest.raises(ResultsError, match="holds an unfinished sweep; go on with it by --resume"):
        run_sweep(session, plan, out, SweepOptions())
    (tmp_path / "out.unfinished" / "sweep.json").write_text("{}")
    with pytest.raises(ResultsError, match="is of another sweep"):
        run_sweep(session, plan, out, SweepOptions(resume=True))
    assert (tmp_path / "out.unfinished" / "runs" / "0001").is_dir()


class Worker:
    """Stands in for Spark: loses some points a number of times, finds others impossible."""

    def __init__(self, losses: dict[str, int], reasons: dict[str, Exception]) -> None:
        self.losses = losses
        self.reasons = reasons
        self.asked: list[str] = []

    def run_on(self, _session: Any, _text: str, label: str, shared: handover.SharedFolder) -> Path:
        self.asked.append(label)
        if label in self.reasons:
            raise self.reasons[label]
        if self.losses.get(label, 0) > 0:
            self.losses[label] -= 1
            raise errors.WorkerLost(f"{label}: a worker was lost while it was at work")
        return spark_results.made_up_results(_session, _text, label, shared)


def test_lost_workers_are_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Worker({"p1": 2, "p3": 9}, {"p2": ResultsError(Path("x"), "is no scenario")})
    monkeypatch.setattr(running, "run_on", worker.run_on)
    outcome = spark_results.run_made_up(tmp_path / "out", 5, retries=2)
    assert [worker.asked.count(point) for point in ("p1", "p2", "p3")] == [3, 1, 3]
    assert (outcome.ran, str(outcome.folder)) == (3, str(tmp_path / "out.unfinished"))
    lost = "p3: a worker was lost while it was at work"
    assert outcome.failed == {"p2": "x is no scenario", "p3": lost}
    worker.reasons.clear()
    worker.losses.clear()
    again = spark_results.run_made_up(tmp_path / "out", 5, resume=True)
    assert (again.ran, again.failed) == (2, {})
    names = {path.name for path in (tmp_path / "out" / "runs").iterdir()}
    assert names == {f"p{i}" for i in range(5)}


@pytest.mark.parametrize(
    ("reason", "error"),
    [
        ("No space left on device", OSError),
        ("Job 1 cancelled because SparkContext was shut down", errors.ClusterLost),
        ("Master removed our application", errors.ClusterLost),
    ],
)
def test_a_sweep_that_cannot_go_on_is_not_tried_again_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str, error: type[Exception]
) -> None:
    is_full = error is OSError
    raised = OSError(28, reason) if is_full else jobs.explained("p0", RuntimeError(reason))
    worker = Worker({}, {"p0": raised})
    monkeypatch.setattr(running, "run_on", worker.run_on)
    sentence = "No space left" if is_full else "p0: the cluster ended the session, or is gone"
    with pytest.raises(error, match=sentence):
        spark_results.run_made_up(tmp_path / "out", 3, retries=5)
    assert (worker.asked, list(tmp_path.iterdir())) == (["p0"], [])


def test_who_dies_is_lost(session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import gossamer.spark.sweep.task as task

    class Suicide:
        def __init__(self, _text: str, _shared: handover.SharedFolder) -> None:
            pass

        def __call__(self, _batches: Any) -> Any:
            os.kill(os.getpid(), signal.SIGKILL)
            yield

    monkeypatch.setattr(task, "_Task", Suicide)
    with pytest.raises(errors.WorkerLost, match="p0: a worker was lost"):
        task.run_on(session, "", "p0", handover.SharedFolder(tmp_path, tmp_path))


@attrs.frozen
class Squared:
    number: int

    @property
    def label(self) -> str:
        return f"square of {self.number}"

    def run(self) -> int:
        if self.number < 0:
            raise ScenarioError(None, "number", self.number, "0 or more")
        return self.number**2


@pytest.mark.campaign
def test_tasks_of_figures_run_on_spark(session: Any) -> None:
    told: list[tuple[str, int, int]] = []
    with tasks_on_spark(None):
        outcomes = run_tasks([Squared(i) for i in range(5)], 2, lambda *news: told.append(news))
        with pytest.raises(SimulationError, match="square of -1: number is -1, expected 0"):
            run_tasks([Squared(1), Squared(-1)], 2)
    assert outcomes == [0, 1, 4, 9, 16]
    assert told == [("figures", done, 5) for done in range(6)]
    assert (run_tasks([Squared(3)], 1), session.range(2).count()) == ([9], 2)


def test_figures_find_their_runner_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    installed_command.install(tmp_path / "installed", monkeypatch)
    assert main(["sim", "figures", "vinifera", "--master", "spark://h:1"]) == 2
    assert "--master is 'spark://h:1', expected --spark with it" in capsys.readouterr().err
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    assert main(["sim", "figures", "vinifera", "--spark", "--out", str(tmp_path / "out")]) == 2
    assert "needs Spark, which is not installed" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
