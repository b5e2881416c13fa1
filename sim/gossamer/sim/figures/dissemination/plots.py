"""Plots like Fig. 4 to 8 of the paper on content-aware trees, and real networks beside them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

import attrs
import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gossamer.sim.figures.common.points import Floats, stacked
from gossamer.sim.figures.dissemination.studies import (
    COSTS,
    LOCALIZED1,
    MERGERS,
    MULT2_LISTS,
    REAL,
    SHARES,
    TRANSIT_STUB,
    RunResult,
)
from gossamer.sim.results.plot_style import (
    GREEN,
    SystemStyle,
    beside,
    from_zero,
    legend_below,
    looks,
    new_figure,
    per_cent,
)
from gossamer.sim.studies.dissemination.plots import STYLES, least_handle, plain_numbers
from gossamer.sim.study.records import Column

_KEYS = ("reading", "topology", "strategy")
_TABLES = ("mergers", "states")


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
        names = [one.name for one in attrs.fields(RunResult) if one.name not in _TABLES]
        return {name: np.array([getattr(one, name) for one in self.found]) for name in names}

    def states_table(self) -> dict[str, Column]:
        """A row a state of the mergers with which all documents were routed."""
        chosen = [one for one in self.found if one.states]
        return stacked(chosen, _KEYS, [one.states for one in chosen])

    def mergers_table(self) -> dict[str, Column]:
        """A row a merger: trees left, and what the sampled documents cost then."""
        chosen = [(one, one.mergers) for one in self.found if one.mergers is not None]
        curves = [{"trees": trees, "cost": cost} for _, (trees, cost) in chosen]
        return stacked([one for one, _ in chosen], _KEYS, curves)


_LISTS: Final = SystemStyle(GREEN, ":", "MULT2, lists")
_COMPARED: Final = ("SPT-flooded", "SPT", "MST", "SINGLE", "MULT", "SemCast", "SemCast-filtered")
_REAL: Final = ("SPT", "SINGLE", "MULT", "MULT2", "SemCast-filtered")


def draw(found: Outcomes) -> Iterator[tuple[str, Figure]]:
    """All plots, by name of the file."""
    yield "fig4", plot_shares(found)
    yield "fig5", plot_costs(found)
    yield "fig5_graphs", plot_graphs(found)
    yield "fig6", plot_mergers(found)
    yield "fig7", plot_duplicates(found)
    yield "fig8", plot_times(found)
    if found.topologies(REAL):
        yield "real", plot_networks(found)


def plot_shares(found: Outcomes) -> Figure:
    """Cost over the share of documents sampled (Fig. 4)."""
    figure, panels = _panels(found.localities(SHARES), "sampled")
    for axes, locality in panels:
        for strategy in ("SINGLE", "MULT"):
            chosen = found.select(SHARES, strategy, locality)
            _line(axes, strategy, [one.share for one in chosen], [one.cost for one in chosen])
        plain_numbers(axes)
        per_cent(axes.xaxis)
    return _labelled(figure, "cost of all documents", begins_at_zero=True)


def plot_costs(found: Outcomes) -> Figure:
    """Cost of each strategy over that of OPT, by size (Fig. 5)."""
    figure, panels = _panels(found.localities(COSTS), "brokers")
    for axes, locality in panels:
        brokers = [one.brokers for one in found.select(COSTS, "OPT", locality)]
        for strategy in _COMPARED:
            _line(axes, strategy, brokers, found.ratios(strategy, "OPT", locality))
        _by_size(axes, brokers)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set_yticks([1, 2, 5, 10, 20, 50])
    return _labelled(figure, "cost over OPT")


def plot_graphs(found: Outcomes) -> Figure:
    """Cost over OPT on the kinds of graphs, at the smallest size and Localized1."""
    topologies = found.topologies(COSTS)
    names = ("SPT", "MST", "SINGLE", "MULT", "MULT2", "SemCast-filtered")
    figure = new_figure()
    axes = figure.subplots()
    values = {
        name: [float(found.ratios(name, "OPT", LOCALIZED1, one)[0]) for one in topologies]
        for name in names
    }
    _bars(axes, values, topologies)
    brokers = found.select(COSTS, "OPT", LOCALIZED1)[0].brokers
    axes.set(title=f"Cost over OPT, {brokers:,} brokers, Localized1")
    legend_below(figure, axes)
    return figure


def plot_mergers(found: Outcomes) -> Figure:
    """Cost of the sample after each merger (Fig. 6)."""
    figure, panels = _panels(found.topologies(MERGERS), "trees left")
    for axes, topology in panels:
        for strategy in ("MULT", "MULT2"):
            (one,) = found.select(MERGERS, strategy, LOCALIZED1, topology)
            assert one.mergers is not None
            trees, costs = one.mergers
            style = STYLES[strategy]
            axes.plot(trees, costs, color=style.colour, label=style.label)
            best = int(costs.argmin())
            axes.plot(trees[best], costs[best], "o", color=style.colour)
        axes.invert_xaxis()
        plain_numbers(axes)
    return _labelled(figure, "cost of the sampled documents", [least_handle()], begins_at_zero=True)


def plot_duplicates(found: Outcomes) -> Figure:
    """Duplicates of all documents by number of trees (Fig. 7)."""
    figure, panels = _panels(found.topologies(MERGERS), "trees left")
    for axes, topology in panels:
        for strategy in ("MULT", "MULT2"):
            (one,) = found.select(MERGERS, strategy, LOCALIZED1, topology)
            _line(axes, strategy, one.states["trees"], one.states["duplicates"])
        axes.invert_xaxis()
        plain_numbers(axes)
    return _labelled(figure, "duplicates, all documents", begins_at_zero=True)


def plot_times(found: Outcomes) -> Figure:
    """Planning time by size (Fig. 8)."""
    figure, panels = _panels(found.localities(COSTS), "brokers")
    for axes, locality in panels:
        for strategy in ("SINGLE", "MULT", "MULT2", MULT2_LISTS, "SemCast"):
            chosen = found.select(COSTS, strategy, locality)
            brokers = [one.brokers for one in chosen]
            _line(axes, strategy, brokers, [one.planning_s for one in chosen])
        _by_size(axes, [one.brokers for one in found.select(COSTS, "MULT", locality)])
    return _labelled(figure, "planning (s)")


def plot_networks(found: Outcomes) -> Figure:
    """Cost over OPT on real networks, the smallest first."""
    optima = {name: found.select(REAL, "OPT", topology=name)[0] for name in found.topologies(REAL)}
    names = sorted(optima, key=lambda name: optima[name].brokers)
    figure = new_figure()
    axes = figure.subplots()
    values = {
        strategy: [
            found.select(REAL, strategy, topology=name)[0].cost / optima[name].cost
            for name in names
        ]
        for strategy in _REAL
    }
    _bars(axes, values, [f"{name}\n{optima[name].brokers}" for name in names])
    axes.set(title="Cost over OPT, real networks and their numbers of brokers")
    legend_below(figure, axes)
    return figure


def _panels(titles: Sequence[str], label: str) -> tuple[Figure, list[tuple[Axes, str]]]:
    """Panels side by side, each with a title and a logarithmic axis with a label."""
    figure = new_figure()
    drawn = list(zip(beside(figure, len(titles), sharey=True), titles, strict=True))
    for axes, title in drawn:
        axes.set_xscale("log")
        axes.set(title=title.replace(", ", ",\n"), xlabel=label)
    return figure, drawn


def _by_size(axes: Axes, brokers: Sequence[int]) -> None:
    axes.set_yscale("log")
    axes.set_xticks(brokers, [f"{count:,}" for count in brokers])
    axes.minorticks_off()


def _labelled(
    figure: Figure, label: str, further: Sequence[Artist] = (), *, begins_at_zero: bool = False
) -> Figure:
    """The axis that all panels share, all lines drawn, and the legend with further entries."""
    first = figure.axes[0]
    if begins_at_zero:
        from_zero(first)
    first.set_ylabel(label)
    legend_below(figure, first, [*first.get_legend_handles_labels()[0], *further])
    return figure


def _line(axes: Axes, strategy: str, x: npt.ArrayLike, y: npt.ArrayLike) -> None:
    style = _LISTS if strategy == MULT2_LISTS else STYLES[strategy]
    axes.plot(np.asarray(x), np.asarray(y), marker="o", markersize=3, **looks(style))


def _bars(axes: Axes, values: dict[str, list[float]], labels: Sequence[str]) -> None:
    """Groups of bars, a bar for each strategy."""
    width = 0.8 / len(values)
    for place, (strategy, heights) in enumerate(values.items()):
        left = np.arange(len(heights)) - 0.4 + (place + 0.5) * width
        style = STYLES[strategy]
        axes.bar(left, heights, width, color=style.colour, label=style.label)
    axes.set_xticks(range(len(labels)), labels)
