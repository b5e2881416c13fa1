"""`gossamer spark crunch`: the folder of what was found in runs, whole or not at all.

measures.parquet, .csv      a row a run, system and measure: the tidy table
intervals.parquet, .csv     mean and 95 % interval over the seeds of each condition
comparisons.parquet, .csv   pairs of systems: differences, intervals, effect sizes
curves.parquet              distributions (percentiles, Lorenz curves) and series of each system
claims.json, checks.*       claims that were to be checked, checks with intervals
crunch.json                 what was crunched, which figures are sketches, notes
plots/, report.html         the same for people
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs
import pyarrow as pa
import pyarrow.parquet as pq

from gossamer.sim.figures.common.claims import write_claims
from gossamer.sim.results.held import held
from gossamer.sim.results.results import ResultsError, whole_folder
from gossamer.sim.study.environment import versions
from gossamer.sim.study.statistics import MEASURE
from gossamer.spark.crunch.deliveries import EXACT, ROW_SCHEMA, SKETCH, as_table, delivery_rows
from gossamer.spark.crunch.folders import Run, SystemTables, notes_on
from gossamer.spark.crunch.small import rows_of, summary_rows
from gossamer.spark.crunch.statistics import (
    Comparison,
    Condition,
    Interval,
    Value,
    comparisons,
    condition_of,
    conditions,
    intervals,
)
from gossamer.spark.crunch.tables import OTHERS, WORKLOADS
from gossamer.spark.crunch.workloads import SAMPLE, SAMPLED_EVENTS, workload_rows
from gossamer.spark.handover import Mark
from gossamer.spark.jobs import job_errors, watched
from gossamer.spark.session import slots

if TYPE_CHECKING:
    from gossamer.spark.crunch.claims import CheckedClaim

CRUNCH_FILE: Final = "crunch.json"
FROM_SUMMARY: Final = "summary"
_TASKS_A_SLOT: Final = 4
# Runs that every worker looks at first.
_LOOKED_AT: Final = 64


@attrs.frozen(kw_only=True)
class Curve:
    """A distribution or series of one system of one run, as points."""

    run: str
    condition: Condition
    seed: int
    system: str
    part: str
    name: str
    points: Sequence[tuple[float, float]]


@attrs.frozen(kw_only=True)
class Crunched:
    """What was found.

    Attributes:
        folder: where it was written.
        runs: how many were crunched.
        values: of all measures.
        intervals, comparisons: of them.
        curves: distributions and series.
        notes: sentences on what is not there, or not exact.
        checked: claims that were asked for.
    """

    folder: Path
    runs: int
    values: Sequence[Value]
    intervals: Sequence[Interval]
    comparisons: Sequence[Comparison]
    curves: Sequence[Curve]
    notes: Sequence[str]
    checked: Sequence[CheckedClaim] = ()


def crunch_results(
    session: Any,
    runs: Sequence[Run],
    out: Path,
    *,
    plots: bool = True,
    exact_up_to: int,
    claims: Sequence[str] = (),
) -> Crunched:
    """Crunch runs into a new folder.

    Args:
        session: of Spark. All its workers need to see the folders of the runs.
        runs: what `find_runs` found.
        out: the new folder; on any error it is not made.
        plots: whether to draw.
        exact_up_to: deliveries up to which percentiles of delays are exact, see `deliveries`, and
            rows of workloads, see `workloads`.
        claims: of the Vinifera paper that are checked, see `claims`.

    Raises:
        ResultsError: ``out`` is taken, another process is at work on it, or a table is damaged.
        FolderUnseen: workers do not see a run's folder, or another one under its name.
        ScenarioError: a claim is not known here, or no runs decide it.
        JobError: a job failed.
        OSError: the disk is full or not writable.
    """
    with held(out):
        return _crunch_alone(session, runs, out, plots, exact_up_to, claims)


def _crunch_alone(
    session: Any,
    runs: Sequence[Run],
    out: Path,
    plots: bool,
    exact_up_to: int,
    claims: Sequence[str],
) -> Crunched:
    """Crunch runs into a folder on which nobody else is at work."""
    systems = [system for run in runs for system in run.systems]
    with job_errors("crunching"), watched(session, "tables"):
        _require_seen(session, systems)
        small = _small_tables(session, systems)
    with job_errors("crunching deliveries"), watched(session, "deliveries"):
        large = delivery_rows(session, systems, exact_up_to)
    with job_errors("crunching workloads"), watched(session, "workloads"):
        workloads = workload_rows(session, systems, exact_up_to)
    found = _crunched(runs, [small, large, workloads, _summaries(runs)], out)
    if claims:
        # Workers import this module as well, and have no use for the simulator.
        from gossamer.spark.crunch.claims import check_claims

        found = attrs.evolve(found, checked=check_claims(claims, runs, found.values))
    with whole_folder(out, replace=False) as folder:
        _write(found, folder)
        if plots:
            from gossamer.spark.crunch.page import write_page
            from gossamer.spark.crunch.plots import write_plots

            write_page(found, write_plots(found, folder / "plots"), folder / "report.html")
    return found


@attrs.frozen
class _Looker:
    """Sees whether the machine of a task sees the same files as this one; makes no rows."""

    marks: Sequence[Mark]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if len(batch):
                for mark in self.marks:
                    mark.check()
                yield batch


def _require_seen(session: Any, systems: Sequence[SystemTables]) -> None:
    """Look, before any work is done, whether the workers see some of the runs.

    Tasks that read tables look again, as more workers may come later; Spark's own do not.
    """
    marks = list(dict.fromkeys(one.mark for one in systems))
    step = -(-len(marks) // _LOOKED_AT)
    looker = _Looker(marks[:: max(step, 1)])
    tasks = slots(session)
    session.range(0, tasks, 1, tasks).mapInArrow(looker, "id long").collect()


@attrs.frozen
class _Reader:
    """Reads the small tables of the systems whose numbers a task gets."""

    systems: Mapping[int, tuple[str, Path, Mark]]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                kind, folder, mark = self.systems[number]
                mark.check()
                try:
                    rows = list(rows_of(kind, folder))
                except (pa.ArrowException, OSError) as error:
                    reason = str(error).partition("\n")[0].rstrip(".")
                    raise ResultsError(folder, f"has a damaged table ({reason})") from None
                yield from as_table(number, rows, EXACT).to_batches()


def _small_tables(session: Any, systems: Sequence[SystemTables]) -> pa.Table:
    from pyspark.sql.pandas.types import from_arrow_schema

    read = {
        one.number: (one.kind, one.folder, one.mark)
        for one in systems
        if one.kind not in (OTHERS, WORKLOADS)
    }
    if not read:
        return ROW_SCHEMA.empty_table()
    tasks = min(len(read), _TASKS_A_SLOT * slots(session))
    numbers = session.createDataFrame([(number,) for number in read], "system int")
    made = numbers.repartition(tasks).mapInArrow(_Reader(read), from_arrow_schema(ROW_SCHEMA))
    keys = [(name, "ascending") for name in ("system", "part", "name", "x")]
    return made.toArrow().cast(ROW_SCHEMA).sort_by(keys)


def _summaries(runs: Sequence[Run]) -> pa.Table:
    """What only summaries tell: totals, and all of systems whose tables are not known."""
    tables = []
    for run in runs:
        for one in run.systems:
            entry = run.summary["systems"][one.system]
            known = () if one.kind == OTHERS else [name for name in entry if name != "totals"]
            tables.append(as_table(one.number, list(summary_rows(entry, known)), FROM_SUMMARY))
    return pa.concat_tables(tables) if tables else ROW_SCHEMA.empty_table()


def _crunched(runs: Sequence[Run], tables: Sequence[pa.Table], out: Path) -> Crunched:
    systems = {system.number: (run, system.system) for run in runs for system in run.systems}
    kept, repeated = _without_repetitions(systems)
    values: list[Value] = []
    points: dict[tuple[int, str, str], tuple[dict[str, Any], list[tuple[float, float]]]] = {}
    for row in pa.concat_tables(tables).to_pylist():
        number = row["system"]
        if number not in kept:
            continue
        run, system = systems[number]
        common = {
            "run": run.name,
            "condition": kept[number],
            "seed": run.summary["seed"],
            "system": system,
        }
        if row["part"] == MEASURE:
            values.append(
                Value(**common, measure=row["name"], value=row["value"], method=row["method"])
            )
        else:
            key = (number, row["part"], row["name"])
            points.setdefault(key, (common, []))[1].append((row["x"], row["value"]))
    values.sort(key=lambda one: (one.run, one.system, one.measure))
    sketched, sampled = (
        sorted({one.measure for one in values if one.method == method})
        for method in (SKETCH, SAMPLE)
    )
    notes = [*notes_on(runs)]
    if repeated:
        notes.append(f"{repeated} systems were run again with the same seed: left out.")
    if sketched:
        notes.append(f"Sketched, not exact: {', '.join(sketched)}.")
    if sampled:
        notes.append(f"Of a sample of {SAMPLED_EVENTS:,} events: {', '.join(sampled)}.")
    return Crunched(
        folder=out,
        runs=len(runs),
        values=values,
        intervals=intervals(values),
        comparisons=comparisons(values),
        curves=[
            Curve(**common, part=part, name=name, points=tuple(sorted(found)))
            for (_, part, name), (common, found) in points.items()
        ],
        notes=notes,
    )


def _without_repetitions(
    systems: Mapping[int, tuple[Run, str]],
) -> tuple[dict[int, Condition], int]:
    """The condition of each system, of those that are the same in all but the first left out."""
    scenarios = [
        (system, condition_of(run.summary["scenario"], system)) for run, system in systems.values()
    ]
    kept: dict[int, Condition] = {}
    seen = set()
    for (number, (run, system)), condition in zip(
        systems.items(), conditions(scenarios), strict=True
    ):
        key = (repr(condition), run.summary["seed"], system)
        if key not in seen:
            seen.add(key)
            kept[number] = condition
    return kept, len(systems) - len(kept)


def _write(found: Crunched, folder: Path) -> None:
    _write_rows([_with_condition(one) for one in found.values], folder / "measures")
    _write_rows([_with_condition(one) for one in found.intervals], folder / "intervals")
    _write_rows([_with_condition(one) for one in found.comparisons], folder / "comparisons")
    pq.write_table(_curve_table(found.curves), folder / "curves.parquet", compression="zstd")
    if found.checked:
        write_claims([one.claim for one in found.checked], folder)
        _write_rows([row for one in found.checked for row in _checks(one)], folder / "checks")
    told = {
        "runs": found.runs,
        "notes": list(found.notes),
        "versions": versions(),
        "methods": sorted({one.method for one in found.values}),
    }
    (folder / CRUNCH_FILE).write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")


def _checks(checked: CheckedClaim) -> Iterator[dict[str, Any]]:
    """The checks of a claim with their intervals."""
    for check, low, high in checked.rows():
        yield {
            "claim": checked.claim.id,
            "check": check.name,
            "unit": check.unit,
            "seeds": checked.seeds,
            "value": check.value,
            "low": low,
            "high": high,
            "paper": check.paper,
            "accepted": check.bounds(),
            "holds": check.holds,
        }


def _with_condition(one: Any) -> dict[str, Any]:
    """The fields of a value, interval or comparison, the condition as text."""
    fields = attrs.asdict(one, recurse=False)
    return fields | {"condition": condition_text(one.condition)}


def condition_text(condition: Condition) -> str:
    """A condition for people: ``key=value`` with commas between them."""
    return ", ".join(f"{name}={value}" for name, value in condition)


def _write_rows(rows: Sequence[Mapping[str, Any]], stem: Path) -> None:
    """The same rows as Parquet and CSV; no file where there are none."""
    if not rows:
        return
    table = pa.Table.from_pylist(list(rows))
    pq.write_table(table, stem.with_suffix(".parquet"), compression="zstd")
    with stem.with_suffix(".csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def _curve_table(curves: Sequence[Curve]) -> pa.Table:
    columns: dict[str, list[Any]] = {
        name: [] for name in ("run", "condition", "seed", "system", "part", "name", "x", "value")
    }
    for curve in curves:
        for x, value in curve.points:
            for name in ("run", "seed", "system", "part", "name"):
                columns[name].append(getattr(curve, name))
            columns["condition"].append(condition_text(curve.condition))
            columns["x"].append(x)
            columns["value"].append(value)
    text, real = pa.string(), pa.float64()
    types = [text, text, pa.int64(), text, text, text, real, real]
    return pa.table(columns, schema=pa.schema(list(zip(columns, types, strict=True))))
