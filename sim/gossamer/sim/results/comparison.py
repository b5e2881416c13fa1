"""Results of several runs side by side, measure by measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gossamer.sim.results.measures import all_measures
from gossamer.sim.results.results import read_results
from gossamer.sim.study.records import Measure


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
