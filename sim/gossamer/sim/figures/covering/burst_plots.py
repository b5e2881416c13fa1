"""Plots like Fig. 7 to 10 of the selective and Fig. 6 and 7 of the incremental paper."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain

import attrs
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gossamer.sim.figures.common.claims import LITERAL
from gossamer.sim.figures.common.points import Floats
from gossamer.sim.figures.covering.burst_runs import RunResult
from gossamer.sim.figures.covering.burst_studies import (
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

# What the bursts measured, by study, covering and place on the x axis.


@attrs.frozen(eq=False)
class Outcomes:
    """The outcomes of all bursts under a reading of the papers.

    Attributes:
        found: one a burst.
        reading: LITERAL or ALTERNATIVE.
    """

    found: Sequence[RunResult]
    reading: str = LITERAL

    @classmethod
    def of(cls, outcomes: Sequence[Sequence[RunResult]], reading: str = LITERAL) -> Outcomes:
        """From what `run_tasks` returns."""
        every = chain.from_iterable(outcomes)
        return cls([one for one in every if one.run.reading == reading], reading)

    def has(self, study: str) -> bool:
        """Whether the study was run."""
        return any(one.run.study == study for one in self.found)

    def select(self, study: str, covering: str, x: float | None = None) -> list[RunResult]:
        """The bursts of a study in the order of x; the comparison is a point of two sweeps."""
        chosen = [
            one
            for one in self.found
            if one.run.study == study
            and one.run.covering == covering
            and (x is None or self._x(study, one) == x)
        ]
        if study in (UNSUBSCRIPTIONS, DEGREES):
            chosen += [
                one
                for one in self.select(COMPARED, covering)
                if x is None or self._x(study, one) == x
            ]
        return sorted(chosen, key=lambda one: self._x(study, one))

    def one(self, study: str, covering: str, x: float | None = None) -> RunResult:
        """The only burst of a study with that covering."""
        (found,) = self.select(study, covering, x)
        return found

    def value(self, measure: str, study: str, covering: str, x: float | None = None) -> float:
        """A measure of the only burst; NaN where there is none."""
        found = self.select(study, covering, x)
        return found[0].measures[measure] if len(found) == 1 else math.nan

    def ratio(
        self, measure: str, study: str, covering: str, other: str, x: float | None = None
    ) -> float:
        """A measure under one covering over that under another."""
        below = self.value(measure, study, other, x)
        return self.value(measure, study, covering, x) / below if below else math.inf

    def series(self, measure: str, study: str, covering: str) -> tuple[Floats, Floats]:
        """float64[x], float64[x]: the values of x, and the measure at each."""
        chosen = self.select(study, covering)
        places = [self._x(study, one) for one in chosen]
        return np.array(places), np.array([one.measures[measure] for one in chosen])

    @staticmethod
    def _x(study: str, one: RunResult) -> float:
        if study == DEGREES:
            return float(one.run.burst.workload.degree)
        return one.run.x


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
