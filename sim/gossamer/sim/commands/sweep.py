"""The command `gossamer sim sweep`: run the points, print the means."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from gossamer.command.signals import exit_code_of
from gossamer.command.waiting import waiting
from gossamer.sim.commands.destination import free_folder
from gossamer.sim.commands.progress import progress_bars
from gossamer.sim.commands.sweep_tables import print_means, print_sweep
from gossamer.sim.errors import ScenarioError, SweepStopped
from gossamer.sim.results.intervals import Interval, intervals
from gossamer.sim.results.measures import all_measures
from gossamer.sim.results.names import file_name
from gossamer.sim.results.results import read_results
from gossamer.sim.results.sweeps.folder import RUNS, point_rows, what_is_kept
from gossamer.sim.results.sweeps.here import COMMAND, sweep_here
from gossamer.sim.results.sweeps.outcome import values_of, varied_keys
from gossamer.sim.results.sweeps.plan import SweepPlan, read_sweep
from gossamer.sim.study.environment import usable_cores
from gossamer.sim.study.plot import PlotOptions, plots_as
from gossamer.sim.study.records import Measure


def run_sweep_file(
    file: Path,
    out: Path | None,
    *,
    resume: bool,
    processes: int | None,
    plots: PlotOptions | None,
) -> None:
    """Run a sweep file and print the means over its seeds.

    Args:
        file: the sweep.
        out: the new folder; a free one under results if None.
        resume: go on with an unfinished sweep.
        processes: points at a time; one a core if None.
        plots: how to draw plots; none if None.

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
