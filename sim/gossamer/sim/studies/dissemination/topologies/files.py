"""Graphs of real networks, from GML and GraphML files such as those of the Topology Zoo.

Such files repeat links and names, and leave fields out: repeated links become one, brokers of the
same name are told apart by their number, and a broker without coordinates has none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from xml.etree.ElementTree import ParseError

import networkx as nx
import numpy as np

from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.dissemination.topologies.topology import (
    Positions,
    Topology,
    build_topology,
)

_GRAPH_BEGINS: Final = re.compile(r"(?m)^\s*graph\s*\[")
_MULTIGRAPH: Final = re.compile(r"(?m)^\s*multigraph\s+\d+\s*$")


def read_topology(path: Path, cost: str | None = None) -> Topology:
    """Read a graph from a ``.gml`` or ``.graphml`` file.

    Args:
        path: the file.
        cost: the field of a link that holds its cost; None lets every link cost 1.

    Raises:
        ScenarioError: the file cannot be read, is no graph, is not connected (names the
            components), or a link's cost is missing or no number above zero.
    """
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        expected = f"a file that ends in {' or '.join(sorted(_READERS))}"
        raise ScenarioError(str(path), "the ending", path.suffix, expected)
    found = reader(_read_text(path), str(path))
    nodes = list(found)
    numbers = {node: number for number, node in enumerate(nodes)}
    links = [
        (numbers[one], numbers[other], 1.0 if cost is None else fields.get(cost))
        for one, other, fields in found.edges(data=True)
    ]
    return build_topology(path.stem, _names(found), links, _positions(found), str(path))


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        reason = error.strerror or "unreadable"
        raise ScenarioError(str(path), "the graph", None, "a readable file", reason) from None
    except UnicodeDecodeError:
        raise ScenarioError(str(path), "the graph", None, "a text file", "not UTF-8") from None


def _read_gml(text: str, file: str) -> nx.Graph[Any]:
    # Said to be a multigraph, it may repeat links, which real ones do without saying so.
    text = _GRAPH_BEGINS.sub(lambda found: f"{found[0]}\n  multigraph 1", _MULTIGRAPH.sub("", text))
    try:
        found: nx.Graph[Any] = nx.parse_gml(text, label="id")
    except (nx.NetworkXError, ValueError, KeyError, TypeError, IndexError) as error:
        raise ScenarioError(file, "the graph", None, "GML", _reason(error)) from None
    return found


def _read_graphml(text: str, file: str) -> nx.Graph[Any]:
    try:
        found: nx.Graph[Any] = nx.parse_graphml(text)
    except (nx.NetworkXError, ParseError, ValueError, KeyError, TypeError) as error:
        raise ScenarioError(file, "the graph", None, "GraphML", _reason(error)) from None
    return found


_READERS: Final[dict[str, Callable[[str, str], nx.Graph[Any]]]] = {
    ".gml": _read_gml,
    ".graphml": _read_graphml,
}


def _reason(error: Exception) -> str:
    reason = " ".join(str(error).split()) or type(error).__name__
    return f"unreadable ({reason.rstrip('.')})"


def _names(found: nx.Graph[Any]) -> list[str]:
    labels = [str(fields.get("label") or node) for node, fields in found.nodes(data=True)]
    times = Counter(labels)
    return [
        label if times[label] == 1 else f"{label} #{node}"
        for label, node in zip(labels, found, strict=True)
    ]


def _positions(found: nx.Graph[Any]) -> Positions:
    positions = np.full((len(found), 2), np.nan)
    for number, (_, fields) in enumerate(found.nodes(data=True)):
        place = fields.get("Longitude"), fields.get("Latitude")
        if all(isinstance(value, int | float) for value in place):
            positions[number] = place
    return positions
