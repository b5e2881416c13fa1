"""Real peers do in a replay what simulated ones do, and as fast as the machine keeps up."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from gossamer.protocol.content.subscription import parse_subscription
from gossamer.protocol.peer.space.encoding import encode_event, encode_subscription
from gossamer.protocol.peer.space.hashing import uniform_hashes
from gossamer.protocol.peer.space.ring import held_boxes
from gossamer.replay import controller
from gossamer.replay.controller import (
    HALVINGS,
    REHEARSED,
    Played,
    choose_speed,
    rehearse,
    setup_of,
    warn_of_speed,
)
from gossamer.replay.plan import PUBLISH, START, STOP, Plan, make_plan
from gossamer.replay.recorder import Accounts, Recorder
from gossamer.replay.worker import config_of
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.peers.inputs.scenario import FORMED, Subscriptions
from gossamer.sim.studies.peers.running.system_run import SystemRun
from support.replays import ROUND_S, short_plan, short_scenario, short_trace


def simulated(folder: Path) -> SystemRun:
    scenario = short_scenario(folder)
    run = SystemRun(scenario, scenario.systems[0], short_trace())
    while not run.is_finished:
        run.run_round()
    return run


def test_peers_come_and_go_with_the_trace_and_publish_as_simulated_ones(tmp_path: Path) -> None:
    plan = short_plan(tmp_path)
    assert plan.first == (0, 1, 2, 3, 5)
    churn = [step for step in plan.steps if step.event < 0]
    changes = [(STOP, 5), (START, 4), (START, 5), (STOP, 3)]
    assert [(step.do, step.node) for step in churn] == changes
    assert [step.time_s / ROUND_S for step in churn] == pytest.approx([6.1, 8.1, 10.1, 12.1])
    steps = [(step.event, step.node, step.time_s) for step in plan.steps if step.do == PUBLISH]
    events = simulated(tmp_path).record().events
    assert steps == rows(events, "event", "publisher", "time_s")


def rows(table: Mapping[str, np.ndarray], *names: str) -> list[tuple[Any, ...]]:
    return list(zip(*(table[name].tolist() for name in names), strict=True))


def test_what_simulated_peers_did_gives_the_same_if_real_ones_report_it(tmp_path: Path) -> None:
    record = simulated(tmp_path).record()
    plan = short_plan(tmp_path)
    recorder = Recorder(lambda at: at, ROUND_S)
    sessions = [(node, 0.0, True) for node in plan.first]
    sessions += [(one.node, one.time_s, one.do == START) for one in plan.steps if one.event < 0]
    for node, at, up in sessions:
        report = {"report": "started", "key": node, "address": "a"} if up else {"report": "stopped"}
        recorder.take({"node": node, "at": at, **report})
    for event, time_s, publisher in rows(record.events, "event", "time_s", "publisher"):
        made = {"report": "published", "event": event, "id": 7 + event}
        recorder.take({"node": publisher, "at": time_s, **made})
    columns = ("event", "node", "hops", "tree_hops", "time_s")
    for event, node, hops, tree_hops, at in rows(record.deliveries, *columns):
        told = {"hops": hops, "tree_hops": tree_hops, "latency_s": 0.0}
        recorder.take({"report": "delivered", "node": node, "at": at, "id": 7 + event, **told})
    found = Accounts(plan, recorder, plan.rounds).record("peers", {})
    assert record.events["expected"].sum() > 50
    for name in ("event", "cycle", "time_s", "publisher", "expected", "delivered"):
        np.testing.assert_array_equal(found.events[name], record.events[name], err_msg=name)
    order = np.lexsort((record.deliveries["node"], record.deliveries["event"]))
    other = np.lexsort((found.deliveries["node"], found.deliveries["event"]))
    for name in columns:
        np.testing.assert_array_equal(
            found.deliveries[name][other], record.deliveries[name][order], err_msg=name
        )
    for name in ("population", "events", "expected", "delivered", "hops_sum"):
        np.testing.assert_array_equal(found.cycles[name], record.cycles[name], err_msg=name)


@pytest.mark.parametrize("preset", ["kindred", "resilient"])
def test_expressions_and_values_mean_the_simulated_ones(tmp_path: Path, preset: str) -> None:
    spec = Subscriptions(kind="random", width=0.3, attributes=3, per_node=2)
    system = attrs.evolve(short_scenario(tmp_path).systems[0], preset=preset)
    plan = short_plan(tmp_path, subscriptions=spec, systems=(system,))
    schema = config_of(setup_of(plan, tmp_path, 600.0), 0).schema
    assert schema is not None
    hashes = uniform_hashes(schema)
    for node in range(plan.nodes):
        boxes = [
            encode_subscription(schema, hashes, parse_subscription(schema, text))
            for text in plan.expressions(node)
        ]
        told = [
            [end for two in zip(box.low, box.high, strict=True) for end in two] for box in boxes
        ]
        held, bits = held_boxes(plan.settings, np.array(told, np.int64), np.array([7, 7], np.int64))
        constrained = plan.state.constrained[node] >= 0
        assert held.tolist() == plan.state.subscriptions[node][constrained].tolist()
        assert bits.tolist() == plan.state.constrained[node][constrained].tolist()
    for number, values in enumerate(plan.values.tolist()):
        assert list(encode_event(schema, hashes, plan.event(number))) == values


@pytest.mark.parametrize("preset", ["paper", "resilient", "kindred"])
def test_real_peers_have_the_settings_of_simulated_ones(tmp_path: Path, preset: str) -> None:
    system = short_scenario(tmp_path).systems[0]
    plan = short_plan(tmp_path, systems=(attrs.evolve(system, preset=preset),))
    config = config_of(setup_of(plan, tmp_path, 600.0), 3)
    assert config.schema is not None
    assert config.settings(config.schema) == plan.settings
    assert config.protocol.round_s == ROUND_S / 600
    assert config.identity.folder == tmp_path / "3"


def test_processes_of_peers_load_neither_compiler_nor_table_readers() -> None:
    code = "import gossamer.replay.worker, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert "gossamer" in loaded
    assert not loaded & {"numba", "llvmlite", "pyarrow", "scipy", "matplotlib", "rich", "typer"}


def test_a_formed_start_is_refused(tmp_path: Path) -> None:
    scenario = attrs.evolve(short_scenario(tmp_path), start=FORMED)
    with pytest.raises(ScenarioError, match="start is 'formed', expected 'joining'"):
        make_plan(scenario, short_trace())


# The speed: the highest at which the machine keeps up in a rehearsal

FASTEST = 600.0
Patch = pytest.MonkeyPatch
Capture = pytest.CaptureFixture[str]


def keep_up_at(most: float, monkeypatch: Patch) -> list[tuple[float, int]]:
    """Let rehearsals find all rounds late at a higher speed; the speeds and rounds that were."""
    tried: list[tuple[float, int]] = []

    def play(plan: Plan, speed: float, *_: Any) -> Played:
        tried.append((speed, plan.rounds))
        assert all(step.time_s < plan.rounds * plan.scenario.round_s for step in plan.steps)
        recorder = Recorder(lambda at: at, plan.scenario.round_s)
        for cycle in range(plan.rounds):
            # While peers still join, late rounds say nothing.
            late = 10 if speed > most or cycle < REHEARSED // 2 else 0
            recorder.tallies[cycle] = Counter(rounds=10, rounds_late=late)
        return Played(recorder, plan.rounds, interrupted=False, deaths=0)

    monkeypatch.setattr(controller, "play", play)
    return tried


def unseen(*_: Any) -> None:
    """For those who show no progress."""


@pytest.mark.parametrize(
    ("most", "speeds"),
    [(600, [600.0]), (200, [600.0, 300.0, 150.0]), (0, [600 / 2**k for k in range(HALVINGS)])],
)
def test_the_speed_is_the_highest_at_which_rounds_begin_in_time(
    tmp_path: Path, most: float, speeds: list[float], monkeypatch: Patch, capsys: Capture
) -> None:
    tried = keep_up_at(most, monkeypatch)
    found = choose_speed(short_plan(tmp_path, REHEARSED + 6), FASTEST, 2, unseen)
    assert tried == [(speed, REHEARSED) for speed in speeds]
    assert found == (speeds[-1] if most else speeds[-1] / 2)
    said = capsys.readouterr().err
    assert f"speed {found:g}\n" in said
    assert said.count("100% of the rounds of a rehearsal began late") == len(speeds) - bool(most)


def test_a_speed_too_high_is_warned_of(tmp_path: Path, monkeypatch: Patch, capsys: Capture) -> None:
    keep_up_at(100, monkeypatch)
    plan = short_plan(tmp_path, REHEARSED + 6)
    assert warn_of_speed(plan, 100, 2, unseen)
    assert capsys.readouterr().err == ""
    assert warn_of_speed(plan, 101, 2, unseen)
    said = capsys.readouterr().err
    assert "too slow for so many peers at speed 101: 100% of the rounds" in said
    assert "without --speed the highest is found" in said


def test_what_is_as_short_as_a_rehearsal_has_none(tmp_path: Path, monkeypatch: Patch) -> None:
    tried = keep_up_at(0, monkeypatch)
    assert rehearse(short_plan(tmp_path, REHEARSED), FASTEST, 2, unseen) == 0.0
    assert tried == []
