"""What a run of protocols of one's own was like, round by round, for whoever looks at it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gossamer.sim.studies.custom.records import OF_ALL
from gossamer.sim.study.measure import Measure
from gossamer.sim.study.records import Table
from gossamer.sim.study.watching import NODE, Course, Curve, Floats, Overlay, links_table, ratio

_RATES: Final = {
    "messages": Measure(
        "messages", "messages a node and round", "fine", None, "Taken, for each node up."
    ),
    "size_bytes": Measure(
        "size_bytes", "bytes a node and round", "fine", None, "Taken, for each node up."
    ),
}


def course_of(rounds: Table, measures: Mapping[str, Any]) -> Course:
    """The course of a run, from its table of rounds.

    Args:
        rounds: see `CustomRecord`.
        measures: of protocols, by name, as the scenario in ``summary.json`` has them.
    """
    return Course(
        rounds=rounds["round"].astype(np.int64),
        time_s=rounds["time_s"].astype(np.float64),
        population=rounds["population"].astype(np.float64),
        curves=tuple(_curves(rounds, measures)),
    )


def overlay_of(
    links: Mapping[str, npt.NDArray[np.int64]], alive: npt.NDArray[np.bool_]
) -> Overlay | None:
    """The overlay of the nodes that are up; None where nobody says what a link is.

    Args:
        links: pairs of rows by kind, int64[m, 2].
        alive: bool[n].
    """
    if not links:
        return None
    kinds = np.repeat(np.arange(len(links)), [len(pairs) for pairs in links.values()])
    pairs = np.concatenate(list(links.values()))
    up = alive[pairs].all(axis=1)
    return Overlay(
        nodes={NODE: np.flatnonzero(alive).astype(np.int32)},
        links=links_table(pairs[up, 0], pairs[up, 1], kinds[up]),
        kinds=tuple(links),
    )


def _curves(rounds: Table, measures: Mapping[str, Any]) -> Iterator[Curve]:
    for name, column in rounds.items():
        if name not in OF_ALL:
            yield Curve(Measure(name, **measures[name]), column.astype(np.float64))
    for name, about in _RATES.items():
        yield Curve(about, _rate(rounds[name], rounds["population"]))


def _rate(sums: Any, population: Any) -> Floats:
    """What each round added for each node that was up when it began; NaN before the first."""
    return np.concatenate([[np.nan], ratio(np.diff(sums), population[:-1])])
