"""Half of an overlay leaves at once: what is published around that time arrives all the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gossamer.sim.churn import ChurnTrace, write_trace
from gossamer.sim.studies.peers.inputs.scenario import (
    Churn,
    Events,
    Scenario,
    Subscriptions,
    System,
)
from gossamer.sim.studies.peers.measuring.summary import summarise_system
from gossamer.sim.studies.peers.simulation import simulate
from gossamer.sim.studies.worlds.network import Link

NODES, ROUNDS, CRASH = 200, 50, 35
# Presets and settings, and where failures are reported the least share of deliveries.
LEAST = {"kindred": 0.999, "without": 0.9}
LEAST_OF_SILENT = {"kindred": 0.9, "without": 0.8}
WITHOUT = {
    "ring_repairs": 0,
    "ring_offers": False,
    "hand_on": False,
    "acknowledged_hops": 0,
    "failures_remembered": 8,
}


def crash(folder: Path, seed: int) -> Path:
    """A trace in which a random half of the nodes leaves in the middle of a round."""
    end_s = np.full(NODES, float(ROUNDS))
    leaving = np.random.default_rng(seed).permutation(NODES)[: NODES // 2]
    end_s[leaving] = CRASH + 0.25
    names = tuple(f"n{i}" for i in range(NODES))
    trace = ChurnTrace(names, np.arange(NODES), np.zeros(NODES), end_s, float(ROUNDS))
    path = folder / f"crash{seed}.avt.gz"
    write_trace(trace, path)
    return path


@pytest.mark.parametrize("is_reported", [True, False])
@pytest.mark.parametrize("seed", [1, 2])
def test_events_arrive_although_half_of_the_nodes_leave_at_once(
    is_reported: bool, seed: int, tmp_path: Path
) -> None:
    scenario = Scenario(
        seed=seed,
        round_s=1.0,
        churn=Churn(trace=crash(tmp_path, seed)),
        subscriptions=Subscriptions(kind="random", width=0.05),
        events=Events(per_round=4, warm_up_rounds=25),
        network=Link(reports_unreachable=is_reported),
        systems=(
            System(name="kindred", preset="kindred"),
            System(name="without", preset="kindred", settings=WITHOUT),
        ),
    )
    hits = {
        system: summarise_system(record)["hit_ratio"]
        for system, record in simulate(scenario).systems.items()
    }
    least = LEAST if is_reported else LEAST_OF_SILENT
    for system, share in least.items():
        assert float(str(hits[system])) >= share, f"{system}, seed {seed}: {hits}"
    assert float(str(hits["kindred"])) >= float(str(hits["without"])), f"seed {seed}: {hits}"
