"""Churn traces and specifications keep their laws, and lists read instant by instant."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gossamer.sim.churn import (
    ChurnSpec,
    ChurnTrace,
    CorrelatedFailure,
    FlashCrowd,
    Pareto,
    StationaryChurn,
    Weibull,
    generate,
    read_trace,
    write_trace,
)
from gossamer.sim.errors import TraceError

NAMES = st.text(
    st.characters(codec="utf-8", exclude_characters=" \t\n\r\x0b\x0c"), min_size=1, max_size=8
).filter(lambda name: not name.startswith("#"))
# Quarters of seconds: sums and products by powers of two are exact, so that laws hold exactly.
QUARTERS = st.integers(0, 200).map(lambda ticks: ticks / 4)
ANY_TIMES = st.floats(0, 1e9)
TIMES = st.integers(0, 12)
NODES = st.sampled_from("abc")
INTERVALS = st.lists(st.tuples(NODES, TIMES, TIMES, st.booleans()), min_size=1, max_size=8)
CHANGES = st.lists(st.tuples(NODES, TIMES, st.booleans()), min_size=1, max_size=8)
END = 13
Online = Callable[[str, int], bool]


@st.composite
def traces(draw: st.DrawFn, times: st.SearchStrategy[float] = QUARTERS) -> ChurnTrace:
    names = draw(st.lists(NAMES, min_size=1, max_size=5, unique=True))
    node: list[int] = []
    start_s: list[float] = []
    end_s: list[float] = []
    for index in range(len(names)):
        for start, end in pairwise(sorted(draw(st.sets(times, max_size=8)))):
            if draw(st.booleans()):
                node.append(index)
                start_s.append(start)
                end_s.append(end)
    last = max(end_s, default=0.0)
    duration_s = draw(st.sampled_from([last or 1.0, last + 0.25, last * 2 + 1.0]))
    return ChurnTrace(tuple(names), node, start_s, end_s, duration_s)


@st.composite
def specifications(draw: st.DrawFn) -> ChurnSpec:
    lengths = st.builds(Weibull, st.floats(1, 1e4), st.floats(0.3, 3)) | st.builds(
        Pareto, st.floats(1, 1e4), st.floats(1.01, 5)
    )
    nodes, instants = st.integers(1, 12), st.floats(0, 499)
    churn = st.builds(StationaryChurn, nodes, lengths, lengths)
    crowd = st.builds(FlashCrowd, nodes, instants, st.floats(0, 600), lengths, st.floats(0, 1))
    failure = st.builds(CorrelatedFailure, instants, st.floats(0, 1), st.floats(0.1, 600))
    return ChurnSpec(
        duration_s=draw(st.floats(499.5, 500)),
        populations=draw(st.lists(churn | crowd, min_size=1, max_size=3)),
        failures=draw(st.lists(failure, max_size=3)),
        resolution_s=draw(st.sampled_from([0.1, 0.25, 1.0, 7.0])),
    )


def assert_at_most_one_open_session(trace: ChurnTrace) -> None:
    """Replay the transitions: every one changes the state of its node, and none overtakes."""
    online = [False] * len(trace.names)
    transitions = trace.transitions()
    assert (np.diff(transitions.time_s) >= 0).all()
    for node, up in zip(transitions.node.tolist(), transitions.up.tolist(), strict=True):
        assert online[node] != up
        online[node] = up
    assert not any(online)


@pytest.mark.parametrize("ending", ["avt", "avt.gz", "parquet"])
@given(trace=traces() | traces(ANY_TIMES))
def test_reading_what_was_written_gives_the_trace_back(ending: str, trace: ChurnTrace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"trace.{ending}"
        write_trace(trace, path)
        again = read_trace(path)
    assert (again, again.fingerprint()) == (trace, trace.fingerprint())


@given(trace=traces(), times_s=st.lists(QUARTERS, max_size=20))
def test_transitions_reproduce_the_population(trace: ChurnTrace, times_s: list[float]) -> None:
    time_s, _, up = trace.transitions()
    change = np.where(up, 1, -1)
    counted = [int(change[time_s <= instant].sum()) for instant in times_s]
    online = [(trace.start_s <= instant) & (instant < trace.end_s) for instant in times_s]
    by_definition = [int(np.count_nonzero(one)) for one in online]
    assert trace.population(times_s).tolist() == counted == by_definition


@given(trace=traces(ANY_TIMES), factor=st.floats(1e-3, 1e2), times=st.integers(1, 5))
def test_rounding_makes_no_sessions_overlap(trace: ChurnTrace, factor: float, times: int) -> None:
    assert_at_most_one_open_session(trace)
    assume(trace.duration_s > 1e-300)  # or a part of it rounds to nothing
    changed = trace.scaled(factor).looped(times)
    assert_at_most_one_open_session(changed.cut(changed.duration_s / 3, changed.duration_s / 2))


@given(trace=traces(), data=st.data())
def test_a_cut_of_a_cut_is_one_cut(trace: ChurnTrace, data: st.DataObject) -> None:
    instants = st.integers(0, int(trace.duration_s * 4)).map(lambda tick: tick / 4)
    a, b, c, d = sorted(data.draw(st.lists(instants, min_size=4, max_size=4)))
    assert trace.cut(0, trace.duration_s) == trace
    if b < c:
        assert trace.cut(a, d).cut(b - a, c - a) == trace.cut(b, c)
        times_s = np.arange(b, c, 0.25)
        assert (trace.cut(b, c).population(times_s - b) == trace.population(times_s)).all()


@given(trace=traces(), times=st.integers(1, 4), more=st.integers(1, 3), exponent=st.integers(-8, 8))
def test_traces_looped_and_scaled(trace: ChurnTrace, times: int, more: int, exponent: int) -> None:
    looped, factor = trace.looped(times), 2.0**exponent
    for turn in range(times):
        begin_s = turn * trace.duration_s
        assert looped.cut(begin_s, begin_s + trace.duration_s) == trace
    assert looped.looped(more) == trace.looped(times * more)
    assert looped.scaled(factor) == trace.scaled(factor).looped(times)
    assert trace.scaled(factor).scaled(1 / factor) == trace


@given(trace=traces(), data=st.data())
def test_limiting_leaves_sessions_of_kept_nodes(trace: ChurnTrace, data: st.DataObject) -> None:
    nodes = data.draw(st.integers(1, len(trace.names)))
    limited = trace.limited(nodes)
    kept = trace.node < nodes
    columns = (trace.node[kept], trace.start_s[kept], trace.end_s[kept])
    assert limited == ChurnTrace(trace.names[:nodes], *columns, trace.duration_s)


@given(spec=specifications(), seed=st.integers(0, 2**64))
def test_any_specification_gives_a_possible_repeatable_trace(spec: ChurnSpec, seed: int) -> None:
    trace = generate(spec, seed)
    assert len(trace.names) == sum(population.nodes for population in spec.populations)
    assert trace.duration_s == spec.duration_s
    assert_at_most_one_open_session(trace)
    assert generate(spec, seed).fingerprint() == trace.fingerprint()


def word(up: bool) -> str:
    return "up" if up else "down"


def found(text: str) -> ChurnTrace | None:
    """The trace of a list of length END; None where it is refused."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "list.csv"
        path.write_text(text + f"# duration_s {END}\n")
        try:
            return read_trace(path)
        except TraceError:
            return None


