"""Routers and links from the files of BRITE and GT-ITM, checked against what these say they hold.

- *BRITE* (Medina, Lakhina, Matta, Byers, MASCOTS 2001): below ``Nodes: ( n )`` lines of id, x, y,
  degree in and out, AS and type; below ``Edges: ( m )`` of id, two nodes, length, delay, bandwidth,
  two ASs, type and mostly a direction;
- *GT-ITM* (Zegura, Calvert, Bhattacharjee, INFOCOM 1996), as ``sgb2alt`` converts it: below
  ``GRAPH`` the numbers of nodes and of arcs, below ``VERTICES`` and ``EDGES`` a line each. The tool
  writes one line for both arcs of a link, from the lower node to the higher one;
- *GT-ITM* as ``itm`` writes it, a graph of the Stanford GraphBase: see `graph_files`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import attrs
import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import csgraph_from_dense, dijkstra, shortest_path

from gossamer.sim.engine.latency import Floats, Int64s
from gossamer.sim.engine.latency_files.text_files import (
    NATURAL,
    NUMBER,
    WHOLE,
    TextLine,
    place_of,
)
from gossamer.sim.errors import ScenarioError

WHAT: Final = "the topology"
_WORD: Final = re.compile(r"\S+")
_KINDS: Final = {WHOLE: "a whole number", NUMBER: "a number", _WORD: "a word"}
# Columns by name, with what each of their words is.
_Form = Sequence[tuple[str, re.Pattern[str]]]
_BRITE_TOPOLOGY: Final = re.compile(
    r"topology:\s*\(\s*(\d{1,18})\s*nodes,\s*(\d{1,18})\s*edges\s*\)", re.I
)
_BRITE_PART: Final = re.compile(r"(?:nodes|edges):\s*\(\s*(\d{1,18})\s*\)\s*:?", re.I)
_BRITE_NODE: Final[_Form] = (
    *(("id", WHOLE), ("x", NUMBER), ("y", NUMBER), ("degree in", WHOLE), ("degree out", WHOLE)),
    *(("AS", WHOLE), ("type", _WORD)),
)
_BRITE_EDGE: Final[_Form] = (
    *(("id", WHOLE), ("node", WHOLE), ("node", WHOLE), ("length", NUMBER), ("delay", NUMBER)),
    *(("bandwidth", NUMBER), ("AS", WHOLE), ("AS", WHOLE), ("type", _WORD), ("direction", _WORD)),
)
_ALT_NODE: Final[_Form] = (("index", WHOLE), ("name", _WORD), *[("field", NUMBER)] * 6)
_ALT_EDGE: Final[_Form] = (
    *(("node", WHOLE), ("node", WHOLE), ("length", NUMBER), ("field", NUMBER), ("field", NUMBER)),
)


class Link(NamedTuple):
    """A link: where the file has it, its ends by name, and its latency."""

    place: str
    one: str
    other: str
    latency: float


@attrs.frozen
class Routers:
    """What a file of a generator holds.

    Attributes:
        names: of routers, by which links go.
        titles: of routers, which tell their kind.
        links: between them; each holds both ways.
    """

    names: Sequence[str]
    titles: Sequence[str]
    links: Sequence[Link]


@attrs.frozen
class Row:
    """Words of a file that belong together, and the line where they begin."""

    path: Path
    number: int
    words: Sequence[str]

    def place(self, column: int | None = None) -> str:
        """The line, or one of its words from 1 on, as errors name it."""
        return place_of(self.path, self.number, column)

    def error(self, field: str, found: object, expected: str) -> ScenarioError:
        """The error about the row."""
        return ScenarioError(self.place(), field, found, expected)

    def word_error(self, column: int, field: str, expected: str) -> ScenarioError:
        """The error about one of its words."""
        return ScenarioError(self.place(column), field, self.words[column - 1], expected)


def read_brite(path: Path, lines: Sequence[TextLine]) -> Routers:
    """Read a file of BRITE.

    Raises:
        ScenarioError: a line has another form than BRITE gives it, or there are other lines than
            the headings say; names line and column.
    """
    rows = _rows(path, lines)
    head, nodes, edges = _parts(path, rows, "nodes:", "edges:")
    said = [_said(heading) for heading in (nodes[0], edges[0])]
    for row in head:
        found = _BRITE_TOPOLOGY.fullmatch(" ".join(row.words))
        if found and [int(found[1]), int(found[2])] != said:
            expected = f"{said[0]} nodes and {said[1]} edges, as the headings below say"
            raise row.error("the topology", found[0], expected)
    for part, count, form in zip((nodes, edges), said, (_BRITE_NODE, _BRITE_EDGE), strict=True):
        _check_count(part, (count,))
        _check_form(part[1:], form, (len(form), 9 if form is _BRITE_EDGE else len(form)))
    return _routers(nodes[1:], 0, edges[1:], (1, 2, 4))


def read_alt(path: Path, lines: Sequence[TextLine]) -> Routers:
    """Read what ``sgb2alt`` makes of a file of GT-ITM.

    Raises:
        ScenarioError: a line has another form than those before it, or there are other lines than
            the line below ``GRAPH`` says; names line and column.
    """
    rows = _rows(path, lines)
    head, nodes, edges = _parts(path, rows, "vertices", "edges")
    words = head[1].words[:2] if len(head) == 2 and head[0].words[0].lower() == "graph" else ()
    if len(words) != 2 or not all(map(NATURAL.fullmatch, words)):
        expected = "GRAPH and below it the numbers of nodes and edges"
        place, what = nodes[0].place(), "what is before the vertices"
        raise ScenarioError(place, what, None, expected, "incomplete")
    said, arcs = int(words[0]), int(words[1])
    _check_count(nodes, (said,))
    for part, form, least in ((nodes, _ALT_NODE, 2), (edges, _ALT_EDGE, 3)):
        columns = len(part[1].words) if len(part) > 1 else least
        _check_form(part[1:], form, (max(least, min(columns, len(form))),))
    # Where links are there one way only, as sgb2alt writes them, a line stands for two arcs.
    once = all(int(row.words[0]) < int(row.words[1]) for row in edges[1:])
    _check_count(edges, (arcs, arcs // 2) if once and arcs % 2 == 0 else (arcs,))
    return _routers(nodes[1:], 1, edges[1:], (0, 1, 2))


def _rows(path: Path, lines: Sequence[TextLine]) -> list[Row]:
    return [Row(path, number, text.split()) for number, text in lines]


def _parts(
    path: Path, rows: Sequence[Row], first: str, second: str
) -> tuple[Sequence[Row], Sequence[Row], Sequence[Row]]:
    """The lines before a heading, from it on, and from another one on."""
    starts = []
    for heading in (first, second):
        found = (i for i, row in enumerate(rows) if " ".join(row.words).lower().startswith(heading))
        start = next(found, None)
        if start is None:
            raise ScenarioError(str(path), WHAT, None, f'a heading "{heading}"', "without one")
        starts.append(start)
    if starts[0] + 1 >= starts[1]:
        raise ScenarioError(str(path), WHAT, None, "at least one node", "without nodes")
    return rows[: starts[0]], rows[starts[0] : starts[1]], rows[starts[1] :]


def _said(heading: Row) -> int:
    """How many lines the heading of a part of a BRITE file says there are."""
    text = " ".join(heading.words)
    found = _BRITE_PART.fullmatch(text)
    if found is None:
        raise heading.error("the heading", text, f"{heading.words[0]} ( N )")
    return int(found[1])


def _check_count(part: Sequence[Row], said: Sequence[int]) -> None:
    """Check how many lines follow a heading."""
    if len(part) - 1 not in said:
        expected = f"{' or '.join(map(str, said))}, as the file says"
        heading = part[0].words[0].rstrip(":")
        raise part[0].error(f"number of lines below {heading}", len(part) - 1, expected)


def _check_form(rows: Sequence[Row], form: _Form, columns: Sequence[int]) -> None:
    """Check that all lines have as many columns as the first, each of its kind."""
    for row in rows:
        count = len(row.words)
        if count not in columns or count != len(rows[0].words):
            expected = f"{len(rows[0].words) if len(rows[0].words) in columns else columns[0]}"
            raise row.error("number of columns", count, expected)
        for column, (word, (name, kind)) in enumerate(zip(row.words, form, strict=False), start=1):
            if not kind.fullmatch(word):
                raise row.word_error(column, f"the {name}", _KINDS[kind])


def _routers(
    nodes: Sequence[Row], title: int, edges: Sequence[Row], where: tuple[int, int, int]
) -> Routers:
    """The routers of checked lines: where titles, and ends and latencies of links, are."""
    known = set()
    for row in nodes:
        if row.words[0] in known:
            raise row.word_error(1, "the node", "one that no line before has")
        known.add(row.words[0])
    links = []
    for row in edges:
        one, other, latency = (row.words[place] for place in where)
        for place in where[:2]:
            if row.words[place] not in known:
                raise row.word_error(place + 1, "the end of a link", "a node of the file")
        links.append(Link(row.place(where[2] + 1), one, other, float(latency)))
    return Routers([row.words[0] for row in nodes], [row.words[title] for row in nodes], links)


# Latencies along the shortest ways: of topologies, and for pairs that nobody measured.

# Rows that are found at a time, so that memory is what the result takes.
_ROWS: Final = 256


def fill_unmeasured(file: str, matrix: Floats) -> tuple[Floats, int]:
    """A matrix in which pairs that were not measured take the shortest way through other sites.

    Args:
        file: it was read from.
        matrix: float64[m, m], NaN where nothing was measured; such a diagonal becomes 0.

    Returns:
        The matrix without NaN, and how many of its entries were filled.

    Raises:
        ScenarioError: there is no such way between two sites.
    """
    full = matrix.copy()
    diagonal = np.einsum("ii->i", full)
    diagonal[np.isnan(diagonal)] = 0.0
    missing = np.isnan(full)
    if not missing.any():
        return full, 0
    graph = csgraph_from_dense(full, null_value=np.nan)
    rows = np.flatnonzero(missing.any(axis=1))
    if len(rows) * graph.nnz > len(full) ** 3:
        ways = shortest_path(graph, method="FW")[rows]
    else:
        ways = dijkstra(graph, indices=rows)
    full[rows] = np.where(missing[rows], ways, full[rows])
    _check_connected(file, full, np.arange(len(full)), np.arange(len(full)))
    return full, int(missing.sum())


def ways_between(
    file: str, sites: int, ends: Int64s, latency: Floats, wanted: Int64s, unit: float
) -> npt.NDArray[np.int32]:
    """Latencies between some sites of a topology, by the shortest ways.

    Args:
        file: it was read from.
        sites: how many there are, m.
        ends: int64[e, 2], from where to where links go.
        latency: float64[e] of links.
        wanted: int64[k], the sites that messages go between.
        unit: ticks that a latency of 1 takes.

    Returns:
        int32[k, k] ticks, rounded.

    Raises:
        ScenarioError: there is no way between two of the sites, or a longer one than a tick's
            number can say.
    """
    graph = _least_of_each(sites, ends, latency)
    found = np.empty((len(wanted), len(wanted)), np.int32)
    for begin in range(0, len(wanted), _ROWS):
        some = wanted[begin : begin + _ROWS]
        ways = dijkstra(graph, indices=some)[:, wanted]
        _check_connected(file, ways, some, wanted)
        ticks = np.rint(ways * unit)
        if ticks.max() > np.iinfo(np.int32).max - 1:
            expected = f"ways of at most {np.iinfo(np.int32).max - 1} ms"
            raise ScenarioError(file, "the longest way", float(ticks.max()), expected)
        found[begin : begin + _ROWS] = ticks
    return found


def _least_of_each(sites: int, ends: Int64s, latency: Floats) -> Any:
    """The sparse graph of links; of several from one site to another the shortest."""
    order = np.lexsort((latency, ends[:, 1], ends[:, 0]))
    ends, latency = ends[order], latency[order]
    first = np.ones(len(ends), np.bool_)
    first[1:] = (ends[1:] != ends[:-1]).any(axis=1)
    kept = ends[first].T
    graph = csr_array(coo_array((latency[first], (kept[0], kept[1])), shape=(sites, sites)))
    # Links that take no time are links all the same.
    graph.data = np.maximum(graph.data, np.finfo(np.float64).tiny)
    return graph


def _check_connected(file: str, ways: Floats, rows: Int64s, columns: Int64s) -> None:
    lost = np.argwhere(~np.isfinite(ways))
    if len(lost):
        one, other = int(rows[lost[0][0]]) + 1, int(columns[lost[0][1]]) + 1
        expected = "one over links or measured pairs from every site to every other"
        raise ScenarioError(
            file, f"the way from site {one} to site {other}", None, expected, "missing"
        )
