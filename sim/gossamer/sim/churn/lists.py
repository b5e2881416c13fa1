"""Churn lists that other programs write: sessions, changes, and tables of failures.

The names of the columns say what a list holds; they come in any order:

node, start, end            sessions, a row each
node, start, end, state     intervals in which a node is up or down; where none is up, the node is
                            up whenever no interval says that it is down
node, time, state           changes: a node comes up or goes down; one that is up at the end of the
                            list stays so
node_id, component_id, event_type, event_start_time, event_stop_time
                            ``event_trace.tab`` of the Failure Trace Archive, with whatever other
                            columns: intervals, up by type 1 and down by type 0, of one component a
                            node, in seconds of the epoch

Times are seconds, in a list from the beginning of the trace on, in the archive's from its first
event. Rows come in any order. Lines that begin with "#" are comments, but for ``# begin_s 60``, the
time at which the trace begins, ``# duration_s 60``, its length, and the archive's header. Tables
are cut into cells as all those of other programs are (`latency_files.text_files`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Final

import attrs
import numpy as np
import numpy.typing as npt

from gossamer.protocol.content.encodings import EncodingError, decoded
from gossamer.sim.churn.files import unpacked
from gossamer.sim.churn.trace import LONGEST_S, ChurnTrace, Floats, Nodes, first_fault
from gossamer.sim.engine.latency_files.text_files import (
    NUMBER,
    Line,
    Table,
    TextLine,
    table_of,
    text_lines,
)
from gossamer.sim.errors import ScenarioError, TraceError

_WHAT: Final = "the churn list"
NODE, START, END, TIME, STATE = "node", "start", "end", "time", "state"
_LISTS: Final = ((NODE, START, END), (NODE, START, END, STATE), (NODE, TIME, STATE))
# As Parquet sessions name them.
_ALSO: Final = {"start_s": START, "end_s": END, "time_s": TIME}
# What columns of the archive's table are called here.
_ARCHIVE: Final = {
    "node_id": NODE,
    "component_id": "component",
    "event_type": STATE,
    "event_start_time": START,
    "event_stop_time": END,
}
_STATES: Final = {"up": True, "down": False}
_EVENT_TYPES: Final = {"1": True, "0": False}
_BEGIN, _DURATION = "begin_s", "duration_s"
# A list whose first time is later than three years is one of the epoch.
_LATEST_S: Final = 1e8

Bools = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]


@attrs.frozen(eq=False)
class _Form:
    """The columns of a list.

    Attributes:
        names: in the order of the file, as the file has them.
        places: number of each column that is read, from 1 on, by what it is called here.
        is_archive: whether it is a table of the Failure Trace Archive.
    """

    names: Sequence[str]
    places: dict[str, int]
    is_archive: bool


@attrs.frozen(eq=False)
class _Rows:
    """The rows of a list as columns of one length; for changes, both times are that of the change.

    Attributes:
        path: of the file.
        names: of nodes, in the order in which they first appear.
        node: int32 indices into them.
        start_s, end_s: float64 seconds.
        up: whether the node is up in the interval, or from the change on.
        lines: numbers of lines in the file.
    """

    path: Path
    names: tuple[str, ...]
    node: Nodes
    start_s: Floats
    end_s: Floats
    up: Bools
    lines: Int64s

    def only(self, rows: Bools | Int64s) -> _Rows:
        """Some of the rows, of the same names."""
        columns = {name: getattr(self, name)[rows] for name in _COLUMNS}
        return attrs.evolve(self, **columns)

    def sorted(self) -> _Rows:
        """By node and time, those of one time as in the file."""
        return self.only(np.lexsort((self.start_s, self.node)))

    def error(self, row: int, field: str, value: object, expected: str) -> TraceError:
        of_node = f"{field} of node {self.names[self.node[row]]!r}"
        return TraceError(str(self.path), of_node, value, expected, line=int(self.lines[row]))


_COLUMNS: Final = ("node", "start_s", "end_s", "up", "lines")


def read(stream: BinaryIO, file: str, *, compressed: bool) -> ChurnTrace:
    """Read a list from a binary stream; `file` is its name in errors.

    Raises:
        TraceError: the content is no such list, or no possible trace; names the line, and the
            column where one cell is at fault.
    """
    raw = unpacked(stream, file, compressed=compressed)
    try:
        return _read(Path(file), decoded(raw))
    except EncodingError as error:
        raise TraceError(file, "the content", None, "text in UTF-8", error.reason) from None
    except TraceError as error:
        raise attrs.evolve(error, file=error.file or file) from None
    except ScenarioError as error:
        place, field, value, expected, found = attrs.astuple(error, recurse=False)
        raise TraceError(place, field, value, expected, found) from None


def _read(path: Path, text: str) -> ChurnTrace:
    lines = text_lines(path, text)
    comments = [line for line in lines if line.text.lstrip().startswith("#")]
    bare = [line for line in lines if not line.text.lstrip().startswith("#")]
    begin_s, duration_s = (_said(path, comments, name) for name in (_BEGIN, _DURATION))
    table = table_of(path, _WHAT, bare)
    form = _archive_of(comments, bare)
    if form is None:
        form = _form_of(table)
        table = attrs.evolve(table, lines=table.lines[1:])
    if not table.lines:
        raise TraceError(str(path), _WHAT, None, "at least one row below its header", "empty")
    table.check_columns(len(form.names))
    rows = _rows_of(table, form)
    begin_s = _beginning(rows, begin_s, form.is_archive)
    rows = attrs.evolve(rows, start_s=rows.start_s - begin_s, end_s=rows.end_s - begin_s)
    last_s = float(np.maximum(rows.start_s, rows.end_s).max(initial=0.0))
    if duration_s is None:
        duration_s = last_s
    elif duration_s < last_s:
        expected = f"at least the last time of the list, {last_s!r}"
        raise TraceError(str(path), _DURATION, duration_s, expected)
    if TIME in form.places:
        return _of_changes(rows.sorted(), duration_s)
    return _of_intervals(rows.sorted(), duration_s, form.is_archive)


def _beginning(rows: _Rows, said_s: float | None, is_archive: bool) -> float:
    """The time of the list at which the trace begins."""
    first = int(np.argmin(rows.start_s))
    first_s = float(rows.start_s[first])
    if said_s is None and is_archive:
        return first_s
    if said_s is None and first_s >= _LATEST_S:
        expected = (
            f"seconds from the beginning of the trace, the first below {_LATEST_S:g}; of a list "
            f"with times of the epoch '# {_BEGIN} {first_s:.0f}' says where it begins"
        )
        raise rows.error(first, "the first time", first_s, expected)
    if said_s is not None and first_s < said_s:
        expected = f"at least {said_s!r}, where the list says that the trace begins"
        raise rows.error(first, "the first time", first_s, expected)
    return said_s or 0.0


def _said(path: Path, comments: Sequence[TextLine], name: str) -> float | None:
    """What the comments say of the beginning or the length of the trace, seconds."""
    found = None
    for line in comments:
        words = line.text.strip().lstrip("#").split()
        if words[:1] != [name]:
            continue
        text = " ".join(words[1:])
        found = float(text) if NUMBER.fullmatch(text) else -1.0
        if not 0 <= found <= LONGEST_S:
            expected = f"a number of seconds from 0 to {LONGEST_S:g}"
            raise TraceError(str(path), name, text, expected, line=line.number)
    return found


def _archive_of(comments: Sequence[TextLine], bare: Sequence[TextLine]) -> _Form | None:
    """The archive's columns, where a comment above the first row has them."""
    for line in comments:
        names = line.text.strip().lstrip("#").split()
        above = bool(bare) and line.number < bare[0].number
        if above and set(names) >= set(_ARCHIVE) and len(set(names)) == len(names):
            return _archive_form(names)
    return None


