"""The plots of a run, both systems in each; the counterparts of Fig. 4(e) and 5 of the paper.

Every function here draws one figure from the tables of `records`; `drawings` has all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, MaxNLocator

from gossamer.sim.results.plot_style import (
    GREY,
    HEIGHT_IN,
    beside,
    draw_line,
    filled,
    from_zero,
    legend_below,
    new_figure,
    per_cent,
    system_styles,
)
from gossamer.sim.studies.peers.measuring.overlay_plot import plot_overlay
from gossamer.sim.studies.peers.measuring.records import SystemRecord
from gossamer.sim.studies.peers.measuring.summary import HOUR_S
from gossamer.sim.studies.worlds.traffic_plots import Traffic, traffic_drawings
from gossamer.sim.study.plot import Drawing
from gossamer.sim.study.records import Column, Table
from gossamer.sim.study.watching import Floats, Int64s, ratio

Systems = Mapping[str, SystemRecord]

HOURLY_FROM_S = 12 * HOUR_S  # longer runs are drawn hour by hour
MAX_POINTS = 250  # shorter runs with more cycles than this are drawn in groups of cycles
CONVERGENCE_CYCLES = 100
# A smoothed line is of means over about so many parts of the run.
SMOOTHED_PARTS = 20
# Of path lengths over time, which are cut off at so many hops.
PERCENTILES = (0.1, 0.5, 0.9)
MOST_HOPS = 10_000
# Of deliveries: how many are shown hop by hop, at least; all that are longer are one bar.
SHOWN_HOPS = 0.99
SOMEWHAT = 1.25


@dataclass(frozen=True, slots=True)
class Timeline:
    """How the cycles of a run are grouped along the horizontal axis.

    Attributes:
        label: label of the axis.
        unit: of what it counts.
        positions: float64[groups], where each group is drawn.
        group: int64[cycles], the group of each row of the cycle table.
    """

    label: str
    unit: str
    positions: Floats
    group: Int64s

    @property
    def window(self) -> int:
        """How many groups a smoothed line takes together, an odd number."""
        return 2 * (len(self.positions) // SMOOTHED_PARTS // 2) + 1

    @property
    def window_words(self) -> str:
        """The length of that window, for titles; empty where it is one group."""
        if self.window == 1:
            return ""
        width = self.window * (float(self.positions[1] - self.positions[0]))
        return f", over {width:g} {self.unit}"

    def sums(self, values: Column, *, window: int = 1) -> Floats:
        """float64[groups], the sum of ``values`` in each group, or in so many around it."""
        weights = values.astype(np.float64)
        sums = np.bincount(self.group, weights, minlength=len(self.positions)).astype(np.float64)
        if window > 1 and len(sums):
            smoothed = np.convolve(sums, np.ones(window), "full")[window // 2 :][: len(sums)]
            sums = np.where(self.known(np.flatnonzero(sums)), smoothed, 0.0)
        return sums

    def known(self, groups: Int64s) -> npt.NDArray[np.bool_]:
        """bool[groups]: those from the first to the last of some groups."""
        every = np.arange(len(self.positions))
        ends = (groups.min(), groups.max()) if len(groups) else (1, 0)
        return np.asarray((every >= ends[0]) & (every <= ends[1]))

    def means(self, values: Column) -> Floats:
        """float64[groups], the mean of ``values`` in each group."""
        return self.ratios(values, np.ones(len(self.group)))

    def ratios(self, parts: Column, wholes: Column, *, window: int = 1) -> Floats:
        """float64[groups], sum of ``parts`` over sum of ``wholes``; NaN where that is zero."""
        return ratio(self.sums(parts, window=window), self.sums(wholes, window=window))


def timeline(cycles: Table) -> Timeline:
    """Group cycles by hour in runs of half a day and more, else so that the plot is legible."""
    times = cycles["time_s"]
    if len(times) and times[-1] >= HOURLY_FROM_S:
        hours, group = np.unique(np.floor_divide(times, HOUR_S), return_inverse=True)
        return Timeline("time (hours)", "hours", hours, group.astype(np.int64))
    size = -(-max(len(times), 1) // MAX_POINTS)
    group = np.arange(len(times)) // size
    return Timeline("cycle", "cycles", cycles["cycle"][::size].astype(np.float64), group)


def plot_convergence(systems: Systems) -> Figure:
    """Share of right ring links and mean friend utility, where there is any, at the beginning."""
    figure = new_figure()
    shown = slice(0, CONVERGENCE_CYCLES)
    utilities = [one.cycles["friend_utility"][shown] for one in systems.values()]
    with_friends = any(np.nansum(one) > 0 for one in utilities)
    panels = beside(figure, 1 + with_friends, sharey=True)
    columns = {"ring_correct": "Ring links correct", "friend_utility": "Mean friend utility"}
    for axes, (column, title) in zip(panels, columns.items(), strict=False):
        for name, style in system_styles(systems).items():
            cycles = systems[name].cycles
            # Measured every few cycles, if at all: lines go on from one time to the next.
            known = np.isfinite(cycles[column][shown])
            if column == "ring_correct" or np.nansum(cycles[column][shown]) > 0:
                draw_line(axes, cycles["cycle"][shown][known], cycles[column][shown][known], style)
        axes.set(title=title, xlabel="cycle", ylim=(0, 1.02))
        per_cent(axes.yaxis)
        _whole_ticks(axes)
    legend_below(figure, panels[0])
    return figure


def plot_hit_ratio(systems: Systems) -> Figure:
    """Hit ratio over time, above the number of nodes online (Fig. 5(a))."""
    figure = new_figure(HEIGHT_IN + 0.9)
    hits, population = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
    lowest, words = 1.0, ""
    for name, style in system_styles(systems).items():
        cycles = systems[name].cycles
        groups = timeline(cycles)
        words = groups.window_words
        ratios = groups.ratios(cycles["delivered"], cycles["expected"], window=groups.window)
        draw_line(hits, groups.positions, ratios, style)
        lowest = min(lowest, *ratios[np.isfinite(ratios)], 1.0)
    # All systems of a run live through the same churn.
    cycles = next(iter(systems.values())).cycles
    groups = timeline(cycles)
    online = groups.means(cycles["population"])
    population.fill_between(groups.positions, online, color=GREY, alpha=0.35, linewidth=0)
    population.plot(groups.positions, online, color=GREY, linewidth=1.2)
    bottom = 0.0 if lowest < 0.5 else np.floor(lowest * 20 - 0.5) / 20
    hits.set(title=f"Hit ratio{words}", ylim=(bottom, 1 + 0.03 * (1 - bottom)))
    population.set(title="Nodes online", xlabel=groups.label)
    from_zero(population)
    per_cent(hits.yaxis)
    legend_below(figure, hits)
    return figure


def plot_overhead(systems: Systems) -> Figure:
    """Traffic overhead over time, above the path lengths (Fig. 5(b) and 5(c)).

    Paths are shown by their median, with a band from the tenth to the ninetieth percentile: a mean
    would show little but the longest.
    """
    figure = new_figure(HEIGHT_IN + 0.9)
    overhead, paths = figure.subplots(2, 1, sharex=True)
    words = ""
    for name, style in system_styles(systems).items():
        cycles = systems[name].cycles
        groups = timeline(cycles)
        words = groups.window_words
        wasted = groups.ratios(cycles["uninterested"], cycles["received"], window=groups.window)
        draw_line(overhead, groups.positions, wasted, style)
        low, middle, high = path_lengths(systems[name], groups)
        draw_line(paths, groups.positions, middle, style)
        paths.fill_between(groups.positions, low, high, color=style.colour, alpha=0.15, linewidth=0)
        paths.set_xlabel(groups.label)
    overhead.set(title=f"Traffic overhead{words}")
    from_zero(overhead)
    paths.set(title=f"Path length (hops), median and 10 to 90 %{words}")
    from_zero(paths)
    per_cent(overhead.yaxis)
    legend_below(figure, overhead)
    return figure


def path_lengths(record: SystemRecord, groups: Timeline) -> Floats:
    """float64[3, groups]: 10th, 50th and 90th percentile of hops; NaN where nothing was delivered.

    By the time of publication, each over the window of its group.
    """
    events, deliveries = record.events, record.deliveries
    found = np.full((len(PERCENTILES), len(groups.positions)), np.nan)
    if not len(deliveries["event"]):
        return found
    order = np.argsort(events["event"], kind="stable")
    place = np.searchsorted(events["event"][order], deliveries["event"])
    known = place < len(order)
    group = groups.group[events["cycle"][order[place[known]]]]
    hops = np.minimum(deliveries["hops"][known], MOST_HOPS).astype(np.int64)
    counts = np.zeros((len(groups.positions), int(hops.max(initial=0)) + 1))
    np.add.at(counts, (group, hops), 1)
    window = np.ones(groups.window)
    counts = np.apply_along_axis(lambda one: np.convolve(one, window, "full"), 0, counts)
    counts = counts[groups.window // 2 :][: len(groups.positions)]
    inside = groups.known(groups.group[events["cycle"]]) & (counts.sum(axis=1) > 0)
    up_to = np.cumsum(counts[inside], axis=1) / counts[inside].sum(axis=1, keepdims=True)
    for row, share in enumerate(PERCENTILES):
        # Sums of shares miss what they come to by a rounding.
        found[row, inside] = (up_to < share - 1e-9).sum(axis=1)
    return found


def plot_load(systems: Systems) -> Figure:
    """Cumulative distribution of load over the nodes (Fig. 4(e))."""
    figure = new_figure()
    axes = figure.subplots()
    for name, style in system_styles(systems).items():
        load = np.sort(systems[name].nodes["load"])
        share = np.arange(1, len(load) + 1) / max(len(load), 1)
        axes.step(load, share, where="post", color=style.colour, ls=style.dashes, label=style.label)
    axes.set(
        title="Nodes whose load does not exceed x",
        xlabel="load: share of all events handled without interest",
        ylim=(0, 1.02),
    )
    # Most nodes handle a hundredth of what the busiest does, or nothing.
    least = min(one.nodes["load"][one.nodes["load"] > 0].min(initial=1) for one in systems.values())
    axes.set_xscale("log")
    axes.set_xlim(least / 2, 1)
    per_cent(axes.yaxis)
    per_cent(axes.xaxis)
    legend_below(figure, axes)
    return figure


def plot_path_length(systems: Systems) -> Figure:
    """Histogram of hops from publisher to subscriber, with mean, median and 99th percentile.

    The axis ends somewhat beyond where all but a hundredth of the deliveries of every system are;
    what took longer is one bar at the end of it.
    """
    figure = new_figure()
    axes = figure.subplots()
    styles = system_styles(systems)
    width = 0.84 / max(len(styles), 1)
    last = _last_hops(systems)
    beyond = False
    for index, (name, style) in enumerate(styles.items()):
        hops = systems[name].deliveries["hops"]
        if len(hops) == 0:
            continue
        longer = int(hops.max()) > last
        beyond |= longer
        share = np.bincount(np.minimum(hops, last + 1)) / len(hops)
        offset = (index - (len(styles) - 1) / 2) * width
        middle, late = np.percentile(hops, (50, 99), method="inverted_cdf")
        mean = hops.mean(dtype=np.float64)
        label = f"{style.label} (mean {mean:.2f}, median {middle:g}, 99 % {late:g})"
        places = np.arange(len(share)) + offset
        axes.bar(places, share, width, **filled(style), label=label)
    axes.set(title="Share of deliveries by path length", xlabel="hops from publisher to subscriber")
    axes.grid(visible=False, axis="x")
    per_cent(axes.yaxis)
    _whole_ticks(axes)
    if beyond:
        _end_with_longer(axes, last)
    legend_below(figure, axes)
    return figure


def _last_hops(systems: Systems) -> int:
    """The last length that has bars of its own."""
    ends = [
        float(np.percentile(one.deliveries["hops"], 100 * SHOWN_HOPS, method="inverted_cdf"))
        for one in systems.values()
        if len(one.deliveries["hops"])
    ]
    return int(np.ceil(SOMEWHAT * max(ends, default=0.0)))


def _end_with_longer(axes: Axes, last: int) -> None:
    """Label the bars after the last length as those of all longer paths."""
    step = max(1, -(-last // 10))
    # Not so near to the end that two labels would touch.
    places = [place for place in range(0, last + 1, step) if place <= last + 1 - 0.75 * step]
    axes.xaxis.set_major_locator(FixedLocator([*places, last + 1]))
    axes.xaxis.set_major_formatter(
        lambda value, _: f"over {last}" if value > last else f"{value:.0f}"
    )


_PLOTS: tuple[tuple[str, str, str, Callable[[Systems], Figure | None]], ...] = (
    (
        "hit_ratio",
        "Hit ratio and population",
        "Share of the deliveries due that were made, by the time of publication, each point of as "
        "much time around it as the title says; and the number of nodes online.",
        plot_hit_ratio,
    ),
    (
        "overhead",
        "Traffic overhead and path length",
        "Share of event messages that reached a node without a matching subscription, and "
        "hops from publisher to subscriber, by the time of publication; each point is of as much "
        "time around it as the titles say. There is no line where nothing was published.",
        plot_overhead,
    ),
    (
        "load_cdf",
        "Load of the nodes",
        "A curve further up and to the left means less load and a more even one; nodes without any "
        "are in its first height.",
        plot_load,
    ),
    (
        "path_length",
        "Path lengths",
        "How many hops deliveries took from the publisher to the subscriber. The last bars are of "
        "all that took longer, less than a hundredth.",
        plot_path_length,
    ),
    (
        "convergence",
        "Convergence of the overlay",
        f"How quickly ring and friend links settle: at most the first {CONVERGENCE_CYCLES} "
        "cycles. A system whose friends need not be alike, or that has none, has no utility.",
        plot_convergence,
    ),
    (
        "overlay",
        "The overlay and its clusters",
        "The same nodes and links twice: on the left placed on the ring by identifier, on the "
        "right by the range they subscribe to on their primary attribute. A node has the colour of "
        "the middle of that range; the marker's shape is the attribute. Of a large overlay, "
        "only a few groups of nodes with neighbouring interests are drawn.",
        plot_overlay,
    ),
)


def drawings(systems: Systems) -> list[Drawing]:
    """Every plot of a run, with those of what messages come to in bytes where that was counted."""
    traffic = {
        name: Traffic(
            one.traffic.rounds["time_s"],
            one.traffic.rounds["size_bytes"].astype(np.float64),
            one.traffic.rounds["node_s"],
            one.traffic.by_message,
        )
        for name, one in systems.items()
        if one.traffic is not None
    }
    found = [
        Drawing(name, title, caption, partial(draw, systems))
        for name, title, caption, draw in (_PLOTS if systems else ())
    ]
    return [*found, *traffic_drawings(traffic)]


def _whole_ticks(axes: Axes) -> None:
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
