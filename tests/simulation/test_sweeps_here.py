"""Sweeps on this machine: every point as by hand, resumed, with means, differences, warm-ups."""

from __future__ import annotations

import csv
import shutil
import subprocess
from functools import partial
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

import gossamer.sim.results.sweeps.here as here
from gossamer.command.main import main
from gossamer.sim.errors import ScenarioError, SimulationError
from gossamer.sim.results.intervals import half_width
from gossamer.sim.results.results import read_results, result_hash
from gossamer.sim.results.sweeps.outcome import write_outcome
from gossamer.sim.results.sweeps.plan import read_sweep
from gossamer.sim.results.sweeps.scheduling import SweepOutcome
from gossamer.sim.results.sweeps.table import differences_of, means_of, sweep
from gossamer.sim.results.tables import all_measures
from gossamer.sim.studies.peers.inputs.scenario import Scenario
from gossamer.sim.studies.peers.study import simulate
from gossamer.sim.study.plot import COLUMN, PlotOptions, plots_as
from gossamer.sim.study.scenarios import NAMED, read_scenario
from support.checkout import ROOT
from support.draws import with_campaigns

BASE = "nodes = 24\nrounds = 12\n[events]\nper_round = 2\nwarm_up_rounds = 6\n"
SWEEP = 'name = "small"\nscenario = "base.toml"\nseeds = [1, 2, 3]\n[grid]\nnodes = [20, 24]\n'

pytestmark = pytest.mark.xdist_group("sweeps here")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sweep")
    (folder / "base.toml").write_text(BASE)
    (folder / "sweep.toml").write_text(SWEEP)
    return folder / "sweep.toml"


@pytest.fixture(scope="module")
def swept(file: Path) -> Path:
    """The folder of that sweep, run by a process, without plots."""
    out = file.parent / "swept"
    line = ["sim", "sweep", str(file), "--out", str(out), "--processes", "1", "--no-plots"]
    assert main(line) == 0
    return out