def assert_online(trace: ChurnTrace | None, nodes: set[str], online: Online) -> None:
    """Who is online at each whole second and between."""
    assert trace is not None
    assert set(trace.names) == nodes
    for index, name in enumerate(trace.names):
        own = trace.node == index
        for second in range(END):
            for instant in (second, second + 0.5):
                now = (trace.start_s[own] <= instant) & (instant < trace.end_s[own])
                assert np.count_nonzero(now) == online(name, second)


@given(rows=INTERVALS)
def test_intervals_are_read_as_at_every_instant(
    rows: list[tuple[str, int, int, bool]],
) -> None:
    text = "state,end,node,start\n" + "".join(
        f"{word(up)},{end},{node},{start}\n" for node, start, end, up in rows
    )
    trace = found(text)
    possible = all(start < end for _, start, end, _ in rows) and not any(
        one[0] == other[0] and one[1] < other[2] and other[1] < one[2]
        for i, one in enumerate(rows)
        for other in rows[:i]
    )
    if not possible:
        assert trace is None
        return
    only_failures = not any(up for *_, up in rows)

    def online(node: str, second: int) -> bool:
        here = [up for name, start, end, up in rows if name == node and start <= second < end]
        return not here if only_failures else here == [True]

    assert_online(trace, {row[0] for row in rows}, online)


@given(rows=CHANGES)
def test_changes_are_read_one_after_another(
    rows: list[tuple[str, int, bool]],
) -> None:
    trace = found("node,time,state\n" + "".join(f"{n},{t},{word(up)}\n" for n, t, up in rows))
    up_since: dict[str, int | None] = {}
    online: set[tuple[str, int]] = set()
    for node, time, up in sorted(rows, key=lambda row: row[1]):
        since = up_since.get(node)
        if up == (since is not None) or since == time:
            assert trace is None
            return
        if since is not None:
            online |= {(node, second) for second in range(since, time)}
        up_since[node] = time if up else None
    for node, since in up_since.items():
        if since is not None:
            online |= {(node, second) for second in range(since, END)}
    assert_online(trace, set(up_since), lambda node, second: (node, second) in online)


@given(
    rows=INTERVALS.filter(lambda rows: all(start != end for _, start, end, _ in rows)),
    epoch=st.integers(0, 2**31),
    moments=st.lists(st.tuples(NODES, TIMES), max_size=2),
)
def test_a_table_of_the_archive_is_its_list_of_intervals_whatever_takes_no_time(
    rows: list[tuple[str, int, int, bool]], epoch: int, moments: list[tuple[str, int]]
) -> None:
    first = min(start for _, start, _, _ in rows)
    known = {node for node, *_ in rows}
    up = any(row[3] for row in rows)
    table = "#event_id component_id node_id event_type event_start_time event_stop_time\n"
    for node, start, end, kind in rows:
        table += f"1\t0\t{node}\t{int(kind)}\t{start + epoch}\t{end + epoch}\n"
    for node, time in moments:
        if node in known and time >= first:
            table += f"1\t0\t{node}\t{int(up)}\t{time + epoch}\t{time + epoch}\n"
    listed = "node,start,end,state\n" + "".join(
        f"{node},{start - first},{end - first},{word(kind)}\n" for node, start, end, kind in rows
    )
    assert found(table) == found(listed)
