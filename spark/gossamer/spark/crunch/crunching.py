"""`gossamer spark crunch`: the folder of what was found in runs, whole or not at all.

measures.parquet, .csv      a row a run, system and measure: the tidy table
intervals.parquet, .csv     mean and 95 % interval over the seeds of each condition
comparisons.parquet, .csv   pairs of systems: differences, intervals, effect sizes
curves.parquet              distributions (percentiles, Lorenz curves) and series of each system
claims.json, checks.*       claims that were to be checked, checks with intervals
crunch.json                 what was crunched, how values were found, notes
runs.json                   all runs, so that others can be added
lineage.json                command, versions, and the runs with their own lineage
plots/, report.html         the same for people

With partitions, measures/ and curves/ are folders of Parquet files as Hive has them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from gossamer.sim.errors import ResultsError
from gossamer.sim.results.intervals import (
    Comparison,
    Condition,
    Interval,
    Value,
    comparisons,
    condition_of,
    conditions,
    intervals,
)
from gossamer.sim.results.storage.place import AnyPlace, LocalPlace, Place, as_place
from gossamer.sim.study.records import MEASURE, Expected
from gossamer.spark.crunch.curves import CURVES_FILE, Curves, CurveWriter, Owner
from gossamer.spark.crunch.deliveries import (
    EXACT,
    IN_ORDER,
    ROW_SCHEMA,
    as_table,
    delivery_rows,
)
from gossamer.spark.crunch.delta_tables import add_runs, read_tables
from gossamer.spark.crunch.folders import (
    OTHERS,
    WORKLOADS,
    Footer,
    Run,
    SystemTables,
    Wanted,
    check_file,
    rows_of,
    summary_rows,
    with_footers,
)
from gossamer.spark.crunch.kept_runs import (
    MEASURES,
    Kept,
    KnownRun,
    chosen_keys,
    folders_of,
    known,
    notes_on,
    read_kept,
    write_runs,
    write_tables,
)
from gossamer.spark.crunch.workloads import SAMPLE, SAMPLED_EVENTS, workload_rows
from gossamer.spark.handover import Mark
from gossamer.spark.jobs import job_errors, say_cost, watched
from gossamer.spark.session import slots
from gossamer.spark.storage.folders import grown_folder, new_folder, sent_folder
from gossamer.spark.storage.frames import by_tasks, split_table, unreadable
from gossamer.spark.storage.lineage import (
    all_versions,
    input_of,
    lineage_after,
    lineage_of,
    running_command,
    write_lineage,
)

if TYPE_CHECKING:
    from gossamer.spark.crunch.claims import CheckedClaim

FROM_SUMMARY: Final = "summary"
_TASKS_A_SLOT: Final = 4
# Runs whose tables the driver holds at a time, and values that it holds as rows.
_PORTION: Final = 500
_VALUES_A_TIME: Final = 10_000
# Runs that every worker looks at first.
_LOOKED_AT: Final = 64
_FOOTERS: Final = pa.schema(
    [
        ("number", pa.int64()),
        ("rows", pa.int64()),
        ("row_groups", pa.int64()),
        ("size", pa.int64()),
        ("lacking", pa.list_(pa.string())),
    ]
)


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

    folder: Place
    runs: int
    values: Sequence[Value]
    intervals: Sequence[Interval]
    comparisons: Sequence[Comparison]
    curves: Curves
    notes: Sequence[str]
    checked: Sequence[CheckedClaim] = ()


def crunch_results(
    session: Any,
    runs: Sequence[Run],
    out: AnyPlace,
    *,
    plots: bool = True,
    exact_up_to: int,
    claims: Sequence[str] = (),
    partition_by: Sequence[str] | None = None,
    append: bool = False,
) -> Crunched:
    """Crunch runs into a new folder, or into one that has others already.

    What comes of appending is what comes of crunching all runs at once.

    Args:
        session: of Spark. All its workers need to see the folders of the runs.
        runs: what `find_runs` found.
        out: the folder; on any error it is as it was, or not made.
        plots: whether to draw.
        exact_up_to: rows of a workload up to which matches are counted for all events.
        claims: of the Vinifera paper that are checked, see `claims`; not of appended runs.
        partition_by: keys by whose values tables are in folders, see `kept.folders_of`; None: by
            those that they are by, or none.
        append: whether ``out`` may hold crunched results, to which the runs are added.

    Raises:
        ResultsError: ``out`` is taken or cannot be appended to, another process is at
            work on it, or a table is damaged.
        ClusterLost: workers do not see a run's folder, or another one under its name.
        ScenarioError: a claim is not known here, no runs decide it, or no run has a key.
        JobError: a job failed.
        OSError: the disk is full or not writable.
    """
    place = as_place(out)
    with _folder(place, append) as (before, folder), sent_folder(folder) as here:
        kept = Kept() if before is None else read_kept(before)
        keys = chosen_keys(kept, partition_by)
        fresh = _checked(session, kept.without_known(runs))
        kept = kept.numbered(
            1 + max((one.number for run in fresh for one in run.systems), default=-1)
        )
        everything = [*kept.runs, *known(fresh)]
        folders = folders_of(everything, keys)
        found = _found(session, kept, fresh, here, exact_up_to, len(runs) - len(fresh))
        if claims:
            # Workers import this module as well, and have no use for the simulator.
            from gossamer.spark.crunch.claims import check_claims

            found = attrs.evolve(found, checked=check_claims(claims, runs, found.values))
        write_tables(found, here)
        write_runs(everything, keys, here)
        write_lineage(LocalPlace(here), lineage_after(before, _lineage(session, fresh)))
        if plots:
            from gossamer.spark.crunch.page import write_page
            from gossamer.spark.crunch.plots import write_plots

            drawn, not_drawn = write_plots(found, here / "plots")
            write_page(found, drawn, here / "report.html", not_drawn)
        if keys:
            for table in (f"{MEASURES}.parquet", CURVES_FILE):
                split_table(here / table, keys, folders)
    return attrs.evolve(
        found, folder=place, curves=attrs.evolve(found.curves, file=place / CURVES_FILE)
    )


def crunch_into_tables(
    session: Any,
    runs: Sequence[Run],
    out: AnyPlace,
    *,
    exact_up_to: int,
    partition_by: Sequence[str] | None = None,
    append: bool = False,
) -> Crunched:
    """Crunch runs into Delta tables, beside others that do the same; see `delta_tables`.

    What is returned is of the runs that were added; arguments and errors are as of
    `crunch_results`.
    """
    place = as_place(out)
    kept = read_tables(place, append=append)
    keys = chosen_keys(kept, partition_by)
    fresh = _checked(session, kept.without_known(runs))
    with tempfile.TemporaryDirectory(prefix="gossamer-crunch-") as made:
        found = _found(session, Kept(), fresh, Path(made), exact_up_to, len(runs) - len(fresh))
        told = {"command": running_command(), "versions": all_versions(session)}
        add_runs(place, keys, known(fresh), found, told)
    return attrs.evolve(found, folder=place)


@contextmanager
def _folder(place: Place, append: bool) -> Iterator[tuple[Place | None, Place]]:
    """What is there, if it may be, and the folder to write into."""
    if append:
        with grown_folder(place) as both:
            yield both
    else:
        with new_folder(place) as folder:
            yield None, folder


def _lineage(session: Any, runs: Sequence[Run]) -> dict[str, Any]:
    """What was crunched, and by what."""
    inputs = [
        input_of(
            run.path,
            run.digest,
            seed=run.summary["seed"],
            result_hash=run.summary.get("result_hash"),
            versions=run.summary.get("versions"),
        )
        for run in runs
    ]
    return lineage_of(session, [run.summary["seed"] for run in runs], inputs)


def _found(
    session: Any, kept: Kept, fresh: Sequence[Run], here: Path, exact_up_to: int, left_out: int
) -> Crunched:
    """What earlier and new runs tell, curves written to a folder of this machine."""
    runs = [*kept.runs, *known(fresh)]
    owners, repeated = _without_repetitions(runs)
    values: list[Value] = []
    for rows in kept.measures():
        values += _values(rows, owners)
    with CurveWriter(here / CURVES_FILE, owners) as curves:
        for rows in kept.curves():
            curves.write(rows)
        for begin in range(0, len(fresh), _PORTION):
            portion = fresh[begin : begin + _PORTION]
            rows = _rows(session, portion, exact_up_to)
            is_measure = pc.equal(rows["part"], MEASURE)
            values += _values(rows.filter(is_measure), owners)
            curves.write(rows.filter(pc.invert(is_measure)))
    conditions = {(one.run, one.system): one.condition for one in owners.values()}
    found = _crunched(runs, values, Curves(LocalPlace(here / CURVES_FILE), conditions), repeated)
    there = [f"{left_out} runs were there already: left out."] if left_out else []
    return attrs.evolve(found, notes=[*found.notes, *there])


def _rows(session: Any, runs: Sequence[Run], exact_up_to: int) -> pa.Table:
    """All that a portion of the runs tells: a table of `ROW_SCHEMA`.

    Args:
        session: of Spark.
        runs: the portion.
        exact_up_to: rows of workloads up to which matches are counted for all events.
    """
    systems = [system for run in runs for system in run.systems]
    with job_errors("crunching"), watched(session, "tables"):
        small = _small_tables(session, systems)
    with job_errors("crunching deliveries"), watched(session, "deliveries"):
        large = delivery_rows(session, systems)
    with job_errors("crunching workloads"), watched(session, "workloads"):
        workloads = workload_rows(session, systems, exact_up_to)
    return pa.concat_tables([small, large, workloads, _summaries(runs)])


def _checked(session: Any, runs: Sequence[Run]) -> list[Run]:
    """Runs whose tables are there for all workers, and checked: by tasks where they are not yet."""
    with job_errors("crunching"), watched(session, "tables"):
        _require_seen(session, [system for run in runs for system in run.systems])
        checked = with_footers(runs, lambda files: _footers(session, files))
    systems = [system for run in checked for system in run.systems]
    found = [one for system in systems for files in system.footers.values() for one in files]
    tasks = min(sum(one.row_groups for one in found), _TASKS_A_SLOT * slots(session))
    say_cost("crunching", sum(one.rows for one in found), sum(one.size for one in found), tasks)
    return checked


def _footers(session: Any, files: Sequence[Wanted]) -> list[Footer]:
    numbered = [(number, file.absolute(), one) for number, (file, one) in enumerate(files)]
    tasks = _TASKS_A_SLOT * slots(session)
    told = by_tasks(session, numbered, _footer, _FOOTERS, tasks).toArrow().sort_by("number")
    return [Footer(**one) for one in told.drop_columns("number").to_pylist()]


def _footer(wanted: tuple[int, Place, Expected]) -> Iterator[pa.RecordBatch]:
    number, file, expected = wanted
    told = {"number": number, **attrs.asdict(check_file(file, expected))}
    yield pa.RecordBatch.from_pylist([told], schema=_FOOTERS)


def _look(marks: Sequence[Mark]) -> list[pa.RecordBatch]:
    """Sees whether the machine of a task sees the same files as the driver; makes no rows."""
    for mark in marks:
        mark.check()
    return []


def _require_seen(session: Any, systems: Sequence[SystemTables]) -> None:
    """Look, before any work is done, whether the workers see some of the runs.

    Tasks that read tables look again, as more workers may come later; Spark's own do not.
    """
    marks = list(dict.fromkeys(one.mark for one in systems))
    if not marks:
        return
    step = -(-len(marks) // _LOOKED_AT)
    tasks = slots(session)
    by_tasks(session, [marks[::step]] * tasks, _look, ROW_SCHEMA, tasks).collect()


def _rows_of_tables(one: SystemTables) -> Iterator[pa.RecordBatch]:
    """What the small tables of a system tell; called in tasks."""
    one.mark.check()
    try:
        rows = list(rows_of(one.kind, one.folder))
    except (pa.ArrowException, OSError) as error:
        reason = unreadable(one.folder, error, "has a damaged table")
        raise ResultsError(one.folder, reason) from None
    yield from as_table(one.number, rows, EXACT).to_batches()


def _small_tables(session: Any, systems: Sequence[SystemTables]) -> pa.Table:
    read = [one for one in systems if one.kind not in (OTHERS, WORKLOADS)]
    tasks = _TASKS_A_SLOT * slots(session)
    made = by_tasks(session, read, _rows_of_tables, ROW_SCHEMA, tasks).toArrow()
    return made.cast(ROW_SCHEMA).sort_by(IN_ORDER)


def _summaries(runs: Sequence[Run]) -> pa.Table:
    """What only summaries tell: totals, and all of systems whose tables are not known."""
    tables = []
    for run in runs:
        for one in run.systems:
            entry = run.summary["systems"][one.system]
            tables.append(as_table(one.number, list(summary_rows(entry)), FROM_SUMMARY))
    return pa.concat_tables(tables) if tables else ROW_SCHEMA.empty_table()


def _values(rows: pa.Table, owners: Mapping[int, Owner]) -> Iterator[Value]:
    """Measures of the systems that have an owner."""
    names: dict[str, str] = {}
    for batch in rows.to_batches(_VALUES_A_TIME):
        for row in batch.to_pylist():
            owner = owners.get(row["system"])
            if owner is not None:
                name, method = (names.setdefault(row[one], row[one]) for one in ("name", "method"))
                yield Value(
                    run=owner.run,
                    condition=owner.condition,
                    seed=owner.seed,
                    system=owner.system,
                    measure=name,
                    value=row["value"],
                    method=method,
                )


def _crunched(
    runs: Sequence[KnownRun], values: list[Value], curves: Curves, repeated: int
) -> Crunched:
    values.sort(key=lambda one: (one.run, one.system, one.measure))
    sampled = sorted({one.measure for one in values if one.method == SAMPLE})
    notes = [*notes_on(runs)]
    if repeated:
        notes.append(f"{repeated} systems were run again with the same seed: left out.")
    if sampled:
        notes.append(f"Of a sample of {SAMPLED_EVENTS:,} events: {', '.join(sampled)}.")
    return Crunched(
        folder=curves.file,
        runs=len(runs),
        values=values,
        intervals=intervals(values),
        comparisons=comparisons(values),
        curves=curves,
        notes=notes,
    )


def _without_repetitions(runs: Sequence[KnownRun]) -> tuple[dict[int, Owner], int]:
    """The systems by number, of those that are the same in all but the first left out."""
    systems = [(run, one) for run in runs for one in run.systems]
    scenarios = [(one.system, condition_of(run.scenario, one.system)) for run, one in systems]
    kept: dict[int, Owner] = {}
    shared: dict[str, Condition] = {}
    seen = set()
    for (run, one), condition in zip(systems, conditions(scenarios), strict=True):
        text = repr(condition)
        if (text, run.seed, one.system) not in seen:
            seen.add((text, run.seed, one.system))
            shared_one = shared.setdefault(text, condition)
            kept[one.number] = Owner(run.name, shared_one, run.seed, one.system)
    return kept, len(systems) - len(kept)
