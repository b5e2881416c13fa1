"""Running a scenario from the command line: claim a place, simulate, write, print."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import attrs
import typer

from gossamer.command.signals import exit_code_of
from gossamer.command.waiting import waiting
from gossamer.sim.commands.destination import (
    Destination,
    new_destination,
    unfinished_destination,
)
from gossamer.sim.commands.looking import (
    Look,
    check_look,
    kept_tables,
    looked_at,
    remembered,
)
from gossamer.sim.commands.progress import Callback, progress_bars, stops_between_rounds
from gossamer.sim.errors import ResultsError, ScenarioError, SimulationError
from gossamer.sim.results.held import held
from gossamer.sim.results.names import file_name
from gossamer.sim.results.results import write_results
from gossamer.sim.results.tables import print_json, print_summary
from gossamer.sim.study.contract import AnyScenario, Execution
from gossamer.sim.study.plot import PlotOptions, plots_as
from gossamer.sim.study.registry import study_of
from gossamer.sim.study.scenarios import read_scenario


@attrs.frozen(kw_only=True)
class Options:
    """How to run, as opposed to what.

    Attributes:
        out: the result folder; a free one is chosen if None.
        json: print `summary.json` instead of a table.
        resume: go on with an unfinished run.
        plots: how to draw plots; no plots and no report if None.
        threads: of systems side by side, and of the nodes of one; see `simulate`.
        look: how the run is looked at.
        progress: whether to show how far it is, on standard error.
    """

    out: Path | None = None
    json: bool = False
    resume: bool = False
    plots: PlotOptions | None = attrs.field(factory=PlotOptions)
    threads: int = 2
    look: Look = attrs.field(factory=Look)
    progress: bool = True


def run_scenario(scenario: AnyScenario, text: str, options: Options) -> None:
    """Run ``scenario`` and leave a result folder; ``text`` is kept with it.

    Raises:
        SimulationError: the scenario or the place for its results is impossible. A run that got
            to a checkpoint can be resumed, of any other nothing is left behind.
        typer.Exit: the user interrupted the run.
    """
    check_look(options.look, scenario)
    if options.resume:
        place = unfinished_destination(options.out, default_name(scenario))
    else:
        study_of(scenario).check(scenario)
        place = new_destination(options.out, default_name(scenario))
    try:
        with held(place.out):
            _take(place, scenario, text, options)
            _mention_that_nothing_is_set(text)
            summary = _run_at(place, scenario, text, options)
    finally:
        place.remove_empty_parent()
    _print_summary(summary, place, options)


def _mention_that_nothing_is_set(text: str) -> None:
    if not any(line.partition("#")[0].strip() for line in text.splitlines()):
        told = "the scenario is empty: everything has its default"
        print(f"gossamer: {told} ('gossamer sim check' shows it)", file=sys.stderr)


def _run_at(
    place: Destination, scenario: AnyScenario, text: str, options: Options
) -> dict[str, Any]:
    """Run a scenario at the place that was taken for it; the summary."""
    finished = False
    try:
        look = remembered(options.look, place.unfinished, resume=options.resume)
        looking = attrs.evolve(options, look=look)
        summary = _simulate_and_write(scenario, text, place, looking)
        finished = True
    except KeyboardInterrupt as interrupt:
        print(f"gossamer: interrupted; {_what_is_kept(place)}", file=sys.stderr)
        raise typer.Exit(exit_code_of(interrupt)) from None
    except OSError as error:
        reason = f"could not be written ({error.strerror or error}); {_what_is_kept(place)}"
        raise ResultsError(place.out, reason) from error
    except MemoryError as error:
        raise SimulationError(
            f"the memory of this machine does not suffice; {_what_is_kept(place)}"
        ) from error
    finally:
        if finished or not place.has_checkpoint:
            place.release()
    return summary


def _take(place: Destination, scenario: AnyScenario, text: str, options: Options) -> None:
    """Make a place for a new run, or check that the unfinished one there is of ``scenario``."""
    if not options.resume:
        place.claim(text)
        return
    kept, _ = read_scenario(place.scenario, {})
    if kept != scenario:
        expected = f"an unfinished run of this scenario; '{place.resume_command()}' goes on with it"
        raise ScenarioError(
            str(place.scenario), "the scenario", kept.name, expected, found="another one"
        )


def _simulate_and_write(
    scenario: AnyScenario, text: str, place: Destination, options: Options
) -> dict[str, Any]:
    study = study_of(scenario)
    with (
        looked_at(scenario, options.look, place.snapshots) as watch,
        _shown(study.progress_unit, study.compiles(scenario), options) as bars,
        stops_between_rounds(bars) if study.threaded else nullcontext(bars) as progress,
    ):
        execution = Execution(
            progress=progress,
            checkpoint=place.checkpoint,
            resume=options.resume,
            workers=options.threads,
            watch=watch,
        )
        record = study.run(scenario, text, execution)
    doing = "writing results" if options.plots is None else "drawing plots and writing results"
    with waiting(doing), plots_as(options.plots or PlotOptions()):
        return write_results(
            record,
            place.out,
            pictures=options.plots is not None,
            tables=kept_tables(scenario, record, options.look),
            beside=place.snapshots,
        )


def _shown(unit: str, compiles: bool, options: Options) -> AbstractContextManager[Callback]:
    if not options.progress:
        return nullcontext(lambda *_report: None)
    return progress_bars(unit, compiles=compiles)


def _what_is_kept(place: Destination) -> str:
    if place.has_checkpoint:
        return (
            f"the checkpoint in {place.unfinished} is kept, "
            f"go on with it by '{place.resume_command()}'"
        )
    return "there was no checkpoint yet, nothing is kept"


def _print_summary(summary: dict[str, Any], place: Destination, options: Options) -> None:
    if options.json:
        print_json(summary, sys.stdout)
        return
    print_summary(summary, place.out / ("report.html" if options.plots else "summary.json"))


def default_name(scenario: AnyScenario) -> str:
    """What the result folder of a scenario is called, if nobody says."""
    return file_name(f"{scenario.name}-{scenario.seed}")
