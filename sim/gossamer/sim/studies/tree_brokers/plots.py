"""The plots of a burst, all coverings in each; like Fig. 7 of the selective paper.

`drawings` has all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gossamer.sim.results.plot_style import (
    covering_styles,
    draw_line,
    from_zero,
    legend_below,
    looks,
    new_figure,
    per_cent,
)
from gossamer.sim.studies.tree_brokers.records import CoveringRecord, longest_queue
from gossamer.sim.study.plot import Drawing
from gossamer.sim.study.records import Column

Coverings = Mapping[str, CoveringRecord]

# Publications are drawn in so many groups.
GROUPS = 150


def plot_delay(coverings: Coverings) -> Figure:
    """Mean delay over the time of publication (Fig. 7(a) of the selective paper, over time)."""
    figure, axes = _plot()
    for name, style in covering_styles(coverings).items():
        time_s, delay_s = mean_delays(coverings[name])
        draw_line(axes, time_s, delay_s, style)
    axes.set_yscale("log")
    axes.set(title="Publication delay (s)", xlabel="published at (s)")
    legend_below(figure, axes)
    return figure


def mean_delays(record: CoveringRecord) -> tuple[Column, Column]:
    """float64[groups], float64[groups]: time of publication and mean delay, NaN where none."""
    published = record.deliveries["published_s"]
    edges = np.linspace(0.0, float(published.max(initial=0.0)) + 1e-6, GROUPS + 1)
    group = np.digitize(published, edges) - 1
    counts = np.bincount(group, minlength=GROUPS)
    sums = np.bincount(group, record.deliveries["delay_s"], minlength=GROUPS)
    means = np.divide(sums, counts, out=np.full(GROUPS, np.nan), where=counts > 0)
    return (edges[:-1] + edges[1:]) / 2, means


def plot_queues(coverings: Coverings) -> Figure:
    """The longest input queue of the core over time (Fig. 7(e))."""
    figure, axes = _plot()
    for name, style in covering_styles(coverings).items():
        one = coverings[name]
        axes.plot(one.queues["time_s"], longest_queue(one), **looks(style))
    axes.set(title="Longest core queue (messages)", xlabel="time (s)")
    from_zero(axes)
    legend_below(figure, axes)
    return figure


def plot_triggered(coverings: Coverings) -> Figure:
    """Triggered messages along the core, towards the publishers (Fig. 7(d))."""
    figure, axes = _plot()
    for name, style in covering_styles(coverings).items():
        one = coverings[name]
        axes.plot(one.core, _at_core(one, "triggered"), **looks(style), marker="o", markersize=4)
    axes.set_yscale("symlog", linthresh=10)
    axes.set(title="Triggered messages", xlabel="core broker", ylim=(0, None))
    legend_below(figure, axes)
    return figure


def plot_tables(coverings: Coverings) -> Figure:
    """Routing tables of the core at the end (Fig. 7(b))."""
    figure, axes = _plot()
    _bars(axes, coverings, lambda record: _at_core(record, "table"))
    axes.set(title="Routing table entries at the end", xlabel="core broker")
    legend_below(figure, axes)
    return figure


def plot_false_positives(coverings: Coverings) -> Figure | None:
    """False positives by role of the broker (Fig. 7(c)); None where there can be none."""
    if not any(record.brokers["false_positives"].any() for record in coverings.values()):
        return None
    figure, axes = _plot()
    roles = ("core", "inner", "edge")

    def shares(record: CoveringRecord) -> Column:
        brokers = record.brokers
        chosen = [brokers["role"] == role for role in roles]
        wrong = np.array([brokers["false_positives"][at].sum() for at in chosen])
        arrived = np.array([brokers["arrived"][at].sum() for at in chosen])
        return np.asarray(wrong / np.maximum(arrived, 1))

    _bars(axes, coverings, shares, roles)
    axes.set(title="Publications that nobody at a broker wanted", xlabel="role of the broker")
    per_cent(axes.yaxis)
    legend_below(figure, axes)
    return figure


_PLOTS: tuple[tuple[str, str, str, Callable[[Coverings], Figure | None]], ...] = (
    (
        "delay",
        "Publication delay",
        "Mean time from publication to delivery, by the time of publication since the first "
        "unsubscription.",
        plot_delay,
    ),
    (
        "queues",
        "Core queues",
        "The longest input queue of the core brokers; a pack counts as one message.",
        plot_queues,
    ),
    (
        "triggered",
        "Triggered messages",
        "Subscriptions and unsubscriptions that nobody asked for, on the way from the subscribers "
        "towards the publishers.",
        plot_triggered,
    ),
    (
        "tables",
        "Routing tables",
        "Entries at the core brokers when the burst is over.",
        plot_tables,
    ),
    (
        "false_positives",
        "False positives",
        "Share of the publications from neighbours for which a broker had no use.",
        plot_false_positives,
    ),
)


def drawings(coverings: Coverings) -> list[Drawing]:
    """Every plot of a run."""
    return [
        Drawing(name, title, caption, partial(draw, coverings))
        for name, title, caption, draw in _PLOTS
    ]


def _plot() -> tuple[Figure, Axes]:
    figure = new_figure()
    return figure, figure.subplots()


def _at_core(record: CoveringRecord, column: str) -> Column:
    places = [int(np.flatnonzero(record.brokers["broker"] == name)[0]) for name in record.core]
    return record.brokers[column][places]


def _bars(
    axes: Axes,
    coverings: Coverings,
    values: Callable[[CoveringRecord], Column],
    labels: tuple[str, ...] | None = None,
) -> None:
    """Groups of bars, a bar for each covering."""
    width = 0.8 / len(coverings)
    for place, (name, style) in enumerate(covering_styles(coverings).items()):
        heights = values(coverings[name])
        left = np.arange(len(heights)) - 0.4 + (place + 0.5) * width
        axes.bar(left, heights, width, color=style.colour, label=style.label)
    shown = labels or next(iter(coverings.values())).core
    axes.set_xticks(range(len(shown)), shown)
