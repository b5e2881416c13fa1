"""The plots of a run, both systems in each; the counterparts of Fig. 4(e) and 5 of the paper.

Every function here draws one figure from the tables of `records`; `write_plots` writes
all that the run has data for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from gossamer.sim.results.plot_style import (
    GREY,
    HEIGHT_IN,
    WIDTH_IN,
    SystemStyle,
    filled,
    legend_below,
    per_cent,
    plot_style,
    save,
    system_styles,
)
from gossamer.sim.studies.peers.measuring.overlay_plot import plot_overlay
from gossamer.sim.studies.peers.measuring.records import RunRecord, SystemRecord
from gossamer.sim.study.plot import Plot
from gossamer.sim.study.records import Column, Table

Systems = Mapping[str, SystemRecord]

HOUR_S = 3600.0
HOURLY_FROM_S = 12 * HOUR_S  # longer runs are drawn hour by hour
MAX_POINTS = 250  # shorter runs with more cycles than this are drawn in groups of cycles
CONVERGENCE_CYCLES = 100


@dataclass(frozen=True, slots=True)
class Timeline:
    """How the cycles of a run are grouped along the horizontal axis.

    Attributes:
        label: label of the axis.
        positions: float64[groups], where each group is drawn.
        group: int64[cycles], the group of each row of the cycle table.
    """

    label: str
    positions: npt.NDArray[np.float64]
    group: npt.NDArray[np.int64]

    def sums(self, values: Column) -> npt.NDArray[np.float64]:
        """float64[groups], the sum of ``values`` in each group."""
        weights = values.astype(np.float64)
        return np.bincount(self.group, weights, minlength=len(self.positions)).astype(np.float64)

    def means(self, values: Column) -> npt.NDArray[np.float64]:
        """float64[groups], the mean of ``values`` in each group."""
        return self.ratios(values, np.ones(len(self.group)))

    def ratios(self, parts: Column, wholes: Column) -> npt.NDArray[np.float64]:
        """float64[groups], sum of ``parts`` over sum of ``wholes``; NaN where that is zero."""
        part, whole = self.sums(parts), self.sums(wholes)
        return np.asarray(np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole > 0))


def timeline(cycles: Table) -> Timeline:
    """Group cycles by hour in runs of half a day and more, else so that the plot is legible."""
    times = cycles["time_s"]
    if len(times) and times[-1] >= HOURLY_FROM_S:
        hours, group = np.unique(np.floor_divide(times, HOUR_S), return_inverse=True)
        return Timeline("time (hours)", hours, group.astype(np.int64))
    size = -(-max(len(times), 1) // MAX_POINTS)
    group = np.arange(len(times)) // size
    return Timeline("cycle", cycles["cycle"][::size].astype(np.float64), group)


def plot_convergence(systems: Systems) -> Figure:
    """Share of right ring links and mean friend utility in the first cycles."""
    figure = Figure(figsize=(WIDTH_IN, HEIGHT_IN))
    ring, friends = figure.subplots(1, 2, sharey=True)
    for name, style in system_styles(systems).items():
        cycles = systems[name].cycles
        shown = slice(0, CONVERGENCE_CYCLES)
        for axes, column in ((ring, "ring_correct"), (friends, "friend_utility")):
            _line(axes, cycles["cycle"][shown], cycles[column][shown], style)
    ring.set(title="Ring links correct", xlabel="cycle", ylim=(0, 1.02))
    friends.set(title="Mean friend utility", xlabel="cycle")
    per_cent(ring.yaxis)
    _whole_ticks(ring)
    _whole_ticks(friends)
    legend_below(figure, ring)
    return figure


def plot_hit_ratio(systems: Systems) -> Figure:
    """Hit ratio over time, above the number of nodes online (Fig. 5(a))."""
    figure = Figure(figsize=(WIDTH_IN, HEIGHT_IN + 0.9))
    hits, population = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
    lowest = 1.0
    for name, style in system_styles(systems).items():
        cycles = systems[name].cycles
        groups = timeline(cycles)
        ratios = groups.ratios(cycles["delivered"], cycles["expected"])
        _line(hits, groups.positions, ratios, style)
        lowest = min(lowest, *ratios[np.isfinite(ratios)], 1.0)
    # All systems of a run live through the same churn.
    cycles = next(iter(systems.values())).cycles
    groups = timeline(cycles)
    online = groups.means(cycles["population"])
    population.fill_between(groups.positions, online, color=GREY, alpha=0.35, linewidth=0)
    population.plot(groups.positions, online, color=GREY, linewidth=1.2)
    bottom = 0.0 if lowest < 0.5 else np.floor(lowest * 20 - 0.5) / 20
    hits.set(title="Hit ratio", ylim=(bottom, 1 + 0.03 * (1 - bottom)))
    population.set(title="Nodes online", xlabel=groups.label, ylim=(0, None))
    per_cent(hits.yaxis)
    legend_below(figure, hits)
    return figure


def plot_overhead(systems: Systems) -> Figure:
    """Traffic overhead over time, above the mean path length (Fig. 5(b) and 5(c))."""
    figure = Figure(figsize=(WIDTH_IN, HEIGHT_IN + 0.9))
    overhead, paths = figure.subplots(2, 1, sharex=True)
    for name, style in system_styles(systems).items():
        cycles = systems[name].cycles
        groups = timeline(cycles)
        wasted = groups.ratios(cycles["uninterested"], cycles["received"])
        _line(overhead, groups.positions, wasted, style)
        hops = groups.ratios(cycles["hops_sum"], cycles["delivered"])
        _line(paths, groups.positions, hops, style)
        paths.set_xlabel(groups.label)
    overhead.set(title="Traffic overhead", ylim=(0, None))
    paths.set(title="Mean path length (hops)", ylim=(0, None))
    per_cent(overhead.yaxis)
    legend_below(figure, overhead)
    return figure


def plot_load(systems: Systems) -> Figure:
    """Cumulative distribution of load over the nodes (Fig. 4(e))."""
    figure = Figure(figsize=(WIDTH_IN, HEIGHT_IN))
    axes = figure.subplots()
    for name, style in system_styles(systems).items():
        load = np.sort(systems[name].nodes["load"])
        share = np.arange(1, len(load) + 1) / max(len(load), 1)
        x, y = np.concatenate(([0.0], load)), np.concatenate(([0.0], share))
        axes.step(x, y, where="post", color=style.colour, ls=style.dashes, label=style.label)
    axes.set(
        title="Nodes whose load does not exceed x",
        xlabel="load: share of all events handled without interest",
        ylim=(0, 1.02),
    )
    axes.set_xlim(left=0)
    per_cent(axes.yaxis)
    per_cent(axes.xaxis)
    legend_below(figure, axes)
    return figure


def plot_path_length(systems: Systems) -> Figure:
    """Histogram of hops from publisher to subscriber, with its mean."""
    figure = Figure(figsize=(WIDTH_IN, HEIGHT_IN))
    axes = figure.subplots()
    styles = system_styles(systems)
    width = 0.84 / max(len(styles), 1)
    for index, (name, style) in enumerate(styles.items()):
        hops = systems[name].deliveries["hops"]
        if len(hops) == 0:
            continue
        share = np.bincount(hops) / len(hops)
        offset = (index - (len(styles) - 1) / 2) * width
        label = f"{style.label} (mean {hops.mean(dtype=np.float64):.2f})"
        places = np.arange(len(share)) + offset
        axes.bar(places, share, width, **filled(style), label=label)
    axes.set(title="Share of deliveries by path length", xlabel="hops from publisher to subscriber")
    axes.grid(visible=False, axis="x")
    per_cent(axes.yaxis)
    _whole_ticks(axes)
    legend_below(figure, axes)
    return figure


_PLOTS: tuple[tuple[str, str, str, Callable[[Systems], Figure | None]], ...] = (
    (
        "hit_ratio",
        "Hit ratio and population",
        "Share of the deliveries due that were made, by the time of publication, and the number "
        "of nodes online.",
        plot_hit_ratio,
    ),
    (
        "overhead",
        "Traffic overhead and path length",
        "Share of event messages that reached a node without a matching subscription, and mean "
        "hops from publisher to subscriber.",
        plot_overhead,
    ),
    (
        "load_cdf",
        "Load of the nodes",
        "A curve further up and to the left means less load and a more even one.",
        plot_load,
    ),
    (
        "path_length",
        "Path lengths",
        "How many hops deliveries took from the publisher to the subscriber.",
        plot_path_length,
    ),
    (
        "convergence",
        "Convergence of the overlay",
        f"How quickly ring and friend links settle: at most the first {CONVERGENCE_CYCLES} "
        "cycles. The baseline keeps no friend links.",
        plot_convergence,
    ),
    (
        "overlay",
        "The overlay and its clusters",
        "The same nodes and links twice: on the left placed on the ring by identifier, on the "
        "right by the range they subscribe to on their primary attribute. Nodes of one colour "
        "have similar interests; the marker's shape is the primary attribute. Of a large overlay, "
        "only a few groups of nodes with neighbouring interests are drawn.",
        plot_overlay,
    ),
)


def write_plots(record: RunRecord, folder: Path) -> list[Plot]:
    """Draw every plot the run has data for into the new folder ``folder``, as SVG and PNG."""
    folder.mkdir()
    plots = []
    with plot_style():
        for name, title, caption, draw in _PLOTS:
            figure = draw(record.systems) if record.systems else None
            if figure is not None:
                plots.append(Plot(name, title, caption, *save(figure, folder, name)))
    return plots


def _line(axes: Axes, x: Column, y: Column, style: SystemStyle) -> None:
    """Draw what is known of ``y``, with markers where there are only a few points."""
    known = np.isfinite(y)
    marker = "o" if known.sum() <= 40 else ""
    axes.plot(
        x[known],
        y[known],
        color=style.colour,
        linestyle=style.dashes,
        marker=marker,
        markersize=3,
        label=style.label,
    )


def _whole_ticks(axes: Axes) -> None:
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
