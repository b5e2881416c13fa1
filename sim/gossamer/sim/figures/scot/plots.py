"""Plots like Fig. 9 to 11 of the SCOT paper."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import attrs
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from gossamer.protocol.brokers.scot import ROUTINGS
from gossamer.sim.figures.common.claims import LITERAL
from gossamer.sim.figures.common.points import Floats
from gossamer.sim.figures.scot.studies import BURST, PUBLISHERS, SUBSCRIBERS, RunResult
from gossamer.sim.results.plot_style import (
    beside,
    from_zero,
    legend_below,
    new_figure,
    system_styles,
)
from gossamer.sim.study.records import Column

# What the runs on a SCOT measured, by study, way of routing and place on the x axis.


@attrs.frozen(eq=False)
class Outcomes:
    """The outcomes of all runs under a reading of the paper.

    Attributes:
        found: one a run.
    """

    found: Sequence[RunResult]

    @classmethod
    def of(cls, found: Sequence[RunResult], reading: str = LITERAL) -> Outcomes:
        """Those of the runs under a reading."""
        return cls([one for one in found if one.run.reading == reading])

    def places(self, study: str) -> list[int]:
        """The values of x that were run, in order."""
        return sorted({one.run.x for one in self.found if one.run.study == study})

    def one(self, study: str, routing: str, x: int) -> RunResult:
        """The only run there."""
        (found,) = (
            one
            for one in self.found
            if (one.run.study, one.run.routing, one.run.x) == (study, routing, x)
        )
        return found

    def value(self, measure: str, study: str, routing: str, x: int) -> float:
        """A measure of a run."""
        return self.one(study, routing, x).measures[measure]

    def series(self, measure: str, study: str, routing: str) -> tuple[Floats, Floats]:
        """float64[x], float64[x]: the values of x, and the measure at each."""
        places = self.places(study)
        values = [self.value(measure, study, routing, x) for x in places]
        return np.array(places, np.float64), np.array(values, np.float64)

    def mean(self, measure: str, study: str, routing: str) -> float:
        """A measure, mean over the values of x."""
        return float(self.series(measure, study, routing)[1].mean())

    def saved(
        self, measure: str, study: str, routing: str, other: str, x: int | None = None
    ) -> float:
        """How much less a measure is than by another way of routing, as a share of that.

        Of the means over x, or at one x; NaN where there is nothing to compare with.
        """
        if x is None:
            value, above = (self.mean(measure, study, name) for name in (routing, other))
        else:
            value, above = (self.value(measure, study, name, x) for name in (routing, other))
        return 1 - value / above if above else math.nan


# By name of the file: title, measure, what is varied, and its label.
_SWEEPS = {
    "scot9a": ("Messages of subscriptions", "subscription_messages", SUBSCRIBERS),
    "scot9b": ("Subscription delay (s)", "subscription_delay_mean_s", SUBSCRIBERS),
    "scot9c": ("Notification delay (s)", "delay_mean_s", SUBSCRIBERS),
    "scot9d": ("Messages of notifications", "notification_messages", SUBSCRIBERS),
    "scot10a": ("Matchings", "matchings", SUBSCRIBERS),
    "scot10b": ("Notification delay (s)", "delay_mean_s", PUBLISHERS),
    "scot10c": ("Messages of notifications", "notification_messages", PUBLISHERS),
    "scot10d": ("Matchings", "matchings", PUBLISHERS),
}


def draw(found: Outcomes) -> Iterator[tuple[str, Figure]]:
    """All plots, by name of the file; within `plot_style`."""
    for name, (title, measure, study) in _SWEEPS.items():
        yield name, plot_sweep(found, title, measure, study)
    yield "scot11", plot_bursts(found, "delays", "largest_s", "Largest delay (s)")
    yield "scot_queues", plot_bursts(found, "queues", "longest", "Longest output queue")


def plot_sweep(found: Outcomes, title: str, measure: str, study: str) -> Figure:
    """A measure over what a study varies, by each way of routing."""
    figure = new_figure()
    axes = figure.subplots()
    for routing, style in system_styles(ROUTINGS).items():
        x, y = found.series(measure, study, routing)
        _line(axes, x, y, style.colour, style.dashes, routing, marker="o")
    axes.set(title=title, xlabel=study)
    from_zero(axes)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    legend_below(figure, axes)
    return figure


def plot_bursts(found: Outcomes, table: str, column: str, title: str) -> Figure:
    """What happened over time in each burst, side by side."""
    rates = found.places(BURST)
    figure = new_figure()
    panels = beside(figure, len(rates), sharey=True)
    for axes, rate in zip(panels, rates, strict=True):
        for routing, style in system_styles(ROUTINGS).items():
            rows = getattr(found.one(BURST, routing, rate), table)
            _line(axes, rows["time_s"], rows[column], style.colour, style.dashes, routing)
        axes.set(title=f"{rate:,} a minute", xlabel="time (s)")
    # Of all panels, as they share the axis, and only now that everything is drawn.
    from_zero(panels[0])
    panels[0].set_ylabel(title)
    legend_below(figure, panels[0])
    return figure


def _line(
    axes: Axes, x: Column, y: Column, colour: str, dashes: str, label: str, marker: str = ""
) -> None:
    # Dashed ones above, where lines coincide.
    above = 3 if dashes != "-" else 2
    axes.plot(
        x, y, color=colour, linestyle=dashes, label=label, marker=marker, markersize=4, zorder=above
    )
