"""What the runs of the figures about trees measured, by study, topology, locality and size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain

import attrs
import numpy as np

from gossamer.sim.figures.common.points import Floats
from gossamer.sim.figures.dissemination.runs import RunResult
from gossamer.sim.figures.dissemination.studies import COSTS, SHARES, TRANSIT_STUB
from gossamer.sim.study.records import Column, Table

_COLUMNS = (
    "study",
    "reading",
    "topology",
    "locality",
    "brokers",
    "links",
    "share",
    "sampled",
    "documents",
    "subscriptions",
    "strategy",
    "trees",
    "cost",
    "duplicates",
    "planning_s",
)


@attrs.frozen(eq=False)
class Outcomes:
    """The outcomes of all runs under a reading of the paper, or under both.

    Attributes:
        found: one a strategy and run.
    """

    found: Sequence[RunResult]

    @classmethod
    def of(cls, outcomes: Sequence[Sequence[RunResult]], *readings: str) -> Outcomes:
        """From what `run_tasks` returns; without ``readings`` under both."""
        every = chain.from_iterable(outcomes)
        return cls([one for one in every if not readings or one.reading in readings])

    def select(
        self,
        study: str,
        strategy: str,
        locality: str | None = None,
        topology: str = TRANSIT_STUB,
    ) -> list[RunResult]:
        """What a strategy came to in a study, in the order of size and share."""
        chosen = [
            one
            for one in self.found
            if (one.study, one.strategy, one.topology) == (study, strategy, topology)
            and locality in (None, one.locality)
        ]
        return sorted(chosen, key=lambda one: (one.brokers, one.share))

    def topologies(self, study: str) -> list[str]:
        """The topologies of a study, in the order of their runs."""
        return list(dict.fromkeys(one.topology for one in self.found if one.study == study))

    def localities(self, study: str, topology: str = TRANSIT_STUB) -> list[str]:
        """The localities of a study on a topology, in the order of their runs."""
        chosen = [one for one in self.found if (one.study, one.topology) == (study, topology)]
        return list(dict.fromkeys(one.locality for one in chosen))

    def ratios(self, above: str, below: str, locality: str, topology: str = TRANSIT_STUB) -> Floats:
        """float64[sizes]: cost of one strategy over that of another, by size."""
        tops = self.select(COSTS, above, locality, topology)
        bottoms = self.select(COSTS, below, locality, topology)
        pairs = zip(tops, bottoms, strict=True)
        return np.array([one.cost / other.cost for one, other in pairs])

    def ratio(self, above: str, below: str, locality: str, topology: str = TRANSIT_STUB) -> float:
        """Mean over sizes of `ratios`; NaN where there are none."""
        found = self.ratios(above, below, locality, topology)
        return float(found.mean()) if len(found) else math.nan

    def over_share(self, strategy: str, locality: str, share: float, other: float) -> float:
        """Cost when planned by one share of the documents over that when by another (Fig. 4)."""
        costs = {one.share: one.cost for one in self.select(SHARES, strategy, locality)}
        return costs[share] / costs[other]

    def table(self) -> dict[str, Column]:
        """A row a strategy and run."""
        return {name: np.array([getattr(one, name) for one in self.found]) for name in _COLUMNS}

    def states_table(self) -> dict[str, Column]:
        """A row a state of the mergers with which all documents were routed."""
        return _stack([(one, one.states) for one in self.found if one.states])

    def mergers_table(self) -> dict[str, Column]:
        """A row a merger: trees left, and what the sampled documents cost then."""
        return _stack(
            [
                (one, {"trees": one.mergers[0], "cost": one.mergers[1]})
                for one in self.found
                if one.mergers is not None
            ]
        )


def _stack(parts: Sequence[tuple[RunResult, Table]]) -> dict[str, Column]:
    """Tables under one another, with columns that tell them apart."""
    lengths = [len(next(iter(table.values()))) for _, table in parts]
    return {
        "reading": np.repeat([one.reading for one, _ in parts], lengths),
        "topology": np.repeat([one.topology for one, _ in parts], lengths),
        "strategy": np.repeat([one.strategy for one, _ in parts], lengths),
        **{name: np.concatenate([table[name] for _, table in parts]) for name in parts[0][1]},
    }
