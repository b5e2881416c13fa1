"""Exit code 1 says that all was written, and that a check differs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import gossamer.sim.figures.common.claims as claims
import gossamer.spark.commands.cli as cli
import gossamer.spark.crunch.crunching as crunching
import gossamer.spark.workload.writing as writing
from gossamer.sim.results.results import write_results
from gossamer.sim.results.storage.place import LocalPlace, Place
from gossamer.spark.crunch.claims import CheckedClaim
from gossamer.spark.crunch.crunching import Crunched
from gossamer.spark.crunch.curves import Curves
from gossamer.spark.workload.checks import Check
from support.made_up_runs import made_up_run
from support.spark_processes import needs_spark

pytestmark = needs_spark


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    @contextmanager
    def no_session(*_: Any, **__: Any) -> Iterator[None]:
        yield None

    monkeypatch.setattr(cli, "session_for", no_session)

    def run_it(*words: str) -> int:
        return CliRunner().invoke(cli.app, list(words)).exit_code

    return run_it


@pytest.mark.parametrize(("found", "code"), [(7.0, 0), (7.5, 0), (8.5, 1), (float("nan"), 0)])
def test_a_workload_that_is_not_what_was_asked_for(
    run: Callable[..., int], monkeypatch: pytest.MonkeyPatch, found: float, code: int
) -> None:
    checks = [Check(name="rows", wanted=7.0, found=found, tolerance=1.0)]

    def write(_session: Any, _kind: str, _wish: Any, place: Place, _partitions: Any) -> Any:
        return writing.Written(folder=place, rows={"events": 7}, checks=checks)

    monkeypatch.setattr(writing, "write_workload", write)
    assert run("workload", "siena", "--out", "w") == code


@pytest.mark.parametrize(
    ("values", "code"), [((), 0), ((0.5,), 0), ((0.5, 1.5), 1), ((float("nan"),), 1)]
)
def test_claims_that_differ(
    run: Callable[..., int],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    values: tuple[float, ...],
    code: int,
) -> None:
    write_results(made_up_run(1), tmp_path / "run", pictures=False)
    place = LocalPlace(tmp_path / "c")
    checked = []
    for value in values:
        check = claims.Check(name="a share", value=value, unit=claims.SHARE, high=1.0)
        claim = claims.Claim(id="V3", claim="a claim", checks=[check], explanation="a reason")
        checked.append(CheckedClaim(claim=claim, seeds=1, ends=[(value, value)]))
    nothing: dict[str, Any] = {key: [] for key in ("values", "intervals", "comparisons", "notes")}
    found = Crunched(folder=place, runs=1, curves=Curves(place, {}), checked=checked, **nothing)
    monkeypatch.setattr(crunching, "crunch_results", lambda *_, **__: found)
    assert run("crunch", str(tmp_path / "run"), "--out", str(place)) == code
