"""`gossamer sim sweep`: points in processes of this machine, as many as it has cores.

Each process is a Python of its own that reads points from its standard input (`worker`), and runs
one after the other, so that rules are compiled or read once. Nothing of the script or notebook that
asks for a sweep is run again in it.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from gossamer.sim.errors import SimulationError
from gossamer.sim.results.sweeps.folder import FolderStore, write_points
from gossamer.sim.results.sweeps.outcome import write_outcome
from gossamer.sim.results.sweeps.plan import Point, SweepPlan
from gossamer.sim.results.sweeps.scheduling import (
    PointRunner,
    SweepOutcome,
    report_nothing,
    run_points,
)
from gossamer.sim.results.sweeps.worker import RESULTS
from gossamer.sim.study.tasks import Progress

COMMAND: Final = ("gossamer", "sim", "sweep")
_WORKER: Final = "gossamer.sim.results.sweeps.worker"


def sweep_here(
    plan: SweepPlan,
    out: Path,
    processes: int,
    *,
    resume: bool,
    progress: Progress = report_nothing,
    pictures: bool = True,
) -> SweepOutcome[Path]:
    """Run the points of a sweep that are not there yet on this machine.

    Args:
        plan: what to run.
        out: the new folder.
        processes: points at a time, at most; points wait for memory too.
        resume: go on with an unfinished sweep.
        progress: called with the name of the sweep, points done, and all.
        pictures: whether to draw plots, as `plots_as` says.

    Raises:
        ResultsError: ``out`` is taken, another process is at work on it, or it holds an unfinished
            sweep, or one of another plan.
        OSError: the disk is full or not writable; what is finished is kept.
    """
    points = ProcessPoints(processes)

    def finish(plan: SweepPlan, folder: Path) -> None:
        write_points(plan, folder)
        write_outcome(plan, folder, pictures=pictures)

    store = FolderStore(Path(out), finish)
    try:
        return run_points(plan, store, points, resume=resume, progress=progress)
    finally:
        points.stop()


class ProcessPoints(PointRunner):
    """Runs each point in a process, which is kept for the next one."""

    def __init__(self, processes: int) -> None:
        super().__init__(processes, shares_memory=True)
        self._free: SimpleQueue[subprocess.Popen[str]] = SimpleQueue()
        self._all: list[subprocess.Popen[str]] = []
        self._guard = threading.Lock()

    def run_point(self, point: Point, folder: Path, sweep: Path) -> Path:
        """Run a point in a process that has nothing to do."""
        del sweep
        process = self._process()
        answer = _ask(process, json.dumps({"text": point.text, "folder": os.fspath(folder)}))
        if not answer:
            code = process.wait()
            how = f"killed by signal {-code}" if code < 0 else f"ended with code {code}"
            raise SimulationError(
                f"{point.name}: its process was {how}; perhaps the memory does not suffice, "
                "--processes lets fewer points run at a time"
            )
        self._free.put(process)
        error, number = json.loads(answer)
        if number == errno.ENOSPC:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
        if error:
            raise SimulationError(f"{point.name}: {error}")
        return folder / RESULTS

    def stop(self) -> None:
        """End all processes, which may have long to go."""
        with self._guard:
            self._stopped.set()
            for process in self._all:
                process.terminate()
        for process in self._all:
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(BrokenPipeError):
                    if pipe is not None:
                        pipe.close()

    def _process(self) -> subprocess.Popen[str]:
        """A process that has nothing to do, or a new one."""
        if not self._free.empty():
            return self._free.get()
        with self._guard:
            if self.is_stopped:
                raise SimulationError("the sweep has ended")
            begun = subprocess.Popen(
                [sys.executable, "-m", _WORKER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
            self._all.append(begun)
        return begun


def _ask(process: subprocess.Popen[str], line: str) -> str:
    """What a process answers; nothing if it is gone."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(line + "\n")
        process.stdin.flush()
    except BrokenPipeError:
        return ""
    return process.stdout.readline()
