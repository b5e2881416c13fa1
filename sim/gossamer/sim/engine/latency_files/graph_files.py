"""Graphs from GML and GraphML files, as NetworkX reads them, with every fault one sentence.

NetworkX leaves out what it does not know. What it has read is held against the text: all nodes and
links are there, fields are read once, and numbers have the form that the format gives them.
"""

from __future__ import annotations

import csv
import itertools
import math
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final
from xml.etree.ElementTree import Element, ParseError, fromstring

import networkx as nx

from gossamer.sim.engine.latency_files.router_files import WHAT, Link, Routers, Row
from gossamer.sim.engine.latency_files.text_files import WHOLE, TextLine, place_of, read_text
from gossamer.sim.errors import ScenarioError

_GRAPH_BEGINS: Final = re.compile(r"(?m)^\s*graph\s*\[")
_MULTIGRAPH: Final = re.compile(r"(?m)^[ \t]*multigraph[ \t]+\d+[ \t\r]*$")
_GML_WORD: Final = re.compile(
    r'"[^"]*"|#[^\n]*|\s+|[\[\]]|'
    r"(?:(?P<key>[A-Za-z]\w*)|[+-]?INF|[+-]?(?:\d*\.\d+|\d+\.)(?:[eE][+-]?\d+)?"
    r"|(?P<whole>[+-]?\d+)(?P<power>[eE][+-]?\d+)?)(?![^\s\[\]])",
    re.ASCII,
)
_NUMERIC: Final = ("int", "long", "float", "double")
_FAULTS: Final = (
    *(nx.NetworkXError, ParseError, ValueError, KeyError, TypeError, IndexError),
    *(AttributeError, RecursionError),
)


def read_graph(path: Path) -> nx.Graph[Any]:
    """Read a graph from a ``.gml`` or ``.graphml`` file; repeated links are kept.

    Raises:
        ScenarioError: the ending is another, or the file cannot be read, is no graph, or has more
            than NetworkX reads of it.
    """
    reader = GRAPH_READERS.get(path.suffix.lower())
    if reader is None:
        expected = f"a file that ends in {' or '.join(sorted(GRAPH_READERS))}"
        raise ScenarioError(str(path), "the ending", path.suffix, expected)
    return reader(read_text(path, "the graph"), path)


def plain_number(place: str, field: str, value: object) -> float:
    """The value of a field of a graph as the finite number that it has to be.

    Raises:
        ScenarioError: it is text, a truth value, several values, or not finite.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ScenarioError(place, field, value, "a finite number")
    return float(value)


def _read_gml(text: str, path: Path) -> nx.Graph[Any]:
    plain, nodes, links = _gml_words(text, path)
    # Said to be a multigraph, it may repeat links, which real ones do without saying so.
    plain = _MULTIGRAPH.sub("", plain)
    plain = _GRAPH_BEGINS.sub(lambda found: f"{found[0]} multigraph 1 ", plain)
    try:
        found: nx.Graph[Any] = nx.parse_gml(plain, label="id")
    except _FAULTS as error:
        raise ScenarioError(str(path), "the graph", None, "GML", _reason(error)) from None
    _check_whole(path, found, nodes, links)
    return found


def _gml_words(text: str, path: Path) -> tuple[str, int, int]:
    """A text whose numbers NetworkX reads as they are meant, and how many nodes and links it has.

    NetworkX takes 1e-05, as igraph writes it, for 1 and a field "e".
    """
    words, counts, at, before = [], Counter[str](), 0, ""
    while at < len(text):
        found = _GML_WORD.match(text, at)
        if found is None:
            line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
            word = text[at:].split(maxsplit=1)[0]
            expected = "a key, a number with a decimal point or none, a text in quotes or a bracket"
            raise ScenarioError(place_of(path, line, column), "the word", word, expected)
        word = found[0]
        if word == "[":
            counts[before] += 1
        if not word.isspace():
            before = word
        words.append(f"{found['whole']}.0{found['power']}" if found["power"] else word)
        at = found.end()
    return "".join(words), counts["node"], counts["edge"]


def _read_graphml(text: str, path: Path) -> nx.Graph[Any]:
    try:
        with warnings.catch_warnings(action="ignore"):  # about ports, and keys without a type
            found: nx.Graph[Any] = nx.parse_graphml(text)
        root = fromstring(text)
    except _FAULTS as error:
        raise ScenarioError(str(path), "the graph", None, "GraphML", _reason(error)) from None
    _check_fields(path, root)
    counts = Counter(_kind(element) for element in root.iter())
    _check_whole(path, found, counts["node"], counts["edge"] + counts["hyperedge"])
    for fields, default in (
        *((fields, "node_default") for _, fields in found.nodes(data=True)),
        *((fields, "edge_default") for *_, fields in found.edges(data=True)),
    ):
        for name, value in found.graph[default].items():
            fields.setdefault(name, value)
    return found


def _check_fields(path: Path, root: Element) -> None:
    """Check that no node or link has a field twice, and that numbers are written as such."""
    keys = {key.get("id"): key for key in root.iter() if _kind(key) == "key"}
    for element in root.iter():
        if _kind(element) not in ("node", "edge"):
            continue
        ends = element.get("id") or f"{element.get('source')} to {element.get('target')}"
        place = f"{path}, {_kind(element)} {ends}"
        seen = set()
        for data in element:
            key = keys.get(data.get("key"))
            if _kind(data) != "data" or key is None:
                continue
            name, text = key.get("attr.name") or key.get("yfiles.type"), data.text or ""
            if name in seen:
                raise ScenarioError(place, f"the field {name}", text, "one value", "there twice")
            seen.add(name)
            if key.get("attr.type") in _NUMERIC and ("_" in text or not text.isascii()):
                raise ScenarioError(place, f"{name}", text, "a number")


def _kind(element: Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _check_whole(path: Path, found: nx.Graph[Any], nodes: int, links: int) -> None:
    """Check that a graph has all nodes and links of the file's text, and no others."""
    read = f"{len(found)} nodes and {found.number_of_edges()} links"
    if (len(found), found.number_of_edges()) != (nodes, links):
        expected = f"{nodes} and {links}, as the text has, each node and link once and in one graph"
        raise ScenarioError(str(path), "the graph", read, expected, f"read as {read}")


