"""Graphs of the Stanford GraphBase (Knuth 1993), which ``itm`` of GT-ITM writes.

The first line says how many records of vertices and of arcs follow, the second one how many of
these the graph has: others are there to spare. Records are lines of cells with commas in between; a
line that ends with a comma or a backslash goes on in the next one. Every vertex has a chain of
arcs: its first, and of each the next.
"""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import attrs

from gossamer.sim.engine.latency_files.router_files import WHAT, Link, Routers
from gossamer.sim.engine.latency_files.text_files import WHOLE, TextLine, place_of
from gossamer.sim.errors import ScenarioError

_COUNTS: Final = re.compile(
    r"\* GraphBase graph \(util_types [ZIVSA]{14},\s*(\d{1,18})V,\s*(\d{1,18})A\)", re.ASCII
)
_MARKS: Final = ("* graphbase", "* vertices", "* arcs", "* checksum")
_VERTEX: Final = re.compile(r"V(\d{1,18})", re.ASCII)
_ARC: Final = re.compile(r"A(\d{1,18})|0", re.ASCII)


@attrs.frozen
class _Record:
    """Cells of a record, and the line where it begins."""

    path: Path
    number: int
    cells: Sequence[str]

    def error(self, column: int, field: str, expected: str) -> ScenarioError:
        place = place_of(self.path, self.number, column)
        return ScenarioError(place, field, self.cells[column - 1], expected)

    def whole(self, column: int, field: str) -> int:
        if not WHOLE.fullmatch(self.cells[column - 1]):
            raise self.error(column, field, "a whole number")
        return int(self.cells[column - 1])


def read_graph_base(path: Path, lines: Sequence[TextLine]) -> Routers:
    """Read a graph of the GraphBase; arcs of both directions are links.

    Raises:
        ScenarioError: it is none, or has other records than it says; names line and column.
    """
    starts = [_start(path, lines, mark) for mark in _MARKS]
    counts = _COUNTS.fullmatch(lines[starts[0]].text.strip())
    if counts is None:
        place = place_of(path, lines[starts[0]].number)
        expected = "* GraphBase graph (util_types TYPES,nV,mA)"
        raise ScenarioError(place, "the line", lines[starts[0]].text, expected)
    parts = [
        list(_records(path, lines[begin + 1 : end])) for begin, end in itertools.pairwise(starts)
    ]
    head, vertices, arcs = parts
    for records, said, start in zip((vertices, arcs), counts.groups(), starts[1:], strict=False):
        _check_records(path, records, int(said), lines[start])
    if len(head) != 1 or len(head[0].cells) < 3:
        place = place_of(path, lines[starts[0]].number)
        expected = "one with a name and the numbers of vertices and arcs"
        raise ScenarioError(place, "number of records below", len(head), expected)
    return _routers(head[0], vertices, arcs)


def _start(path: Path, lines: Sequence[TextLine], mark: str) -> int:
    for i, (_, text) in enumerate(lines):
        if text.lower().startswith(mark):
            return i
    raise ScenarioError(str(path), WHAT, None, f'a line that begins with "{mark}"', "without one")


def _records(path: Path, lines: Sequence[TextLine]) -> Iterator[_Record]:
    """Records, each put together of the lines that it takes."""
    text, begin = "", 0
    for number, part in lines:
        begin = number if text == "" else begin
        text += part.strip()
        if text.endswith("\\"):
            text = text[:-1]
        elif not text.endswith(","):
            try:
                cells = next(csv.reader([text], skipinitialspace=True, strict=True))
            except csv.Error:
                break
            yield _Record(path, begin, cells)
            text = ""
    if text:
        expected = "cells with commas in between, which end with a line"
        raise ScenarioError(place_of(path, begin), "the record", text, expected)


def _check_records(path: Path, records: Sequence[_Record], said: int, heading: TextLine) -> None:
    """Check that there are as many records as the file says, all with as many cells."""
    if len(records) != said:
        place = place_of(path, heading.number)
        expected = f"{said}, as the first line says"
        raise ScenarioError(place, "number of records below", len(records), expected)
    for record in records:
        if len(record.cells) != len(records[0].cells):
            place = place_of(path, record.number)
            expected = f"{len(records[0].cells)}"
            raise ScenarioError(place, "number of cells", len(record.cells), expected)


def _routers(head: _Record, vertices: Sequence[_Record], arcs: Sequence[_Record]) -> Routers:
    nodes, total = head.whole(2, "number of vertices"), head.whole(3, "number of arcs")
    if not 0 < nodes <= len(vertices):
        raise head.error(2, "number of vertices", f"a number from 1 to {len(vertices)}")
    links = [link for i in range(nodes) for link in _links(i, vertices[i], arcs, nodes)]
    if len(links) != total:
        raise head.error(3, "number of arcs", f"{len(links)}, as many as the vertices have")
    titles = [vertex.cells[0] for vertex in vertices[:nodes]]
    return Routers([str(i) for i in range(nodes)], titles, links)


def _links(number: int, vertex: _Record, arcs: Sequence[_Record], nodes: int) -> Iterator[Link]:
    """The arcs of a vertex."""
    record, steps = vertex, 0
    while True:
        following = _ARC.fullmatch(record.cells[1]) if len(record.cells) > 1 else None
        if following is not None and following[1] is None:
            return
        place = len(arcs) if following is None else int(following[1])
        if place >= len(arcs) or steps > len(arcs):
            expected = f"0, or one of the {len(arcs)} arcs from A0 on that no other chain has"
            raise record.error(min(2, len(record.cells)), "the next arc", expected)
        record, steps = arcs[place], steps + 1
        tip = _VERTEX.fullmatch(record.cells[0])
        if tip is None or int(tip[1]) >= nodes:
            raise record.error(1, "the end of an arc", f"a vertex from V0 to V{nodes - 1}")
        if len(record.cells) < 3:
            raise record.error(1, "the arc", "a vertex, the next arc and a length")
        length = float(record.whole(3, "the length of an arc"))
        yield Link(place_of(record.path, record.number, 3), str(number), str(int(tip[1])), length)
