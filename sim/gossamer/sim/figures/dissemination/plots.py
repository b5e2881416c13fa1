"""Plots like Fig. 4 to 8 of the paper on content-aware trees, and real networks beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gossamer.sim.figures.dissemination.outcomes import Outcomes
from gossamer.sim.figures.dissemination.runs import MULT2_LISTS
from gossamer.sim.figures.dissemination.studies import COSTS, LOCALIZED1, MERGERS, REAL, SHARES
from gossamer.sim.results.plot_style import (
    GREEN,
    SystemStyle,
    beside,
    from_zero,
    legend_below,
    new_figure,
    per_cent,
)
from gossamer.sim.studies.dissemination.plots import STYLES, least_handle, plain_numbers

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
    figure, panels = _panels(found.localities(SHARES))
    for axes, locality in panels:
        for strategy in ("SINGLE", "MULT"):
            chosen = found.select(SHARES, strategy, locality)
            _line(axes, strategy, [one.share for one in chosen], [one.cost for one in chosen])
        axes.set_xscale("log")
        axes.set(title=locality, xlabel="sampled")
        plain_numbers(axes)
        per_cent(axes.xaxis)
    _from_zero(panels, "cost of all documents")
    legend_below(figure, figure.axes[0])
    return figure


def plot_costs(found: Outcomes) -> Figure:
    """Cost of each strategy over that of OPT, by size (Fig. 5)."""
    figure, panels = _panels(found.localities(COSTS))
    for axes, locality in panels:
        brokers = [one.brokers for one in found.select(COSTS, "OPT", locality)]
        for strategy in _COMPARED:
            _line(axes, strategy, brokers, found.ratios(strategy, "OPT", locality))
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks(brokers, [f"{count:,}" for count in brokers], minor=False)
        axes.minorticks_off()
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set(title=locality, xlabel="brokers")
        axes.set_yticks([1, 2, 5, 10, 20, 50])
    panels[0][0].set_ylabel("cost over OPT")
    legend_below(figure, figure.axes[0])
    return figure


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
    figure, panels = _panels(found.topologies(MERGERS))
    for axes, topology in panels:
        for strategy in ("MULT", "MULT2"):
            (one,) = found.select(MERGERS, strategy, LOCALIZED1, topology)
            assert one.mergers is not None
            trees, costs = one.mergers
            style = STYLES[strategy]
            axes.plot(trees, costs, color=style.colour, label=style.label)
            best = int(costs.argmin())
            axes.plot(trees[best], costs[best], "o", color=style.colour)
        axes.set_xscale("log")
        axes.invert_xaxis()
        axes.set(title=topology.replace(", ", ",\n"), xlabel="trees left")
        plain_numbers(axes)
    _from_zero(panels, "cost of the sampled documents")
    handles = [*figure.axes[0].get_legend_handles_labels()[0], least_handle()]
    legend_below(figure, figure.axes[0], handles)
    return figure


def plot_duplicates(found: Outcomes) -> Figure:
    """Duplicates of all documents by number of trees (Fig. 7)."""
    figure, panels = _panels(found.topologies(MERGERS))
    for axes, topology in panels:
        for strategy in ("MULT", "MULT2"):
            (one,) = found.select(MERGERS, strategy, LOCALIZED1, topology)
            _line(axes, strategy, one.states["trees"], one.states["duplicates"])
        axes.set_xscale("log")
        axes.invert_xaxis()
        axes.set(title=topology.replace(", ", ",\n"), xlabel="trees left")
        plain_numbers(axes)
    _from_zero(panels, "duplicates, all documents")
    legend_below(figure, figure.axes[0])
    return figure


def plot_times(found: Outcomes) -> Figure:
    """Planning time by size (Fig. 8)."""
    figure, panels = _panels(found.localities(COSTS))
    for axes, locality in panels:
        for strategy in ("SINGLE", "MULT", "MULT2", MULT2_LISTS, "SemCast"):
            chosen = found.select(COSTS, strategy, locality)
            _line(
                axes, strategy, [one.brokers for one in chosen], [one.planning_s for one in chosen]
            )
        axes.set_xscale("log")
        axes.set_yscale("log")
        brokers = [one.brokers for one in found.select(COSTS, "MULT", locality)]
        axes.set_xticks(brokers, [f"{count:,}" for count in brokers])
        axes.minorticks_off()
        axes.set(title=locality, xlabel="brokers")
    panels[0][0].set_ylabel("planning (s)")
    legend_below(figure, figure.axes[0])
    return figure


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


def _panels(titles: Sequence[str]) -> tuple[Figure, list[tuple[Axes, str]]]:
    figure = new_figure()
    drawn = beside(figure, len(titles), sharey=True)
    return figure, list(zip(drawn, titles, strict=True))


def _from_zero(panels: Sequence[tuple[Axes, str]], label: str) -> None:
    """Let the axis that all panels share, all lines drawn, begin at zero."""
    from_zero(panels[0][0])
    panels[0][0].set_ylabel(label)


def _line(axes: Axes, strategy: str, x: npt.ArrayLike, y: npt.ArrayLike) -> None:
    style = _LISTS if strategy == MULT2_LISTS else STYLES[strategy]
    axes.plot(
        np.asarray(x),
        np.asarray(y),
        color=style.colour,
        linestyle=style.dashes,
        marker="o",
        markersize=3,
        label=style.label,
    )


def _bars(axes: Axes, values: dict[str, list[float]], labels: Sequence[str]) -> None:
    """Groups of bars, a bar for each strategy."""
    width = 0.8 / len(values)
    for place, (strategy, heights) in enumerate(values.items()):
        left = np.arange(len(heights)) - 0.4 + (place + 0.5) * width
        style = STYLES[strategy]
        axes.bar(left, heights, width, color=style.colour, label=style.label)
    axes.set_xticks(range(len(labels)), labels)
