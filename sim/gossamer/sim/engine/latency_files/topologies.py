"""Topologies of routers: BRITE and GT-ITM files, GraphML and GML.

- *BRITE* (Medina, Lakhina, Matta, Byers, MASCOTS 2001): a line a node and a line an edge under
  ``Nodes:`` and ``Edges:``; the fifth number of an edge is its delay;
- *GT-ITM* (Zegura, Calvert, Bhattacharjee, INFOCOM 1996), as its tools write them: the graphs of
  the Stanford GraphBase (``* Vertices``, ``* Arcs``) and what ``sgb2alt`` makes of them
  (``VERTICES``, ``EDGES``). Nodes of the overlay stand at routers of stubs, whose names begin with
  "S:", where the file has such;
- *GraphML and GML*: the field of a link that is its latency is named; where it is not and nodes
  have ``Longitude`` and ``Latitude``, as those of the Topology Zoo, light in fibre takes the way
  over the earth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import networkx as nx
import numpy as np
import numpy.typing as npt

from gossamer.sim.engine.latency_files.graph_files import GRAPH_READERS, read_graph
from gossamer.sim.engine.latency_files.text_files import Line, lines_of, number_at, read_text
from gossamer.sim.errors import ScenarioError

WHAT: Final = "the topology"
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
    ends: npt.NDArray[np.int64]
    latency: npt.NDArray[np.float64]
    stands: npt.NDArray[np.int64]


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
    lines = list(lines_of(read_text(path, WHAT)))
    for begins, reader in _READERS:
        if any(" ".join(line.words).lower().startswith(begins) for line in lines):
            return reader(path, lines)
    expected = 'BRITE ("Nodes:", "Edges:"), GT-ITM ("VERTICES" or "* Vertices"), .graphml or .gml'
    raise ScenarioError(str(path), WHAT, None, expected, "of no known kind")


def _from_brite(path: Path, lines: Sequence[Line]) -> RouterTopology:
    nodes, edges = _parts(path, lines, "nodes:", "edges:")
    names = [line.words[0] for line in nodes]
    links = (
        (line, _words(path, line, 5)[1], line.words[2], number_at(path, line, 5, "the delay"))
        for line in edges
    )
    return _topology(path, names, names, links)


def _from_alt(path: Path, lines: Sequence[Line]) -> RouterTopology:
    nodes, edges = _parts(path, lines, "vertices", "edges")
    names = [line.words[0] for line in nodes]
    titles = [line.words[1] if len(line.words) > 1 else "" for line in nodes]
    links = (
        (line, _words(path, line, 3)[0], line.words[1], number_at(path, line, 3, "the length"))
        for line in edges
    )
    return _topology(path, names, titles, links)


def _from_graph_base(path: Path, lines: Sequence[Line]) -> RouterTopology:
    nodes, arcs = _parts(path, lines, "* vertices", "* arcs")
    arcs = [line for line in arcs if line.words[0] != "*"]
    titles = [line.words[0].strip('"') for line in nodes]
    names = [f"V{i}" for i in range(len(nodes))]

    def links() -> Iterator[tuple[Line, str, str, float]]:
        for name, node in zip(names, nodes, strict=True):
            # Every vertex has a chain of arcs: its first, and of each the next.
            following, steps = _words(path, node, 2)[1], 0
            while following.startswith("A") and steps <= len(arcs):
                number = int(following[1:]) if following[1:].isdecimal() else len(arcs)
                if number >= len(arcs):
                    expected = f"an arc from A0 to A{len(arcs) - 1}"
                    place = f"{path}, line {node.number}"
                    raise ScenarioError(place, "an arc", following, expected)
                arc = arcs[number]
                words = _words(path, arc, 3)
                yield arc, name, words[0], number_at(path, arc, 3, "the length")
                following, steps = words[1], steps + 1

    return _topology(path, names, titles, links())


_READERS: Final[Sequence[tuple[str, Callable[[Path, Sequence[Line]], RouterTopology]]]] = (
    ("nodes:", _from_brite),
    ("vertices", _from_alt),
    ("* vertices", _from_graph_base),
)


def _parts(
    path: Path, lines: Sequence[Line], first: str, second: str
) -> tuple[list[Line], list[Line]]:
    """The lines behind each of two headings."""
    starts = []
    for heading in (first, second):
        found = (i for i, x in enumerate(lines) if " ".join(x.words).lower().startswith(heading))
        start = next(found, None)
        if start is None:
            raise ScenarioError(str(path), WHAT, None, f'a heading "{heading}"', "without one")
        starts.append(start)
    nodes, edges = lines[starts[0] + 1 : starts[1]], lines[starts[1] + 1 :]
    if not nodes:
        raise ScenarioError(str(path), WHAT, None, "at least one node", "without nodes")
    return list(nodes), list(edges)


def _words(path: Path, line: Line, least: int) -> list[str]:
    if len(line.words) < least:
        place = f"{path}, line {line.number}"
        raise ScenarioError(place, "number of words", len(line.words), f"at least {least}")
    return line.words


def _topology(
    path: Path,
    names: Sequence[str],
    titles: Sequence[str],
    links: Iterable[tuple[Line, str, str, float]],
) -> RouterTopology:
    """The topology of links, each with its line, its ends by name and its latency."""
    sites = {name: i for i, name in enumerate(names)}
    ends: list[tuple[int, int]] = []
    latency: list[float] = []
    for line, one, other, value in links:
        for name in (one, other):
            if name not in sites:
                place = f"{path}, line {line.number}"
                raise ScenarioError(place, "the end of a link", name, "a node of the file")
        if value < 0:
            place = f"{path}, line {line.number}"
            raise ScenarioError(place, "the latency of a link", value, "a number from 0")
        ends += [(sites[one], sites[other]), (sites[other], sites[one])]
        latency += [value, value]
    stubs = [i for i, title in enumerate(titles) if title.upper().startswith(_STUB)]
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
    sites = {node: i for i, node in enumerate(found)}
    directed = found.is_directed()
    ends: list[tuple[int, int]] = []
    latency: list[float] = []
    for one, other, fields in found.edges(data=True):
        value = _latency_of(path, found, (one, other), fields, field)
        ends.append((sites[one], sites[other]))
        latency.append(value)
        if not directed:
            ends.append((sites[other], sites[one]))
            latency.append(value)
    return RouterTopology(
        str(path),
        len(sites),
        np.array(ends, np.int64).reshape(-1, 2),
        np.array(latency),
        np.arange(len(sites)),
    )


def _latency_of(
    path: Path, found: nx.Graph[Any], ends: tuple[Any, Any], fields: Any, field: str | None
) -> float:
    pair = f"link {ends[0]} to {ends[1]}"
    if field is not None:
        value = fields.get(field)
        known = ", ".join(sorted(map(str, fields))) or "none"
        if value is None:
            expected = f"one of the fields of that link, which are {known}"
            raise ScenarioError(f"{path}, {pair}", "network.edge_latency", field, expected)
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        if not (math.isfinite(number) and number >= 0):
            raise ScenarioError(f"{path}, {pair}", field, value, "a number from 0")
        return number
    places = [_place(found.nodes[end]) for end in ends]
    if None in places:
        missing = ends[places.index(None)]
        expected = "Longitude and Latitude, or network.edge_latency with a field of links"
        raise ScenarioError(
            str(path), f"the place of node {missing}", None, expected, found="missing"
        )
    return _km_between(*places) / _KM_A_MS  # type: ignore[arg-type]


def _place(fields: Any) -> tuple[float, float] | None:
    values = fields.get("Longitude"), fields.get("Latitude")
    if all(isinstance(value, int | float) for value in values):
        return math.radians(values[0]), math.radians(values[1])
    return None


def _km_between(one: tuple[float, float], other: tuple[float, float]) -> float:
    """The way along a great circle, by the haversine formula."""
    east, north = other[0] - one[0], other[1] - one[1]
    half = math.sin(north / 2) ** 2
    half += math.cos(one[1]) * math.cos(other[1]) * math.sin(east / 2) ** 2
    return 2 * _EARTH_KM * math.asin(min(1.0, math.sqrt(half)))
