"""Small replays on real peers."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gossamer.replay.command import SIMULATED
from gossamer.replay.plan import Plan, make_plan
from gossamer.sim.churn import ChurnTrace, write_trace
from gossamer.sim.studies.peers.inputs import scenario

ROUND_S = 60.0


def short_trace(rounds: int = 20) -> ChurnTrace:
    """Six nodes: one comes late, one leaves, one comes back, the others stay."""
    stays = [(node, 0, rounds) for node in range(3)]
    comes_and_goes = [(3, 0, 12.1), (4, 8.1, rounds), (5, 0, 6.1), (5, 10.1, rounds)]
    sessions = np.array([*stays, *comes_and_goes])
    node, start_s, end_s = sessions[:, 0], sessions[:, 1] * ROUND_S, sessions[:, 2] * ROUND_S
    names = [f"n{number}" for number in range(6)]
    return ChurnTrace(names, node, start_s, end_s, rounds * ROUND_S)


def short_scenario(folder: Path, rounds: int = 20, **changes: object) -> scenario.Scenario:
    """A scenario around `short_trace`; wide ranges, so that every event has subscribers."""
    file = folder / "short.avt"
    write_trace(short_trace(rounds), file)
    settings: dict[str, object] = {
        "name": "short",
        "nodes": None,
        "rounds": None,
        "round_s": ROUND_S,
        "subscriptions": scenario.Subscriptions(kind="random", width=0.8),
        "events": scenario.Events(per_round=2.0, warm_up_rounds=5),
        "churn": scenario.Churn(trace=file),
        "systems": (scenario.System(name=SIMULATED, preset="kindred"),),
        **changes,
    }
    return scenario.Scenario(**settings)  # type: ignore[arg-type]


def short_plan(folder: Path, rounds: int = 20, **changes: object) -> Plan:
    return make_plan(short_scenario(folder, rounds, **changes), short_trace(rounds))