@pytest.fixture
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A sweep of six points of a study whose processes start faster."""
    monkeypatch.setenv(NAMED, "support.toy_study:TOY")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests"))
    (tmp_path / "base.toml").write_text('kind = "toy"\nrounds = 12\n')
    (tmp_path / "toys.toml").write_text(SWEEP.replace("nodes = [20, 24]", "rounds = [10, 20]"))
    return tmp_path / "toys.toml"


def rows(file: Path) -> list[dict[str, str]]:
    """A table as it was written for people."""
    with file.open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_every_point_is_what_a_run_by_hand_finds(file: Path, swept: Path, tmp_path: Path) -> None:
    plan = read_sweep(file)
    assert sorted(one.name for one in (swept / "runs").iterdir()) == [p.name for p in plan.points]
    point = plan.points[-1]
    (tmp_path / "point.toml").write_text(point.text)
    scenario, text = read_scenario(tmp_path / "point.toml", {})
    assert isinstance(scenario, Scenario)
    summary = read_results(swept / "runs" / point.name).summary
    assert summary["result_hash"] == result_hash(simulate(scenario, text))


def test_means_and_differences_are_those_of_the_points(swept: Path) -> None:
    table = pq.read_table(swept / "points.parquet").to_pandas()
    mine = table[(table.nodes == 24) & (table.system == "kindred")].traffic_overhead
    other = table[(table.nodes == 24) & (table.system == "baseline")].traffic_overhead
    keys = ("nodes", "system", "measure")
    means = {tuple(row[key] for key in keys): row for row in rows(swept / "means.csv")}
    mean = means["24", "kindred", "traffic_overhead"]
    assert float(mean["mean"]) == pytest.approx(mine.mean())
    assert float(mean["high"]) - float(mean["mean"]) == pytest.approx(half_width(mine.to_numpy()))
    assert mean["seeds"] == "3"
    pairs = {(row["nodes"], row["measure"]): row for row in rows(swept / "differences.csv")}
    pair = pairs["24", "traffic_overhead"]
    assert (pair["first"], pair["second"]) == ("kindred", "baseline")
    assert float(pair["difference"]) == pytest.approx((other.values - mine.values).mean())
    settled = rows(swept / "warm_up.csv")
    assert {row["series"] for row in settled} >= {"population", "traffic overhead"}
    assert len({row["point"] for row in settled}) == 6


@with_campaigns("options", [PlotOptions(("svg",), COLUMN)], [PlotOptions()])
def test_a_sweep_draws_its_measures_with_intervals_and_bands(
    file: Path, swept: Path, tmp_path: Path, options: PlotOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    if options != PlotOptions():
        some = ("hit_ratio", "traffic_overhead")
        monkeypatch.setattr(
            "gossamer.sim.results.sweeps.outcome.all_measures",
            lambda runs: [one for one in all_measures(runs) if one.key in some],
        )
    folder = tmp_path / "drawn"
    shutil.copytree(swept, folder)
    with plots_as(options):
        write_outcome(read_sweep(file), folder)
    drawn = {path.name for path in (folder / "plots").iterdir()}
    assert {name.partition(".")[2] for name in drawn} == set(options.formats)
    told = "means over 3 seeds, with 95 % intervals"
    for name in ("hit_ratio", "traffic_overhead", "over-time-control_messages"):
        assert {f"{name}.{kind}" for kind in options.formats} <= drawn
        text = (folder / "plots" / f"{name}.svg").read_text()
        assert ('width="244' in text) == (options.width == COLUMN)
        assert told in " ".join(text.split()) or name == "hit_ratio"


@pytest.mark.campaign
def test_a_sweep_draws_as_it_is_told(tmp_path: Path) -> None:
    """Some formats in the width of a column, or nothing; what else it leaves stays the same."""
    (tmp_path / "base.toml").write_text(BASE)
    (tmp_path / "one.toml").write_text(SWEEP.replace("[1, 2, 3]", "[1]"))
    line = ["sim", "sweep", str(tmp_path / "one.toml"), "--processes", "2"]
    narrow = ["--plots", "svg", "--plot-width", "column"]
    assert main([*line, "--out", str(tmp_path / "a"), *narrow]) == 0
    assert main([*line, "--out", str(tmp_path / "b"), "--no-plots"]) == 0
    drawn = list((tmp_path / "a" / "plots").iterdir())
    assert {path.suffix for path in drawn} == {".svg"}
    assert 'width="244' in (tmp_path / "a" / "plots" / "hit_ratio.svg").read_text()
    assert not (tmp_path / "b" / "plots").exists()
    one, other = ((tmp_path / name / "means.csv").read_bytes() for name in "ab")
    assert one == other


def test_a_sweep_that_was_stopped_goes_on_and_ends_the_same(toys: Path, tmp_path: Path) -> None:
    out, whole = tmp_path / "stopped", tmp_path / "whole"

    def stop_after_two(_name: str, done: int, _all: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    run = partial(here.sweep_here, read_sweep(toys), processes=1, resume=False, pictures=False)
    run(whole)
    with pytest.raises(KeyboardInterrupt):
        run(out, progress=stop_after_two)
    kept = out.with_name("stopped.unfinished") / "runs"
    there = {one.name: one.stat().st_ino for one in kept.glob("0*")}
    assert 2 <= len(there) < 6
    line = ["sim", "sweep", str(toys), "--out", str(out), "--processes", "1", "--no-plots"]
    assert main(line) == 2
    assert main([*line, "--resume"]) == 0
    now = {one.name: one.stat().st_ino for one in (out / "runs").iterdir()}
    assert there.items() <= now.items()
    tables = {path.name: path.read_bytes() for path in whole.glob("*.csv")}
    assert {"points.csv", "means.csv", "differences.csv"} <= tables.keys()
    assert {path.name: path.read_bytes() for path in out.glob("*.csv")} == tables


def test_a_process_that_is_killed_costs_its_point_alone(
    toys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    ask = here._ask

    def ask_and_kill(process: subprocess.Popen[str], line: str) -> str:
        asked.append(process.pid)
        if len(asked) == 2:
            process.kill()
            process.wait()
        return ask(process, line)

    def run(*, resume: bool) -> SweepOutcome[Path]:
        plan = read_sweep(toys)
        return here.sweep_here(plan, tmp_path / "out", 1, resume=resume, pictures=False)

    monkeypatch.setattr(here, "_ask", ask_and_kill)
    outcome = run(resume=False)
    (reason,) = outcome.failed.values()
    assert "its process was killed by signal 9" in reason
    assert (outcome.ran, outcome.folder) == (5, tmp_path / "out.unfinished")
    assert len(set(asked)) == 2
    again = run(resume=True)
    assert (again.ran, again.failed) == (1, {})


def test_a_script_gets_a_table(file: Path) -> None:
    scenario, _ = read_scenario(file.parent / "base.toml", {})
    frame = sweep(scenario, seeds=[1, 2], grid={"nodes": [20, 24]}, processes=1)
    assert len(frame) == 2 * 2 * 2
    assert set(frame.system) == {"kindred", "baseline"}
    means = means_of(frame)
    assert set(means.nodes) == {20, 24}
    hit = means[(means.measure == "hit_ratio") & (means.system == "kindred")]
    assert (hit.seeds == 2).all()
    pair = differences_of(frame)
    assert set(pair["first"] + pair["second"]) == {"kindred" + "baseline"}
    with pytest.raises(SimulationError, match="expected all that is varied"):
        means_of(frame, by=[])
    with pytest.raises(SimulationError, match="by is 'depth', expected columns"):
        means_of(frame, by=["depth"])
    assert isinstance(frame, pd.DataFrame)


def test_settings_of_a_protocol_of_ones_own_keep_their_names(tmp_path: Path) -> None:
    file = ROOT / "examples" / "cookbook" / "rumor_nodes.py"
    base = f'protocol = "{file}:Rumor"\nnodes = 12\nrounds = 3\n'
    (tmp_path / "base.toml").write_text(base)
    grid = {"settings.k": [1, 2]}
    sweep(tmp_path / "base.toml", seeds=[1, 2], grid=grid, out=tmp_path / "o", processes=1)
    means = rows(tmp_path / "o" / "means.csv")
    assert {row["settings.k"] for row in means} == {"1", "2"}
    (pair,) = {(row["first"], row["second"]) for row in rows(tmp_path / "o" / "differences.csv")}
    assert pair == ("rumor (k=1)", "rumor (k=2)")
    header = (tmp_path / "o" / "warm_up.csv").read_text().splitlines()[0]
    assert header == "point,system,series,warm_up,mean,settled"
    assert pq.read_table(tmp_path / "o" / "warm_up.parquet").num_rows == 0


@pytest.mark.parametrize(
    ("grid", "message"),
    [({"noodles": [1]}, "noodles"), ({"nodes": []}, "grid.nodes"), ({"nodes": [-1]}, "nodes")],
)
def test_an_impossible_sweep_or_plot_is_refused_before_anything_runs(
    file: Path, tmp_path: Path, grid: dict[str, list[int]], message: str
) -> None:
    with pytest.raises(ScenarioError, match=message):
        sweep(file.parent / "base.toml", seeds=[1], grid=grid)
    line = ["sim", "sweep", str(file), "--out", str(tmp_path / "a"), "--plots", "gif"]
    assert main(line) == 2
    assert not (tmp_path / "a").exists()
