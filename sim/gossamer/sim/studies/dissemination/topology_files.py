"""Graphs of real networks, from GML and GraphML files such as those of the Topology Zoo.

Such files repeat links and names, and leave fields out: repeated links become one, brokers of the
same name are told apart by their number, and a broker without coordinates has none.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

from gossamer.sim.engine.latency_files.graph_files import plain_number, read_graph
from gossamer.sim.studies.dissemination.topologies import Positions, Topology, build_topology


def read_topology(path: Path, cost: str | None = None) -> Topology:
    """Read a graph from a ``.gml`` or ``.graphml`` file.

    Args:
        path: the file.
        cost: the field of a link that holds its cost; None lets every link cost 1.

    Raises:
        ScenarioError: the file cannot be read, is no graph, is not connected (names the
            components), or a link's cost is missing or no number above zero, or a coordinate none.
    """
    found = read_graph(path)
    nodes = list(found)
    numbers = {node: number for number, node in enumerate(nodes)}
    links = [
        (numbers[one], numbers[other], 1.0 if cost is None else fields.get(cost))
        for one, other, fields in found.edges(data=True)
    ]
    return build_topology(path.stem, _names(found), links, _positions(found, path), str(path))


def _names(found: nx.Graph[Any]) -> list[str]:
    labels = [str(fields.get("label") or node) for node, fields in found.nodes(data=True)]
    times = Counter(labels)
    return [
        label if times[label] == 1 else f"{label} #{node}"
        for label, node in zip(labels, found, strict=True)
    ]


def _positions(found: nx.Graph[Any], path: Path) -> Positions:
    positions = np.full((len(found), 2), np.nan)
    for number, (node, fields) in enumerate(found.nodes(data=True)):
        if "Longitude" in fields and "Latitude" in fields:
            for place, field in enumerate(("Longitude", "Latitude")):
                value = plain_number(f"{path}, node {node}", field, fields[field])
                positions[number, place] = value
    return positions
