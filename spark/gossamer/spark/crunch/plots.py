"""Plots of what was crunched: measures with intervals, distributions, series."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from gossamer.sim.results.measures import measures_by_key
from gossamer.sim.results.plot_style import (
    GREY,
    HEIGHT_IN,
    LONGEST_LABEL,
    WIDTH_IN,
    SystemStyle,
    legend_below,
    per_cent,
    plot_style,
    save,
    shortened,
    system_styles,
)
from gossamer.sim.study.plot import Plot
from gossamer.sim.study.statistics import CDF, LORENZ, RANKS, SERIES, Floats
from gossamer.spark.crunch.crunching import Crunched, Curve
from gossamer.spark.crunch.statistics import Condition, Interval, student

# Measures that are drawn, where there are any.
_DRAWN: Final = (
    "hit_ratio",
    "traffic_overhead",
    "path_length_mean",
    "load_p99",
    "load_gini",
    "routing_table_entries_mean",
    "table_entries_mean",
    "delay_mean_s",
    "delay_p99_s",
    "queue_max",
)
# Curves in a plot beyond which only some are drawn: a plot of hundreds tells nothing.
_MOST_CURVES: Final = 12
# Letters below bars that fit beside each other; longer ones are slanted.
_ROOM: Final = 60
_STRONGEST: Final = 0.95
_WEAKEST: Final = 0.25
# Above 100 % there is nothing but ends of intervals.
_WHOLE: Final = 1.05
# By the beginnings of names that do not tell them.
_UNITS: Final = {
    "delay": " (s)",
    "path length": " (hops)",
    "tree length": " (hops)",
    "load": " (share of all events)",
    "width on attribute": " (share of its domain)",
}
_HOLDERS: Final = {"load": "nodes", "messages handled": "brokers"}
_SHARES: Final = frozenset({"load", "hit ratio", "traffic overhead", "ring correct"})


def write_plots(found: Crunched, folder: Path) -> list[Plot]:
    """Draw all that there is data for into a new folder."""
    folder.mkdir()
    plots = []
    styles = system_styles(sorted({one.system for one in found.values}))
    with plot_style():
        for measure in _DRAWN:
            chosen = [one for one in found.intervals if one.measure == measure]
            if chosen:
                plots.append(_draw_measure(measure, chosen, styles, folder))
        for part, draw in (
            (RANKS, _draw_ranks),
            (CDF, _draw_cdf),
            (LORENZ, _draw_lorenz),
            (SERIES, _draw_series),
        ):
            for name in sorted({one.name for one in found.curves if one.part == part}):
                curves = [one for one in found.curves if (one.part, one.name) == (part, name)]
                plots.append(draw(name, curves, styles, folder))
    return plots


def axis_of(conditions: Iterable[Condition]) -> str | None:
    """The condition along which measures are drawn: the number that takes most values."""
    values: dict[str, set[float]] = {}
    for condition in conditions:
        for name, value in condition:
            if isinstance(value, int | float) and not isinstance(value, bool):
                values.setdefault(name, set()).add(float(value))
    several = {name: len(numbers) for name, numbers in values.items() if len(numbers) > 1}
    return max(sorted(several), key=lambda name: several[name]) if several else None


def decided_by(axis: str, conditions: Iterable[Condition]) -> set[str]:
    """The axis, and what has one value at each of its places, so that it makes no other lines."""
    seen: dict[str, dict[str, set[str]]] = {}
    for condition in conditions:
        place = repr(dict(condition).get(axis))
        for name, value in condition:
            seen.setdefault(name, {}).setdefault(place, set()).add(repr(value))
    return {
        name
        for name, values in seen.items()
        if name == axis or (len(values) > 1 and all(len(found) == 1 for found in values.values()))
    }


def _draw_measure(
    measure: str, chosen: Sequence[Interval], styles: dict[str, SystemStyle], folder: Path
) -> Plot:
    known = measures_by_key().get(measure)
    label = known.label if known else measure.replace("_", " ")
    figure, axes = _axes()
    axis = axis_of(one.condition for one in chosen)
    if axis is None:
        _draw_bars(axes, chosen, styles)
    else:
        _draw_lines(axes, chosen, styles, axis)
        axes.set_xlabel(axis)
        places = [dict(one.condition).get(axis) for one in chosen]
        if all(place is None or isinstance(place, int) for place in places):
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        legend_below(figure, axes)
    axes.set_ylabel(label)
    axes.set_ylim(bottom=0)
    if known and known.kind == "ratio":
        per_cent(axes.yaxis)
        axes.set_ylim(top=min(axes.get_ylim()[1], _WHOLE))
    axes.set_title(label)
    seeds = sorted({one.seeds for one in chosen})
    several = f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"{seeds[0]}"
    caption = f"Means over {several} seeds; bars are 95 % intervals (Student)."
    return _saved(figure, folder, measure, label, caption)


def _draw_bars(axes: Axes, chosen: Sequence[Interval], styles: dict[str, SystemStyle]) -> None:
    names = [shortened(_name(one)) for one in chosen]
    axes.bar(
        range(len(chosen)),
        [one.mean for one in chosen],
        yerr=_errors(chosen),
        color=[styles[one.system].colour for one in chosen],
        width=0.6,
        capsize=4,
        ecolor=GREY,
    )
    axes.set_xticks(range(len(chosen)), names)
    if sum(map(len, names)) > _ROOM:
        axes.tick_params(axis="x", labelrotation=90)


def _draw_lines(
    axes: Axes, chosen: Sequence[Interval], styles: dict[str, SystemStyle], axis: str
) -> None:
    lines: dict[tuple[str, Condition], list[Interval]] = {}
    along = decided_by(axis, [one.condition for one in chosen])
    for one in chosen:
        rest = tuple(pair for pair in one.condition if pair[0] not in along)
        lines.setdefault((one.system, rest), []).append(one)
    flat: list[tuple[str, list[Interval]]] = []
    strengths = strengths_of([system for system, _ in lines])
    for place, ((system, rest), line) in enumerate(lines.items()):
        style = styles[system]
        label = shortened(style.label + (f" ({_short(rest)})" if rest else ""), 2 * LONGEST_LABEL)
        if all(dict(one.condition).get(axis) is None for one in line):
            flat.append((system, line))  # the axis is a setting that this system does not have
            continue
        line.sort(key=lambda one: float(dict(one.condition)[axis]))
        axes.errorbar(
            [float(dict(one.condition)[axis]) for one in line],
            [one.mean for one in line],
            yerr=_errors(line),
            color=style.colour,
            linestyle=style.dashes,
            alpha=strengths[place],
            marker="osD^v<>"[place % 7],
            markersize=4,
            capsize=3,
            label=label,
        )
    for system, line in flat:
        axes.axhline(
            float(np.mean([one.mean for one in line])),
            color=styles[system].colour,
            linestyle=styles[system].dashes,
            label=styles[system].label,
        )


def _errors(chosen: Sequence[Interval]) -> list[list[float]]:
    """Lengths of the bars below and above; none where there is one seed."""
    below = [np.nan_to_num(one.mean - one.low) for one in chosen]
    above = [np.nan_to_num(one.high - one.mean) for one in chosen]
    return [below, above]


def _unit(name: str) -> str:
    return next((unit for begin, unit in _UNITS.items() if name.startswith(begin)), "")


def _draw_ranks(
    name: str, curves: Sequence[Curve], styles: dict[str, SystemStyle], folder: Path
) -> Plot:
    figure, axes = _axes()
    for curve, options in _some(curves, styles):
        ranks, shares = zip(*curve.points, strict=True)
        axes.plot(ranks, shares, marker="." if len(ranks) == 1 else None, **options)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("rank, the most popular first")
    axes.set_ylabel("share of all choices")
    caption = "On logarithmic scales, so that Zipf's law is a straight line; one seed each."
    title = name[0].upper() + name[1:]
    return _finished(figure, axes, folder, f"ranks-{name}", title, caption)


def _draw_cdf(
    name: str, curves: Sequence[Curve], styles: dict[str, SystemStyle], folder: Path
) -> Plot:
    figure, axes = _axes()
    several = False
    for curve, options in _some(curves, styles):
        alike = [one for one in curves if _place(one) == _place(curve)]
        shares, values, halves = averaged(alike)
        axes.plot(values, shares / 100, drawstyle="steps-pre", **options)
        if len(alike) > 1:
            several = True
            ends = (values - halves, values + halves)
            axes.fill_betweenx(shares / 100, *ends, color=options["color"], alpha=0.15, linewidth=0)
    axes.set_xlabel(name + _unit(name))
    axes.set_ylabel("share that does not exceed it")
    per_cent(axes.yaxis)
    if name in _SHARES:
        per_cent(axes.xaxis)
    bands = "means over seeds of every per cent, with 95 % intervals (Student)"
    caption = f"At whole per cents; {bands if several else 'one curve a run'}."
    return _finished(figure, axes, folder, f"cdf-{name}", f"Distribution of {name}", caption)


def _draw_lorenz(
    name: str, curves: Sequence[Curve], styles: dict[str, SystemStyle], folder: Path
) -> Plot:
    figure, axes = _axes()
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, label="all alike")
    for curve, options in _some(curves, styles):
        shares, parts = zip(*curve.points, strict=True)
        axes.plot(shares, parts, **options)
    axes.set_xlabel(f"share of {_HOLDERS.get(name, 'parts')}, those with least first")
    axes.set_ylabel("their share of the whole")
    per_cent(axes.xaxis)
    per_cent(axes.yaxis)
    caption = (
        "The further below the diagonal, the less even; Gini's coefficient is twice the area "
        "between. One seed each."
    )
    return _finished(figure, axes, folder, f"lorenz-{name}", f"Lorenz curve of {name}", caption)


def _draw_series(
    name: str, curves: Sequence[Curve], styles: dict[str, SystemStyle], folder: Path
) -> Plot:
    figure, axes = _axes()
    for curve, options in _some(curves, styles):
        times, values = zip(*curve.points, strict=True)
        axes.plot(np.array(times) / 3600, values, **options)
    axes.set_xlabel("simulated time (hours)")
    axes.set_ylabel(name)
    axes.set_ylim(bottom=0)
    if name in _SHARES:
        per_cent(axes.yaxis)
    caption = "Means of groups of cycles where there are many; one seed each."
    title = name[0].upper() + name[1:]
    return _finished(figure, axes, folder, f"series-{name}", title, caption)


Options = dict[str, Any]


def _some(curves: Sequence[Curve], styles: dict[str, SystemStyle]) -> list[tuple[Curve, Options]]:
    """The first seed of each condition and system, as many as are legible, and how it is drawn."""
    first: dict[tuple[str, Condition], Curve] = {}
    for curve in sorted(curves, key=lambda one: one.seed):
        first.setdefault(_place(curve), curve)
    found = list(first.values())
    step = max(1, len(found) / _MOST_CURVES)
    chosen = [found[int(place * step)] for place in range(min(len(found), _MOST_CURVES))]
    strengths = strengths_of([curve.system for curve in chosen])
    dropped = _told_by_axis([curve.condition for curve in chosen])
    return [
        (
            curve,
            {
                "color": styles[curve.system].colour,
                "linestyle": styles[curve.system].dashes,
                "alpha": strength,
                "label": shortened(_name(curve, dropped), 2 * LONGEST_LABEL),
            },
        )
        for curve, strength in zip(chosen, strengths, strict=True)
    ]


def _place(curve: Curve) -> tuple[str, Condition]:
    return curve.system, curve.condition


def averaged(curves: Sequence[Curve]) -> tuple[Floats, Floats, Floats]:
    """Places, means over curves at each, and half the lengths of Student's intervals.

    Args:
        curves: all at the same places; of a single one the intervals are 0 long.
    """
    values = np.array([[value for _, value in one.points] for one in curves])
    places = np.array([x for x, _ in curves[0].points])
    halves = np.zeros(len(places))
    if len(curves) > 1:
        halves = student(len(curves)) * values.std(axis=0, ddof=1) / math.sqrt(len(curves))
    return places, values.mean(axis=0), halves


def strengths_of(systems: Sequence[str]) -> list[float]:
    """How strongly lines are drawn, by which the conditions of one system are told apart."""
    return [
        _STRONGEST
        - (_STRONGEST - _WEAKEST)
        * systems[:place].count(system)
        / max(systems.count(system) - 1, 1)
        for place, system in enumerate(systems)
    ]


def _told_by_axis(conditions: Sequence[Condition]) -> set[str]:
    """What need not be said of conditions because the number that takes most values tells it."""
    axis = axis_of(conditions)
    return decided_by(axis, conditions) - {axis} if axis else set()


def _name(one: Interval | Curve, dropped: Iterable[str] = ()) -> str:
    told = tuple(pair for pair in one.condition if pair[0] not in dropped)
    return one.system + (f" ({_short(told)})" if told else "")


def _short(condition: Condition) -> str:
    """A condition with the last parts of its keys, and numbers that are not longer than needed."""
    return ", ".join(
        f"{name.rpartition('.')[2]} {value:g}"
        if isinstance(value, float)
        else f"{name.rpartition('.')[2]} {value}"
        for name, value in condition
    )


def _axes() -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH_IN, HEIGHT_IN))
    return figure, figure.subplots()


def _finished(
    figure: Figure, axes: Axes, folder: Path, name: str, title: str, caption: str
) -> Plot:
    axes.set_title(title)
    legend_below(figure, axes)
    return _saved(figure, folder, name.replace(" ", "-"), title, caption)


def _saved(figure: Figure, folder: Path, name: str, title: str, caption: str) -> Plot:
    return Plot(name, title, caption, *save(figure, folder, name))
