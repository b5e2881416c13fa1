"""Graphs from GML and GraphML files, as NetworkX reads them, with every fault one sentence.

NetworkX leaves out what it does not know. What it has read is held against the text: all nodes and
links are there, fields are read once, and numbers have the form that the format gives them.
"""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from xml.etree.ElementTree import Element, ParseError, fromstring

import networkx as nx

from gossamer.sim.engine.latency_files.text_files import place_of, read_text
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
