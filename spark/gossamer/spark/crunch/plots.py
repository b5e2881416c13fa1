"""Plots of what was crunched: measures with intervals, distributions, series."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from gossamer.sim.measures import BY_KEY
from gossamer.sim.plot_style import (
    GREY,
    HEIGHT_IN,
    WIDTH_IN,
    SystemStyle,
    per_cent,
    plot_style,
    save,
    system_styles,
)
from gossamer.sim.plots import Plot
from gossamer.spark.crunch.crunching import Crunched, Curve
from gossamer.spark.crunch.small import CDF, LORENZ, RANKS, SERIES
from gossamer.spark.crunch.statistics import Condition, Interval

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
_MOST_CURVES: Final = 8
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
                plots.append(draw(name, _some(curves), styles, folder))
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
    known = BY_KEY.get(measure)
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
        _legend(figure, axes)
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
    names = [_name(one) for one in chosen]
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


def _draw_lines(
    axes: Axes, chosen: Sequence[Interval], styles: dict[str, SystemStyle], axis: str
) -> None:
    lines: dict[tuple[str, Condition], list[Interval]] = {}
    along = decided_by(axis, [one.condition for one in chosen])
    for one in chosen:
        rest = tuple(pair for pair in one.condition if pair[0] not in along)
        lines.setdefault((one.system, rest), []).append(one)
    flat: list[tuple[str, list[Interval]]] = []
    for place, ((system, rest), line) in enumerate(lines.items()):
        style = styles[system]
        label = style.label + (f" ({_short(rest)})" if rest else "")
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
            alpha=_strength(sum(known == system for known, _ in list(lines)[:place])),
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
    for curve in curves:
        ranks, shares = zip(*curve.points, strict=True)
        _line(axes, ranks, shares, curve, styles, marker="." if len(ranks) == 1 else None)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("rank, the most popular first")
    axes.set_ylabel("share of all choices")
    caption = "On logarithmic scales, so that Zipf's law is a straight line; one curve a workload."
    title = name[0].upper() + name[1:]
    return _finished(figure, axes, folder, f"ranks-{name}", title, caption)


def _draw_cdf(
    name: str, curves: Sequence[Curve], styles: dict[str, SystemStyle], folder: Path
) -> Plot:
    figure, axes = _axes()
    for curve in curves:
        shares, values = zip(*curve.points, strict=True)
        _line(axes, values, np.array(shares) / 100, curve, styles, drawstyle="steps-pre")
    axes.set_xlabel(name + _unit(name))
    axes.set_ylabel("share that does not exceed it")
    per_cent(axes.yaxis)
    caption = "At whole per cents; one curve a run."
    return _finished(figure, axes, folder, f"cdf-{name}", f"Distribution of {name}", caption)


def _draw_lorenz(
    name: str, curves: Sequence[Curve], styles: dict[str, SystemStyle], folder: Path
) -> Plot:
    figure, axes = _axes()
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, label="all alike")
    for curve in curves:
        shares, parts = zip(*curve.points, strict=True)
        _line(axes, shares, parts, curve, styles)
    axes.set_xlabel(f"share of {_HOLDERS.get(name, 'parts')}, those with least first")
    axes.set_ylabel("their share of the whole")
    per_cent(axes.xaxis)
    per_cent(axes.yaxis)
    caption = "The further below the diagonal, the less even; Gini's coefficient is twice the area."
    return _finished(figure, axes, folder, f"lorenz-{name}", f"Lorenz curve of {name}", caption)


def _draw_series(
    name: str, curves: Sequence[Curve], styles: dict[str, SystemStyle], folder: Path
) -> Plot:
    figure, axes = _axes()
    for curve in curves:
        times, values = zip(*curve.points, strict=True)
        _line(axes, np.array(times) / 3600, values, curve, styles)
    axes.set_xlabel("simulated time (hours)")
    axes.set_ylabel(name)
    axes.set_ylim(bottom=0)
    if name in _SHARES:
        per_cent(axes.yaxis)
    caption = "Means of groups of cycles where there are many; one curve a run."
    title = name[0].upper() + name[1:]
    return _finished(figure, axes, folder, f"series-{name}", title, caption)


def _line(
    axes: Axes, x: Any, y: Any, curve: Curve, styles: dict[str, SystemStyle], **options: Any
) -> None:
    style = styles[curve.system]
    # Conditions of a system are told apart by how strong their lines are.
    before = sum(line.get_color() == style.colour for line in axes.get_lines())
    axes.plot(
        x,
        y,
        color=style.colour,
        linestyle=style.dashes,
        alpha=_strength(before),
        label=_name(curve),
        **options,
    )


def _some(curves: Sequence[Curve]) -> Sequence[Curve]:
    """The first seed of each condition and system, and of those as many as are legible."""
    first: dict[tuple[str, Condition], Curve] = {}
    for curve in sorted(curves, key=lambda one: one.seed):
        first.setdefault((curve.system, curve.condition), curve)
    chosen = list(first.values())
    step = max(1, len(chosen) / _MOST_CURVES)
    return [chosen[int(place * step)] for place in range(min(len(chosen), _MOST_CURVES))]


def _strength(before: int) -> float:
    """Of the next line of a system, after so many others of it."""
    return max(0.25, 0.95 - 0.3 * before)


def _name(one: Interval | Curve) -> str:
    return one.system + (f" ({_short(one.condition)})" if one.condition else "")


def _short(condition: Condition) -> str:
    """A condition with the last parts of its keys, and numbers that are not longer than needed."""
    return ", ".join(
        f"{name.rpartition('.')[2]} {value:g}"
        if isinstance(value, float)
        else f"{name.rpartition('.')[2]} {value}"
        for name, value in condition
    )


def _legend(figure: Figure, axes: Axes) -> None:
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2)


def _axes() -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH_IN, HEIGHT_IN))
    return figure, figure.subplots()


def _finished(
    figure: Figure, axes: Axes, folder: Path, name: str, title: str, caption: str
) -> Plot:
    axes.set_title(title)
    _legend(figure, axes)
    return _saved(figure, folder, name.replace(" ", "-"), title, caption)


def _saved(figure: Figure, folder: Path, name: str, title: str, caption: str) -> Plot:
    return Plot(name, title, caption, *save(figure, folder, name))
