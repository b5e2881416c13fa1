"""What is due arrives although much changes, and what it costs is counted, each message once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from gossamer.replay.plan import make_plan
from gossamer.sim.churn import ChurnTrace, write_trace
from gossamer.sim.errors import ScenarioError
from gossamer.sim.results.report import report_html
from gossamer.sim.results.results import result_hash, summarise
from gossamer.sim.results.tables import print_summary
from gossamer.sim.studies.peers.inputs import scenario as peers
from gossamer.sim.studies.peers.inputs.changes import Drift, Turnover
from gossamer.sim.studies.peers.measuring.records import RunRecord, SystemRecord
from gossamer.sim.studies.peers.measuring.summary import outgrown, summarise_system
from gossamer.sim.studies.peers.running.system_run import SystemRun
from gossamer.sim.studies.peers.study import preview, simulate
from gossamer.sim.studies.worlds.network import Link
from gossamer.sim.study.contract import Execution
from support.checkout import ROOT
from support.draws import with_campaigns
from support.sim_commands import simulated_in_parts

ROUND_S = 60.0


def scenario(**fields: object) -> peers.Scenario:
    common: dict[str, object] = {
        "nodes": 120,
        "rounds": 50,
        "round_s": ROUND_S,
        "seed": 5,
        "systems": (peers.System(name="kindred", preset="kindred"),),
        "subscriptions": peers.Subscriptions(kind="random", width=0.05, per_node=2),
        "events": peers.Events(
            per_round=4, warm_up_rounds=20, publishers=0.2, publisher_exponent=1.0
        ),
        "measure_every": 10,
    }
    return peers.Scenario(**{**common, **fields})  # type: ignore[arg-type]


DRIFTING = scenario(drift=Drift(every_s=5 * ROUND_S, replaced=0.2, shifted=0.2, event_shift=0.01))


def test_what_is_due_arrives_while_interests_drift_and_a_run_goes_on_where_it_was(
    tmp_path: Path,
) -> None:
    whole = simulate(DRIFTING, execution=Execution(workers=1))
    events = whole.systems["kindred"].events
    assert events["expected"].sum() > 500
    assert events["delivered"].sum() == events["expected"].sum()
    assert not events["duplicates"].any()
    assert len(set(events["publisher"].tolist())) <= 24
    resumed = simulated_in_parts(DRIFTING, tmp_path, 31, threads=1)
    assert result_hash(resumed) == result_hash(whole)


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


def test_half_of_the_nodes_are_online_at_any_time_of_a_turnover() -> None:
    asked = scenario(turnover=Turnover(share=1.0), rounds=80)
    record = simulate(asked, execution=Execution(workers=1)).systems["kindred"]
    assert set(record.cycles["population"].tolist()) == {60}
    assert record.events["expected"].sum() > 200
    assert record.events["delivered"].sum() / record.events["expected"].sum() > 0.9
    assert preview(asked).population == (60, 60.0, 60)


def test_no_copy_goes_round_while_peers_move() -> None:
    """Where each took the other for who answers, copies took 4,096 hops."""
    drift = Drift(every_s=20 * ROUND_S, replaced=0.3, shifted=0.3, shift=0.02)
    for seed in (3, 17):
        asked = scenario(
            nodes=24,
            rounds=100,
            seed=seed,
            drift=drift,
            subscriptions=peers.Subscriptions(kind="random"),
            events=peers.Events(per_round=3.0),
        )
        (measures,) = summarise(simulate(asked))["systems"].values()
        assert measures["totals"]["hop_limit_drops"] == 0, f"seed {seed}"
        assert measures["hit_ratio"] == 1, f"seed {seed}"
        # A copy of 4,096 hops would be repeated as often.
        assert measures["totals"]["repeated_copies"] < 4 * measures["events"], f"seed {seed}"


def test_real_peers_do_not_drift() -> None:
    paper = attrs.evolve(DRIFTING, systems=(peers.System(name="paper"),))
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
    scenario = peers.Scenario(
        seed=seed,
        round_s=1.0,
        churn=peers.Churn(trace=crash(tmp_path, seed)),
        subscriptions=peers.Subscriptions(kind="random", width=0.05),
        events=peers.Events(per_round=4, warm_up_rounds=25),
        network=Link(reports_unreachable=is_reported),
        systems=(
            peers.System(name="kindred", preset="kindred"),
            peers.System(name="without", preset="kindred", settings=WITHOUT),
        ),
    )
    hits = {
        system: float(str(summarise_system(record)["hit_ratio"]))
        for system, record in simulate(scenario).systems.items()
    }
    for system, share in (LEAST if is_reported else LEAST_OF_SILENT).items():
        assert hits[system] >= share, f"{system}, seed {seed}: {hits}"
    assert hits["kindred"] >= hits["without"], f"seed {seed}: {hits}"


TRACE = ROOT / "traces" / "flash_crowd.avt.gz"
SEED = 3


def crowd(per_round: float, seed: int = SEED, **settings: Any) -> peers.Scenario:
    """A hundred minutes of the bundled trace, with the flash crowd, under `resilient`."""
    return peers.Scenario(
        nodes=400,
        rounds=100,
        seed=seed,
        churn=peers.Churn(trace=TRACE),
        events=peers.Events(per_round=per_round),
        systems=(peers.System(name="resilient", preset="resilient", settings=settings),),
    )


def slow(preset: str, **link: Any) -> peers.Scenario:
    """Messages take two rounds each, so that an event travels for dozens of rounds."""
    return peers.Scenario(
        nodes=100,
        rounds=100,
        round_s=10,
        seed=SEED,
        engine="event",
        network=Link(latency="constant", latency_s=20, **link),
        subscriptions=peers.Subscriptions(kind="random", attributes=2, width=0.5),
        events=peers.Events(per_round=4),
        systems=(peers.System(name=preset, preset=preset, settings={"failure_age": 40}),),
    )


def only_system(record: RunRecord) -> SystemRecord:
    (system,) = record.systems.values()
    return system


@with_campaigns(
    "scenario",
    [crowd(4), crowd(20, event_memory=16), slow("baseline", duplication=0.2)],
    [crowd(0.5), crowd(20), slow("paper"), slow("resilient")],
)
def test_all_messages_received_are_counted(scenario: peers.Scenario) -> None:
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


@with_campaigns(
    "scenario",
    [crowd(20, seed=5), slow("paper"), slow("resilient")],
    [crowd(4), crowd(100)],
)
def test_no_event_is_delivered_twice(scenario: peers.Scenario) -> None:
    system = only_system(simulate(scenario))
    assert system.events["duplicates"].sum() == 0, f"seed {scenario.seed}"
    assert system.totals["forgotten_copies"] == 0
    delivered = system.deliveries["event"] * 1000 + system.deliveries["node"]
    assert len(np.unique(delivered)) == len(delivered)


def test_what_a_peer_remembers_follows_from_the_rate_of_events() -> None:
    def memory(asked: peers.Scenario) -> int:
        (system,) = asked.systems
        settings = system.settings_for(400, asked.subscriptions, asked.events, asked.seed)
        return settings.event_memory

    for rate, remembered in ((0.5, 64), (4, 64), (20, 280), (100, 1400), (1e6, 1 << 16)):
        assert memory(crowd(rate)) == remembered
    assert memory(crowd(100, event_memory=32)) == 32


def test_a_memory_that_is_too_small_is_told_and_no_other(tmp_path: Path, capsys: Any) -> None:
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
    enough = simulate(peers.Scenario(nodes=50, rounds=40))
    assert list(outgrown(summarise(enough)["systems"])) == []
    assert "too small" not in report_html(enough, summarise(enough), [])
