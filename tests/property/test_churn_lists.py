"""Churn lists against slow readings of them, instant by instant."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gossamer.sim.churn import ChurnTrace, read_trace
from gossamer.sim.errors import TraceError

TIMES = st.integers(0, 12)
NODES = st.sampled_from("abc")
INTERVALS = st.lists(st.tuples(NODES, TIMES, TIMES, st.booleans()), min_size=1, max_size=8)
CHANGES = st.lists(st.tuples(NODES, TIMES, st.booleans()), min_size=1, max_size=8)
END = 13

Online = Callable[[str, int], bool]


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
def test_intervals_are_those_of_a_reading_of_every_instant(
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
def test_changes_are_those_of_a_reading_of_one_after_another(
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
