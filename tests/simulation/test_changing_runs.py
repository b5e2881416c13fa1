"""Runs in which interests, events and the population change: what is due arrives, and goes on."""

from __future__ import annotations

from pathlib import Path

import attrs
import numpy as np
import pytest

from gossamer.replay.plan import make_plan
from gossamer.sim.churn import ChurnTrace, write_trace
from gossamer.sim.errors import ScenarioError
from gossamer.sim.results.summary import result_hash
from gossamer.sim.studies.peers.inputs.changes import Drift, Turnover
from gossamer.sim.studies.peers.inputs.scenario import (
    Churn,
    Events,
    Scenario,
    Subscriptions,
    System,
)
from gossamer.sim.studies.peers.measuring.summary import summarise_system
from gossamer.sim.studies.peers.preview import preview
from gossamer.sim.studies.peers.running.system_run import SystemRun
from gossamer.sim.studies.peers.simulation import simulate
from gossamer.sim.studies.worlds.network import Link
from support.sim_commands import interrupted_after

ROUND_S = 60.0


def scenario(**fields: object) -> Scenario:
    common: dict[str, object] = {
        "nodes": 120,
        "rounds": 50,
        "round_s": ROUND_S,
        "seed": 5,
        "systems": (System(name="kindred", preset="kindred"),),
        "subscriptions": Subscriptions(kind="random", width=0.05, per_node=2),
        "events": Events(per_round=4, warm_up_rounds=20, publishers=0.2, publisher_exponent=1.0),
        "measure_every": 10,
    }
    return Scenario(**{**common, **fields})  # type: ignore[arg-type]


DRIFTING = scenario(drift=Drift(every_s=5 * ROUND_S, replaced=0.2, shifted=0.2, event_shift=0.01))


def test_what_is_due_arrives_while_interests_drift() -> None:
    record = simulate(DRIFTING, threads=1).systems["kindred"]
    events = record.events
    assert events["expected"].sum() > 500
    assert events["delivered"].sum() == events["expected"].sum()
    assert not events["duplicates"].any()
    assert len(set(events["publisher"].tolist())) <= 24


def test_nodes_want_other_things_after_a_change_and_are_owed_them_two_rounds_later() -> None:
    run = SystemRun(DRIFTING, DRIFTING.systems[0], None)
    before = run.state.subscriptions.copy()
    for _ in range(6):
        run.run_round()
    changed = (run.state.subscriptions != before).any(axis=(1, 2))
    assert 0.2 < changed.mean() < 0.6
    assert (run.interests.since_s[changed] == 5 * ROUND_S).all()
    assert (run.interests.since_s[~changed] == -np.inf).all()
    changes_next = np.isfinite(run.interests.until_s)
    assert set(run.interests.until_s[changes_next]) == {10 * ROUND_S}
    between = run.state.subscriptions.copy()
    for _ in range(5):
        run.run_round()
    assert ((run.state.subscriptions != between).any(axis=(1, 2)) == changes_next).all()


def test_a_drifting_run_goes_on_where_it_was(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        simulate(DRIFTING, progress=interrupted_after(31), checkpoint=tmp_path, threads=1)
    resumed = simulate(DRIFTING, checkpoint=tmp_path, resume=True, threads=1)
    assert result_hash(resumed) == result_hash(simulate(DRIFTING, threads=1))


def test_half_of_the_nodes_are_online_at_any_time_of_a_turnover() -> None:
    asked = scenario(turnover=Turnover(share=1.0), rounds=80)
    record = simulate(asked, threads=1).systems["kindred"]
    assert set(record.cycles["population"].tolist()) == {60}
    assert record.events["expected"].sum() > 200
    assert record.events["delivered"].sum() / record.events["expected"].sum() > 0.9
    assert preview(asked).population == (60, 60.0, 60)


def test_real_peers_do_not_drift() -> None:
    paper = attrs.evolve(DRIFTING, systems=(System(name="vinifera"),))
    trace = ChurnTrace(["a", "b"], [0], [0.0], [9000.0], 9000.0)
    with pytest.raises(ScenarioError, match=r"drift is .*, expected none, as the subscriptions"):
        make_plan(attrs.evolve(paper, nodes=2), trace)


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
