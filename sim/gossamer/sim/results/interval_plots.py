"""Plots of means over seeds: a measure over what was varied, with intervals as bars."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes

from gossamer.sim.results.intervals import Condition, Interval, student
from gossamer.sim.results.plot_style import (
    GREY,
    LONGEST_LABEL,
    SystemStyle,
    from_zero,
    legend_below,
    new_figure,
    per_cent,
    save,
    shortened,
)
from gossamer.sim.study.plot import Plot
from gossamer.sim.study.records import Floats, Measure

# Letters below bars that fit beside each other; longer ones are slanted.
_ROOM: Final = 60
_STRONGEST: Final = 0.95
_WEAKEST: Final = 0.25
# The least distance of ticks, as a share of the axis.
_TICKS_APART: Final = 0.07
# Above 100 % there is nothing but ends of intervals.
_WHOLE: Final = 1.05


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


def draw_measure(
    measure: str,
    known: Measure | None,
    chosen: Sequence[Interval],
    styles: Mapping[str, SystemStyle],
    folder: Path,
) -> Plot:
    """Draw one measure over the number that takes most values, with the intervals of its means.

    Args:
        measure: its key, and the name of the files.
        known: what it is called, if that is known.
        chosen: its means.
        styles: of the systems.
        folder: where files go.
    """
    label = known.label if known else measure.replace("_", " ")
    figure = new_figure()
    axes = figure.subplots()
    seeds = sorted({one.seeds for one in chosen})
    several = f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"{seeds[0]}"
    note = "one seed" if seeds == [1] else f"means over {several} seeds, with 95 % intervals"
    axis = axis_of(one.condition for one in chosen)
    if axis is None:
        _draw_bars(axes, chosen, styles)
    else:
        _draw_lines(axes, chosen, styles, axis)
        axes.set_xlabel(axis)
        ticks = legible_ticks(dict(one.condition).get(axis) for one in chosen)
        axes.set_xticks(ticks, [f"{tick:,.12g}" for tick in ticks])
        legend_below(figure, axes, note=note)
    axes.set_ylabel(label)
    from_zero(axes)
    if known and known.kind == "ratio":
        per_cent(axes.yaxis)
        axes.set_ylim(top=min(axes.get_ylim()[1], _WHOLE))
    axes.set_title(label[:1].upper() + label[1:])
    caption = f"Means over {several} seeds; bars are 95 % intervals (Student)."
    return Plot(measure, label, caption, *save(figure, folder, measure))


def legible_ticks(places: Iterable[float | None]) -> list[float]:
    """Where there are measurements, of which those are left out that would touch another's label.

    The least and the greatest are always there.
    """
    known = sorted({float(place) for place in places if place is not None})
    room = _TICKS_APART * (known[-1] - known[0])
    found = known[:1]
    for place in known[1:-1]:
        if place - found[-1] >= room and known[-1] - place >= room:
            found.append(place)
    return found + known[1:][-1:]


def order_of(condition: Condition) -> list[tuple[str, float, str]]:
    """By which conditions are sorted: numbers by size, texts by letters."""
    return [
        (name, float(value), "")
        if isinstance(value, int | float) and not isinstance(value, bool)
        else (name, math.inf, str(value))
        for name, value in condition
    ]


def _draw_bars(axes: Axes, chosen: Sequence[Interval], styles: Mapping[str, SystemStyle]) -> None:
    systems = list(styles)
    chosen = sorted(chosen, key=lambda one: (order_of(one.condition), systems.index(one.system)))
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
    axes: Axes, chosen: Sequence[Interval], styles: Mapping[str, SystemStyle], axis: str
) -> None:
    lines: dict[tuple[str, Condition], list[Interval]] = {}
    along = decided_by(axis, [one.condition for one in chosen])
    for one in chosen:
        rest = tuple(pair for pair in one.condition if pair[0] not in along)
        lines.setdefault((one.system, rest), []).append(one)
    systems = list(styles)
    lines = {
        line: lines[line]
        for line in sorted(lines, key=lambda line: (systems.index(line[0]), order_of(line[1])))
    }
    flat: list[tuple[str, list[Interval]]] = []
    strengths = strengths_of([system for system, _ in lines])
    for place, ((system, rest), line) in enumerate(lines.items()):
        style = styles[system]
        label = shortened(
            style.label + (f" ({short_condition(rest)})" if rest else ""), 2 * LONGEST_LABEL
        )
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


def averaged(curves: Sequence[Any]) -> tuple[Floats, Floats, Floats]:
    """Places, means over curves at each, and half the lengths of Student's intervals.

    Args:
        curves: with ``points``, pairs of a place and a value, all at the same places; of a single
            one the intervals are 0 long.
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


def short_condition(condition: Condition) -> str:
    """A condition with the last parts of its keys, and numbers that are not longer than needed."""
    return ", ".join(
        f"{name.rpartition('.')[2]} {value:g}"
        if isinstance(value, float)
        else f"{name.rpartition('.')[2]} {value}"
        for name, value in condition
    )


def _name(one: Interval) -> str:
    return one.system + (f" ({short_condition(one.condition)})" if one.condition else "")
