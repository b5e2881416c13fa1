"""The plots of a sweep: measures over what is varied, and over time, with intervals over seeds."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from gossamer.sim.errors import ScenarioError
from gossamer.sim.results.intervals import Condition, Interval, half_width
from gossamer.sim.results.measures import all_measures
from gossamer.sim.results.results import Results
from gossamer.sim.results.sweeps.plan import SEED, SYSTEM, SweepPlan
from gossamer.sim.study.records import Measure
from gossamer.sim.study.registry import study_of_values
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
