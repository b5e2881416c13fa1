"""What a run prints on the terminal: a short table for people, ``summary.json`` for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console
from rich.text import Text

from gossamer.command.tables import FittingTable
from gossamer.sim.results.comparison import Comparison
from gossamer.sim.results.measures import all_measures
from gossamer.sim.results.summary import dump_json
from gossamer.sim.study.registry import study_of_values

SAME_CHANGE = 5e-4  # smaller relative changes are printed as none
SIDE_BY_SIDE = 6  # more systems than this stand below each other


def summary_table(summary: Mapping[str, Any]) -> FittingTable:
    """The short table at the end of a run: one row per measure, one column per system.

    Where there are many systems, one row per system; what none has measured is left out then.
    """
    systems: Mapping[str, Mapping[str, Any]] = summary["systems"]
    brief = [measure for measure in all_measures([summary]) if measure.brief]
    table = FittingTable(title=_title(summary), title_justify="left", title_style="bold")
    if len(systems) > SIDE_BY_SIDE:
        shown = [
            measure
            for measure in brief
            if any(system.get(measure.key) is not None for system in systems.values())
        ]
        table.add_column("system")
        table.add_numbers(*(measure.label for measure in shown))
        for name, system in systems.items():
            table.add_row(name, *(measure.format(system.get(measure.key)) for measure in shown))
        return table
    table.add_column("measure")
    table.add_numbers(*systems)
    for measure in brief:
        values = [measure.format(system.get(measure.key)) for system in systems.values()]
        table.add_row(measure.label, *values)
    return table


def print_summary(summary: Mapping[str, Any], shown: Path, notes: Iterable[str] = ()) -> None:
    """Print the short table, remarks, what was too small, notes, and where results are."""
    console = Console()
    console.print(summary_table(summary))
    for line in (*remarks(summary), *notes, f"Results: {shown}"):
        console.print(line, highlight=False, soft_wrap=True, markup=False)


def remarks(summary: Mapping[str, Any]) -> Iterator[str]:
    """Sentences that belong below the table of a run: what it does not tell, what was too small."""
    yield from study_of_values(summary["scenario"]).remarks(summary["systems"])
    yield from _too_small(summary)


def comparison_table(comparison: Comparison) -> FittingTable:
    """Several runs side by side, each after the first with its change against the first."""
    table = FittingTable(
        title=" ".join(comparison_notes(comparison)), title_justify="left", title_style=""
    )
    table.add_column("system")
    table.add_column("measure")
    for run in comparison.runs:
        table.add_column(Text(Path(run).name), justify="right")
    previous = None
    for row in comparison.rows:
        measure = comparison.measures[row.measure]
        cells = [
            _changed(measure.format(value), change, measure.better)
            for value, change in zip(row.values, row.changes, strict=True)
        ]
        table.add_row(row.system if row.system != previous else "", measure.label, *cells)
        previous = row.system
    return table


def comparison_notes(comparison: Comparison) -> list[str]:
    """Sentences on what differs between the runs apart from their measures."""
    notes = []
    if not comparison.same_scenario:
        notes.append("The scenarios differ.")
    if len(set(comparison.seeds)) > 1:
        notes.append(f"The seeds differ: {', '.join(map(str, comparison.seeds))}.")
    if len(comparison.hashes) > 1 and len(set(comparison.hashes)) == 1:
        notes.append("The results are identical.")
    return notes


def print_json(summary: Mapping[str, Any], stream: TextIO) -> None:
    """Write ``summary`` to ``stream`` exactly as ``summary.json`` holds it."""
    stream.write(dump_json(summary))


def _title(summary: Mapping[str, Any]) -> str:
    name = summary["scenario"].get("name", "run")
    memory = summary["peak_rss_bytes"] / 2**20
    return f"{name}, seed {summary['seed']}: {summary['wall_s']:.1f} s, {memory:,.0f} MiB"


def _too_small(summary: Mapping[str, Any]) -> Iterator[str]:
    study = study_of_values(summary["scenario"])
    for sentence in study.too_small(summary["systems"]):
        yield f"Too small: {sentence}"


def _changed(value: str, change: float | None, better: str | None) -> Text:
    """``value`` with its relative change, green where better and red where worse."""
    text = Text(value)
    if change is None or abs(change) < SAME_CHANGE:
        return text
    style = ""
    if better is not None:
        style = "green" if (change > 0) == (better == "higher") else "red"
    return text.append(f" ({100 * change:+.1f} %)", style=style)