def _archive_form(names: Sequence[str]) -> _Form:
    places = {ours: names.index(theirs) + 1 for theirs, ours in _ARCHIVE.items()}
    return _Form(names, places, is_archive=True)


def _form_of(table: Table) -> _Form:
    """The form that the first line of a table names."""
    header = table.lines[0].cells
    names = [_ALSO.get(name.lower(), name.lower()) for name in header]
    if len(set(names)) == len(names):
        if set(names) >= set(_ARCHIVE):
            return _archive_form(names)
        for columns in _LISTS:
            if set(names) == set(columns):
                return _Form(header, {name: names.index(name) + 1 for name in columns}, False)
    known = "; ".join(",".join(columns) for columns in _LISTS)
    expected = f"names of columns: {known}; or those of event_trace.tab"
    where = table.place(table.lines[0])
    raise ScenarioError(where, "the first line", table.separator.join(header), expected)


def _rows_of(table: Table, form: _Form) -> _Rows:
    """All rows; each cell is checked by itself."""
    starts = START if START in form.places else TIME
    ends = END if END in form.places else TIME
    indices: dict[str, int] = {}
    node = [indices.setdefault(_name(table, form, line), len(indices)) for line in table.lines]
    if form.is_archive:
        _check_components(table, form)
    return _Rows(
        path=table.path,
        names=tuple(indices),
        node=np.array(node, np.int32),
        start_s=_times(table, form, starts),
        end_s=_times(table, form, ends),
        up=_states(table, form),
        lines=np.array([line.number for line in table.lines], np.int64),
    )


def _name(table: Table, form: _Form, line: Line) -> str:
    place = form.places[NODE]
    name = line.cells[place - 1]
    if not name:
        expected = "the name of a node"
        raise ScenarioError(
            table.place(line, place), form.names[place - 1], None, expected, "empty"
        )
    return name


