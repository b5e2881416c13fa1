"""One meaning: a protocol written as plain nodes and as rules does the same, record by record."""

from __future__ import annotations

from typing import Any

import pytest

from gossamer.sim.studies.custom.agreement import first_difference, scenario_of
from gossamer.sim.studies.custom.simulation import simulate_custom
from support.own_protocols import COOKBOOK, PROTOCOLS

BOTH = ("errands.py:Errands", "errands_nodes.py:Errands")
WORLDS: dict[str, dict[str, Any]] = {
    "perfect": {},
    "lossy": {
        "network": {"latency": "uniform", "latency_s": 0.08, "loss": 0.05, "duplication": 0.05},
        "clock_drift": 0.02,
    },
    "silent": {"network": {"latency": "constant", "latency_s": 0.03, "reports_unreachable": False}},
}


@pytest.mark.parametrize("world", WORLDS)
def test_nodes_and_interpreted_rules_do_the_same(world: str) -> None:
    """With samplers, layers, delays, jitter, crashes, returns and whatever links do."""
    scenario = scenario_of(*BOTH, folder=PROTOCOLS, nodes=30, rounds=26, **WORLDS[world])
    assert first_difference(scenario, interpreted=True) is None


@pytest.mark.parametrize("world", WORLDS)
def test_nodes_and_compiled_rules_do_the_same_and_measure_it(world: str) -> None:
    scenario = scenario_of(*BOTH, folder=PROTOCOLS, nodes=80, rounds=40, **WORLDS[world])
    assert first_difference(scenario) is None
    rules, nodes = simulate_custom(scenario).systems.values()
    assert rules.totals == nodes.totals
    for (name, one), (_, other) in zip(rules.tables(), nodes.tables(), strict=True):
        for column in one:
            assert one[column].tolist() == pytest.approx(other[column].tolist()), (name, column)
    taken = dict(zip(rules.messages["message"].tolist(), rules.messages["count"], strict=True))
    assert taken.pop("reminder") == 0  # to oneself
    assert min(taken.values()) > 100
    assert rules.rounds["done_mean"][-1] > 2
    assert (rules.rounds["population"] < 80).any()


@pytest.mark.parametrize("engine", ["cycle", "event"])
def test_rumors_spread_the_same_way_in_both_engines(engine: str) -> None:
    scenario = scenario_of(
        "rumor.py:Rumor",
        "rumor_nodes.py:Rumor",
        folder=COOKBOOK,
        nodes=60,
        rounds=20,
        engine=engine,
    )
    assert first_difference(scenario, interpreted=True) is None


def test_the_first_record_that_differs_is_named() -> None:
    """One more useless push until nodes lose interest: all is the same until one would have."""
    scenario = scenario_of("rumor.py:Rumor", "rumor_nodes.py:Rumor", folder=COOKBOOK, nodes=60)
    patient = scenario_of("rumor.py:Rumor", folder=COOKBOOK, nodes=60, settings={"k": 3}).systems[0]
    object.__setattr__(patient, "name", "patient")
    object.__setattr__(scenario, "systems", (scenario.systems[0], patient))
    found = first_difference(scenario, interpreted=True)
    assert found is not None
    assert found.names == ("1-Rumor", "patient")
    assert found.number > 300
    assert found.first != found.second
    assert str(found).startswith(f"record {found.number:,} differs: in 1-Rumor node ")
