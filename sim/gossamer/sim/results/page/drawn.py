"""What a page shows of a run: numbers few enough for any browser, of a run of any size."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gossamer.sim.study.watching import KIND, NODE, SOURCE, TARGET, Course, Floats, Overlay

# Nodes and links of an overlay that are drawn; more cannot be told apart.
MOST_NODES: Final = 240
MOST_LINKS: Final = 4_000
# Of a larger overlay, so many nodes with those near them.
_STARTS: Final = 8
# Points of a curve: as many as a screen has places for.
MOST_POINTS: Final = 600
_DIGITS: Final = 5


def drawn_course(course: Course) -> dict[str, Any]:
    """A course as plain values; of more rounds than `MOST_POINTS`, means over several each."""
    count = len(course.rounds)
    size = max(1, -(-count // MOST_POINTS))
    last = np.minimum(np.arange(size - 1, count + size - 1, size), max(count - 1, 0))
    return {
        "rounds_a_point": size,
        "rounds": course.rounds[last].tolist() if count else [],
        "time_s": plain(course.time_s[last]) if count else [],
        "population": plain(_means(course.population, size)),
        "curves": [
            {
                "key": curve.about.key,
                "label": curve.about.label,
                "kind": curve.about.kind,
                "meaning": curve.about.meaning,
                "values": plain(_means(curve.values, size)),
            }
            for curve in course.curves
        ],
    }


def drawn_overlay(overlay: Overlay, places: Mapping[str, Floats], now: int) -> dict[str, Any]:
    """An overlay as plain values; of a large one some nodes with those near them.

    Args:
        overlay: what is drawn.
        places: where its nodes lie, see `gossamer.sim.study.contract.Study.places`.
        now: rounds run when it was so.
    """
    nodes = overlay.nodes[NODE]
    source, target = (np.searchsorted(nodes, overlay.links[end]) for end in (SOURCE, TARGET))
    shown = _near_each_other(nodes, source, target)
    row_of = np.full(len(nodes), -1, np.int64)
    row_of[shown] = np.arange(len(shown))
    drawn = np.flatnonzero((row_of[source] >= 0) & (row_of[target] >= 0))
    step = max(1, -(-len(drawn) // MOST_LINKS))
    drawn = drawn[::step]
    ends = (row_of[source[drawn]], row_of[target[drawn]], overlay.links[KIND][drawn])
    return {
        "round": now,
        "nodes_in_all": len(nodes),
        "links_in_all": len(source),
        "kinds": list(overlay.kinds),
        "nodes": nodes[shown].tolist(),
        "places": {name: plain(values[shown]) for name, values in places.items()},
        "links": np.column_stack(ends).ravel().tolist(),
    }


def _near_each_other(
    nodes: npt.NDArray[Any], source: npt.NDArray[np.int64], target: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Rows of the nodes that are drawn, in order: all, or some and those that they know.

    The same whenever the overlay is, and much the same from one round to the next: it begins with
    nodes of evenly spread numbers and goes on breadth first.
    """
    if len(nodes) <= MOST_NODES:
        return np.arange(len(nodes))
    order = np.argsort(source, kind="stable")
    begins = np.searchsorted(source[order], np.arange(len(nodes) + 1))
    wanted = np.linspace(0, int(nodes[-1]), _STARTS, endpoint=False)
    chosen: dict[int, None] = {}
    for start in dict.fromkeys(np.searchsorted(nodes, wanted).tolist()):
        most = len(chosen) + MOST_NODES // _STARTS
        waiting = [start]
        for row in waiting:
            if len(chosen) >= most:
                break
            chosen[row] = None
            if len(waiting) < MOST_NODES:
                waiting += target[order[begins[row] : begins[row + 1]]].tolist()
    return np.array(sorted(chosen), np.int64)


def _means(values: Floats, size: int) -> Floats:
    """Means of so many values each, of those that are known."""
    if size == 1 or not len(values):
        return values
    starts = np.arange(0, len(values), size)
    known = np.isfinite(values)
    sums = np.add.reduceat(np.where(known, values, 0.0), starts)
    counts = np.add.reduceat(known.astype(np.float64), starts)
    found = np.full(len(starts), np.nan)
    np.divide(sums, counts, out=found, where=counts > 0)
    return found


def plain(values: Iterable[float]) -> list[float | None]:
    """Numbers as JSON has them, of some digits; None where nothing is known."""
    return [_short(value) for value in np.asarray(values, np.float64).tolist()]


def _short(value: float) -> float | None:
    if not math.isfinite(value):
        return None
    short = float(f"{value:.{_DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short
