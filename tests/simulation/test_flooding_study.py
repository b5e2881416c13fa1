"""A fourth family of brokers, plugged into the core outside the package, as a study of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from gossamer.sim.results.results import read_results
from gossamer.sim.results.sweeps.plan import read_sweep
from gossamer.sim.study.registry import NAMED
from support.sim_commands import sim
from support.spark_processes import environment, needs_spark, run_spark_command

STUDY = "support.flooding_study:FLOODS"
SCENARIO = 'kind = "flooding"\nname = "flood"\nseed = 3\nbrokers = 6\n'
SWEEP = 'scenario = "s.toml"\nseeds = [1, 2]\n[grid]\nbrokers = [3, 6]\n'
PATHS = (environment()["PYTHONPATH"], str(Path(__file__).parents[1]))


@pytest.fixture
def work(work: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(NAMED, STUDY)
    (work / "s.toml").write_text(SCENARIO)
    (work / "sweep.toml").write_text(SWEEP)
    return work


def test_a_run_leaves_results_and_a_report(work: Path) -> None:
    assert sim("run s.toml --out out") == 0
    found = read_results(work / "out")
    line, star = (found.summary["systems"][name] for name in ("line", "star"))
    # Each of 20 publications crosses each of five links once, on either overlay.
    assert (line["messages"], star["messages"]) == (100, 100)
    assert line["deliveries"] == star["deliveries"] > 0
    assert found.table("line", "floods")["hops"].max() == 5
    assert found.table("star", "floods")["hops"].max() == 1
    page = (work / "out" / "report.html").read_text()
    assert "6 flooding brokers, seed 3" in page
    assert "Sent between brokers." in page


def test_runs_are_checked_compared_and_swept(
    capsys: pytest.CaptureFixture[str], work: Path
) -> None:
    assert sim("check s.toml --set brokers=1") == 2
    assert "brokers is 1" in capsys.readouterr().err
    assert sim("run s.toml --out a --no-plots") == 0
    assert sim("run s.toml --out b --no-plots --set brokers=9") == 0
    capsys.readouterr()
    assert sim("compare a b") == 0
    assert "messages" in capsys.readouterr().out
    plan = read_sweep(work / "sweep.toml")
    assert [point.memory_bytes for point in plan.points] == [6_000, 6_000, 12_000, 12_000]


@pytest.mark.campaign
@needs_spark
def test_a_sweep_runs_and_is_crunched(work: Path) -> None:
    """By processes of its own: workers of a session that others began do not know the study."""
    for words in ("sweep sweep.toml --out swept", "crunch swept --out crunched"):
        done = run_spark_command(*words.split(), PYTHONPATH=os.pathsep.join(PATHS))
        assert done.returncode == 0, done.stderr
    rows = pq.read_table(work / "swept" / "points.parquet").to_pylist()
    assert [row["messages"] for row in rows if row["system"] == "star"] == [40, 40, 100, 100]
    assert "deliveries" in (work / "crunched" / "report.html").read_text()
