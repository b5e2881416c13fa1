"""Plots of what was crunched: measures with intervals, distributions, series."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from gossamer.sim.results.interval_plots import (
    averaged,
    axis_of,
    decided_by,
    draw_measure,
    order_of,
    short_condition,
    strengths_of,
)
from gossamer.sim.results.intervals import Condition
from gossamer.sim.results.plot_style import (
    GREY,
    LONGEST_LABEL,
    SystemStyle,
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
from gossamer.sim.study.records import CDF, LORENZ, RANKS, SERIES, Floats
from gossamer.spark.crunch.crunching import Crunched
from gossamer.spark.crunch.curves import Curve
from gossamer.spark.crunch.kept_runs import known_measures
from gossamer.spark.crunch.page import label_of, value_text

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
# Curves beyond which intervals are left out: bands over bands hide the curves.
_MOST_BANDS: Final = 4
# Values that differ by less, relative to the greatest, are the same.
_SAME: Final = 1e-9
# By the beginnings of names that do not tell them.
_UNITS: Final = {
    "delay": " (s)",
    "path length": " (hops)",
    "tree length": " (hops)",
    "load": " (share of all events)",
    "width on attribute": " (share of its domain)",
}
_HOLDERS: Final = {"load": "nodes", "messages handled": "brokers"}
_WORDS: Final = {CDF: "distribution", SERIES: "series"}
_WHOLE: Final = frozenset({"path length", "tree length"})
_SHARES: Final = frozenset({"load", "hit ratio", "traffic overhead", "ring correct"})


def write_plots(found: Crunched, folder: Path) -> tuple[list[Plot], list[str]]:
    """Draw all that there is data for into a new folder.

    Returns:
        The plots, and sentences on what is not drawn, as it is the same everywhere.
    """
    folder.mkdir()
    plots, same = [], []
    styles = system_styles(sorted({one.system for one in found.values}))
    known = known_measures()
    with plot_style():
        for measure in _DRAWN:
            chosen = [one for one in found.intervals if one.measure == measure]
            if len(chosen) > 1 and is_constant(one.mean for one in chosen):
                same.append(f"{label_of(measure)} {value_text(measure, chosen[0].mean)}")
            elif chosen:
                plots.append(draw_measure(measure, known.get(measure), chosen, styles, folder))
        for part, draw in (
            (RANKS, _draw_ranks),
            (CDF, _draw_cdf),
            (LORENZ, _draw_lorenz),
            (SERIES, _draw_series),
        ):
            for name in found.curves.names(part):
                curves = found.curves.of(part, name)
                values = np.concatenate([one.points[:, 1] for one in curves])
                if part in (CDF, SERIES) and is_constant(values.tolist()):
                    same.append(f"{_WORDS[part]} of {name} {values[0]:,.4g}{_unit(name)}")
                else:
                    plots.append(draw(name, curves, styles, folder))
    notes = [f"The same everywhere, and not drawn: {'; '.join(same)}."] if same else []
    return plots, notes


def is_constant(values: Iterable[float]) -> bool:
    """Whether all values are the same, but for rounding."""
    known = list(values)
    least, greatest = min(known), max(known)
    return greatest - least <= _SAME * max(abs(least), abs(greatest))


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
    chosen = _some(curves, styles)
    several = banded = False
    for curve, options in chosen:
        alike = [one for one in curves if _place(one) == _place(curve)]
        shares, values, halves = averaged(alike)
        axes.plot(values, shares / 100, drawstyle="steps-pre", **options)
        several |= len(alike) > 1
        if len(alike) > 1 and len(chosen) <= _MOST_BANDS:
            banded = True
            ends = _possible(name, values - halves, values + halves)
            axes.fill_betweenx(shares / 100, *ends, color=options["color"], alpha=0.15, linewidth=0)
    axes.set_xlabel(name + _unit(name))
    axes.set_ylabel("share that does not exceed it")
    per_cent(axes.yaxis)
    if name in _SHARES:
        per_cent(axes.xaxis)
    elif name in _WHOLE:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    means = "means over seeds of every per cent" + _intervals(banded)
    caption = f"At whole per cents; {means if several else 'one curve a run'}."
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
    chosen = _some(curves, styles)
    several = banded = False
    for curve, options in chosen:
        alike = [one for one in curves if _place(one) == _place(curve)]
        times = [one.points[:, 0].tolist() for one in alike]
        # Runs that were ended at different times have no mean.
        if any(one != times[0] for one in times):
            alike = [curve]
        seconds, values, halves = averaged(alike)
        axes.plot(seconds / 3600, values, **options)
        several |= len(alike) > 1
        if len(alike) > 1 and len(chosen) <= _MOST_BANDS:
            banded = True
            ends = _possible(name, values - halves, values + halves)
            band = {"color": options["color"], "alpha": 0.18, "linewidth": 0}
            axes.fill_between(seconds / 3600, *ends, **band)
    axes.set_xlabel("simulated time (hours)")
    axes.set_ylabel(name)
    from_zero(axes)
    if name in _SHARES:
        per_cent(axes.yaxis)
    means = "means over seeds" + _intervals(banded) if several else "one seed each"
    caption = f"Means of groups of cycles where there are many; {means}."
    title = name[0].upper() + name[1:]
    return _finished(figure, axes, folder, f"series-{name}", title, caption)


Options = dict[str, Any]


def _intervals(banded: bool) -> str:
    return ", with 95 % intervals (Student)" if banded else ""


def _possible(name: str, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """The ends of intervals, within what values can be: none is negative, no share beyond 1."""
    most = 1.0 if name in _SHARES else np.inf
    return np.clip(low, 0, most), np.clip(high, 0, most)


def _some(curves: Sequence[Curve], styles: dict[str, SystemStyle]) -> list[tuple[Curve, Options]]:
    """The first seed of each condition and system, as many as are legible, and how it is drawn."""
    first: dict[tuple[str, Condition], Curve] = {}
    for curve in sorted(curves, key=lambda one: one.seed):
        first.setdefault(_place(curve), curve)
    systems = list(styles)
    found = sorted(
        first.values(), key=lambda one: (systems.index(one.system), order_of(one.condition))
    )
    step = max(1, len(found) / _MOST_CURVES)
    chosen = [found[int(place * step)] for place in range(min(len(found), _MOST_CURVES))]
    strengths = strengths_of([curve.system for curve in chosen])
    dropped = _shown_by_axis([curve.condition for curve in chosen])
    return [
        (
            curve,
            {
                "color": styles[curve.system].colour,
                "linestyle": styles[curve.system].dashes,
                "alpha": strength,
                "label": shortened(_name(curve, styles, dropped), 2 * LONGEST_LABEL),
            },
        )
        for curve, strength in zip(chosen, strengths, strict=True)
    ]


def _place(curve: Curve) -> tuple[str, Condition]:
    return curve.system, curve.condition


def _shown_by_axis(conditions: Sequence[Condition]) -> set[str]:
    """What need not be said of conditions because the number that takes most values tells it."""
    axis = axis_of(conditions)
    return decided_by(axis, conditions) - {axis} if axis else set()


def _name(one: Curve, styles: dict[str, SystemStyle], dropped: Iterable[str]) -> str:
    told = tuple(pair for pair in one.condition if pair[0] not in dropped)
    return styles[one.system].label + (f" ({short_condition(told)})" if told else "")


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
