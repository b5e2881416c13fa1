"""Plots of `kindred` and its rivals: a row a workload, a panel a measure, a dot a system."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from gossamer.sim.figures.common.measurements import OVERHEAD, PATH, Measurements
from gossamer.sim.figures.kindred.studies import KINDRED
from gossamer.sim.figures.rivals.studies import BOUND, SYSTEMS
from gossamer.sim.results.plot_style import (
    GREY,
    INK,
    beside,
    in_a_column,
    legend_below,
    new_figure,
    per_cent,
    system_styles,
)

_TITLES: Final = {
    OVERHEAD: "Overhead",
    PATH: "Hops",
    "load_max": "Busiest node",
    "hit_ratio": "Hit ratio",
    "control_messages_per_node_cycle": "Control messages\na round",
    "bytes_per_node_and_second": "Bytes a second",
}
_SHARES: Final = (OVERHEAD, "load_max", "hit_ratio")
# Those that differ by orders of magnitude between systems.
_LOGARITHMIC: Final = (PATH, "control_messages_per_node_cycle", "bytes_per_node_and_second")
_MARKERS: Final = ("o", "s", "^", "v", "X", "D", "P")
# Rows are one apart; dots of a row so far above and below it.
_ASIDE: Final = 0.08
_ROW_IN: Final = 0.4


def plot_measures(found: Measurements, places: Sequence[Any], measures: Sequence[str]) -> Figure:
    """Measures of all systems, with intervals over the seeds.

    Args:
        found: what was measured.
        places: rows: each has a ``study``, ``kind``, ``label`` and ``x``.
        measures: of which each has a panel.
    """
    figure = new_figure(1.2 + _ROW_IN * len(places))
    panels = beside(figure, len(measures), sharey=not in_a_column())
    for axes, measure in zip(panels, measures, strict=True):
        _draw(axes, found, places, measure)
        if in_a_column() or axes is panels[0]:
            axes.set_yticks(range(len(places)), [place.label for place in places])
    note = found.note_of(places[0].study) if places else ""
    with_bound = PATH in measures
    legend_below(figure, panels[measures.index(PATH) if with_bound else 0], note=note)
    return figure


def _draw(axes: Axes, found: Measurements, places: Sequence[Any], measure: str) -> None:
    """A panel: what `kindred` has stands out by its size."""
    if measure in _LOGARITHMIC:
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=20))
        axes.xaxis.set_major_formatter(lambda number, _: f"{number:g}")
    for number, (system, style) in enumerate(system_styles(SYSTEMS).items()):
        aside = (number - (len(SYSTEMS) - 1) / 2) * _ASIDE
        at = [(place.study, system, place.kind, place.x) for place in places]
        values = np.array([found.value(measure, *one) for one in at])
        halves = np.nan_to_num([found.half_interval(measure, *one) for one in at])
        axes.errorbar(
            values,
            np.arange(len(places)) + aside,
            xerr=np.array([np.minimum(halves, 0.9 * np.nan_to_num(values)), halves]),
            color=style.colour,
            linestyle="",
            marker=_MARKERS[number],
            markersize=6 if system == KINDRED else 4,
            elinewidth=0.8,
            ecolor=INK,
            label=style.label,
        )
    if measure == PATH:
        least = [found.value("bound_hops", one.study, KINDRED, one.kind, one.x) for one in places]
        axes.plot(least, range(len(places)), "|", color=INK, markersize=14, label=BOUND)
    for height in np.arange(len(places) - 1) + 0.5:
        axes.axhline(height, color=GREY, linewidth=0.4, alpha=0.5, zorder=0)
    axes.set(title=_TITLES[measure], ylim=(len(places) - 0.4, -0.6))
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    if measure in _SHARES:
        per_cent(axes.xaxis)
