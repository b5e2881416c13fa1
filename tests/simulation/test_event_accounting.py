"""What events cost and whom they reach: every message counts, however late, and each once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer.sim.results.report import report_html
from gossamer.sim.results.summary import summarise
from gossamer.sim.results.tables import print_summary
from gossamer.sim.studies.peers.inputs.scenario import (
    Churn,
    Events,
    Scenario,
    Subscriptions,
    System,
)
from gossamer.sim.studies.peers.measuring.bounds import outgrown
from gossamer.sim.studies.peers.measuring.records import RunRecord, SystemRecord
from gossamer.sim.studies.peers.simulation import simulate
from gossamer.sim.studies.worlds.network import Link
from support.checkout import ROOT

TRACE = ROOT / "traces" / "flash_crowd.avt.gz"
SEED = 3


def crowd(per_round: float, seed: int = SEED, **settings: Any) -> Scenario:
    """A hundred minutes of the bundled trace, with the flash crowd, under `resilient`."""
    return Scenario(
        nodes=400,
        rounds=100,
        seed=seed,
        churn=Churn(trace=TRACE),
        events=Events(per_round=per_round),
        systems=(System(name="resilient", preset="resilient", settings=settings),),
    )


def slow(preset: str, **link: Any) -> Scenario:
    """Messages take two rounds each, so that an event travels for dozens of rounds."""
    return Scenario(
        nodes=100,
        rounds=100,
        round_s=10,
        seed=SEED,
        engine="event",
        network=Link(latency="constant", latency_s=20, **link),
        subscriptions=Subscriptions(kind="random", attributes=2, width=0.5),
        events=Events(per_round=4),
        systems=(System(name=preset, preset=preset, settings={"failure_age": 40}),),
    )


def only_system(record: RunRecord) -> SystemRecord:
    """The one system of a run."""
    (system,) = record.systems.values()
    return system


@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(crowd(0.5), marks=pytest.mark.campaign),
        crowd(4),
        pytest.param(crowd(20), marks=pytest.mark.campaign),
        crowd(20, event_memory=16),
        slow("paper"),
        slow("resilient"),
        slow("baseline", duplication=0.2),
    ],
    ids=["half", "four", "twenty", "forgetful", "slow", "slow-resilient", "slow-twice"],
)
def test_all_messages_received_are_counted(scenario: Scenario) -> None:
    record = simulate(scenario)
    system = only_system(record)
    (measures,) = summarise(record)["systems"].values()
    events, nodes, cycles = system.events, system.nodes, system.cycles
    for name in ("received", "uninterested"):
        assert events[name].sum() == nodes[name].sum() == cycles[name].sum() == measures[name]
    assert measures["received"] > 0
    assert measures["traffic_overhead"] == nodes["uninterested"].sum() / nodes["received"].sum()
    assert measures["false_positives"] == measures["totals"]["false_positives"]
    assert np.all(nodes["load"] <= 1)


@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(crowd(4), marks=pytest.mark.campaign),
        pytest.param(crowd(100), marks=pytest.mark.campaign),
        crowd(20, seed=5),
        slow("paper"),
        slow("resilient"),
    ],
    ids=["four", "hundred", "twenty", "slow", "slow-resilient"],
)
def test_no_event_is_delivered_twice(scenario: Scenario) -> None:
    system = only_system(simulate(scenario))
    assert system.events["duplicates"].sum() == 0, f"seed {scenario.seed}"
    assert system.totals["forgotten_copies"] == 0
    delivered = system.deliveries["event"] * 1000 + system.deliveries["node"]
    assert len(np.unique(delivered)) == len(delivered)


def test_what_a_peer_remembers_follows_from_the_rate_of_events() -> None:
    memory = {
        rate: only_system_settings(crowd(rate)).event_memory for rate in (0.5, 4, 20, 100, 1e6)
    }
    assert memory == {0.5: 64, 4: 64, 20: 280, 100: 1400, 1e6: 1 << 16}
    assert only_system_settings(crowd(100, event_memory=32)).event_memory == 32


def only_system_settings(scenario: Scenario) -> Any:
    """The settings of the one system of a scenario."""
    (system,) = scenario.systems
    return system.settings_for(400, scenario.subscriptions, scenario.events, scenario.seed)


def test_a_memory_that_is_too_small_is_told(tmp_path: Path, capsys: Any) -> None:
    record = simulate(crowd(20, event_memory=16))
    summary = summarise(record)
    (measures,) = summary["systems"].values()
    forgotten = measures["totals"]["forgotten_copies"]
    assert forgotten > 0
    # Counted without any table: all deliveries of an event to a node after the first.
    assert measures["duplicates"] > 0
    assert len(only_system(record).deliveries["event"]) > measures["delivered"]
    sentence = f"resilient: {forgotten:,} event copies were forgotten"
    assert any(told.startswith(sentence) for told in outgrown(summary["systems"]))
    assert "(event_memory is 16)." in report_html(record, summary, [])
    print_summary(summary, tmp_path)
    assert f"Too small: {sentence}" in capsys.readouterr().out


def test_a_run_without_need_tells_of_none() -> None:
    record = simulate(Scenario(nodes=50, rounds=40))
    summary = summarise(record)
    assert list(outgrown(summary["systems"])) == []
    assert "too small" not in report_html(record, summary, [])
