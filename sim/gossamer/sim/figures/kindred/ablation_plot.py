"""What each idea brings, as dots: `kindred` without it, beside all of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, LogLocator, NullLocator

from gossamer.sim.figures.common.measurements import OVERHEAD, PATH, Measurements
from gossamer.sim.figures.kindred.setup import KINDRED
from gossamer.sim.figures.kindred.studies import (
    ABLATION,
    ABLATION_ATTRIBUTES,
    ABLATION_RANGES,
    IDEAS,
    SHOWN_BY_STANDARD,
)
from gossamer.sim.figures.vinifera.studies import KINDS
from gossamer.sim.results.plot_style import (
    BLUE,
    GREY,
    INK,
    VERMILION,
    beside,
    in_a_column,
    legend_below,
    new_figure,
    per_cent,
)

_LOOKS: Final = ((BLUE, "o"), (VERMILION, "D"))
# Rows are one apart; the two kinds of a row so much above and below it.
_ASIDE: Final = 0.19
_ROW_IN: Final = 0.4
# Figures as wide as a column are lower for their width, but two values of a row stay apart.
_ROW_IN_A_COLUMN: Final = 0.62
_LABEL_POINTS: Final = 6.5
_TICK_POINTS: Final = 8.0
# Of the width of a panel, what is left free for values beside dots.
_LEFT, _RIGHT = 0.1, 0.3
_PANELS: Final = (
    (OVERHEAD, "Traffic overhead"),
    (PATH, "Path length (hops)"),
    ("load_max", "Busiest node"),
)


@attrs.frozen
class _Row:
    """A pair of dots in every panel, at a height."""

    study: str
    system: str
    label: str
    at: float


def plot_ablation(found: Measurements, note: str | None = None) -> Figure:
    """Overhead, hops and load of the busiest node without each idea, from the top down.

    Axes are logarithmic, as values of one panel differ by a hundred times, and the value stands
    beside each dot.

    Args:
        found: with the studies of ablation.
        note: what is said of seeds, in place of what the measurements say.
    """
    rows = _rows(found)
    figure = new_figure(0.9 + (_ROW_IN_A_COLUMN if in_a_column() else _ROW_IN) * len(rows))
    panels = beside(figure, len(_PANELS), sharey=not in_a_column())
    at = np.array([row.at for row in rows])
    for axes, (measure, title) in zip(panels, _PANELS, strict=True):
        axes.set_xscale("log")
        shown = [_draw(axes, found, measure, number, rows) for number in range(len(KINDS))]
        axes.set(title=title, ylim=(at[-1] + 0.7, -0.7))
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        for height in at:
            axes.axhline(height, color=GREY, linewidth=0.4, alpha=0.5, zorder=0)
        _fit(axes, np.concatenate(shown), hops=measure == PATH)
        if in_a_column() or axes is panels[0]:
            axes.set_yticks(at, [row.label for row in rows])
    legend_below(figure, panels[0], note=found.note_of(ABLATION) if note is None else note)
    return figure


def _draw(
    axes: Axes, found: Measurements, measure: str, number: int, rows: Sequence[_Row]
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The dots of one kind of subscriptions with their values; returns what can be shown.

    What is zero has no place on a logarithmic axis and stands as its value at the left edge.
    """
    kind, (colour, marker) = KINDS[number], _LOOKS[number]
    values = np.array([found.value(measure, row.study, row.system, kind, _x(row)) for row in rows])
    halves = np.array(
        [found.half_interval(measure, row.study, row.system, kind, _x(row)) for row in rows]
    )
    at = np.array([row.at for row in rows]) + (2 * number - 1) * _ASIDE
    shown = values > 0
    # The part of an interval that a logarithmic axis has.
    lower = np.minimum(np.nan_to_num(halves), 0.9 * np.nan_to_num(values))
    axes.errorbar(
        values[shown],
        at[shown],
        xerr=np.array([lower, np.nan_to_num(halves)])[:, shown],
        color=colour,
        linestyle="",
        marker=marker,
        markersize=4.5,
        elinewidth=0.8,
        ecolor=INK,
        label=kind,
    )
    for value, half, height in zip(values, np.nan_to_num(halves), at, strict=True):
        if np.isnan(value):
            continue
        place, across = (value + half, axes.transData) if value > 0 else (0.01, None)
        axes.annotate(
            _printed(value, measure),
            (place, height),
            xycoords="data" if across is not None else axes.get_yaxis_transform(),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            fontsize=_LABEL_POINTS,
            color=colour,
        )
    return values[shown]


def _printed(value: float, measure: str) -> str:
    if measure == PATH:
        return f"{value:.1f}"
    return f"{100 * value:.2g} %" if value < 0.01 else f"{100 * value:.1f} %"


def _fit(axes: Axes, values: np.ndarray[tuple[int], np.dtype[np.float64]], *, hops: bool) -> None:
    """Bounds with room for the values beside dots, and few round labels."""
    if not len(values):
        return
    low, high = np.log10(values.min()), np.log10(values.max())
    width = max(high - low, 0.3) / (1 - _LEFT - _RIGHT)
    axes.set_xlim(10 ** (low - _LEFT * width), 10 ** (high + _RIGHT * width))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.tick_params(axis="x", labelsize=_TICK_POINTS)
    if hops:
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=20))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    else:
        # To the right of 100 % is room for values only.
        axes.xaxis.set_major_locator(FixedLocator([10.0**power for power in range(-5, 1)]))
        per_cent(axes.xaxis)


def _x(row: _Row) -> float:
    """The value of x of a study, which varies nothing but what is left out."""
    return 0.0 if row.study == ABLATION else 3.0


def _rows(found: Measurements) -> list[_Row]:
    """The standard workload, then those that show what it does not, with gaps between them."""
    groups = [
        (ABLATION, KINDRED, "kindred"),
        *((ABLATION, name, f"without {IDEAS[name]}") for name in SHOWN_BY_STANDARD),
        None,
        (ABLATION_RANGES, KINDRED, "three ranges a node"),
        (ABLATION_RANGES, "no-guests", "without guests"),
        None,
        (ABLATION_ATTRIBUTES, KINDRED, "three attributes"),
        (ABLATION_ATTRIBUTES, "no-key", "without the routing key"),
    ]
    rows = []
    at = 0.0
    for group in groups:
        if group is None:
            at += 0.4
        elif found.select(group[0], group[1], KINDS[0]):
            rows.append(_Row(*group, at))
            at += 1.0
    return rows
