"""Looking at a run while it goes on, or after: what happened round by round, and who knows whom.

Nothing here changes a run. What is looked at is taken between two rounds, in the thread that runs
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

import attrs
import numpy as np
import numpy.typing as npt

from gossamer.sim.study.records import Column, Measure, Table

Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]

# The column of nodes, and those of links.
NODE: Final = "node"
SOURCE, TARGET, KIND = "source", "target", "kind"


@attrs.frozen(eq=False)
class Overlay:
    """Who knows whom at one moment.

    Attributes:
        nodes: a row for each node that is up; ``node`` is its number in the simulation, int32, in
            order. Other columns are what the study has to say of it.
        links: a row a directed link: ``source`` and ``target`` are numbers of nodes that are up,
            int32, and ``kind`` is an index into ``kinds``, int8.
        kinds: names of the kinds of links.
    """

    nodes: Table
    links: Table
    kinds: tuple[str, ...]


@attrs.frozen(eq=False)
class Curve:
    """A number after every round, NaN where there was nothing to observe.

    Attributes:
        about: what it is called, and how it is printed.
        values: float64[rounds].
    """

    about: Measure
    values: Floats


@attrs.frozen(eq=False)
class Course:
    """What happened in a run, round by round.

    Attributes:
        rounds: int64[rounds], numbers of rounds.
        time_s: float64[rounds], simulated time.
        population: float64[rounds], nodes that were up.
        curves: everything else.
    """

    rounds: Int64s
    time_s: Floats
    population: Floats
    curves: tuple[Curve, ...]


class Watched(Protocol):
    """One system of a run, as whoever looks at it sees it between two rounds."""

    @property
    def name(self) -> str:
        """Of the system."""

    @property
    def round(self) -> int:
        """Rounds run so far."""

    @property
    def rounds(self) -> int:
        """Rounds to run."""

    @property
    def is_finished(self) -> bool:
        """Whether there is nothing more to run."""

    @property
    def size(self) -> int:
        """How many nodes there are, up or not."""

    def course(self) -> Course:
        """What happened so far."""

    def overlay(self) -> Overlay | None:
        """Who knows whom now; None where nobody says what a link is."""


Watch = Callable[[Watched], None]


def watched_by(watches: Sequence[Watch]) -> Watch | None:
    """One watch for several; None for none."""
    if not watches:
        return None

    def watch(run: Watched) -> None:
        for one in watches:
            one(run)

    return watch


def ratio(part: npt.ArrayLike, whole: npt.ArrayLike) -> Floats:
    """float64: part over whole, NaN where that is zero."""
    below = np.asarray(whole, np.float64)
    found = np.full(below.shape, np.nan)
    np.divide(np.asarray(part, np.float64), below, out=found, where=below > 0)
    return found


def links_table(source: Column, target: Column, kind: Column) -> dict[str, Column]:
    """The table of links of an `Overlay`."""
    return {
        SOURCE: source.astype(np.int32),
        TARGET: target.astype(np.int32),
        KIND: kind.astype(np.int8),
    }
