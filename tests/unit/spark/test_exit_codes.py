"""Exit code 1 says that all was written, and that a check differs; and what failed jobs say."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import gossamer.sim.figures.common.claims as claims
import gossamer.spark.commands.cli as cli
import gossamer.spark.crunch.crunching as crunching
import gossamer.spark.workload.writing as writing
from gossamer.sim.results.results import write_results
from gossamer.sim.results.storage.place import LocalPlace
from gossamer.spark.crunch.claims import CheckedClaim
from gossamer.spark.crunch.crunching import Crunched
from gossamer.spark.crunch.curves import Curves
from gossamer.spark.errors import WorkerLost
from gossamer.spark.jobs import job_errors
from gossamer.spark.workload.checks import Check
from support import made_up_runs, spark_processes


def run(patch: pytest.MonkeyPatch, *words: str) -> int:
    """The exit code of a command without a session."""
    patch.setattr(cli, "session_for", lambda *_, **__: nullcontext())
    return CliRunner().invoke(cli.app, list(words)).exit_code


@spark_processes.needs_spark
@pytest.mark.parametrize(("found", "code"), [(7.0, 0), (7.5, 0), (8.5, 1), (float("nan"), 0)])
def test_a_workload_that_differs(monkeypatch: pytest.MonkeyPatch, found: float, code: int) -> None:
    checks = [Check(name="rows", wanted=7.0, found=found, tolerance=1.0)]
    written = writing.Written(folder=LocalPlace(Path("w")), rows={"events": 7}, checks=checks)
    monkeypatch.setattr(writing, "write_workload", lambda *_, **__: written)
    assert run(monkeypatch, "workload", "siena", "--out", "w") == code


@spark_processes.needs_spark
@pytest.mark.parametrize(
    ("values", "code"), [((), 0), ((0.5,), 0), ((0.5, 1.5), 1), ((float("nan"),), 1)]
)
def test_claims_that_differ(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, values: tuple[float, ...], code: int
) -> None:
    write_results(made_up_runs.made_up_run(1), tmp_path / "run", pictures=False)
    place = LocalPlace(tmp_path / "c")
    checked = []
    for value in values:
        check = claims.Check(name="a share", value=value, unit=claims.SHARE, high=1.0)
        claim = claims.Claim(id="V3", claim="a claim", checks=[check], explanation="a reason")
        checked.append(CheckedClaim(claim=claim, seeds=1, ends=[(value, value)]))
    nothing: dict[str, Any] = {key: [] for key in ("values", "intervals", "comparisons", "notes")}
    found = Crunched(folder=place, runs=1, curves=Curves(place, {}), checked=checked, **nothing)
    monkeypatch.setattr(crunching, "crunch_results", lambda *_, **__: found)
    assert run(monkeypatch, "crunch", str(tmp_path / "run"), "--out", str(place)) == code


LOST = ConnectionResetError("the other end is gone")  # as Spark raises where Java does not answer


def test_an_interrupted_job_is_not_called_a_lost_worker() -> None:
    """Spark speaks to Java when it clears up after an interrupt, and fails in that."""
    interrupt = KeyboardInterrupt()

    def work() -> None:
        with job_errors("a job"):
            try:
                raise interrupt
            finally:
                raise LOST

    with pytest.raises(KeyboardInterrupt) as raised:
        work()
    assert raised.value is interrupt


def test_a_job_that_nobody_interrupted_has_lost_its_worker() -> None:
    with pytest.raises(WorkerLost, match=r"^a job: a worker was lost"), job_errors("a job"):
        raise LOST
