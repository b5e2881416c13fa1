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

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from gossamer.sim.results.intervals import (
    Comparison,
    Interval,
    Value,
    comparisons,
    intervals,
    is_setting,
)
from gossamer.sim.results.results import Results, read_results
from gossamer.sim.results.sweeps.drawing import PLOTS, draw_sweep
from gossamer.sim.results.sweeps.folder import (
    POINT,
    RESULT_HASH,
    RUNS,
    point_rows,
    write_rows,
)
from gossamer.sim.results.sweeps.plan import SEED, SYSTEM, SweepPlan
from gossamer.sim.results.warm_up import mser5
from gossamer.sim.study.registry import study_of_values
from gossamer.sim.study.statistics import SERIES

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
    differences = [difference_row(one) for one in comparisons(values)]
    write_rows([mean_row(one) for one in means], folder / MEANS, (*varied, *_OF_MEANS))
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


def mean_row(one: Interval) -> Row:
    """An interval as a row."""
    return {**dict(one.condition), **{name: getattr(one, name) for name in _OF_MEANS}}


def difference_row(one: Comparison) -> Row:
    """A comparison as a row."""
    return {**dict(one.condition), **{name: getattr(one, name) for name in _OF_DIFFERENCES}}


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
