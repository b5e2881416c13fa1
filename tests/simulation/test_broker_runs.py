"""Runs of broker overlays: measures, the report, subscriptions that bursts share."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import cast

import attrs
import numpy as np
import pytest

from gossamer.command.main import main
from gossamer.protocol.brokers.core.broker import compiled_index
from gossamer.protocol.brokers.tree import TreeBroker, TreeSettings
from gossamer.protocol.kernel.errors import ConfigError
from gossamer.sim.errors import SimulationError
from gossamer.sim.studies.tree_brokers.records import BrokerRunRecord, summarise_covering
from gossamer.sim.studies.tree_brokers.scenario import BrokerScenario, Overlay, Timing, Workload
from gossamer.sim.studies.tree_brokers.study import BROKERS, aggregate_rows
from gossamer.sim.studies.tree_brokers.unsubscription_burst import BurstRun, run_burst
from gossamer.sim.study.contract import Execution
from gossamer.sim.study.tasks import run_tasks
from support.checkout import ROOT
from support.draws import with_campaigns

COVERINGS = ("off", "active", "lazy", "packed", "selective", "incremental")
SCENARIO = """
kind = "brokers"
name = "small"
coverings = ["active", "selective"]
[workload]
roots = 6
degree = 8
unsubscriptions = 3
[timing]
subscribe_every_s = 0.1
publish_every_s = 0.5
calm_s = 20
aftermath_s = 20
"""


EVERY = {"subscribe_every_s": 0.1, "unsubscribe_every_s": 0.1}


def scenario(seed: int = 3, coverings: tuple[str, ...] = COVERINGS) -> BrokerScenario:
    return BrokerScenario(
        name="small",
        seed=seed,
        coverings=coverings,
        overlay=Overlay(name="controlled_49"),
        workload=Workload(roots=8, degree=12, unsubscriptions=5),
        timing=Timing(**EVERY, publish_every_s=0.25, calm_s=30, aftermath_s=30),
    )


@pytest.fixture(scope="module")
def finished() -> BrokerRunRecord:
    return BROKERS.run(scenario(), "# text\n", Execution(workers=1))


def test_every_covering_has_measures_that_follow_from_its_tables(finished: BrokerRunRecord) -> None:
    measures = {name: summarise_covering(one) for name, one in finished.systems.items()}
    assert tuple(measures) == COVERINGS
    assert len({found["deliveries"] for found in measures.values()}) == 1
    for found in measures.values():
        assert 0.015 < found["delay_mean_s"] <= found["delay_max_s"]
        assert found["publications"] == 120
    assert measures["off"]["triggered_messages"] == 0
    assert measures["active"]["triggered_last"] == 5 * 12
    assert measures["packed"]["triggered_last"] <= 5 < measures["active"]["triggered_last"]
    assert measures["incremental"]["triggered_last"] < measures["active"]["triggered_last"] / 2
    assert measures["active"]["kept_for_nobody"] == 0 < measures["selective"]["kept_for_nobody"]
    record = finished.systems["active"]
    table = dict(zip(record.brokers["broker"], record.brokers["table"], strict=True))
    assert measures["active"]["core"]["E"]["table"] == table["E"]
    assert measures["active"]["table_entries_core"] == np.mean(
        [table[name] for name in record.core]
    )
    assert measures["active"]["queue_max"] == max(record.queues[name].max() for name in record.core)
    assert measures["active"]["delay_max_s"] == record.deliveries["delay_s"].max()


def test_the_report_names_what_is_kept_for_nobody_by_cost(finished: BrokerRunRecord) -> None:
    record = finished.systems["selective"]
    rows = aggregate_rows(record)
    assert len(rows) == len(record.aggregates["broker"]) > 0
    counts = [cast(int, row[-1]) for row in rows]
    assert counts == sorted(counts, reverse=True)
    for broker, neighbour, text, arrivals, unwanted in rows:
        assert {broker, neighbour} <= set(record.brokers["broker"])
        assert str(text).startswith("x >= ")
        assert 0 <= int(str(unwanted)) <= int(str(arrivals))


@attrs.frozen
class Dying:
    """A task whose process ends as if it had been killed."""

    label: str = "dying"

    def run(self) -> None:
        os._exit(9)


def test_a_process_that_dies_is_said_in_one_sentence() -> None:
    with pytest.raises(SimulationError, match=r"^a process of the run ended before its time"):
        run_tasks([Dying()], 2)


def test_bursts_that_share_their_subscriptions_are_as_if_they_did_not() -> None:
    """Active, packed and pruning coverings leave the same tables before anything is taken back."""
    made = scenario()
    saved = pickle.dumps(BurstRun(made.burst("active"), new_index=compiled_index))
    for covering in ("packed", "incremental"):
        run: BurstRun = pickle.loads(saved)
        burst = attrs.evolve(made.burst(covering), overlay=run.burst.overlay)
        run.change(burst)
        shared, alone = run.hit(), run_burst(burst, new_index=compiled_index)
        np.testing.assert_array_equal(shared.deliveries, alone.deliveries)
        np.testing.assert_array_equal(shared.queues, alone.queues)
        assert shared.tallies == alone.tallies
        assert shared.kept == alone.kept


def test_bursts_with_other_tables_or_subscriptions_share_none_and_statistics_are_kept() -> None:
    made = scenario()
    run = BurstRun(made.burst("active"), new_index=compiled_index)
    with pytest.raises(SimulationError, match="other subscriptions"):
        run.change(made.burst("active"))  # another overlay, if only by identity
    lazy = attrs.evolve(made.burst("lazy"), overlay=run.burst.overlay)
    with pytest.raises(ConfigError, match=r"broker\.covering is 'lazy', expected a covering that"):
        run.change(lazy)
    assert run.burst.settings.covering == "active"
    broker = TreeBroker("B", TreeSettings(covering="selective"))
    before = broker.dump()
    broker.configure(TreeSettings(covering="incremental"))
    assert broker.dump() == before


SMALLER = (
    "workload.roots=10 workload.degree=70 workload.unsubscriptions=5 timing.calm_s=20"
    " timing.aftermath_s=10 timing.subscribe_every_s=0.05"
)


@with_campaigns("changes", [SMALLER], [""])
def test_the_example_shows_what_incremental_pruning_is_for(changes: str, tmp_path: Path) -> None:
    """It triggers fewer than selective pruning and delays less, for more false positives."""
    pruning = 'coverings=["selective","incremental"]'
    out = tmp_path / "out"
    settings = [word for change in (pruning, *changes.split()) for word in ("--set", change)]
    file = str(ROOT / "examples/brokers/scenario.toml")
    assert main(["sim", "run", file, *settings, "--no-plots", "--out", str(out)]) == 0
    systems = json.loads((out / "summary.json").read_text(encoding="utf-8"))["systems"]
    selective, incremental = systems["selective"], systems["incremental"]
    assert incremental["triggered_messages"] < 0.75 * selective["triggered_messages"]
    assert incremental["delay_mean_s"] < 0.5 * selective["delay_mean_s"]
    assert incremental["queue_max"] < 0.6 * selective["queue_max"]
    positives = [one["false_positive_ratio"] for one in (selective, incremental)]
    assert 0 < positives[0] < positives[1] < 0.02
