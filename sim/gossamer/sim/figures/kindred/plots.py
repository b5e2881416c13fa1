"""Plots of `kindred` beside the others: growth, load, congestion, churn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import attrs
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullLocator

from gossamer.sim.figures.common.measurements import OVERHEAD, PATH, TREE, Measurements
from gossamer.sim.figures.kindred.growth_plot import (
    draw_scale,
    is_logarithmic,
    numbers_of_nodes,
    plot_growth,
    sizes_of,
    steps,
)
from gossamer.sim.figures.kindred.studies import (
    ABLATION,
    ABLATION_ATTRIBUTES,
    ABLATION_RANGES,
    IDEAS,
    KINDRED,
    MONTH,
    SHOWN_BY_STANDARD,
    SYSTEMS,
    Data,
)
from gossamer.sim.figures.vinifera.studies import (
    ATTRIBUTES,
    BASELINE,
    CHURN,
    KINDS,
    RANDOM,
    RATES,
    SIZES,
)
from gossamer.sim.results.plot_style import (
    BLUE,
    GREY,
    HEIGHT_IN,
    INK,
    VERMILION,
    SystemStyle,
    beside,
    draw_band,
    draw_intervals,
    draw_line,
    draw_population,
    from_zero,
    in_a_column,
    legend_below,
    looks,
    new_figure,
    per_cent,
    population_handle,
    system_styles,
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


_MARKERS = ("o", "s", "^", "D")
# Lines of a second measure of the same system are thinner and lighter.
_SECOND = {"alpha": 0.55, "linewidth": 1.1, "markerfacecolor": "white"}


def draw(found: Measurements, data: Data) -> Iterator[tuple[str, Figure]]:
    """All plots that there are measurements for, by name of the file; within `plot_style`."""
    yield "growth", plot_growth(found)
    yield "growth_overhead", plot_sweep(found, SIZES, [OVERHEAD], "Traffic overhead", "nodes")
    hops = plot_sweep(found, SIZES, [PATH, TREE], "Path length (hops)", "nodes")
    yield "growth_hops", hops
    degrees = ["in_degree_mean", "in_degree_max"]
    yield "growth_degree", plot_sweep(found, SIZES, degrees, "Links to a node", "nodes")
    yield "attributes", plot_sweep(found, ATTRIBUTES, [OVERHEAD], "Traffic overhead", "attributes")
    label = "publication rate (X)"
    yield "congestion", plot_sweep(found, RATES, ["hit_ratio"], "Hit ratio", label)
    yield "load", plot_load(found)
    yield "churn", plot_hit_ratio(found, CHURN, data.trace.first_hour)
    if found.has(ABLATION):
        yield "ablation", plot_ablation(found)
    if found.has(MONTH):
        yield "month", plot_hit_ratio(found, MONTH, 0.0)


# What lines mean of which there are two for a system.
_PAIRS = {
    (PATH, TREE): ("from the publisher", "depth of the tree"),
    ("in_degree_mean", "in_degree_max"): ("mean", "most"),
}


def plot_sweep(
    found: Measurements, study: str, measures: Sequence[str], title: str, label: str
) -> Figure:
    """One or two measures over what a study varies, a panel for each kind of subscriptions."""
    figure = new_figure()
    panels = beside(figure, 2, sharex=True, sharey=True)
    styles = system_styles(SYSTEMS)
    for axes, kind in zip(panels, KINDS, strict=True):
        for system, marker in zip(SYSTEMS, _MARKERS, strict=True):
            for number, measure in enumerate(measures):
                x, y = found.series(measure, study, system, kind)
                draw_intervals(
                    axes,
                    x,
                    y,
                    found.half_intervals(measure, study, system, kind),
                    color=styles[system].colour,
                    linestyle="-" if number == 0 else ":",
                    marker=marker,
                    markersize=4,
                    elinewidth=0.8,
                    **(_SECOND if number else {}),
                )
                if study == SIZES:
                    draw_scale(axes, found, measure, system, kind, styles[system].colour)
        axes.set(title=f"{title}, {kind}", xlabel=label)
    # Panels share their axes, so that all is drawn before these are laid out.
    for axes in panels:
        _scale(axes, found, study, measures[0])
    if panels[0].get_yscale() == "linear":
        from_zero(panels[0])
    handles = _handles(styles, tuple(measures))
    legend_below(figure, panels[0], handles, note=found.note_of(study))
    return figure


def _scale(axes: Axes, found: Measurements, study: str, measure: str) -> None:
    shares = measure in (OVERHEAD, "hit_ratio")
    if shares:
        per_cent(axes.yaxis)
    if study == SIZES:
        numbers_of_nodes(axes, sizes_of(found))
        if is_logarithmic(axes):
            steps(axes, shares=shares)
    elif study == ATTRIBUTES:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _handles(styles: dict[str, SystemStyle], measures: tuple[str, ...]) -> list[Line2D]:
    """Entries of a legend: systems, and what the two lines of each are."""
    handles = [
        Line2D([], [], color=styles[system].colour, marker=marker, markersize=4, label=style.label)
        for (system, style), marker in zip(styles.items(), _MARKERS, strict=True)
    ]
    for number, words in enumerate(_PAIRS.get((measures[0], measures[-1]), ())):
        handles.append(
            Line2D(
                [],
                [],
                color=INK,
                linestyle=":" if number else "-",
                alpha=0.55 if number else 1.0,
                label=words,
            )
        )
    return handles


def plot_load(found: Measurements) -> Figure:
    """Which share of the nodes carries more than a load, on logarithmic axes."""
    figure = new_figure()
    panels = beside(figure, 2, sharex=True, sharey=True)
    places = found.places(SIZES, BASELINE, RANDOM)
    nodes = 1000.0 if 1000.0 in places else places[-1]
    for axes, kind in zip(panels, KINDS, strict=True):
        for system, style in system_styles(SYSTEMS).items():
            load = found.load(SIZES, system, kind, nodes)
            beyond = 1.0 - np.arange(len(load)) / max(len(load), 1)
            shown = load > 0
            axes.step(load[shown], beyond[shown], where="pre", **looks(style))
        axes.set(
            title=f"Nodes above a load, {kind}",
            xlabel="share of events handled without interest",
            xscale="log",
            yscale="log",
        )
        for axis in (axes.xaxis, axes.yaxis):
            per_cent(axis)
    legend_below(figure, panels[0])
    return figure


def plot_hit_ratio(found: Measurements, study: str, first_hour: float) -> Figure:
    """The hit ratio hour by hour under churn, a panel for each kind, over the nodes online."""
    figure = new_figure(HEIGHT_IN + 0.9)
    panels = figure.subplots(2, 1, sharex=True, sharey=True)
    systems = [system for system in SYSTEMS if found.select(study, system, KINDS[0])]
    for axes, kind in zip(panels, KINDS, strict=True):
        # Who misses most is drawn first, so that no line hides a better one.
        for system, style in reversed(system_styles(systems).items()):
            hours, ratios, half = found.hourly("hit_ratio", study, system, kind)
            looks = {"linestyle": "-", "linewidth": 1.2, "marker": ""}
            draw_line(axes, hours + first_hour, ratios, style, **looks)
            draw_band(axes, hours + first_hour, ratios, half, style.colour)
        axes.set(title=f"Hit ratio, {kind} subscriptions")
        per_cent(axes.yaxis)
        online = found.hours(study, systems[0], kind)
        draw_population(axes, online["hour"] + first_hour, online["population"], 2.5, 0.8)
    panels[1].set(xlabel="time (hours)")
    handles = [*panels[0].get_legend_handles_labels()[0], population_handle()]
    legend_below(figure, panels[0], handles, note=found.note_of(study))
    return figure
