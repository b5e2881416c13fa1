"""Overlays of brokers that are no trees: a graph with names, and places to draw it at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from gossamer.protocol.dissemination.graphs.errors import DisconnectedError, TreesError, in_brief
from gossamer.protocol.dissemination.graphs.graph import Graph, make_graph
from gossamer.sim.errors import ScenarioError

Link = tuple[int, int]
Positions = npt.NDArray[np.float64]


@attrs.frozen(eq=False)
class Topology:
    """A connected graph of named brokers.

    Attributes:
        name: what it is called in tables.
        names: of the brokers.
        graph: who is linked to whom, and at what cost.
        positions: float64[n, 2], where to draw each broker, NaN where nobody knows.
        dropped: parallel links and links of a broker to itself that the source has too many.
    """

    name: str
    names: tuple[str, ...]
    graph: Graph
    positions: Positions
    dropped: int = 0


def build_topology(
    name: str,
    names: Sequence[str],
    links: Iterable[tuple[int, int, Any]],
    positions: Positions | None = None,
    file: str | None = None,
) -> Topology:
    """The topology of these links; of parallel ones the cheapest is kept, loops are dropped.

    Args:
        links: two brokers and a cost each.
        positions: where to draw the brokers, None if nobody knows.
        file: where it comes from, for errors.

    Raises:
        ScenarioError: a cost is no number above zero, brokers cannot reach each other (names the
            components), or there are none.
    """
    if not names:
        raise ScenarioError(file, "brokers", [], "at least one broker", "missing")
    best: dict[Link, float] = {}
    given = 0
    for one, other, cost in links:
        given += 1
        number = _read_cost(cost, names[one], names[other], file)
        if one != other:
            link = (min(one, other), max(one, other))
            best[link] = min(number, best.get(link, number))
    ends = sorted(best)
    try:
        graph = make_graph(len(names), ends, [best[pair] for pair in ends])
    except DisconnectedError as error:
        raise _disconnected(error, names, file) from None
    except TreesError as error:
        raise ScenarioError(file, "links", None, "a graph of brokers", str(error)) from None
    if positions is None:
        positions = np.full((len(names), 2), np.nan)
    return Topology(name, tuple(names), graph, positions, given - len(best))


def _read_cost(cost: Any, one: str, other: str, file: str | None) -> float:
    number = cost if isinstance(cost, int | float) and not isinstance(cost, bool) else np.nan
    if not (np.isfinite(number) and number > 0):
        field = f"cost of the link between {one} and {other}"
        raise ScenarioError(file, field, cost, "a finite number above 0")
    return float(number)


def _disconnected(
    error: DisconnectedError, names: Sequence[str], file: str | None
) -> ScenarioError:
    parts = [[names[int(str(node))] for node in part] for part in error.components]
    expected = "brokers that all reach each other"
    return ScenarioError(file, "the graph", parts, expected, f"in {in_brief(parts)}")
