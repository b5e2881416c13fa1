"""`gossamer sim explore`: an exploration and its place for results, and stories taken again."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import attrs
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from gossamer.command.signals import exit_code_of
from gossamer.sim.commands.progress import LEAST_APART_S
from gossamer.sim.commands.run import Destination, free_folder
from gossamer.sim.errors import ResultsError
from gossamer.sim.exploration.exploration import Exploration, explore, replay
from gossamer.sim.exploration.search import Report
from gossamer.sim.results.held import UNFINISHED, file_name, held
from gossamer.sim.results.plot_style import plot_style, save
from gossamer.sim.study.plot import PlotOptions, plots_as

_MEGABYTE: Final = 1 << 20


@attrs.frozen(kw_only=True)
class Exploring:
    """What to explore, and where results go.

    Attributes:
        protocol: "file.py:Class".
        nodes, invariants, scenario, bounds: as `explore` takes them.
        out: the result folder; a free one is chosen if None.
        resume: go on with an unfinished exploration.
        memory: megabytes of the states of a level in memory at most; None without a bound.
        plots: how to draw the story; not at all if None.
    """

    protocol: str
    nodes: int
    invariants: Sequence[str]
    scenario: Mapping[str, Any]
    bounds: Mapping[str, Any]
    out: Path | None
    resume: bool
    memory: int | None
    plots: PlotOptions | None


def explore_protocol(asked: Exploring) -> None:
    """Explore, print what came of it, and leave a result folder.

    Raises:
        SimulationError: it cannot be explored, or the place for its results is impossible.
        typer.Exit: with code 1 where a property does not hold; where the user interrupted it.
    """
    name = file_name(f"explore-{asked.protocol.rpartition(':')[2].lower()}")
    place = free_folder(name) if asked.out is None else asked.out
    levels = place.with_name(place.name + UNFINISHED)
    try:
        found = _explored_at(place, levels, asked)
    finally:
        Destination(place).remove_empty_parent()
    typer.echo(found)
    if found.story is not None:
        typer.echo(found.story)
        typer.echo(f"Story: {place / 'story.json'}")
        raise typer.Exit(1)


def _explored_at(place: Path, levels: Path, asked: Exploring) -> Exploration:
    """Explore at a place that nobody else works on; levels are kept beside it until the end."""
    with held(place):
        _claim(levels, resume=asked.resume)
        try:
            with progress_of_levels() as report:
                found = explore(
                    asked.protocol,
                    asked.nodes,
                    invariants=asked.invariants,
                    scenario=asked.scenario,
                    folder=levels,
                    memory=None if asked.memory is None else asked.memory * _MEGABYTE,
                    resume=asked.resume,
                    report=report,
                    **asked.bounds,
                )
            _write(found, place, asked.plots)
        except (KeyboardInterrupt, OSError) as error:
            kept = _what_is_kept(levels, place)
            if isinstance(error, OSError):
                raise ResultsError(place, f"could not be written ({error}); {kept}") from error
            print(f"gossamer: interrupted; {kept}", file=sys.stderr)
            raise typer.Exit(exit_code_of(error)) from None
        except BaseException:
            shutil.rmtree(levels, ignore_errors=True)
            raise
        shutil.rmtree(levels, ignore_errors=True)
    return found


def nested(keys: Mapping[str, object]) -> dict[str, Any]:
    """The tables of a scenario that dotted keys stand for."""
    document: dict[str, Any] = {}
    for dotted, value in keys.items():
        *tables, last = dotted.split(".")
        table = document
        for name in tables:
            table = table.setdefault(name, {})
        table[last] = value
    return document


def _claim(levels: Path, *, resume: bool) -> None:
    if resume and not levels.is_dir():
        raise ResultsError(levels, "does not exist, expected an unfinished exploration there")
    if not resume:
        try:
            levels.mkdir(parents=True)
        except FileExistsError:
            told = "holds an unfinished exploration; go on with it by --resume, or move it away"
            raise ResultsError(levels, told) from None


def _what_is_kept(levels: Path, place: Path) -> str:
    if any(levels.glob("level-*.npz")):
        word = shlex.join(["--out", str(place), "--resume"])
        return f"the finished levels in {levels} are kept, go on with the same command and '{word}'"
    shutil.rmtree(levels, ignore_errors=True)
    return "nothing is kept"


def _write(found: Exploration, place: Path, plots: PlotOptions | None) -> None:
    """Write the result folder, which appears whole."""
    beside = place.with_name(f".{place.name}.part")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir()
    summary = attrs.asdict(found, recurse=False)
    summary["story"] = found.story and "story.json"
    text = json.dumps(summary, indent=1)
    (beside / "exploration.json").write_text(text + "\n", encoding="utf-8")
    if found.story is not None:
        found.story.save(beside / "story.json")
        if plots is not None:
            with plots_as(plots), plot_style():
                save(found.story.plot(), beside, "story")
    if place.is_dir():
        place.rmdir()
    os.replace(beside, place)


def replay_story(file: Path, *, debug: bool) -> None:
    """Take a story again, and print it as it goes now.

    Raises:
        ResultsError: it is none, or does not fit the protocol any more.
        RuleError: in a checked run, a rule did what rules may not.
        typer.Exit: with code 1 where the property still does not hold.
    """
    story, fails = replay(file, debug=True if debug else None)
    typer.echo(story)
    if fails:
        raise typer.Exit(1)
    typer.echo(f"{story.property} holds now.")


@contextmanager
def progress_of_levels() -> Iterator[Report]:
    """A report that shows the level, its states, and states a second, on standard error.

    On a terminal that is a bar; elsewhere a line now and then.
    """
    if not sys.stderr.isatty():
        yield _lines(time.monotonic, lambda line: print(line, file=sys.stderr, flush=True))
        return
    console = Console(stderr=True)
    columns = TextColumn("level {task.description}"), BarColumn(), TextColumn("{task.fields[said]}")
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("0", total=None, said="a first exploration compiles")
        begun = time.monotonic()

        def show(level: int, states: int, _actions: int, done: int, total: int) -> None:
            said = f"{states:,} states, {states / (time.monotonic() - begun):,.0f}/s"
            progress.update(task, description=str(level), completed=done, total=total, said=said)

        yield show


def _lines(clock: Callable[[], float], write: Callable[[str], object]) -> Report:
    begun = told = clock()

    def report(level: int, states: int, _actions: int, done: int, total: int) -> None:
        nonlocal told
        now = clock()
        if now - told >= LEAST_APART_S:
            told = now
            rate = f"{states / (now - begun):,.0f}/s"
            write(f"gossamer: level {level}, {done:,} of {total:,} done, {states:,} states, {rate}")

    return report
