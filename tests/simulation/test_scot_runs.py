"""Runs of a SCOT: measures, tables and the page, also where there is next to nothing."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from gossamer.sim.results.results import write_results
from gossamer.sim.studies.scot.records import ScotRunRecord, summarise_routing
from gossamer.sim.studies.scot.scenario import HighRate, Overlay, ScotScenario, Workload
from gossamer.sim.studies.scot.simulation import simulate_scot
from gossamer.sim.study.plot import FORMATS, PlotOptions, plots_as
from support.draws import larger

KINDS = larger(("svg",), FORMATS)
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


def test_the_folder_holds_tables_plots_and_a_page_that_needs_no_network(
    finished: ScotRunRecord, tmp_path: Path
) -> None:
    with plots_as(PlotOptions(KINDS)):
        summary = write_results(finished, tmp_path / "out")
    names = {path.relative_to(tmp_path / "out").as_posix() for path in tmp_path.rglob("*.*")}
    tables = ("deliveries", "queues", "subscriptions")
    assert names == {
        *(f"{name}/{table}.parquet" for name in finished.systems for table in tables),
        *(
            f"plots/{plot}.{kind}"
            for plot in ("overlay", "delay", "queues", "messages")
            for kind in KINDS
        ),
        *("summary.json", "scenario.toml", "report.html"),
    }
    rows = pq.read_table(tmp_path / "out" / "static" / "deliveries.parquet").to_pydict()
    assert sum(rows["clients"]) == summary["systems"]["static"]["deliveries"]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "http" not in page.replace("http://www.w3.org", "")
    assert "18 brokers in 3 clusters, 20 subscribers" in page


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
