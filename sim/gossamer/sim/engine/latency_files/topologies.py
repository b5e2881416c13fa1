"""Topologies of routers: BRITE and GT-ITM files (see `router_files`), GraphML and GML.

Nodes of the overlay stand at routers of stubs, whose names begin with "S:", where the file has
such. Of GraphML and GML the field of a link that is its latency is named; where it is not and nodes
have ``Longitude`` and ``Latitude``, as those of the Topology Zoo, light in fibre takes the way over
the earth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import networkx as nx
import numpy as np

from gossamer.sim.engine.latency import Floats, Int64s
from gossamer.sim.engine.latency_files.graph_files import (
    GRAPH_READERS,
    plain_number,
    read_graph,
    read_graph_base,
)
from gossamer.sim.engine.latency_files.router_files import (
    WHAT,
    Link,
    Routers,
    read_alt,
    read_brite,
)
from gossamer.sim.engine.latency_files.text_files import TextLine, read_text, text_lines
from gossamer.sim.errors import ScenarioError

_STUB: Final = "S:"
# The earth's mean radius, and light in fibre.
_EARTH_KM: Final = 6371.0
_KM_A_MS: Final = 200.0


@attrs.frozen(eq=False)
class RouterTopology:
    """Routers and the links between them.

    Attributes:
        file: it was read from.
        sites: how many routers there are.
        ends: int64[e, 2], from where to where links go; those of both directions are there.
        latency: float64[e], in the file's unit.
        stands: int64[k], routers at which nodes of an overlay may stand.
    """

    file: str
    sites: int
    ends: Int64s
    latency: Floats
    stands: Int64s


def read_topology(path: Path, field: str | None = None) -> RouterTopology:
    """Read a topology; its kind is told by the file's ending and content.

    Args:
        path: of the file.
        field: of a link that is its latency; for GraphML and GML only.

    Raises:
        ScenarioError: the file cannot be read or is of no known kind, or a link's latency is
            missing or no number from 0; names the line.
    """
    if path.suffix.lower() in GRAPH_READERS:
        return _from_graph(path, field)
    if field is not None:
        expected = "left out: only links of GraphML and GML files have named fields"
        raise ScenarioError(None, "network.edge_latency", field, expected)
    lines = text_lines(path, read_text(path, WHAT))
    for begins, reader in _READERS:
        if any(line.text.strip().lower().startswith(begins) for line in lines):
            return _topology(path, reader(path, lines))
    expected = 'BRITE ("Nodes:", "Edges:"), GT-ITM ("VERTICES" or "* Vertices"), .graphml or .gml'
    raise ScenarioError(str(path), WHAT, None, expected, "of no known kind")


_READERS: Final[Sequence[tuple[str, Callable[[Path, Sequence[TextLine]], Routers]]]] = (
    ("nodes:", read_brite),
    ("vertices", read_alt),
    ("* vertices", read_graph_base),
)


def _topology(path: Path, routers: Routers, *, directed: bool = False) -> RouterTopology:
    sites = {name: i for i, name in enumerate(routers.names)}
    ends: list[tuple[int, int]] = []
    latency: list[float] = []
    for link in routers.links:
        if not 0 <= link.latency < math.inf:
            expected = "a finite number from 0"
            raise ScenarioError(link.place, "the latency of a link", link.latency, expected)
        both = (sites[link.one], sites[link.other]), (sites[link.other], sites[link.one])
        ends += both[:1] if directed else both
        latency += [link.latency] * (1 if directed else 2)
    stubs = [i for i, title in enumerate(routers.titles) if title.upper().startswith(_STUB)]
    return RouterTopology(
        str(path),
        len(sites),
        np.array(ends, np.int64).reshape(-1, 2),
        np.array(latency),
        np.array(stubs or range(len(sites)), np.int64),
    )


def _from_graph(path: Path, field: str | None) -> RouterTopology:
    found = read_graph(path)
    if len(found) == 0:
        raise ScenarioError(str(path), WHAT, None, "at least one node", "without nodes")
    links = [
        Link(str(path), one, other, _latency_of(path, found, (one, other), fields, field))
        for one, other, fields in found.edges(data=True)
    ]
    routers = Routers(list(found), [""] * len(found), links)
    return _topology(path, routers, directed=found.is_directed())


def _latency_of(
    path: Path, found: nx.Graph[Any], ends: tuple[Any, Any], fields: Any, field: str | None
) -> float:
    link = f"{path}, link {ends[0]} to {ends[1]}"
    if field is not None:
        if field not in fields:
            known = ", ".join(sorted(map(str, fields))) or "none"
            expected = f"one of the fields of that link, which are {known}"
            raise ScenarioError(link, "network.edge_latency", field, expected)
        number = plain_number(link, field, fields[field])
        if number < 0:
            raise ScenarioError(link, field, number, "a number from 0")
        return number
    places = [_place(path, end, found.nodes[end]) for end in ends]
    return _km_between(*places) / _KM_A_MS


def _place(path: Path, node: Any, fields: Any) -> tuple[float, float]:
    """Longitude and latitude of a node, in radians."""
    degrees = []
    for field, most in (("Longitude", 180), ("Latitude", 90)):
        if field not in fields:
            expected = "Longitude and Latitude, or network.edge_latency with a field of links"
            raise ScenarioError(str(path), f"the place of node {node}", None, expected, "missing")
        value = plain_number(f"{path}, node {node}", field, fields[field])
        if abs(value) > most:
            raise ScenarioError(f"{path}, node {node}", field, value, f"-{most} to {most} degrees")
        degrees.append(math.radians(value))
    return degrees[0], degrees[1]


def _km_between(one: tuple[float, float], other: tuple[float, float]) -> float:
    """The way along a great circle, by the haversine formula."""
    east, north = other[0] - one[0], other[1] - one[1]
    half = math.sin(north / 2) ** 2
    half += math.cos(one[1]) * math.cos(other[1]) * math.sin(east / 2) ** 2
    return 2 * _EARTH_KM * math.asin(min(1.0, math.sqrt(half)))
