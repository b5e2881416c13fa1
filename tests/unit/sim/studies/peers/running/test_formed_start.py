"""Overlays that stand from the beginning, beside those that form by messages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.protocol.peer.state.links import HANDLE_MASK
from gossamer.sim.studies.peers.inputs import scenario as peers
from gossamer.sim.studies.peers.inputs.changes import Turnover
from gossamer.sim.studies.peers.measuring.overlay_measures import ring_correctness
from gossamer.sim.studies.peers.running.population import played_trace
from gossamer.sim.studies.peers.running.system_run import SystemRun

KINDRED = peers.System(name="k", preset="kindred", settings={"routing_table_entries": 512})


def a_run(
    start: str, nodes: int = 150, system: peers.System = KINDRED, **changes: Any
) -> SystemRun:
    scenario = peers.Scenario(
        **{
            "nodes": nodes,
            "rounds": 60,
            "start": start,
            "systems": (system,),
            "subscriptions": peers.Subscriptions(kind="random", width=0.05),
            "events": peers.Events(per_round=4, warm_up_rounds=2),
            **changes,
        }
    )
    return SystemRun(scenario, system, None)


def neighbours(run: SystemRun) -> list[set[int]]:
    return [{int(word) & HANDLE_MASK for word in row if word >= 0} for row in run.state.links]


def test_a_formed_overlay_is_what_a_joining_one_becomes() -> None:
    joining, formed = a_run(peers.JOINING), a_run(peers.FORMED)
    at_first = neighbours(formed)
    assert neighbours(joining) != at_first
    for _ in range(50):
        joining.run_round()
    assert neighbours(joining) == at_first
    for _ in range(10):
        formed.run_round()
    assert neighbours(formed) == at_first


def test_events_of_the_first_rounds_reach_all_who_want_them() -> None:
    run = a_run(peers.FORMED)
    while not run.is_finished:
        run.run_round()
    events = run.record().events
    assert events["expected"].sum() > 500
    assert events["delivered"].tolist() == events["expected"].tolist()
    assert events["duplicates"].sum() == 0


@pytest.mark.parametrize("nodes", [2, 3, 5, 7, 8, 13, 14, 25])
def test_small_overlays_have_a_right_ring_and_nobody_twice(nodes: int) -> None:
    run = a_run(peers.FORMED, nodes=nodes)
    state = run.state
    assert ring_correctness(state, run.engine.network.alive) == 1.0
    for p, row in enumerate(state.links.tolist()):
        linked = [word & HANDLE_MASK for word in row if word >= 0]
        assert p not in linked
        assert len(linked) == len(set(linked))
        assert len(linked) >= min(nodes - 1, 2 * state.params.ring_links)


def test_who_is_offline_at_first_is_in_no_link_and_joins_as_ever() -> None:
    scenario = peers.Scenario(
        nodes=300, rounds=40, start=peers.FORMED, systems=(KINDRED,), turnover=Turnover(share=0.5)
    )
    run = SystemRun(scenario, KINDRED, played_trace(scenario))
    alive = run.engine.network.alive.copy()
    assert 0 < alive.sum() < len(alive)
    for p, linked in enumerate(neighbours(run)):
        assert alive[list(linked)].all()
        assert bool(linked) == bool(alive[p])
    while not run.is_finished:
        run.run_round()
    assert np.count_nonzero(run.engine.network.alive & ~alive) > 0
    assert ring_correctness(run.state, run.engine.network.alive) > 0.95


def test_the_paper_preset_begins_with_its_ring_and_finds_friends() -> None:
    system = peers.System(name="v", preset="paper")
    run = a_run(peers.FORMED, system=system)
    ring = 2 * run.state.params.ring_links
    assert (run.state.links[:, :ring] >= 0).all()
    assert (run.state.links[:, ring:] < 0).all()
    for _ in range(20):
        run.run_round()
    assert (run.state.links[:, ring:] >= 0).mean() > 0.8
    assert ring_correctness(run.state, run.engine.network.alive) == 1.0
