"""Subscriptions and events of Parquet files of one's own: what they mean, and what is refused."""

from __future__ import annotations

import re
import runpy
import shutil
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gossamer.protocol.peer.space.ring import RING, RING_MASK
from gossamer.sim.churn import ChurnTrace, write_trace
from gossamer.sim.errors import ScenarioError
from gossamer.sim.results.results import summarise
from gossamer.sim.studies.peers.inputs import publications
from gossamer.sim.studies.peers.inputs import scenario as inputs
from gossamer.sim.studies.peers.inputs.changes import Drift, Turnover
from gossamer.sim.studies.peers.inputs.own_workload import online_at, timetable_of, workload_of
from gossamer.sim.studies.peers.inputs.publications import PARTS
from gossamer.sim.studies.peers.inputs.scenario import Events, Scenario, Subscriptions
from gossamer.sim.studies.peers.inputs.taken_from import TakenFrom
from gossamer.sim.studies.peers.inputs.workload import Workload
from gossamer.sim.studies.peers.measuring.kept_workload import kept_tables
from gossamer.sim.studies.peers.measuring.summary import outgrown
from gossamer.sim.studies.peers.running.preparation import prepare
from gossamer.sim.studies.peers.study import preview, simulate
from gossamer.sim.study.contract import Execution
from gossamer.sim.study.scenarios import read_scenario
from support.checkout import ROOT
from support.refusals import sentence_about
from support.sim_commands import interrupted_after, simulated_in_parts

KINDRED = inputs.System(name="kindred")
SHAPE = Subscriptions(attributes=2, per_node=2)
WANTED = {
    "node": [3, 0, 3, 3],
    "subscription": [7, 0, 9, 9],
    "attribute": [2, 1, 2, 1],
    "low": [0.5, 0.25, 0.0, 0.125],
    "high": [1.0, 0.25, 0.5, 0.75],
}
TICKS = {
    "event": [5, 5, 4, 4, 9, 9],
    "time_s": [75.0, 75.0, 130.0, 130.0, 60.0, 60.0],
    "publisher": [1, 1, 2, 2, 0, 0],
    "attribute": [1, 2, 2, 1, 1, 2],
    "value": [0.0, 0.5, 0.25, 0.75, 1.0, 0.5],
}


def scenario(folder: Path, **changes: Any) -> Scenario:
    """A run of the files of a folder, of those that there are."""
    files = {"subscriptions": folder / "wanted.parquet", "events": folder / "ticks.parquet"}
    given: dict[str, Any] = {"nodes": 8, "rounds": 4, "subscriptions": SHAPE}
    given["workload"] = TakenFrom(**{what: file for what, file in files.items() if file.exists()})
    return Scenario(**given | {"systems": (KINDRED,)} | changes)


def write(folder: Path, name: str, columns: dict[str, Any], **changes: Any) -> None:
    """A table with other columns; None is left out."""
    kept = {key: value for key, value in (columns | changes).items() if value is not None}
    pq.write_table(pa.table(kept), folder / name)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "wanted.parquet", WANTED)
    write(tmp_path, "ticks.parquet", TICKS)
    return tmp_path


