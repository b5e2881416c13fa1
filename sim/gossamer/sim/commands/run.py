"""Running a scenario from the command line: claim a place, simulate, write, print."""

from __future__ import annotations

import contextlib
import glob
import itertools
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import attrs
import typer

from gossamer.command.signals import exit_code_of
from gossamer.command.waiting import waiting
from gossamer.sim.commands.looking import Look, check_look, looked_at, remembered
from gossamer.sim.commands.progress import progress_bars, stops_between_rounds
from gossamer.sim.errors import ResultsError, ScenarioError, SimulationError
from gossamer.sim.results.held import UNFINISHED, file_name, held
from gossamer.sim.results.results import check_destination, check_place, write_results
from gossamer.sim.results.storage.workloads import workload_here
from gossamer.sim.results.tables import print_json, print_summary
from gossamer.sim.study.contract import AnyScenario, Execution
from gossamer.sim.study.plot import PlotOptions, plots_as
from gossamer.sim.study.scenario_format import parse_document, read_text
from gossamer.sim.study.scenarios import (
    kind_of_document,
    named_studies,
    read_scenario,
    study_of,
    study_of_kind,
)

# Where a run's results go, and where an unfinished run is kept until they are there.
#
# Beside the result folder OUT, a run in progress holds the folder OUT.unfinished with the scenario
# and its checkpoints. Making that folder claims the name, so that two runs started at a time never
# work for hours towards the same place.


RESULTS = Path("results")


@attrs.frozen
class Destination:
    """The result folder of a run, and what is kept beside it until the run is finished.

    Attributes:
        out: the result folder.
    """

    out: Path

    @property
    def unfinished(self) -> Path:
        """The folder that holds the run until it is finished."""
        return self.out.with_name(self.out.name + UNFINISHED)

    @property
    def checkpoint(self) -> Path:
        """The folder of its checkpoints."""
        return self.unfinished / "checkpoint"

    @property
    def snapshots(self) -> Path:
        """The folder of its snapshots."""
        return self.unfinished / "snapshots"

    @property
    def scenario(self) -> Path:
        """The scenario as it is being run."""
        return self.unfinished / "scenario.toml"

    @property
    def has_checkpoint(self) -> bool:
        """Whether there is anything to go on from."""
        return self.checkpoint.is_dir() and any(self.checkpoint.glob("*.checkpoint"))

    def check(self) -> None:
        """Refuse what `claim` would, and make nothing; raises `ResultsError`."""
        check_place(self.out)
        if self.unfinished.exists():
            raise self._held()

    def _held(self) -> ResultsError:
        return ResultsError(
            self.unfinished,
            f"holds an unfinished run; go on with it by '{self.resume_command()}', "
            "choose another folder, or move it away",
        )

    def claim(self, text: str) -> None:
        """Take the place for a run of the scenario ``text``; raises `ResultsError`, `OSError`."""
        check_destination(self.out)
        try:
            self.unfinished.mkdir()
        except FileExistsError:
            raise self._held() from None
        try:
            self.scenario.write_text(text, encoding="utf-8")
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Remove what was kept of the run, which is finished or never got to a checkpoint."""
        shutil.rmtree(self.unfinished, ignore_errors=True)

    def remove_empty_parent(self) -> None:
        """Remove the folder of all results where no run has left anything in it."""
        if self.out.parent == RESULTS:
            with contextlib.suppress(OSError):
                RESULTS.rmdir()

    def resume_command(self) -> str:
        """The command that goes on with the unfinished run."""
        named = [word for study in named_studies() for word in ("--study", study)]
        words = ["run", str(self.scenario), "--out", str(self.out), "--resume"]
        return shlex.join(["gossamer", "sim", *named, *words])


def new_destination(out: Path | None, name: str) -> Destination:
    """Where the results of a new run go: ``out``, or a free folder of ``name`` under results."""
    if out is not None:
        return Destination(_plain(out))
    return next(place for place in _numbered(name) if not _taken(place))


def unfinished_destination(out: Path | None, name: str) -> Destination:
    """Where an unfinished run is to be resumed: at ``out``, or the only one of ``name``.

    Raises:
        ResultsError: there is none, or ``out`` is not given and there are several.
    """
    if out is not None:
        place = Destination(_plain(out))
        if not place.unfinished.is_dir():
            raise ResultsError(place.unfinished, "does not exist, expected an unfinished run there")
        return place
    places = _kept(name)
    if not places:
        missing = RESULTS / (name + UNFINISHED)
        raise ResultsError(missing, "does not exist, expected an unfinished run there")
    if len(places) > 1:
        choices = ", ".join(str(place.out) for place in places)
        raise ResultsError(RESULTS, f"has several unfinished runs, expected --out with {choices}")
    return places[0]


def free_folder(name: str) -> Path:
    """A folder of ``name`` under results that does not exist yet."""
    return next(place.out for place in _numbered(name) if not _taken(place))


def _numbered(name: str) -> Iterator[Destination]:
    """``name``, then ``name-2``, ``name-3``, and so on."""
    yield Destination(RESULTS / name)
    for number in itertools.count(2):
        yield Destination(RESULTS / f"{name}-{number}")


def _kept(name: str) -> list[Destination]:
    """The places of ``name`` that hold an unfinished run, in order of their names."""
    folders = RESULTS.glob(f"{glob.escape(name)}*{UNFINISHED}")
    outs = sorted(folder.with_name(folder.name.removesuffix(UNFINISHED)) for folder in folders)
    numbered = re.compile(re.escape(name) + r"(-\d+)?")
    return [Destination(out) for out in outs if numbered.fullmatch(out.name)]


def _taken(place: Destination) -> bool:
    return os.path.lexists(place.out) or os.path.lexists(place.unfinished)


def _plain(out: Path) -> Path:
    """``out`` with a last part that a name can be appended to, even if it is `.` or `..`."""
    return out if out.name not in ("", "..") else out.resolve()


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
    """

    out: Path | None = None
    json: bool = False
    resume: bool = False
    plots: PlotOptions | None = attrs.field(factory=PlotOptions)
    threads: int = 2
    look: Look = attrs.field(factory=Look)


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
        progress_bars(study.progress_unit, compiles=study.compiles(scenario)) as bars,
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
    keep = options.look.keep
    kept = (table for what in keep for table in study.keep(scenario, record, what))
    doing = "writing results" if options.plots is None else "drawing plots and writing results"
    with waiting(doing), plots_as(options.plots or PlotOptions()):
        return write_results(
            record,
            place.out,
            pictures=options.plots is not None,
            tables=dict(kept),
            beside=place.snapshots,
        )


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


# `--workload`: what folders of workloads put in place of a scenario's values.


def workload_overrides(
    scenario: Path | None, folders: Sequence[str], overrides: Mapping[str, object]
) -> dict[str, object]:
    """Values by dotted key, as `--set` has them, under those that are set.

    The kind of the file decides what is taken of ``folders``, paths or URLs of workloads.

    Raises:
        StorageError, ResultsError: there is no workload, or its storage fails.
        ScenarioError: the file is no scenario, or one of a kind that takes no such workload.
    """
    found: dict[str, object] = {}
    if folders:
        document = {} if scenario is None else parse_document(read_text(scenario), str(scenario))
        kind = overrides.get("kind", kind_of_document({**document, **overrides}))
        for text in folders:
            workload = workload_here(text)
            found |= study_of_kind(kind).taken_from(workload.kind, workload.path)
    return {**found, **overrides}
