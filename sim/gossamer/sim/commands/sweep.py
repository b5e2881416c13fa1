"""The command `gossamer sim sweep`: run the points, print the means."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import typer
from rich.console import Console

from gossamer.command.signals import exit_code_of
from gossamer.command.tables import FittingTable
from gossamer.command.waiting import waiting
from gossamer.sim.commands.progress import progress_bars
from gossamer.sim.commands.run import free_folder
from gossamer.sim.errors import ScenarioError, SweepStopped
from gossamer.sim.results.held import file_name
from gossamer.sim.results.intervals import Interval, intervals, short_name
from gossamer.sim.results.results import read_results
from gossamer.sim.results.sweeps.folder import RUNS, point_rows, what_is_kept
from gossamer.sim.results.sweeps.here import COMMAND, sweep_here
from gossamer.sim.results.sweeps.outcome import values_of, varied_keys
from gossamer.sim.results.sweeps.plan import SweepPlan, read_sweep
from gossamer.sim.results.sweeps.scheduling import SweepOutcome
from gossamer.sim.results.tables import all_measures
from gossamer.sim.study.plot import PlotOptions, plots_as
from gossamer.sim.study.records import Measure, usable_cores

# What sweeps print: short tables.


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


def run_sweep_file(
    file: Path, out: Path | None, *, resume: bool, processes: int | None, plots: PlotOptions | None
) -> None:
    """Run a sweep file and print the means over its seeds.

    Raises:
        ScenarioError: the file is no sweep, or a point of it no possible scenario.
        SweepStopped: the disk is full, say; what is finished is kept.
        typer.Exit: with code 1 where points failed, and where the user interrupted the sweep.
    """
    with waiting("checking all points"):
        plan = read_sweep(file)
    if out is None and resume:
        raise ScenarioError(None, "--out", None, "the folder of the unfinished sweep", "missing")
    place = free_folder(file_name(plan.name)) if out is None else out
    try:
        with progress_bars("points") as bars, plots_as(plots or PlotOptions()):
            outcome = sweep_here(
                *(plan, place, processes or usable_cores()),
                resume=resume,
                progress=bars,
                pictures=plots is not None,
            )
    except KeyboardInterrupt as interrupt:
        kept = what_is_kept(COMMAND, file, place)
        print(f"gossamer: interrupted; {kept}", file=sys.stderr)
        raise typer.Exit(exit_code_of(interrupt)) from None
    except OSError as error:
        kept = what_is_kept(COMMAND, file, place)
        raise SweepStopped(f"{place}: {error.strerror or error}; {kept}") from error
    if not outcome.failed:
        with waiting("reading results"):
            found = _means(plan, outcome.folder)
        print_means(*found)
    print_sweep(outcome)
    if outcome.failed:
        raise typer.Exit(1)


def _means(plan: SweepPlan, folder: Path) -> tuple[Sequence[Interval], Sequence[Measure]]:
    summaries: dict[str, Any] = {
        point.name: read_results(folder / RUNS / point.name).summary for point in plan.points
    }
    values = values_of(point_rows(plan, summaries), varied_keys(plan))
    return intervals(values), all_measures(summaries.values())
