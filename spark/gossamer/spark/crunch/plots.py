"""Plots of what was crunched: measures with intervals, distributions, series."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gossamer.sim.results.interval_plots import (
    averaged,
    axis_of,
    decided_by,
    draw_measure,
    short_condition,
    strengths_of,
)
from gossamer.sim.results.intervals import Condition, Interval
from gossamer.sim.results.measures import measures_by_key
from gossamer.sim.results.plot_style import (
    GREY,
    LONGEST_LABEL,
    SystemStyle,
    draw_band,
    from_zero,
    legend_below,
    new_figure,
    per_cent,
    plot_style,
    save,
    shortened,
    system_styles,
)
from gossamer.sim.study.plot import Plot
from gossamer.sim.study.statistics import CDF, LORENZ, RANKS, SERIES
from gossamer.spark.crunch.crunching import Crunched
from gossamer.spark.crunch.curves import Curve

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
    known = measures_by_key()
    with plot_style():
        for measure in _DRAWN:
            chosen = [one for one in found.intervals if one.measure == measure]
            if chosen:
                plots.append(draw_measure(measure, known.get(measure), chosen, styles, folder))
        for part, draw in (
            (RANKS, _draw_ranks),
            (CDF, _draw_cdf),
            (LORENZ, _draw_lorenz),
            (SERIES, _draw_series),
        ):
            plots += [
                draw(name, found.curves.of(part, name), styles, folder)
                for name in found.curves.names(part)
            ]
    return plots


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
    several = False
    for curve, options in _some(curves, styles):
        alike = [one for one in curves if _place(one) == _place(curve)]
        times = [one.points[:, 0].tolist() for one in alike]
        # Runs that were ended at different times have no mean.
        if any(one != times[0] for one in times):
            alike = [curve]
        seconds, values, halves = averaged(alike)
        axes.plot(seconds / 3600, values, **options)
        if len(alike) > 1:
            several = True
            draw_band(axes, seconds / 3600, values, halves, options["color"])
    axes.set_xlabel("simulated time (hours)")
    axes.set_ylabel(name)
    from_zero(axes)
    if name in _SHARES:
        per_cent(axes.yaxis)
    bands = "means over seeds, with 95 % intervals (Student)" if several else "one seed each"
    caption = f"Means of groups of cycles where there are many; {bands}."
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


def _told_by_axis(conditions: Sequence[Condition]) -> set[str]:
    """What need not be said of conditions because the number that takes most values tells it."""
    axis = axis_of(conditions)
    return decided_by(axis, conditions) - {axis} if axis else set()


def _name(one: Interval | Curve, dropped: Iterable[str] = ()) -> str:
    told = tuple(pair for pair in one.condition if pair[0] not in dropped)
    return one.system + (f" ({short_condition(told)})" if told else "")


def _axes() -> tuple[Figure, Axes]:
    figure = new_figure()
    return figure, figure.subplots()


def _finished(
    figure: Figure, axes: Axes, folder: Path, name: str, title: str, caption: str
) -> Plot:
    axes.set_title(title)
    legend_below(figure, axes)
    return _saved(figure, folder, name.replace(" ", "-"), title, caption)


def _saved(figure: Figure, folder: Path, name: str, title: str, caption: str) -> Plot:
    return Plot(name, title, caption, *save(figure, folder, name))
