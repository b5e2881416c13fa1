"""Churn lists of other programs: each form by example, one clear sentence for each bad input."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from gossamer.sim.churn import ChurnTrace, read_trace, write_trace
from gossamer.sim.errors import TraceError

HEADER = (
    "# event_id\tcomponent_id\tnode_id\tplatform_id\tnode_name\tevent_type\tevent_start_time\t"
    "event_stop_time\tevent_end_reason\n"
)
Sessions = set[tuple[str, float, float]]


def archive(*rows: tuple[int, int, int, float, float], header: str = HEADER) -> str:
    """A table of (component, node, type, start, stop)."""
    lines = [
        f"{number}\t{component}\t{node}\t1\tsome host\t {kind}\t{start}\t{stop}\t\n"
        for number, (component, node, kind, start, stop) in enumerate(rows)
    ]
    return header + "".join(lines)


def written(folder: Path, text: str | bytes, name: str = "t.csv") -> ChurnTrace:
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_trace(folder / name)


def sessions_of(trace: ChurnTrace) -> Sessions:
    columns = ([trace.names[i] for i in trace.node], trace.start_s.tolist(), trace.end_s.tolist())
    return set(zip(*columns, strict=True))


TWO = {("a", 0.0, 5.0), ("b b", 1.5, 20.0), ("a", 5.0, 9.0)}


FORMS: dict[str, tuple[str, Sessions, float]] = {
    "sessions": ("node,start,end\na,0,5\nb b,1.5,2e1\na,5,9\n", TWO, 20),
    "any order": ("END_S;Node;start_s\n9;a;5\n20;b b;1,5\n5;a;0\n", TWO, 20),
    "blanks": ('node start end\na 0 5\n"b b" 1.5 20\na 5 9\n', TWO, 20),
    "comments": (
        "# of a crawler\nnode\tstart\tend\n\na#1\t0\t5\n# duration_s 60\n",
        *({("a#1", 0.0, 5.0)}, 60),
    ),
    "intervals": (
        "node,start,end,state\na,0,5,up\na,5,9,UP\na,9,12,down\nb b,1.5,20,up\nc,1,2,down\n",
        *(TWO, 20),
    ),
    "failures only": (
        "node,start,end,state\na,5,9,down\nb,0,5,down\na,9,10,down\n",
        *({("a", 0.0, 5.0), ("b", 5.0, 10.0)}, 10),
    ),
    "changes": (
        "time,node,state\n0,a,up\n1.5,b b,up\n5,a,down\n5,a,up\n9,a,down\n20,c,up\n",
        *(TWO, 20),
    ),
    "epoch": (
        "# begin_s 1300000000\nnode,start,end\na,1300000000,1300000005\nb,1300000003,1300000009\n",
        *({("a", 0.0, 5.0), ("b", 3.0, 9.0)}, 9),
    ),
    "changes of the epoch": (
        "time,node,state\n1300000002,b,up\n# begin_s 13e8\n1300000005,a,up\n",
        *({("b", 2.0, 5.0)}, 5),
    ),
    "archive": (
        archive(
            (3, 7, 1, 1.2e9, 1.2e9 + 60),
            (3, 7, 0, 1.2e9 + 60, 1.2e9 + 90),
            (3, 7, 0, 1.2e9 + 90, 1.2e9 + 90),
            (5, 8, 1, 1.2e9 + 10, 1.2e9 + 40.5),
        ),
        *({("7", 0.0, 60.0), ("8", 10.0, 40.5)}, 90),
    ),
    "archive of failures": (
        archive((3, 7, 0, 1e9, 1e9 + 5), (4, 8, 0, 1e9 + 7, 1e9 + 9), header=HEADER[2:]),
        *({("7", 5.0, 9.0), ("8", 0.0, 7.0)}, 9),
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_list(tmp_path: Path, form: str) -> None:
    text, expected, end_s = FORMS[form]
    trace = written(tmp_path, text)
    assert (sessions_of(trace), trace.duration_s) == (expected, end_s)
    marked = b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()
    assert written(tmp_path, marked, "t.tab") == trace
    assert written(tmp_path, gzip.compress(marked), "t.txt.gz") == trace
    write_trace(trace.renamed(f"n{i}" for i in range(len(trace.names))), tmp_path / "t.avt")
    assert sorted(read_trace(tmp_path / "t.avt").start_s) == sorted(trace.start_s)


def test_nodes_that_are_never_up_are_nodes_all_the_same(tmp_path: Path) -> None:
    trace = written(tmp_path, "node,time,state\na,0,up\nb,9,up\n")
    assert (trace.names, sessions_of(trace)) == (("a", "b"), {("a", 0.0, 9.0)})
    trace = written(tmp_path, "node,start,end,state\nb,0,9,down\na,2,3,up\n")
    assert trace.names == ("b", "a")


COLUMNS = "expected names of columns: node,start,end; node,start,end,state; node,time,state; or"
START, STATE, CHANGE = "node,start,end\n", "node,start,end,state\n", "node,time,state\n"


@pytest.mark.parametrize(
    ("text", "words"),
    {
        "": ": the churn list is empty, expected at least one line",
        START: ": the churn list is empty, expected at least one row below its header",
        "a,0,5\n": f", line 1: the first line is 'a,0,5', {COLUMNS} those of event_trace.tab",
        "a 1 0 5\n": f", line 1: the first line is 'a 1 0 5', {COLUMNS}",
        "node,start\na,0\n": f", line 1: the first line is 'node,start', {COLUMNS}",
        "node,start,end,status\na,0,1,up\n": ", line 1: the first line is 'node,s",
        "node,start,start_s,end\na,0,1,1\n": ", line 1: the first line is 'node,s",
        START + "a,0,5": ", line 2: the last line is 'a,0,5', expected one with a line end",
        START + "a,0\n": ", line 2: number of columns is 2, expected 3",
        START + "a,0,1,5\n": ", line 2: number of columns is 4, expected 3",
        START + 'a,0,"1,5"\n': ", line 2, column 3: end is '1,5', expected a number from 0 to",
        "node;start;end\na;0;1,500\n": ", line 2, column 3: end is '1,500', expected a number",
        "node;start;end\na;0.5;1,5\n": ", line 2, column 3: end is '1,5', expected a number",
        START + "a,,5\n": ", line 2, column 2: start is '', expected a number from 0 to 1e+12",
        START + ",0,5\n": ", line 2, column 1: node is empty, expected the name of a node",
        START + "a,0,nan\n": ", line 2, column 3: end is 'nan', expected a number",
        START + "a,-1,5\n": ", line 2, column 2: start is '-1', expected a number",
        START + "a,0,1_0\n": ", line 2, column 3: end is '1_0', expected a number",
        START + "a,0,12:30\n": ", line 2, column 3: end is '12:30', expected a number",
        START + "a,0,1e13\n": ", line 2, column 3: end is '1e13', expected a number",
        START + 'a,0,"5\n': ", line 2: the line is 'a,0,\"5', expected cells of which each",
        START + "b,0,9\na,5,5\n": ", line 3: end of node 'a' is 5.0, expected a finite time",
        START + "a,7,5\n": ", line 2: end of node 'a' is 5.0, expected a finite time after the",
        START + "a,3,5\nb,1,2\na,0,4\n": (
            ", line 2: start of node 'a' is 3.0, expected at least 4.0, the end of what line 4"
        ),
        START + "a,3,5\na,3,5\n": ", line 3: start of node 'a' is 3.0, expected at least 5.0,",
        START + "b,1300000007,1300000009\na,1300000000,1300000005\n": (
            ", line 3: the first time of node 'a' is 1300000000.0, expected seconds from the "
            "beginning of the trace, the first below 1e+08; of a list with times of the epoch "
            "'# begin_s 1300000000' says where it begins"
        ),
        START + "# begin_s 4\na,3,5\n": (
            ", line 3: the first time of node 'a' is 3.0, expected at least 4.0, where the"
        ),
        START + "# begin_s x\na,3,4\n": ", line 2: begin_s is 'x', expected a number",
        START + "# duration_s 4\na,3,5\n": ": duration_s is 4.0, expected at least the last",
        START + "# duration_s 4 h\na,3,4\n": ", line 2: duration_s is '4 h', expected a number",
        STATE + "a,0,5,on\n": ", line 2, column 4: state is 'on', expected up or down",
        STATE + "a,0,5,up\na,4,9,down\n": (
            ", line 3: start of node 'a' is 4.0, expected at least 5.0, the end of what line 2"
        ),
        CHANGE + "a,3,down\n": ", line 2: state of node 'a' is 'down', expected up, as no line",
        CHANGE + "a,3,up\nb,3,up\na,4,up\n": (
            ", line 4: state of node 'a' is 'up', expected down, as line 2 says up"
        ),
        CHANGE + "a,3,up\na,4,down\na,5,down\n": (
            ", line 4: state of node 'a' is 'down', expected up, as line 3 says down"
        ),
        CHANGE + "a,3,up\na,3,down\n": ", line 3: time of node 'a' is 3.0, expected a later",
        CHANGE + "a,0,up\n": ": duration_s is 0.0, expected a finite positive number",
        CHANGE + "a,0,up\n# duration_s 5\nb,9,up\n": ": duration_s is 5.0, expected at least",
        archive((1, 1, 2, 0, 5)): ", line 2, column 6: event_type is '2', expected 1 (avail",
        archive((1, 1, 1, 0, 5), (2, 1, 1, 5, 9)): (
            ", line 3, column 2: component_id is '2', expected '1', as on line 2 for the same"
        ),
        archive((1, 1, 1, 9, 5)): ", line 2: end of node '1' is -4.0, expected a finite time",
        archive((1, 1, 1, 0, 5), (1, 1, 0, 4, 6)): ", line 3: start of node '1' is 4.0, expec",
        archive((1, 1, 1, 0, 5)).replace("\t5\t", "\tNULL\t"): ", line 2, column 8: event_stop",
        archive((1, 1, 1, 0, 5), header=""): ", line 1: the first line is '0\\t1\\t1\\t1\\tsome",
        b"node,start,end\n\xff,0,5\n": ": the content is not UTF-8 at byte 16, expected text",
        START.encode("utf-16"): ": the content is not UTF-8 but UTF-16, expected text in UTF-8",
        gzip.compress(START.encode(), mtime=0): ": the content is gzip data, expected text",
    }.items(),
)
def test_what_is_no_list_is_refused_by_place(tmp_path: Path, text: Any, words: str) -> None:
    with pytest.raises(TraceError) as refused:
        written(tmp_path, text)
    message = str(refused.value)
    assert message.startswith(f"{tmp_path / 't.csv'}{words}")
    assert "\n" not in message


def test_lists_are_read_and_not_written(tmp_path: Path) -> None:
    trace = written(tmp_path, START + "a,0,5\n")
    with pytest.raises(TraceError, match=r"a name that ends in \.avt, \.avt\.gz or \.parquet$"):
        write_trace(trace, tmp_path / "other.csv")
    with pytest.raises(TraceError, match=r"is not gzip, expected gzip data"):
        written(tmp_path, START + "a,0,5\n", "t.csv.gz")
    with pytest.raises(TraceError, match=r"ends in \.avt, .*, \.csv, .* or \.txt\.gz$"):
        written(tmp_path, START + "a,0,5\n", "t.xlsx")
