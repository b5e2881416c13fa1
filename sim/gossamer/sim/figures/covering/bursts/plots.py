"""Plots like Fig. 7 to 10 of the selective and Fig. 6 and 7 of the incremental paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gossamer.sim.figures.covering.bursts.outcomes import Outcomes
from gossamer.sim.figures.covering.bursts.runs import RunResult
from gossamer.sim.figures.covering.bursts.studies import (
    ACTIVE,
    CLUSTERED,
    COMPARED,
    DEGREES,
    INCREMENTAL,
    LAZY,
    PACKED,
    SELECTIVE,
    UNSUBSCRIPTIONS,
)
from gossamer.sim.results.plot_style import (
    SystemStyle,
    beside,
    covering_styles,
    draw_line,
    from_zero,
    legend_below,
    new_figure,
    per_cent,
)

_SELECTIVE = (ACTIVE, LAZY, PACKED, SELECTIVE)
_INCREMENTAL = (ACTIVE, LAZY, PACKED, INCREMENTAL)


def draw_bursts(found: Outcomes) -> Iterator[tuple[str, Figure]]:
    """All plots, by name of the file."""
    compared = [found.one(COMPARED, covering) for covering in _SELECTIVE]
    clustered = [found.one(CLUSTERED, covering) for covering in (ACTIVE, SELECTIVE)]
    most = found.one(INCREMENTAL, LAZY).run.x
    large = [found.one(INCREMENTAL, covering, most) for covering in _INCREMENTAL]
    yield "selective7a", plot_bars(compared, "measured_s", "Publication delay (s)")
    yield "selective7b", plot_bars(compared, "table_core", "Routing table at the core")
    yield "selective7c", plot_false_positives(compared[-1])
    yield "selective7d", plot_triggered(compared)
    yield "selective7e", plot_queues(compared)
    yield "selective8", plot_sweep(found, UNSUBSCRIPTIONS, SELECTIVE, "unsubscriptions")
    yield "selective9", plot_sweep(found, DEGREES, SELECTIVE, "covering degree")
    yield "selective10a", plot_bars(clustered, "measured_s", "Publication delay (s), clustered")
    yield "selective10b", plot_bars(clustered, "table_core", "Routing table at the core, clustered")
    yield "selective10c", plot_queues(clustered)
    yield "incremental6a", plot_delays(large)
    yield "incremental6b", plot_queues(large)
    yield "incremental6c", plot_triggered(large)
    yield "incremental6d", plot_bars(large, "table_core", "Routing table at the core")
    yield "incremental7", plot_sweep(found, INCREMENTAL, INCREMENTAL, "triggered subscriptions")


def plot_bars(bursts: Sequence[RunResult], measure: str, title: str) -> Figure:
    """A measure of several bursts, on a logarithmic axis where they are far apart."""
    figure, axes = _plot()
    values = [one.measures[measure] for one in bursts]
    names = [one.run.covering for one in bursts]
    styles = covering_styles(names)
    axes.bar(names, values, color=[styles[name].colour for name in names], width=0.6)
    for place, value in enumerate(values):
        text = f"{value:,.3g}" if value < 1000 else f"{value:,.0f}"
        axes.annotate(text, (place, value), ha="center", va="bottom")
    if min(values) > 0 and max(values) > 30 * min(values):
        axes.set_yscale("log")
    axes.set(title=title)
    return figure


def plot_triggered(bursts: Sequence[RunResult]) -> Figure:
    """Triggered messages at the core brokers, in order towards the publishers."""
    figure, axes = _plot()
    for one, style in _styled(bursts):
        axes.plot(
            one.core["broker"],
            one.core["triggered"],
            color=style.colour,
            linestyle=style.dashes,
            marker="o",
            markersize=4,
            label=style.label,
        )
    axes.set_yscale("symlog", linthresh=10)
    axes.set(title="Triggered messages", xlabel="core broker", ylim=(0, None))
    legend_below(figure, axes)
    return figure


def plot_queues(bursts: Sequence[RunResult]) -> Figure:
    """The longest input queue of the core over time."""
    figure, axes = _plot()
    for one, style in _styled(bursts):
        queues = [column for name, column in one.queues.items() if name != "time_s"]
        axes.plot(
            one.queues["time_s"],
            np.max(queues, axis=0),
            color=style.colour,
            linestyle=style.dashes,
            label=style.label,
        )
    axes.set(title="Longest core queue", xlabel="time (s)")
    from_zero(axes)
    legend_below(figure, axes)
    return figure


def plot_delays(bursts: Sequence[RunResult]) -> Figure:
    """Mean publication delay over the time of publication."""
    figure, axes = _plot()
    for one, style in _styled(bursts):
        draw_line(axes, one.delays["time_s"], one.delays["delay_mean_s"], style)
    axes.set_yscale("log")
    axes.set(title="Publication delay (s)", xlabel="published at (s)")
    legend_below(figure, axes)
    return figure


def plot_false_positives(one: RunResult) -> Figure:
    """False positives as a share of what each core broker got, and of all traffic."""
    figure, axes = _plot()
    core = one.core
    shares = core["false_positives"] / np.maximum(core["arrived"], 1)
    style = covering_styles([one.run.covering])[one.run.covering]
    names = [*core["broker"], "all brokers"]
    heights = [*shares, one.measures["false_positives"]]
    axes.bar(names, heights, color=style.colour, label=style.label)
    axes.set(title="False positives, share of publications", ylim=(0, 1.1 * max(0.01, *heights)))
    legend_below(figure, axes)
    per_cent(axes.yaxis)
    return figure


def plot_sweep(found: Outcomes, study: str, pruned: str, label: str) -> Figure:
    """Delay, longest queue and tables over what a study varies, for active covering and pruning."""
    figure = new_figure()
    delay = "delay_mean_s" if study == INCREMENTAL else "measured_s"
    panels = {"Delay (s)": delay, "Longest core queue": "queue_max", "Core table": "table_core"}
    styles = covering_styles((ACTIVE, pruned))
    for axes, (title, measure) in zip(beside(figure, len(panels)), panels.items(), strict=True):
        for covering, style in styles.items():
            x, y = found.series(measure, study, covering)
            axes.plot(
                x,
                y,
                color=style.colour,
                linestyle=style.dashes,
                marker="o",
                markersize=4,
                label=style.label,
            )
        if measure == delay:
            axes.set_yscale("log")
            legend_below(figure, axes)
        else:
            from_zero(axes)
        axes.set(title=title, xlabel=label)
    return figure


def _plot() -> tuple[Figure, Axes]:
    figure = new_figure()
    return figure, figure.subplots()


def _styled(bursts: Sequence[RunResult]) -> Iterator[tuple[RunResult, SystemStyle]]:
    styles = covering_styles([one.run.covering for one in bursts])
    for one in bursts:
        yield one, styles[one.run.covering]