def _times(table: Table, form: _Form, column: str) -> Floats:
    place = form.places[column]
    name = form.names[place - 1]
    return np.array([table.number(line, place, name, LONGEST_S) for line in table.lines])


def _states(table: Table, form: _Form) -> Bools:
    """Whether nodes are up by each row; they are in all sessions."""
    place = form.places.get(STATE)
    if place is None:
        return np.ones(len(table.lines), np.bool_)
    known = _EVENT_TYPES if form.is_archive else _STATES
    found = [known.get(line.cells[place - 1].lower()) for line in table.lines]
    if None in found:
        line = table.lines[found.index(None)]
        expected = "1 (available) or 0 (unavailable)" if form.is_archive else "up or down"
        word, name = line.cells[place - 1], form.names[place - 1]
        raise ScenarioError(table.place(line, place), name, word, expected)
    return np.array(found, np.bool_)


def _check_components(table: Table, form: _Form) -> None:
    """Refuse nodes of several components, of which each is up and down by itself."""
    node, component = (form.places[name] - 1 for name in (NODE, "component"))
    seen: dict[str, Line] = {}
    for line in table.lines:
        first = seen.setdefault(line.cells[node], line)
        if first.cells[component] != line.cells[component]:
            expected = (
                f"{first.cells[component]!r}, as on line {first.number} for the same node: choose "
                "the rows of one component"
            )
            where = table.place(line, component + 1)
            raise ScenarioError(where, form.names[component], line.cells[component], expected)


def _of_intervals(rows: _Rows, duration_s: float, is_archive: bool) -> ChurnTrace:
    """The trace of sorted intervals, of which those of a node do not overlap."""
    says_up = bool(rows.up.any())
    if is_archive:
        # Events that take no time, which the archive has, say nothing of any.
        rows = rows.only(rows.end_s != rows.start_s)
    fault = first_fault(rows.node, rows.start_s, rows.end_s)
    if fault is not None:
        at = fault.session
        overlaps = fault.field == "start_s" and rows.node[at - 1] == rows.node[at]
        expected = fault.expected
        if overlaps:
            ended_s = float(rows.end_s[at - 1])
            expected = f"at least {ended_s!r}, the end of what line {rows.lines[at - 1]} says"
        raise rows.error(at, fault.field.removesuffix("_s"), fault.value, expected)
    if says_up:
        up = rows.only(rows.up)
        return ChurnTrace(rows.names, up.node, up.start_s, up.end_s, duration_s)
    return _of_failures(rows, duration_s)


def _of_failures(rows: _Rows, duration_s: float) -> ChurnTrace:
    """Nodes are up but for the sorted intervals: before each of them, and after the last."""
    nodes = len(rows.names)
    node = np.concatenate((rows.node, np.arange(nodes, dtype=np.int32)))
    ends = np.concatenate((rows.start_s, np.full(nodes, duration_s)))
    order = np.argsort(node, kind="stable")
    node, ends = node[order], ends[order]
    is_first = np.ones(len(node), np.bool_)
    is_first[1:] = node[1:] != node[:-1]
    begins = np.zeros(len(node))
    begins[~is_first] = rows.end_s
    kept = begins < ends
    return ChurnTrace(rows.names, node[kept], begins[kept], ends[kept], duration_s)


def _of_changes(rows: _Rows, duration_s: float) -> ChurnTrace:
    """The trace of sorted changes, of which those of a node are up and down in turn."""
    time_s, up = rows.start_s, rows.up
    goes_on = np.zeros(len(up), np.bool_)
    goes_on[1:] = rows.node[1:] == rows.node[:-1]
    before = np.zeros(len(up), np.bool_)
    before[1:] = up[:-1] & goes_on[1:]
    alike = up == before
    if alike.any():
        at = int(np.argmax(alike))
        expected = "up, as no line before says that the node is"
        if goes_on[at]:
            expected = f"{_word(not up[at])}, as line {rows.lines[at - 1]} says {_word(up[at])}"
        raise rows.error(at, STATE, _word(up[at]), expected)
    ends = np.append(time_s[1:], duration_s)
    ends[:-1][~goes_on[1:]] = duration_s
    empty = up[:-1] & goes_on[1:] & (time_s[1:] == time_s[:-1])
    if empty.any():
        at = int(np.argmax(empty)) + 1
        expected = f"a later time than that of line {rows.lines[at - 1]}, at which it comes up"
        raise rows.error(at, TIME, float(time_s[at]), expected)
    # Whoever comes up at the very end is not online before it.
    kept = up & (time_s < ends)
    return ChurnTrace(rows.names, rows.node[kept], time_s[kept], ends[kept], duration_s)


def _word(up: object) -> str:
    return "up" if up else "down"
