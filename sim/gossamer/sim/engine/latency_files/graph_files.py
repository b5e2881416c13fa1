"""Graphs from GML and GraphML files, as NetworkX reads them, with every fault one sentence."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from xml.etree.ElementTree import ParseError

import networkx as nx

from gossamer.sim.engine.latency_files.text_files import read_text
from gossamer.sim.errors import ScenarioError

_GRAPH_BEGINS: Final = re.compile(r"(?m)^\s*graph\s*\[")
_MULTIGRAPH: Final = re.compile(r"(?m)^\s*multigraph\s+\d+\s*$")


def read_graph(path: Path) -> nx.Graph[Any]:
    """Read a graph from a ``.gml`` or ``.graphml`` file; repeated links are kept.

    Raises:
        ScenarioError: the ending is another, or the file cannot be read or is no graph.
    """
    reader = GRAPH_READERS.get(path.suffix.lower())
    if reader is None:
        expected = f"a file that ends in {' or '.join(sorted(GRAPH_READERS))}"
        raise ScenarioError(str(path), "the ending", path.suffix, expected)
    return reader(read_text(path, "the graph"), str(path))


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


GRAPH_READERS: Final[dict[str, Callable[[str, str], nx.Graph[Any]]]] = {
    ".gml": _read_gml,
    ".graphml": _read_graphml,
}


def _reason(error: Exception) -> str:
    reason = " ".join(str(error).split()) or type(error).__name__
    return f"unreadable ({reason.rstrip('.')})"