GRAPH_READERS: Final[dict[str, Callable[[str, Path], nx.Graph[Any]]]] = {
    ".gml": _read_gml,
    ".graphml": _read_graphml,
}


def _reason(error: Exception) -> str:
    reason = " ".join(str(error).split()) or type(error).__name__
    return f"unreadable ({reason.rstrip('.')})"


# Graphs of the Stanford GraphBase (Knuth 1993), which ``itm`` of GT-ITM writes.
#
# The first line says how many records of vertices and of arcs follow, the second one how many of
# these the graph has: others are there to spare. Records are lines of cells with commas in between;
# a line that ends with a comma or a backslash goes on in the next one. Every vertex has a chain of
# arcs: its first, and of each the next.

_COUNTS: Final = re.compile(
    r"\* GraphBase graph \(util_types [ZIVSA]{14},\s*(\d{1,18})V,\s*(\d{1,18})A\)", re.ASCII
)
_MARKS: Final = ("* graphbase", "* vertices", "* arcs", "* checksum")
_VERTEX: Final = re.compile(r"V(\d{1,18})", re.ASCII)
_ARC: Final = re.compile(r"A(\d{1,18})|0", re.ASCII)


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
    if len(head) != 1 or len(head[0].words) < 3:
        place = place_of(path, lines[starts[0]].number)
        expected = "one with a name and the numbers of vertices and arcs"
        raise ScenarioError(place, "number of records below", len(head), expected)
    return _routers(head[0], vertices, arcs)


def _start(path: Path, lines: Sequence[TextLine], mark: str) -> int:
    for i, (_, text) in enumerate(lines):
        if text.lower().startswith(mark):
            return i
    raise ScenarioError(str(path), WHAT, None, f'a line that begins with "{mark}"', "without one")


def _records(path: Path, lines: Sequence[TextLine]) -> Iterator[Row]:
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
            yield Row(path, begin, cells)
            text = ""
    if text:
        expected = "cells with commas in between, which end with a line"
        raise ScenarioError(place_of(path, begin), "the record", text, expected)


def _check_records(path: Path, records: Sequence[Row], said: int, heading: TextLine) -> None:
    """Check that there are as many records as the file says, all with as many cells."""
    if len(records) != said:
        place = place_of(path, heading.number)
        expected = f"{said}, as the first line says"
        raise ScenarioError(place, "number of records below", len(records), expected)
    for record in records:
        if len(record.words) != len(records[0].words):
            expected = f"{len(records[0].words)}"
            raise record.error("number of cells", len(record.words), expected)


def _whole(record: Row, column: int, field: str) -> int:
    if not WHOLE.fullmatch(record.words[column - 1]):
        raise record.word_error(column, field, "a whole number")
    return int(record.words[column - 1])


def _routers(head: Row, vertices: Sequence[Row], arcs: Sequence[Row]) -> Routers:
    nodes, total = _whole(head, 2, "number of vertices"), _whole(head, 3, "number of arcs")
    if not 0 < nodes <= len(vertices):
        raise head.word_error(2, "number of vertices", f"a number from 1 to {len(vertices)}")
    links = [link for i in range(nodes) for link in _links(i, vertices[i], arcs, nodes)]
    if len(links) != total:
        raise head.word_error(3, "number of arcs", f"{len(links)}, as many as the vertices have")
    titles = [vertex.words[0] for vertex in vertices[:nodes]]
    return Routers([str(i) for i in range(nodes)], titles, links)


def _links(number: int, vertex: Row, arcs: Sequence[Row], nodes: int) -> Iterator[Link]:
    """The arcs of a vertex."""
    record, steps = vertex, 0
    while True:
        following = _ARC.fullmatch(record.words[1]) if len(record.words) > 1 else None
        if following is not None and following[1] is None:
            return
        place = len(arcs) if following is None else int(following[1])
        if place >= len(arcs) or steps > len(arcs):
            expected = f"0, or one of the {len(arcs)} arcs from A0 on that no other chain has"
            raise record.word_error(min(2, len(record.words)), "the next arc", expected)
        record, steps = arcs[place], steps + 1
        tip = _VERTEX.fullmatch(record.words[0])
        if tip is None or int(tip[1]) >= nodes:
            raise record.word_error(1, "the end of an arc", f"a vertex from V0 to V{nodes - 1}")
        if len(record.words) < 3:
            raise record.word_error(1, "the arc", "a vertex, the next arc and a length")
        length = float(_whole(record, 3, "the length of an arc"))
        yield Link(record.place(3), str(number), str(int(tip[1])), length)
