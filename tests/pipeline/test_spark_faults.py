"""Disks that are full and clusters without workers: one sentence, and nothing half-written."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator
from itertools import repeat
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

import gossamer.spark.masters as workers
import gossamer.spark.sweep.running as running
from gossamer.sim.row_tables.kinds import WorkloadRequest
from gossamer.spark.errors import ClusterLost, JobError
from gossamer.spark.handover import SharedFolder
from gossamer.spark.jobs import disk_errors, explained
from gossamer.spark.masters import workers_watched
from gossamer.spark.session import SessionSettings, spark_session
from gossamer.spark.workload.writing import write_workload
from support.made_up_results import write_run
from support.small_sweeps import made_up_results, run_made_up
from support.spark_results import crunch

PAGE = 4096


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one megabyte; skips the test where none can be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={2**20}", "tmpfs", str(folder)]
    try:
        subprocess.run(command, capture_output=True, text=True, check=True)
    except OSError as error:
        pytest.skip(f"needs to mount a small disk: {error}")
    except subprocess.CalledProcessError as error:
        pytest.skip(f"needs to mount a small disk: {error.stderr.strip()}")
    yield folder
    # Lazily: Spark closes what it failed to write when it pleases.
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk: Path, left: int) -> None:
    """Fill a disk up to so many bytes."""
    (disk / "filling").write_bytes(bytes(shutil.disk_usage(disk).free - left))


def test_a_workload_that_fills_the_disk_leaves_nothing(session: Any, disk: Path) -> None:
    asked = WorkloadRequest(subscriptions=50_000, events=50_000)
    with pytest.raises(JobError, match="writing events: no space is left on the device"):
        write_workload(session, "vinifera", asked, disk / "out", partitions=2)
    assert list(disk.iterdir()) == []


def test_figures_that_fill_the_disk_leave_nothing(session: Any, disk: Path, tmp_path: Path) -> None:
    fill(disk, 2 * PAGE)
    run, out = write_run(tmp_path / "run"), disk / "out"
    with pytest.raises(OSError, match=r"No space left on device: '.*out'"), disk_errors(out):
        crunch(session, run, out, exact_up_to=0, plots=True)
    assert [path.name for path in disk.iterdir()] == ["filling"]


def test_temporary_files_need_room(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark", reason="needs Spark: pip install '.[spark]'")
    monkeypatch.setattr(tempfile, "tempdir", str(disk))
    settings = SessionSettings(master="local[1]")
    with (
        pytest.raises(JobError, match=r"disk has room for 1 MiB more, expected 64 MiB .*TMPDIR"),
        spark_session(settings),
    ):
        pass
    assert list(disk.iterdir()) == []


def large_results(session: Any, text: str, label: str, shared: SharedFolder) -> Path:
    results = made_up_results(session, text, label, shared)
    (results / "events.parquet").write_bytes(bytes(350_000))
    return results


def test_a_sweep_that_fills_the_disk_keeps_runs(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "run_on", large_results)
    with pytest.raises(OSError, match="No space left on device"):
        run_made_up(disk / "out", 5)
    runs = disk / "out.unfinished" / "runs"
    assert sorted(path.name for path in runs.iterdir()) == ["p0", "p1"]
    monkeypatch.setattr(running, "run_on", made_up_results)
    outcome = run_made_up(disk / "out", 5, resume=True)
    assert (outcome.ran, outcome.failed) == (3, {})


def test_a_sweep_on_a_full_disk_leaves_nothing(disk: Path) -> None:
    fill(disk, 0)
    with pytest.raises(OSError, match="No space left on device"):
        run_made_up(disk / "out", 2)
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
    with workers_watched(context, patience_s=0.05):
        assert told.wait(60)
    ((job, reason), _) = context.cancelJob.call_args
    error = explained("crunching", RuntimeError(f"Job {job} cancelled {reason}"))
    assert job == 7
    assert type(error) is ClusterLost
    assert str(error) == (
        "crunching: the cluster has had no worker for 0.05 seconds, expected some to come "
        "(--patience)"
    )


def test_a_job_with_a_worker_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = threading.Semaphore(0)

    def looked() -> Iterator[int]:
        while True:
            looks.release()
            yield 1

    monkeypatch.setattr(workers, "_LOOKING_S", 0.001)
    context = context_with(looked())
    with workers_watched(context, patience_s=0):
        for _ in range(5):
            assert looks.acquire(timeout=60)
    context.cancelJob.assert_not_called()