def test_rows_are_subscriptions_and_events_of_nodes_and_rounds(folder: Path) -> None:
    own = scenario(folder)
    workload = workload_of(own)
    boxes, constrained = workload.subscriptions(8)
    everything, half = [0, RING_MASK], RING // 2
    assert constrained.tolist() == [[1, -1], [-1, -1], [-1, -1], [2, 3], *[[-1, -1]] * 4]
    assert boxes[0, 0].tolist() == [RING // 4, RING // 4, *everything]
    # The end of the domain is the last place that a float64 tells from it.
    both = [[*everything, half, RING - 512], [RING // 8, 3 * RING // 4, 0, half]]
    assert boxes[3].tolist() == both
    # By rounds: 9 at the end of the first, 5 in the second, 4 in the third.
    assert [workload.publisher(event) for event in range(3)] == [0, 1, 2]
    values = [[RING - 512, half], [0, half], [3 * RING // 4, RING // 4]]
    assert workload.events(0, 3).tolist() == values
    steady = prepare(own).timetable
    assert [steady.of_part(cycle, 0) for cycle in range(4)] == [[0], [1], [2], []]
    assert steady.times_s(60.0).tolist() == [60.0, 120.0, 180.0]
    assert timetable_of(own, workload, 4, PARTS).times_s(60.0).tolist() == [60.0, 75.0, 135.0]
    assert (preview(own).published, preview(own).late) == (3, 0)


def test_events_after_the_last_round_are_counted_and_told(folder: Path) -> None:
    short = scenario(folder, rounds=2)
    assert (preview(short).published, preview(short).late) == (2, 1)
    (told,) = outgrown(summarise(simulate(short))["systems"])
    assert told.startswith("kindred: 1 events of the file come after the last round")
    whole = summarise(simulate(scenario(folder)))
    assert "late_events" not in whole["systems"]["kindred"]["totals"]


@pytest.mark.parametrize("engine", ["cycle", "event"])
def test_what_a_run_keeps_makes_the_same_run(tmp_path: Path, engine: str) -> None:
    common: dict[str, Any] = {"nodes": 30, "rounds": 12, "engine": engine}
    # Times that no float64 holds.
    common |= {"round_s": 0.3, "turnover": Turnover(share=60.0)}
    drawn = Scenario(
        subscriptions=attrs.evolve(SHAPE, subscribers=0.8),
        events=Events(per_round=2.5, warm_up_rounds=4, publisher_exponent=1.0),
        systems=(KINDRED,),
        **common,
    )
    run = simulate(drawn)
    for what, file in (("subscriptions", "wanted"), ("events", "ticks")):
        ((_, table),) = kept_tables(drawn, run, what)
        pq.write_table(pa.table(table), tmp_path / f"{file}.parquet")
    own = scenario(tmp_path, **common)
    same = simulated_in_parts(own, tmp_path / "c", 7, threads=1)
    found, expected = (dict(one.systems["kindred"].tables()) for one in (same, run))
    np.testing.assert_equal(found, expected)
    told = same.scenario["workload"]
    assert told["events"]["file"] == "ticks.parquet"
    assert len(told["subscriptions"]["fingerprint"]) == 64
    with pytest.raises(KeyboardInterrupt):
        simulate(own, "", Execution(checkpoint=tmp_path / "d", progress=interrupted_after(7)))
    pq.write_table(pq.read_table(tmp_path / "wanted.parquet").slice(1), tmp_path / "wanted.parquet")
    with pytest.raises(ScenarioError, match="wanted"):
        simulate(own, "", Execution(checkpoint=tmp_path / "d", resume=True))
    assert simulate(own).scenario["workload"] != told


def test_what_there_is_no_file_of_is_drawn(folder: Path) -> None:
    (folder / "ticks.parquet").unlink()
    half = scenario(folder, events=Events(warm_up_rounds=1))
    drawn = Workload(half.subscriptions, half.seed)
    workload = workload_of(half)
    np.testing.assert_array_equal(workload.events(2, 9), drawn.events(2, 9))
    assert workload.publisher(0) is None
    assert prepare(half).timetable.size == 3
    write(folder, "ticks.parquet", TICKS, publisher=None, time_s=None, round=[1, 1, 1, 1, 0, 0])
    (folder / "wanted.parquet").unlink()
    half = scenario(folder, events=Events(publishers=0.5))
    workload = workload_of(half)
    np.testing.assert_equal(workload.subscriptions(8), drawn.subscriptions(8))
    assert workload.publisher(1) is None
    # Events of a round are spread over its quarters, in order of their numbers.
    assert timetable_of(half, workload, 4, PARTS).times_s(60.0).tolist() == [15.0, 75.0, 90.0]
    assert workload.events(1, 1).tolist() == [[3 * RING // 4, RING // 4]]


@pytest.mark.parametrize("round_s", [0.1, 0.3, 7.7, 60.0])
@pytest.mark.parametrize("parts", [1, PARTS])
def test_events_are_published_at_the_first_end_of_a_part_that_is_not_before_them(
    tmp_path: Path, round_s: float, parts: int
) -> None:
    draws = np.random.default_rng(3)
    ends = [
        publications.end_of_part(cycle, part, parts, round_s)
        for cycle in range(30)
        for part in range(parts)
    ]
    exact = draws.choice(ends, 100)
    times = np.concatenate((exact, np.nextafter(exact, 0), np.nextafter(exact, 99), [0.0]))
    times = times[times <= ends[-1]]
    names = draws.permutation(len(times))
    columns = {"event": names, "time_s": times, "attribute": np.ones_like(names)}
    write(tmp_path, "ticks.parquet", columns, value=names / len(names))
    own = scenario(tmp_path, rounds=30, round_s=round_s, subscriptions=Subscriptions())
    workload = workload_of(own)
    found = timetable_of(own, workload, 30, parts)
    due = [min(end for end in ends if end >= time_s) for time_s in times]
    values = workload.events(0, found.size)[:, 0] / RING * len(names)
    seen = np.rint(values).astype(int)[found.numbers]
    shown = dict(zip(seen.tolist(), found.times_s(round_s).tolist(), strict=True))
    assert shown == dict(zip(names.tolist(), due, strict=True))


@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0, 2.5, 9.0])
def test_a_timetable_by_rate_spreads_the_events_of_a_round(rate: float) -> None:
    spec = Events(per_round=rate, warm_up_rounds=3)
    before = publications.published_before(spec, 17)
    found = publications.timetable_by_rate(spec, 17, PARTS)
    for cycle in range(17):
        first, last = int(before[cycle]), int(before[cycle + 1])
        assert found.counts[cycle] == last - first
        for part in range(PARTS):
            assert found.of_part(cycle, part) == list(range(first + part, last, PARTS))


def test_who_is_online_is_what_sessions_say() -> None:
    draws = np.random.default_rng(5)
    node, start = draws.integers(0, 4, 12), np.arange(12.0)
    trace = ChurnTrace("abcd", node, start, np.minimum(start + 1, 12), 12.0)
    nodes, times = draws.integers(0, 4, 200), draws.integers(0, 28, 200) / 2
    for one, time_s, online in zip(nodes, times, online_at(trace, nodes, times), strict=True):
        at = [
            begin <= time_s and (time_s < end or end == 12)
            for who, begin, end in zip(trace.node, trace.start_s, trace.end_s, strict=True)
            if who == one
        ]
        assert online == any(at)


def nan_at(place: int, values: list[float]) -> list[float]:
    return [float("nan") if at == place else value for at, value in enumerate(values)]


@pytest.mark.parametrize(
    ("file", "changes", "words"),
    [
        ("wanted", {"low": None}, ": column low is missing, expected a column beside node, sub"),
        ("wanted", {"node": None}, ": column node is missing, expected a column beside"),
        ("wanted", {"lo": [0.0] * 4}, ": column lo is unknown, expected columns among node, sub"),
        ("wanted", {"node": list("abcd")}, ": the type of column node is 'string', expected who"),
        ("wanted", {"node": [3.0, 0, 3, 3]}, ": the type of column node is 'double', expected w"),
        ("wanted", {"low": [True] * 4}, ": the type of column low is 'bool', expected numbers"),
        ("wanted", {"low": [0.5, None, 0, 0]}, ", row 2: low is null, expected a value"),
        ("wanted", {"low": nan_at(2, [0.0] * 4)}, ", row 3: low is nan, expected a place in"),
        ("wanted", {"low": [-0.1, 0, 0, 0]}, ", row 1: low is -0.1, expected a place in the"),
        ("wanted", {"high": [1.0, 1.5, 1, 1]}, ", row 2: high is 1.5, expected a place in the"),
        ("wanted", {"high": [1.0, 0.2, 1, 1]}, ", row 2: high is 0.2, expected at least 0.25,"),
        ("wanted", {"node": [3, 8, 3, 3]}, ", row 2: node is 8, expected a node from 0 to 7"),
        ("wanted", {"node": [3, -1, 3, 3]}, ", row 2: node is -1, expected a node, from 0 on"),
        ("wanted", {"attribute": [2, 0, 2, 1]}, ", row 2: attribute is 0, expected at least 1"),
        ("wanted", {"attribute": [3, 1, 2, 1]}, ", row 1: attribute is 3, expected at least 1"),
        ("wanted", {"attribute": [2, 1, 1, 1]}, ", row 4: attribute is 1, expected one that no"),
        ("wanted", {"subscription": [1, 0, 2, 3]}, ", row 4: subscription is 3, expected no more"),
        ("wanted", {"since_s": [0.0, 60, 0, 0]}, ", row 2: since_s is 60.0, expected -inf or 0"),
        ("wanted", {"low_hashed": [0] * 4}, ", row 1: low is 0.5, expected what low_hashed st"),
        ("wanted", {"low": None, "low_hashed": [1 << 62] * 4}, ", row 1: low_hashed is 46116860"),
        ("wanted", {key: [] for key in WANTED}, ": number of rows is 0, expected at least one"),
        ("ticks", {"value": None}, ": column value is missing, expected a column beside event"),
        ("ticks", {"time_s": None}, ": column round is missing, as is time_s, expected one of"),
        ("ticks", {"round": [0] * 6}, ": column round is there as well, expected one of time_s"),
        ("ticks", {"publishers": [0] * 6}, ": column publishers is unknown, expected columns am"),
        ("ticks", {"value": nan_at(5, [0.5] * 6)}, ", row 6: value is nan, expected a place in"),
        ("ticks", {"attribute": [1, 2, 2, 1, 1, 1]}, ", row 6: attribute is 1, expected each of"),
        ("ticks", {"event": [5, 5, 4, 4, 9, 8]}, ", row 6: attribute is 2, expected each of 1 t"),
        ("ticks", {"event": [5, 5, 4, 4, 9, 5]}, ", row 6: time_s is 60.0, expected 75.0, as in"),
        ("ticks", {"publisher": [1, 1, 2, 2, 8, 8]}, ", row 5: publisher is 8, expected a node"),
        ("ticks", {"publisher": [1, 1, 2, 3, 0, 0]}, ", row 3: publisher is 2, expected 3, as i"),
        ("ticks", {"time_s": [-1.0] * 6}, ", row 1: time_s is -1.0, expected a time of at least"),
        ("ticks", {"time_s": [float("inf")] * 6}, ", row 1: time_s is inf, expected a time of a"),
        ("ticks", {"time_s": [900.0] * 6}, ": the first round is 14, expected an event in the 240"),
        ("ticks", {"time_s": None, "round": [-1] * 6}, ", row 1: round is -1, expected a round"),
    ],
)
def test_what_does_not_fit_is_refused_by_row_and_column(
    folder: Path, file: str, changes: Any, words: str
) -> None:
    path = folder / f"{file}.parquet"
    write(folder, path.name, WANTED if file == "wanted" else TICKS, **changes)
    assert sentence_about(path, lambda _: prepare(scenario(folder))).startswith(f"{path}{words}")


def test_files_that_are_missing_or_no_parquet(folder: Path) -> None:
    own, file = scenario(folder), folder / "ticks.parquet"
    for content in (b"node,low\n", b""):
        file.write_bytes(content)
        with pytest.raises(
            ScenarioError, match=r"ticks\.parquet: the content is damaged or not Parquet"
        ):
            prepare(own)
    file.unlink()
    missing = "the file is No such file or directory, expected a readable Parquet file"
    with pytest.raises(ScenarioError, match=rf"ticks\.parquet: {missing}"):
        prepare(own)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"events": Events(per_round=2)}, "events.per_round is 2.0, expected left out, as events"),
        ({"events": Events(warm_up_rounds=2)}, "events.warm_up_rounds is 2, expected left out"),
        ({"drift": Drift(event_shift=0.1)}, "drift.event_shift is 0.1, expected 0, as a file"),
        ({"drift": Drift(replaced=0.1)}, "drift.replaced is 0.1, expected 0, as the workload has"),
    ],
)
def test_settings_that_would_do_nothing_are_refused(folder: Path, changes: Any, words: str) -> None:
    with pytest.raises(ScenarioError, match=f"^{re.escape(words)}"):
        scenario(folder, **changes)


def test_shapes_of_what_is_not_drawn_are_refused(folder: Path) -> None:
    shapes: list[tuple[str, Any, str]] = [
        ("width", 0.3, "subscriptions"),
        ("aspect", 3.0, "subscriptions"),
        ("subscribers", 0.5, "subscriptions"),
        ("correlation", 0.5, "events"),
        ("kind", "random", "subscriptions and events"),
        ("spread", 0.5, "subscriptions and events"),
    ]
    for name, value, drawn in shapes:
        words = f"subscriptions.{name} is {value!r}, expected left out, as {drawn} are"
        with pytest.raises(ScenarioError, match=f"^{re.escape(words)}"):
            scenario(folder, subscriptions=attrs.evolve(SHAPE, **{name: value}))
    with pytest.raises(ScenarioError, match=r"^events\.publishers is 0\.5, expected left out"):
        prepare(scenario(folder, events=Events(publishers=0.5)))


def test_workloads_of_no_file_of_two_kinds_and_of_no_path_are_refused() -> None:
    with pytest.raises(ScenarioError, match=r"^workload\.folder is missing, expected the folder"):
        TakenFrom()
    with pytest.raises(ScenarioError, match=r"^workload\.folder is .*, expected none beside"):
        TakenFrom(folder="w", events="e.parquet")
    with pytest.raises(ScenarioError, match=r"^workload\.events is 3, expected the path of a"):
        TakenFrom(events=3)  # type: ignore[arg-type]


def test_a_publisher_is_online_when_it_publishes(folder: Path) -> None:
    """Node 1 publishes in the second round, in which it is not there."""
    write(folder, "wanted.parquet", WANTED, node=[2, 0, 2, 2])
    churn = inputs.Churn(trace=folder / "t.parquet")
    own = scenario(folder, churn=churn, nodes=None, rounds=None)
    write_trace(ChurnTrace("abc", [0, 1, 2], [0] * 3, [240, 75, 240], 240.0), churn.trace)
    with pytest.raises(ScenarioError, match=r"row 1: publisher is 1, .* online at 75 s, when"):
        prepare(own)
    write_trace(ChurnTrace("abc", [0, 1, 2], [0] * 3, [240, 76, 240], 240.0), churn.trace)
    assert prepare(own).timetable.size == 3


def test_the_example_runs_as_it_stands(tmp_path: Path) -> None:
    example = ROOT / "examples" / "own_tables"
    runpy.run_path(str(example / "make_tables.py"))["main"](tmp_path)
    shutil.copy(example / "ticks.toml", tmp_path)
    found, text = read_scenario(tmp_path / "ticks.toml")
    assert isinstance(found, Scenario)
    assert found.workload is not None
    assert found.workload.events == (tmp_path / "ticks.parquet").resolve()
    assert "ticks.parquet" in text
    prepared = prepare(found)
    assert (prepared.timetable.size, prepared.timetable.counts.max()) == (450, 60)
