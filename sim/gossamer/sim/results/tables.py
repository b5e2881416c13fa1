"""What a run prints on the terminal: a short table for people, ``summary.json`` for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console
from rich.text import Text

from gossamer.command.tables import FittingTable
from gossamer.sim.results.results import dump_json, read_results
from gossamer.sim.study.records import Measure
from gossamer.sim.study.scenarios import known_kinds, study_of_kind, study_of_values


def all_measures(summaries: Iterable[Mapping[str, Any]]) -> list[Measure]:
    """The measures of the kinds of runs that ``summaries`` are of, each once.

    Where kinds share a measure, it keeps the place that the first kind gives it, and the words of
    the last.

    Raises:
        ScenarioError: there is no study of one of these kinds.
    """
    met: dict[str, dict[str, Measure]] = {}
    for summary in summaries:
        study = study_of_values(summary["scenario"])
        of_kind = met.setdefault(study.kind, {})
        of_kind |= {measure.key: measure for measure in study.measures_of(summary)}
    order = [kind for kind in known_kinds() if kind in met]
    found = {key: measure for kind in order for key, measure in met[kind].items()}
    return list(found.values())


def measures_by_key() -> dict[str, Measure]:
    """The measures of all studies that can be found; where they share one, that of the first."""
    studies = [study_of_kind(kind) for kind in reversed(known_kinds())]
    return {measure.key: measure for study in studies for measure in study.measures}


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """One measure of one system over several runs; ``changes`` are relative to the first run."""

    system: str
    measure: str
    values: tuple[float | None, ...]
    changes: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Several runs measure by measure.

    Attributes:
        runs: what they are called, such as their result folders.
        seeds: the seed of each run.
        hashes: the result hash of each run.
        same_scenario: whether all runs had the same scenario, seeds aside.
        rows: one row per system and measure that any of the runs has.
        measures: those of the rows, by key.
    """

    runs: tuple[str, ...]
    seeds: tuple[int, ...]
    hashes: tuple[str, ...]
    same_scenario: bool
    rows: tuple[ComparisonRow, ...]
    measures: Mapping[str, Measure]


def compare_folders(paths: Sequence[Path]) -> Comparison:
    """Set the results in ``paths`` side by side, the first as the reference.

    Raises:
        ResultsError: one of ``paths`` holds no results.
        ScenarioError: there is no study of the kind of one of them.
    """
    return compare([(str(path), read_results(path).summary) for path in paths])


def compare(runs: Sequence[tuple[str, Mapping[str, Any]]]) -> Comparison:
    """Set runs side by side, the first as the reference.

    Args:
        runs: of each what it is called, and the content of its ``summary.json``.

    Raises:
        ScenarioError: there is no study of the kind of one of them.
    """
    summaries = [summary for _, summary in runs]
    systems = list(dict.fromkeys(name for summary in summaries for name in summary["systems"]))
    measures = all_measures(summaries)
    rows = []
    for system in systems:
        of_system = [summary["systems"].get(system, {}) for summary in summaries]
        for measure in measures:
            values = tuple(entry.get(measure.key) for entry in of_system)
            if any(value is not None for value in values):
                changes = tuple(_relative_change(values[0], value) for value in values)
                rows.append(ComparisonRow(system, measure.key, values, changes))
    return Comparison(
        runs=tuple(name for name, _ in runs),
        seeds=tuple(summary["seed"] for summary in summaries),
        hashes=tuple(summary["result_hash"] for summary in summaries),
        same_scenario=all(_seedless(one) == _seedless(summaries[0]) for one in summaries),
        rows=tuple(rows),
        measures={measure.key: measure for measure in measures},
    )


def _seedless(summary: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in summary["scenario"].items() if key != "seed"}


def _relative_change(reference: float | None, value: float | None) -> float | None:
    if reference is None or value is None:
        return None
    if reference == value:
        return 0.0
    return (value - reference) / abs(reference) if reference else None


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
    study = study_of_values(summary["scenario"])
    yield from study.remarks(summary["systems"])
    for sentence in study.too_small(summary["systems"]):
        yield f"Too small: {sentence}"


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


def _changed(value: str, change: float | None, better: str | None) -> Text:
    """``value`` with its relative change, green where better and red where worse."""
    text = Text(value)
    if change is None or abs(change) < SAME_CHANGE:
        return text
    style = ""
    if better is not None:
        style = "green" if (change > 0) == (better == "higher") else "red"
    return text.append(f" ({100 * change:+.1f} %)", style=style)
