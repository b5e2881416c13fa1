"""What a finished sweep tells: means over the seeds, paired differences, and warm-ups.

means.*         a row a point (seeds aside), system and measure: mean, deviation, 95 % interval
differences.*   a row a pair of systems of a point and measure: the mean difference over the seeds,
                with its interval. Systems of one seed meet the same population, workload and
                churn (common random numbers), so the difference of a seed is without their chance
plots/          measures over what is varied, and over time, with their intervals
warm_up.*       a row a run, system and series: how much of the beginning MSER-5 leaves out, the
                mean of the rest, and whether the run was long enough to tell
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from gossamer.sim.errors import ScenarioError
from gossamer.sim.results.intervals import (
    Comparison,
    Condition,
    Interval,
    Value,
    comparisons,
    half_width,
    intervals,
    is_setting,
    mser5,
)
from gossamer.sim.results.results import Results, read_results
from gossamer.sim.results.sweeps.folder import (
    POINT,
    RESULT_HASH,
    RUNS,
    point_rows,
    write_rows,
)
from gossamer.sim.results.sweeps.plan import SEED, SYSTEM, SweepPlan
from gossamer.sim.results.tables import all_measures
from gossamer.sim.study.records import SERIES, Measure
from gossamer.sim.study.scenarios import study_of_values
from gossamer.sim.study.watching import Floats

PLOTS: Final = "plots"
# Lines in a plot over time; of more conditions some are drawn, evenly spread.
_MOST_LINES: Final = 6

# Of one line: the rounds, and its values, a row a seed.
Line = tuple[Floats, Floats]
Place = tuple[str, Condition]


def draw_sweep(
    plan: SweepPlan,
    runs: Mapping[str, Results],
    means: Sequence[Interval],
    varied: Sequence[str],
    folder: Path,
) -> None:
    """Draw the brief measures of a sweep, and its curves over time, into a new folder.

    Args:
        plan: of the sweep.
        runs: the results of its points, by name.
        means: of all measures.
        varied: what is varied, seeds and systems aside.
        folder: is made, in the place of one that an earlier attempt left.
    """
    from gossamer.sim.results.interval_plots import draw_measure
    from gossamer.sim.results.plot_style import plot_style, system_styles

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    brief = [one for one in all_measures(run.summary for run in runs.values()) if one.brief]
    styles = system_styles(dict.fromkeys(one.system for one in means))
    with plot_style():
        for measure in brief:
            chosen = [one for one in means if one.measure == measure.key]
            if chosen:
                draw_measure(measure.key, measure, chosen, styles, folder)
        for about, lines in _over_time(plan, runs, varied):
            _draw_over_time(about, lines, folder)


def _over_time(
    plan: SweepPlan, runs: Mapping[str, Results], varied: Sequence[str]
) -> Iterator[tuple[Measure, dict[Place, Line]]]:
    """Every curve of the runs: a line a system and condition."""
    found: dict[str, dict[Place, list[Line]]] = {}
    abouts: dict[str, Measure] = {}
    several = [
        key for key in varied if len({repr(point.values.get(key)) for point in plan.points}) > 1
    ]
    for point in plan.points:
        run = runs[point.name]
        values = {key: value for key, value in point.values.items() if key not in (SEED, SYSTEM)}
        condition = tuple((key, values.get(key)) for key in several)
        scenario = run.summary["scenario"]
        study = study_of_values(scenario)
        for system in run.systems:
            try:
                course = study.course(partial(run.table, system), scenario)
            except ScenarioError:
                continue  # of a kind that has no rounds
            for curve in course.curves:
                abouts.setdefault(curve.about.key, curve.about)
                lines = found.setdefault(curve.about.key, {})
                one = (course.rounds.astype(np.float64), curve.values)
                lines.setdefault((system, condition), []).append(one)
    for key, lines in found.items():
        yield abouts[key], {place: _together(one) for place, one in _some(lines)}


def _some(lines: Mapping[Place, list[Line]]) -> Iterable[tuple[Place, list[Line]]]:
    places = list(lines.items())
    chosen = np.unique(np.linspace(0, len(places) - 1, min(len(places), _MOST_LINES)).astype(int))
    return [places[place] for place in chosen.tolist()]


def _together(runs: Sequence[Line]) -> Line:
    """The runs of a line up to the end of the shortest, a row each."""
    shortest = min(len(rounds) for rounds, _ in runs)
    return runs[0][0][:shortest], np.array([values[:shortest] for _, values in runs])


def _draw_over_time(about: Measure, lines: Mapping[Place, Line], folder: Path) -> None:
    """The mean of the seeds in every round, with a band that is its interval."""
    from gossamer.sim.results.interval_plots import short_condition
    from gossamer.sim.results.plot_style import (
        draw_band,
        draw_line,
        from_zero,
        legend_below,
        new_figure,
        per_cent,
        save,
        shortened,
        system_styles,
    )

    names = {
        place: shortened(place[0] + (f" ({short_condition(place[1])})" if place[1] else ""))
        for place in lines
    }
    styles = system_styles(names.values())
    figure = new_figure()
    axes = figure.subplots()
    seeds = set()
    for place, (rounds, values) in lines.items():
        style = styles[names[place]]
        means = values.mean(axis=0)
        draw_line(axes, rounds, means, style)
        if len(values) > 1:
            halves = np.array([half_width(column) for column in values.T])
            draw_band(axes, rounds, means, halves, style.colour)
        seeds.add(len(values))
    axes.set(title=about.label[:1].upper() + about.label[1:], xlabel="round")
    if about.kind == "ratio":
        per_cent(axes.yaxis)
    if all(np.nanmin(values, initial=0.0) >= 0 for _, values in lines.values()):
        from_zero(axes)  # where bands go below
    most = max(seeds)
    note = "one seed" if most == 1 else f"means over {most} seeds, with 95 % intervals"
    legend_below(figure, axes, note=note)
    save(figure, folder, f"over-time-{about.key}")


MEANS: Final = "means"
DIFFERENCES: Final = "differences"
WARM_UP: Final = "warm_up"
# The table that `Study.rows` is not given.
DELIVERIES: Final = "deliveries"
# Settings of a system in a sweep file; systems with different ones are different systems.
_OF_SYSTEM: Final = "system."

# Columns, behind what is varied.
_OF_MEANS: Final = (SYSTEM, "measure", "seeds", "mean", "deviation", "low", "high")
_OF_DIFFERENCES: Final = (
    *("measure", "first", "second", "seeds"),
    *("difference", "low", "high", "hedges_g", "cliffs_delta"),
)
_OF_WARM_UPS: Final = (POINT, SYSTEM, "series", "warm_up", "mean", "settled")

Row = dict[str, Any]


def write_outcome(plan: SweepPlan, folder: Path, *, pictures: bool = True) -> None:
    """Write what the runs of a sweep tell together into its folder, with plots or without."""
    runs = {point.name: read_results(folder / RUNS / point.name) for point in plan.points}
    rows = point_rows(plan, {name: found.summary for name, found in runs.items()})
    varied = varied_keys(plan)
    values = list(values_of(rows, varied))
    means = intervals(values)
    differences = [outcome_row(one) for one in comparisons(values)]
    write_rows([outcome_row(one) for one in means], folder / MEANS, (*varied, *_OF_MEANS))
    shared = [key for key in varied if not is_setting(key)]
    write_rows(differences, folder / DIFFERENCES, (*shared, *_OF_DIFFERENCES))
    write_rows(list(_warm_ups(plan, runs)), folder / WARM_UP, _OF_WARM_UPS)
    if pictures:
        draw_sweep(plan, runs, means, varied, folder / PLOTS)


def varied_keys(plan: SweepPlan) -> list[str]:
    """What a sweep varies, seeds and systems aside."""
    keys = dict.fromkeys(key for point in plan.points for key in point.values)
    return [key for key in keys if key not in (SEED, SYSTEM)]


def values_of(rows: Iterable[Mapping[str, Any]], varied: Iterable[str]) -> Iterator[Value]:
    """The measures in rows of `point_rows`, a value each.

    Args:
        rows: of the table of points.
        varied: columns that make the condition.
    """
    varied = list(varied)
    met = set()
    for row in rows:
        system = str(row[SYSTEM])
        condition = tuple((key, row.get(key)) for key in varied if _concerns(key, system))
        # Where a setting of another system is varied, this one runs several times alike.
        if (condition, system, row[SEED]) in met:
            continue
        met.add((condition, system, row[SEED]))
        for name, value in row.items():
            if name in (POINT, SEED, SYSTEM, RESULT_HASH, *varied) or value is None:
                continue
            yield Value(
                run=str(row[POINT]),
                condition=condition,
                seed=int(row[SEED]),
                system=system,
                measure=name,
                value=float(value),
                method="summary",
            )


def _concerns(key: str, system: str) -> bool:
    """Whether a key is of the scenario, or a setting of a system."""
    return not key.startswith(_OF_SYSTEM) or key.startswith(f"{_OF_SYSTEM}{system}.")


def outcome_row(one: Interval | Comparison) -> Row:
    """An interval or a comparison as a row."""
    names = _OF_MEANS if isinstance(one, Interval) else _OF_DIFFERENCES
    return {**dict(one.condition), **{name: getattr(one, name) for name in names}}


def _warm_ups(plan: SweepPlan, runs: Mapping[str, Results]) -> Iterator[Row]:
    for point in plan.points:
        found = runs[point.name]
        study = study_of_values(found.summary["scenario"])
        for system in found.systems:
            names = [name for name in study.tables if name != DELIVERIES]
            tables = {name: found.table(system, name) for name in names}
            series: dict[str, list[tuple[float, float]]] = {}
            for row in study.rows(tables) if tables else ():
                if row.part == SERIES:
                    series.setdefault(row.name, []).append((row.x, row.value))
            for name, pairs in series.items():
                time, values = np.array(pairs).T
                told = mser5(values)
                warm_up = float(time[min(told.left_out, len(time) - 1)])
                row_values = (point.name, system, name, warm_up, told.mean, told.settled)
                yield dict(zip(_OF_WARM_UPS, row_values, strict=True))
