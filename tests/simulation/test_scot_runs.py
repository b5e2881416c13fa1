"""Runs of a SCOT: results, one hash a seed, ways of routing kept when a run is interrupted."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import numpy as np
import pyarrow.parquet as pq
import pytest

import gossamer.sim.studies.scot.simulation
from gossamer.sim.errors import ScenarioError, SimulationError
from gossamer.sim.results.results import write_results
from gossamer.sim.results.summary import result_hash
from gossamer.sim.studies.scot.burst import Burst, BurstResult, run_burst
from gossamer.sim.studies.scot.records import ScotRunRecord, summarise_routing
from gossamer.sim.studies.scot.scenario import HighRate, Overlay, ScotScenario, Workload
from gossamer.sim.studies.scot.simulation import simulate_scot
from gossamer.sim.study.plot import PlotOptions, plots_as
from support.sim_commands import printed_by, sim

SCENARIO = """
kind = "scot"
name = "small"
routings = ["static", "dynamic"]
[overlay]
name = "figure_2"
[workload]
kind = "quotes"
quotes = 50
subscribers = 20
publishers = 3
notifications = 5
[burst]
notifications = 400
"""


def scenario(
    seed: int = 3, routings: tuple[str, ...] = ("bid", "static", "dynamic")
) -> ScotScenario:
    """A burst of a fraction of a second."""
    return ScotScenario(
        name="small",
        seed=seed,
        routings=routings,
        overlay=Overlay(name="figure_2"),
        workload=Workload(kind="quotes", quotes=50, subscribers=20, publishers=3, notifications=5),
        burst=HighRate(notifications=400),
    )


@pytest.fixture(scope="module")
def finished() -> ScotRunRecord:
    return simulate_scot(scenario(), processes=1)


@pytest.fixture
def work(work: Path) -> Path:
    """The working folder with a scenario in it."""
    (work / "s.toml").write_text(SCENARIO)
    return work


def test_all_ways_of_routing_deliver_the_same_number(finished: ScotRunRecord) -> None:
    found = {name: summarise_routing(record) for name, record in finished.systems.items()}
    assert len({one["deliveries"] for one in found.values()}) == 1
    assert found["bid"]["subscription_duplicates"] > 0
    assert found["static"]["subscription_duplicates"] == 0
    assert found["dynamic"]["rerouted"] > 0 == found["static"]["rerouted"]
    assert found["dynamic"]["burst_delay_mean_s"] < found["static"]["burst_delay_mean_s"]
    for one in found.values():
        assert one["publications"] == 3 * 5 + 400
        assert one["notification_messages"] == one["inter_messages"] + one["intra_messages"]


def test_tables_hold_what_the_summary_says(finished: ScotRunRecord) -> None:
    for record in finished.systems.values():
        tables, found = dict(record.tables()), summarise_routing(record)
        deliveries = tables["deliveries"]
        assert deliveries["clients"].sum() == found["deliveries"]
        assert deliveries["delay_s"].max() == found["delay_max_s"]
        assert tables["queues"]["longest"].max() == found["output_queue_max"]
        assert len(tables["subscriptions"]["delay_s"]) == 20 + 3 * 2


def test_processes_change_nothing_and_another_seed_does(finished: ScotRunRecord) -> None:
    apart = simulate_scot(scenario(routings=("static", "dynamic")), processes=2)
    together = attrs.evolve(
        finished, systems={name: finished.systems[name] for name in apart.systems}
    )
    assert result_hash(apart) == result_hash(together)
    other = simulate_scot(scenario(4, ("static",)), processes=1).systems["static"].result
    same = finished.systems["static"].result
    assert not np.array_equal(other.delays, same.delays)


@pytest.mark.parametrize("hash_seed", ["1", pytest.param("0", marks=pytest.mark.campaign)])
def test_the_hash_does_not_depend_on_the_hash_seed(finished: ScotRunRecord, hash_seed: str) -> None:
    program = (
        "from simulation.test_scot_runs import scenario;"
        "from gossamer.sim.studies.scot.simulation import simulate_scot;"
        "from gossamer.sim.results.summary import result_hash;"
        "print(result_hash(simulate_scot(scenario(), processes=1)))"
    )
    assert printed_by(program, hash_seed) == result_hash(finished)


def test_finished_ways_of_routing_are_kept_and_not_run_again(
    finished: ScotRunRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []

    def stumbles_once(burst: Burst) -> BurstResult:
        ran.append(burst.settings.routing)
        if ran == ["bid", "static"]:
            raise SimulationError("somebody stumbled over the cable")
        return run_burst(burst)

    monkeypatch.setattr(gossamer.sim.studies.scot.simulation, "run_burst", stumbles_once)
    with pytest.raises(SimulationError, match=r"^static: somebody stumbled"):
        simulate_scot(scenario(), checkpoint=tmp_path, processes=1)
    assert [path.name for path in tmp_path.iterdir()] == ["bid.checkpoint"]
    told: list[tuple[str, int, int]] = []
    record = simulate_scot(
        scenario(),
        checkpoint=tmp_path,
        resume=True,
        processes=1,
        progress=lambda *news: told.append(news),
    )
    assert ran == ["bid", "static", "static", "dynamic"]
    assert told == [("routings", 1, 3), ("routings", 2, 3), ("routings", 3, 3)]
    assert result_hash(record) == result_hash(finished)
    with pytest.raises(ScenarioError, match=r"bid\.checkpoint: checkpoint is 'small', expected"):
        simulate_scot(scenario(4), checkpoint=tmp_path, resume=True, processes=1)


def test_a_run_prints_a_table_and_leaves_results(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sim("run s.toml --threads 1 --set burst.notifications=300") == 0
    shown = capsys.readouterr()
    assert "longest output queue" in shown.out
    assert shown.out.endswith(f"Results: {Path('results/small-1/report.html')}\n")
    out = work / "results" / "small-1"
    names = {path.relative_to(out).as_posix() for path in out.rglob("*.*")}
    tables = ("deliveries", "queues", "subscriptions")
    assert names == {
        *(f"{name}/{table}.parquet" for name in ("static", "dynamic") for table in tables),
        *(
            f"plots/{plot}.{kind}"
            for plot in ("overlay", "delay", "queues", "messages")
            for kind in ("pdf", "svg", "png")
        ),
        *("summary.json", "scenario.toml", "report.html"),
    }
    summary = json.loads((out / "summary.json").read_text())
    assert summary["scenario"]["burst"]["notifications"] == 300
    assert list(summary["systems"]) == ["static", "dynamic"]
    rows = pq.read_table(out / "static" / "deliveries.parquet").to_pydict()
    assert sum(rows["clients"]) == summary["systems"]["static"]["deliveries"]
    page = (out / "report.html").read_text()
    assert "http" not in page.replace("http://www.w3.org", "")
    assert "18 brokers in 3 clusters, 20 subscribers" in page
    assert sim("run s.toml --no-plots --threads 1 --seed 2 --json --out other") == 0
    assert capsys.readouterr().out == (work / "other/summary.json").read_text()
    assert sim("compare results/small-1 other") == 0
    assert "longest output queue" in capsys.readouterr().out


def test_runs_without_a_burst_or_subscribers_or_links_leave_results_too(tmp_path: Path) -> None:
    single = Overlay(name="factors", regions=["a"], clusters=[0])
    quiet = HighRate(notifications=0)
    for place, (overlay, subscribers, deliveries) in enumerate(
        [(Overlay(name="figure_2"), 0, 0), (single, 5, 5 * 4)]
    ):
        made = ScotScenario(
            overlay=overlay,
            burst=quiet,
            workload=Workload(topics=1, subscribers=subscribers, publishers=2, notifications=2),
        )
        with plots_as(PlotOptions(("svg",))):
            summary = write_results(simulate_scot(made, processes=1), tmp_path / str(place))
        for found in summary["systems"].values():
            assert (found["deliveries"], found["settled_s"]) == (deliveries, None)
            assert (found["other_delay_mean_s"] is None) == (deliveries == 0)
