"""Disks that are full and clusters without workers: one sentence, and nothing half-written."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gossamer.spark.sweep.running as running
import gossamer.spark.workers as workers
from gossamer.sim.row_tables.kinds import Wish
from gossamer.spark.crunch.crunching import crunch_results
from gossamer.spark.crunch.folders import find_runs
from gossamer.spark.errors import ClusterLost, JobError
from gossamer.spark.handover import SharedFolder
from gossamer.spark.jobs import disk_errors, explained
from gossamer.spark.session import SessionSettings, spark_session
from gossamer.spark.sweep.running import SweepOptions, run_sweep
from gossamer.spark.workers import workers_watched
from gossamer.spark.workload.writing import write_workload
from support.made_up_results import write_run
from support.small_disk import fill, small_disk
from support.small_sweeps import NoSession, made_up_points, made_up_results

PAGE = 4096


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one megabyte."""
    with small_disk(tmp_path / "disk", 2**20) as folder:
        yield folder


def test_a_workload_that_fills_the_disk_leaves_nothing(session: Any, disk: Path) -> None:
    wish = Wish(subscriptions=50_000, events=50_000)
    with pytest.raises(JobError, match="writing events: no space is left on the device"):
        write_workload(session, "vinifera", wish, disk / "out", partitions=2)
    assert list(disk.iterdir()) == []


def test_figures_that_fill_the_disk_leave_nothing(session: Any, disk: Path, tmp_path: Path) -> None:
    fill(disk, 2 * PAGE)
    runs, out = find_runs([write_run(tmp_path / "run")]), disk / "out"
    with pytest.raises(OSError, match=r"No space left on device: '.*out'"), disk_errors(out):
        crunch_results(session, runs, out, exact_up_to=0)
    assert [path.name for path in disk.iterdir()] == ["filling"]


def test_temporary_files_need_room(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark", reason="needs Spark: pip install 'gossamer[spark]'")
    monkeypatch.setattr(tempfile, "tempdir", str(disk))
    settings = SessionSettings(master="local[1]")
    with (
        pytest.raises(JobError, match=r"disk has room for 1 MiB more, expected 64 MiB .*TMPDIR"),
        spark_session(settings),
    ):
        pass
    assert list(disk.iterdir()) == []


def large_results(session: Any, text: str, label: str, shared: SharedFolder) -> Path:
    """Results of a point that take up a third of the disk."""
    results = made_up_results(session, text, label, shared)
    (results / "events.parquet").write_bytes(bytes(350_000))
    return results


def test_a_sweep_that_fills_the_disk_keeps_what_was_finished(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "run_on", large_results)
    with pytest.raises(OSError, match="No space left on device"):
        run_sweep(NoSession(), made_up_points(5), disk / "out", SweepOptions(at_once=1))
    runs = disk / "out.unfinished" / "runs"
    assert sorted(path.name for path in runs.iterdir()) == ["p0", "p1"]
    monkeypatch.setattr(running, "run_on", made_up_results)
    outcome = run_sweep(
        NoSession(), made_up_points(5), disk / "out", SweepOptions(at_once=1, resume=True)
    )
    assert (outcome.ran, outcome.failed) == (3, {})


def test_a_sweep_on_a_full_disk_leaves_nothing(disk: Path) -> None:
    fill(disk, 0)
    with pytest.raises(OSError, match="No space left on device"):
        run_sweep(NoSession(), made_up_points(2), disk / "out", SweepOptions(at_once=1))
    assert [path.name for path in disk.iterdir()] == ["filling"]


class Context:
    """A context of a cluster that has these executors, and one job without end."""

    master = "spark://nowhere:1"

    def __init__(self, executors: int) -> None:
        self.executors = executors
        self.cancelled: dict[int, str] = {}
        self.told = threading.Event()
        self._jsc = self
        self.sparkContext = self  # Spark's name

    def sc(self) -> Context:
        return self

    def isStopped(self) -> bool:  # noqa: N802
        return False

    def statusTracker(self) -> Context:  # noqa: N802
        return self

    def getActiveJobsIds(self) -> list[int]:  # noqa: N802
        return [7]

    def getExecutorInfos(self) -> list[str]:  # noqa: N802
        return ["driver"] * (1 + self.executors)

    def cancelJob(self, job: int, reason: str) -> None:  # noqa: N802
        self.cancelled[job] = reason
        self.told.set()


def test_a_job_that_no_worker_comes_for_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_LOOKING_S", 0.01)
    context = Context(executors=0)
    with workers_watched(context, patience_s=0.05):
        assert context.told.wait(60)
    error = explained("crunching", RuntimeError(f"Job 7 cancelled {context.cancelled[7]}"))
    assert type(error) is ClusterLost
    assert str(error) == (
        "crunching: the cluster has had no worker for 0.05 seconds, expected some to come "
        "(--patience)"
    )


def test_a_job_with_a_worker_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = threading.Semaphore(0)

    class Watched(Context):
        def getExecutorInfos(self) -> list[str]:  # noqa: N802
            looks.release()
            return super().getExecutorInfos()

    monkeypatch.setattr(workers, "_LOOKING_S", 0.001)
    context = Watched(executors=1)
    with workers_watched(context, patience_s=0):
        for _ in range(5):
            assert looks.acquire(timeout=60)
    assert context.cancelled == {}


@pytest.mark.parametrize(
    "text", ["Job 1 cancelled because SparkContext was shut down", "Master removed our application"]
)
def test_a_sweep_whose_cluster_is_gone_is_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    asked = []

    def run_on(_session: Any, _text: str, label: str, _shared: SharedFolder) -> Any:
        asked.append(label)
        raise explained(label, RuntimeError(text))

    monkeypatch.setattr(running, "run_on", run_on)
    with pytest.raises(ClusterLost, match="p0: the cluster ended the session, or is gone"):
        run_sweep(
            NoSession(), made_up_points(3), tmp_path / "out", SweepOptions(at_once=1, retries=5)
        )
    assert asked == ["p0"]
    assert list(tmp_path.iterdir()) == []
