"""What sweeps print: short tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from rich.console import Console

from gossamer.command.tables import FittingTable
from gossamer.sim.results.intervals import Interval, short_name
from gossamer.sim.results.sweeps.scheduling import SweepOutcome
from gossamer.sim.study.records import Measure

# Rows that are printed; the folder has all.
_PRINTED: Final = 40


def print_sweep(outcome: SweepOutcome[Any]) -> None:
    """How many points ran, and which failed."""
    console = Console()
    there = outcome.points - outcome.ran - len(outcome.failed)
    console.print(
        f"{outcome.points:,} points: {outcome.ran:,} ran, {there:,} were there already, "
        f"{len(outcome.failed):,} failed"
    )
    for reason in outcome.failed.values():
        console.print(reason, style="red", markup=False, soft_wrap=True)
    if outcome.failed:
        console.print("The others are kept; --resume runs those that failed again.")
    console.print(f"Results: {outcome.folder}", highlight=False, soft_wrap=True, markup=False)


def print_means(intervals: Sequence[Interval], measures: Sequence[Measure]) -> None:
    """The measures that matter most over the seeds, each along what is varied."""
    systems = list(dict.fromkeys(one.system for one in intervals))
    found = {(one.measure, one.condition, one.system): one for one in intervals}
    conditions = list(dict.fromkeys(one.condition for one in intervals))
    rows = [
        (measure, condition, [found.get((measure.key, condition, system)) for system in systems])
        for measure in measures
        if measure.brief
        for condition in conditions
    ]
    rows = [row for row in rows if any(row[2])]
    table = FittingTable("measure", "point")
    table.add_numbers(*systems)
    before = None
    for measure, condition, cells in rows[:_PRINTED]:
        if measure.key != before and before is not None:
            table.add_section()
        label = measure.label if measure.key != before else ""
        before = measure.key
        table.add_row(label, varied_text(condition), *(_cell(measure, cell) for cell in cells))
    console = Console()
    console.print(table, markup=False)
    if len(rows) > _PRINTED:
        console.print(f"and {len(rows) - _PRINTED:,} more rows in means.csv")


def _cell(measure: Measure, one: Interval | None) -> str:
    """A mean with half the length of its interval."""
    if one is None:
        return "-"
    if math.isnan(one.low):
        return measure.format(one.mean)
    return f"{measure.format(one.mean)} ± {measure.format(one.high - one.mean)}"


def varied_text(condition: Sequence[tuple[str, Any]]) -> str:
    """What is varied in a point, in words."""
    return ", ".join(f"{short_name(name)} {value}" for name, value in condition)
