"""Overlays of two to five nodes: there is nobody else to learn a lost neighbour from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer.protocol.peer.settings.config import SAMPLERS
from gossamer.sim.churn import ChurnTrace, write_trace
from gossamer.sim.studies.peers.inputs import scenario as peers
from gossamer.sim.studies.peers.measuring.summary import summarise_system
from gossamer.sim.studies.peers.simulation import simulate
from gossamer.sim.studies.worlds.network import Link
from support.draws import larger

PRESETS = ("paper", "baseline", "resilient", "kindred")
SEED = 3


def scenario(sampler: str = "cyclon", **fields: Any) -> peers.Scenario:
    """Every preset with a sampler; each node wants half of everything."""
    chosen = {"sampler": sampler}
    systems = tuple(peers.System(name=one, preset=one, settings=chosen) for one in PRESETS)
    wanted = peers.Subscriptions(kind="random", width=0.5)
    return peers.Scenario(**{"seed": SEED, "subscriptions": wanted, "systems": systems, **fields})


def under_churn(file: Path, trace: ChurnTrace, **fields: Any) -> peers.Scenario:
    write_trace(trace, file)
    return scenario(nodes=None, rounds=None, churn=peers.Churn(trace=file), **fields)


def assert_everything_arrives(asked: peers.Scenario) -> list[dict[str, object]]:
    """In all systems, whose ring is right in the end; gives their measures."""
    found = {name: summarise_system(one) for name, one in simulate(asked).systems.items()}
    for name, measures in found.items():
        assert measures["hit_ratio"] == 1.0, f"{name}, seed {SEED}"
        assert measures["ring_correct_final"] == 1.0, f"{name}, seed {SEED}"
    return list(found.values())


@pytest.mark.parametrize("engine", ["cycle", "event"])
@pytest.mark.parametrize(
    ("nodes", "sampler"),
    [
        (nodes, sampler)
        if sampler == SAMPLERS[nodes % len(SAMPLERS)]
        else pytest.param(nodes, sampler, marks=pytest.mark.campaign)
        for nodes in (2, 3, 4, 5)
        for sampler in SAMPLERS
    ],
)
def test_every_event_reaches_all_of_a_small_overlay(nodes: int, sampler: str, engine: str) -> None:
    rounds, events = larger(40, 60), peers.Events(per_round=2)
    asked = scenario(sampler, nodes=nodes, rounds=rounds, engine=engine, events=events)
    assert all(one["duplicates"] == 0 for one in assert_everything_arrives(asked))


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.campaign) for seed in (1, 2, 3))]
)
def test_two_nodes_find_each_other_although_messages_are_lost(seed: int) -> None:
    asked = scenario(nodes=2, rounds=60, seed=seed, engine="event", network=Link(loss=0.4))
    for name, system in simulate(asked).systems.items():
        correct = system.cycles["ring_correct"][10:]
        assert np.mean(correct) > 0.9, f"{name}, seed {seed}"
        assert correct[-10:].any(), f"{name}, seed {seed}"


@pytest.mark.parametrize(
    ("engine", "reports_unreachable"),
    [
        ("cycle", True),
        ("event", False),
        pytest.param("cycle", False, marks=pytest.mark.campaign),
        pytest.param("event", True, marks=pytest.mark.campaign),
    ],
)
def test_two_that_are_left_go_on(tmp_path: Path, engine: str, reports_unreachable: bool) -> None:
    ends_s = [6000.0, 1200.0, 1230.0, 6000.0, 1800.0]
    asked = under_churn(
        tmp_path / "leaving.avt",
        ChurnTrace("abcde", range(5), [0.0] * 5, ends_s, 6000.0),
        engine=engine,
        network=Link(reports_unreachable=reports_unreachable),
        # Failures that are noticed by silence alone take a while.
        events=peers.Events(per_round=2, warm_up_rounds=75),
    )
    assert_everything_arrives(asked)


@pytest.mark.parametrize("engine", ["cycle", "event"])
def test_two_that_take_turns_in_leaving_find_each_other_again(tmp_path: Path, engine: str) -> None:
    sessions = [(0, 0, 1800), (1, 0, 3000), (0, 2400, 6000), (1, 3600, 6000)]
    node, start_s, end_s = zip(*sessions, strict=True)
    asked = under_churn(
        tmp_path / "turns.avt",
        ChurnTrace("ab", node, start_s, end_s, 6000.0),
        engine=engine,
        events=peers.Events(per_round=2, warm_up_rounds=10),
    )
    assert_everything_arrives(asked)
