"""Who is online when, what is due to whom, what is refused, and overlays that stand at once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from gossamer.protocol.peer.state.links import HANDLE_MASK
from gossamer.replay.plan import PUBLISH, START, STOP, make_plan
from gossamer.sim.churn import ChurnTrace, write_trace
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.peers.inputs import scenario as inputs
from gossamer.sim.studies.peers.inputs.changes import Turnover
from gossamer.sim.studies.peers.inputs.publications import due_at
from gossamer.sim.studies.peers.measuring.overlay_measures import ring_correctness
from gossamer.sim.studies.peers.measuring.records import SystemRecord
from gossamer.sim.studies.peers.running.population import Population, load_trace, played_trace
from gossamer.sim.studies.peers.running.preparation import prepare
from gossamer.sim.studies.peers.running.system_run import SystemRun
from gossamer.sim.studies.peers.study import preview, simulate
from gossamer.sim.studies.worlds.network import Link
from gossamer.sim.study.contract import Execution

ROUND_S = 60.0
# The end of the second part of round 10, at which events are published.
AT_S = 10.5 * ROUND_S
LENGTH_S = 20 * ROUND_S


Sessions = list[tuple[int, float, float]]


def trace_of(sessions: Sessions, length_s: float = LENGTH_S) -> ChurnTrace:
    """Sessions as (node, start, end) of nodes numbered from 0."""
    node, start_s, end_s = zip(*sessions, strict=True) if sessions else ((), (), ())
    names = [f"n{number}" for number in range(max(node, default=1) + 1)]
    return ChurnTrace(names, node, start_s, end_s, length_s)


def scenario_of(folder: Path, trace: ChurnTrace, **fields: object) -> inputs.Scenario:
    """Everybody wants every event; four of them a round, so that each part of it has one."""
    file = folder / "t.avt"
    write_trace(trace, file)
    settings: dict[str, Any] = {"churn": inputs.Churn(trace=file), "round_s": ROUND_S}
    settings["systems"] = (inputs.System(name="kindred"),)
    settings["subscriptions"] = inputs.Subscriptions(kind="skewed", places=1, spread=0.0)
    settings["events"] = inputs.Events(per_round=4, warm_up_rounds=4)
    return inputs.Scenario(**settings | fields)


def run_of(scenario: inputs.Scenario) -> SystemRecord:
    return simulate(scenario, execution=Execution(workers=1)).systems["kindred"]


def expected_at(events: Mapping[str, Any]) -> dict[float, int]:
    """How many nodes are due what is published at a time."""
    return dict(zip(events["time_s"].tolist(), events["expected"].tolist(), strict=True))


def assert_refused(scenario: inputs.Scenario, words: str) -> None:
    """Whatever is begun with a scenario, it is refused with these words."""
    for begin in (prepare, preview, simulate):
        with pytest.raises(ScenarioError, match=words):
            begin(scenario)


def test_churn_in_python_means_the_whole_trace_and_all_of_its_nodes(tmp_path: Path) -> None:
    trace = trace_of([(0, 0, LENGTH_S), (1500, 0, LENGTH_S)], length_s=200 * ROUND_S)
    scenario = scenario_of(tmp_path, trace)
    assert (scenario.nodes, scenario.rounds) == (None, None)
    prepared = prepare(scenario)
    assert (prepared.nodes, prepared.rounds) == (1501, 200)
    told = scenario_of(tmp_path, trace, nodes=7, rounds=9)
    assert (prepare(told).nodes, prepare(told).rounds) == (7, 9)
    assert (inputs.Scenario().nodes, inputs.Scenario().rounds) == (1000, 100)


@pytest.mark.parametrize(("field", "number"), [("nodes", 4), ("rounds", 21)])
def test_more_than_the_trace_has_is_refused_too(tmp_path: Path, field: str, number: int) -> None:
    scenario = scenario_of(tmp_path, trace_of([(2, 0, LENGTH_S)]), **{field: number})
    assert_refused(scenario, rf"^{field} is {number}, expected at most")


@pytest.mark.parametrize("engine", ["cycle", "event"])
def test_a_run_over_nobody_is_refused_everywhere(tmp_path: Path, engine: str) -> None:
    apart: Sessions = [(0, 0, 100), (1, 900, LENGTH_S)]
    for sessions, start_s, end_s in (
        ([], 0.0, None),  # without any session
        (apart, 300.0, 600.0),  # a cut between sessions
        (apart, 100.0, 900.0),  # nobody comes before the run is over
    ):
        period = inputs.Churn(trace=tmp_path / "t.avt", start_s=start_s, end_s=end_s)
        scenario = scenario_of(tmp_path, trace_of(sessions), churn=period, engine=engine)
        assert_refused(scenario, r"churn is a trace with nobody online, expected")


def test_nobody_to_take_part_or_to_publish_is_refused(tmp_path: Path) -> None:
    late = trace_of([(0, 900, 1000), (2, 0, LENGTH_S)])
    for fields in ({"nodes": 2, "rounds": 10}, {"nodes": 2, "rounds": 15}):
        with pytest.raises(ScenarioError, match=r"nobody online"):
            prepare(scenario_of(tmp_path, late, **fields))
    assert prepare(scenario_of(tmp_path, late, nodes=2)).nodes == 2
    gone = trace_of([(node, 0, 4 * ROUND_S) for node in range(5)])
    with pytest.raises(ScenarioError, match=r"nobody to publish, expected .* from 255 s on"):
        prepare(scenario_of(tmp_path, gone))
    last = trace_of([(0, 0, 4 * ROUND_S), (1, 8 * ROUND_S, 8.3 * ROUND_S)])
    assert prepare(scenario_of(tmp_path, last)).rounds == 20


def test_a_population_that_is_empty_for_a_while_is_simulated_as_it_is(tmp_path: Path) -> None:
    """Nobody at first and in between; everybody leaves at once, and some come back."""
    sessions = [(node, 2 * ROUND_S, 6 * ROUND_S) for node in range(8)]
    sessions += [(node, 8 * ROUND_S, 15 * ROUND_S) for node in range(8)]
    record = run_of(scenario_of(tmp_path, trace_of(sessions)))
    assert record.cycles["population"].tolist() == [0] + [8] * 4 + [0] * 2 + [8] * 7 + [0] * 6
    published = set((record.events["time_s"] / ROUND_S).tolist())
    assert published == {part / 4 for part in range(17, 60) if part / 4 < 6 or 8 <= part / 4 < 15}
    assert set(record.deliveries["node"].tolist()) <= set(range(8))


def test_rounds_that_end_before_the_first_event_are_refused(tmp_path: Path) -> None:
    for warm_up, per_round, rounds, least in ((20, 1.0, 20, 21), (5, 0.25, 8, 9)):
        events = inputs.Events(per_round=per_round, warm_up_rounds=warm_up)
        few, enough = (inputs.Scenario(nodes=8, rounds=n, events=events) for n in (rounds, least))
        assert_refused(few, rf"^rounds is {rounds}, expected at least {least}")
        assert prepare(enough).rounds == least
        assert prepare(attrs.evolve(few, events=attrs.evolve(events, per_round=0))).rounds == rounds
    short = trace_of([(0, 0, LENGTH_S)])
    with pytest.raises(ScenarioError, match=r"^rounds is 20, expected at least 21"):
        prepare(scenario_of(tmp_path, short, events=inputs.Events(warm_up_rounds=20)))


def test_more_rounds_than_fit_in_memory_and_a_missing_matrix_are_refused(tmp_path: Path) -> None:
    trace = trace_of([(0, 0, LENGTH_S)])
    with pytest.raises(ScenarioError, match=r"^rounds is 1000000000, expected at most \d+, for"):
        prepare(inputs.Scenario(nodes=8, rounds=1_000_000_000))
    with pytest.raises(ScenarioError, match=r"^rounds is 120000000, expected at most"):
        prepare(scenario_of(tmp_path, trace, round_s=1e-5))
    with pytest.raises(ScenarioError, match=r"^round_s is 1e-09, expected so long that"):
        prepare(scenario_of(tmp_path, trace, round_s=1e-9))
    link = Link(latency="matrix", matrix=tmp_path / "none.txt")
    scenario = inputs.Scenario(nodes=8, engine="event", network=link)
    assert_refused(scenario, r"none\.txt: the latency matrix is No such file")


def test_due_is_who_is_in_one_session_from_two_rounds_before_to_one_after() -> None:
    nodes = [
        (0, np.inf, True),
        (0, AT_S, False),
        (0, AT_S + 1, False),
        (0, AT_S + ROUND_S, False),
        (0, AT_S + ROUND_S + 1, True),
        (AT_S - 2 * ROUND_S, np.inf, True),
        (AT_S - 2 * ROUND_S + 1, np.inf, False),
        (AT_S, np.inf, False),
    ]
    joined_s, leaves_s, due = np.array(nodes).T
    yes = np.ones(len(nodes), np.bool_)
    assert due_at(AT_S, ROUND_S, yes, joined_s, leaves_s, yes).tolist() == due.tolist()


@pytest.mark.parametrize("engine", ["cycle", "event"])
def test_who_leaves_at_a_publication_is_not_due_nor_publisher(tmp_path: Path, engine: str) -> None:
    always = [(node, 0.0, LENGTH_S) for node in range(4)]
    left = [(node, 0.0, AT_S) for node in range(4, 24)]
    back = [(node, AT_S, LENGTH_S) for node in range(14, 24)]
    events = run_of(scenario_of(tmp_path, trace_of([*always, *left, *back]), engine=engine)).events
    expected = expected_at(events)
    # Who leaves a round or less after a publication is not due; who is back, after two rounds.
    assert expected[AT_S - ROUND_S - 15] == 24
    assert {expected[AT_S + late] for late in (-60, -15, 0, 15, 105)} == {4}
    assert expected[AT_S + 2 * ROUND_S] == 14
    publishers = dict(zip(events["time_s"].tolist(), events["publisher"].tolist(), strict=True))
    assert all(not 4 <= who < 14 for at, who in publishers.items() if at >= AT_S)


def test_simulated_and_real_peers_leave_and_join_before_publications(tmp_path: Path) -> None:
    trace = trace_of([(0, 0, LENGTH_S), (1, 0, AT_S), (2, AT_S, LENGTH_S)])
    scenario = scenario_of(tmp_path, trace)
    steps = [step for step in make_plan(scenario, trace).steps if step.time_s == AT_S]
    assert [step.do for step in steps] == [STOP, START, PUBLISH]
    assert [step.node for step in steps[:2]] == [1, 2]


def test_who_leaves_twice_is_not_due_and_a_last_round_has_its_whole_length(tmp_path: Path) -> None:
    sessions = [(node, 0.0, LENGTH_S) for node in range(4)]
    sessions += [(4, 0.0, 10.6 * ROUND_S), (4, 10.7 * ROUND_S, 11.9 * ROUND_S)]
    events = run_of(scenario_of(tmp_path, trace_of(sessions))).events
    assert expected_at(events)[10.25 * ROUND_S] == 4
    length_s = LENGTH_S - 20
    sessions = [(0, 0.0, length_s), (1, 0.0, length_s), (2, 0.0, length_s - 1)]
    record = run_of(scenario_of(tmp_path, trace_of(sessions, length_s)))
    assert record.events["expected"][record.events["time_s"] == LENGTH_S].tolist() == [2]
    steady = Population(3, None, 1)
    assert (steady.joined_s.tolist(), steady.leaves_s.tolist()) == ([-np.inf] * 3, [np.inf] * 3)


def test_impossible_parts_name_a_key_and_the_file(tmp_path: Path) -> None:
    file = tmp_path / "t.avt"
    write_trace(trace_of([(node, 0, 100) for node in range(2000)]), file)
    for fields, words in (
        ({"start_s": LENGTH_S}, "start_s is 1200.0, expected a time before the end of the"),
        ({"repeat": 1_000_000}, "repeat is 1000000, expected"),
        ({"time_scale": 1e308}, "time_scale is 1e+308, expected"),
    ):
        with pytest.raises(ScenarioError) as caught:
            load_trace(inputs.Churn(trace=file, **fields))
        assert f"churn.{words}" in str(caught.value)
        assert str(file) in str(caught.value)


# Overlays that stand from the beginning, beside those that form by messages


KINDRED = inputs.System(name="k", preset="kindred", settings={"routing_table_entries": 512})


def a_run(start: str, nodes: int = 150, system: inputs.System = KINDRED) -> SystemRun:
    subscriptions = inputs.Subscriptions(kind="random", width=0.05)
    parts: Any = {"subscriptions": subscriptions, "systems": (system,)}
    parts["events"] = inputs.Events(per_round=4, warm_up_rounds=2)
    scenario = inputs.Scenario(nodes=nodes, rounds=60, start=start, **parts)
    return SystemRun(scenario, system, None)


def neighbours(run: SystemRun) -> list[set[int]]:
    return [{int(word) & HANDLE_MASK for word in row if word >= 0} for row in run.state.links]


def test_a_formed_overlay_is_what_a_joining_one_becomes() -> None:
    joining, formed = a_run(inputs.JOINING), a_run(inputs.FORMED)
    at_first = neighbours(formed)
    assert neighbours(joining) != at_first
    for _ in range(50):
        joining.run_round()
    assert neighbours(joining) == at_first
    for _ in range(10):
        formed.run_round()
    assert neighbours(formed) == at_first


def test_events_of_the_first_rounds_reach_all_who_want_them() -> None:
    run = a_run(inputs.FORMED)
    while not run.is_finished:
        run.run_round()
    events = run.record().events
    assert events["expected"].sum() > 500
    assert events["delivered"].tolist() == events["expected"].tolist()
    assert events["duplicates"].sum() == 0


@pytest.mark.parametrize("nodes", [2, 3, 5, 7, 8, 13, 14, 25])
def test_small_overlays_have_a_right_ring_and_nobody_twice(nodes: int) -> None:
    run = a_run(inputs.FORMED, nodes=nodes)
    state = run.state
    assert ring_correctness(state, run.engine.network.alive) == 1.0
    for p, row in enumerate(state.links.tolist()):
        linked = [word & HANDLE_MASK for word in row if word >= 0]
        assert p not in linked
        assert len(linked) == len(set(linked))
        assert len(linked) >= min(nodes - 1, 2 * state.params.ring_links)


def test_who_is_offline_at_first_is_in_no_link_and_joins_as_ever() -> None:
    scenario = inputs.Scenario(
        nodes=300, rounds=40, start=inputs.FORMED, systems=(KINDRED,), turnover=Turnover(share=0.5)
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
    run = a_run(inputs.FORMED, system=inputs.System(name="v", preset="paper"))
    ring = 2 * run.state.params.ring_links
    assert (run.state.links[:, :ring] >= 0).all()
    assert (run.state.links[:, ring:] < 0).all()
    for _ in range(20):
        run.run_round()
    assert (run.state.links[:, ring:] >= 0).mean() > 0.8
    assert ring_correctness(run.state, run.engine.network.alive) == 1.0
