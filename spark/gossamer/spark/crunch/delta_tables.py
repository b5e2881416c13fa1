"""Crunched runs as Delta tables, to which any number of commands add theirs at the same time.

curves/      distributions and series of each system
measures/    a row a run, system and measure
runs/        a row a run and system: digest, seed, the scenario as texts by key

No row depends on other runs, so that none is ever written again: what compares runs is a query. A
table knows the digest of each run that it has. `runs` is the last to get a run, so that the others
have whatever it names; of a command that was killed in between the same command adds the rest.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gossamer.sim.errors import ResultsError
from gossamer.sim.results.intervals import condition_of, flattened
from gossamer.sim.results.storage.place import Place
from gossamer.spark.crunch.folders import Run
from gossamer.spark.crunch.kept_runs import (
    RUNS_FILE,
    Kept,
    KnownRun,
    chosen_keys,
    folders_of,
    known,
    values_by_key,
)
from gossamer.spark.storage.delta import append_to, is_table, opened_delta
from gossamer.spark.storage.folders import ALREADY
from gossamer.spark.storage.frames import Owner, numbered_owners

if TYPE_CHECKING:
    from gossamer.spark.crunch.crunching import Crunched

_TEXT, _REAL = pa.string(), pa.float64()


def _schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema({"run": _TEXT, "seed": pa.int64(), "system": _TEXT, **columns})


# In the order in which they get a run.
_TABLES: Final[Mapping[str, pa.Schema]] = {
    "curves": _schema(part=_TEXT, name=_TEXT, x=_REAL, value=_REAL),
    "measures": _schema(measure=_TEXT, value=_REAL, method=_TEXT),
    "runs": _schema(digest=_TEXT, scenario=pa.map_(_TEXT, _TEXT), crunched_by=_TEXT),
}


def read_tables(out: Place, *, append: bool) -> Kept:
    """What runs the tables of a folder have, without scenarios and systems.

    Raises:
        ResultsError: there are tables, and nothing is to be added to any, or other results.
    """
    if (out / RUNS_FILE).exists():
        expected = "expected Delta tables, or a new folder"
        raise ResultsError(out, f"cannot be appended to as Delta tables, {expected}")
    if not is_table(out / "runs"):
        return Kept()
    if not append:
        raise ResultsError(out, ALREADY)
    table = opened_delta(out / "runs", _TABLES["runs"], ())
    rows = table.to_pyarrow_table(columns=["run", "digest", "seed", "crunched_by"]).to_pylist()
    runs = {
        row["digest"]: KnownRun(name=row.pop("run"), **row, scenario={}, systems=()) for row in rows
    }
    return Kept(out, tuple(table.metadata().partition_columns), tuple(runs.values()))


def check_is_addable(
    out: Place, runs: Sequence[Run], asked: Sequence[str] | None, *, append: bool
) -> None:
    """See whether runs could be added to tables: before something long is begun.

    Raises:
        ResultsError, ScenarioError: they could not, see `read_tables`, `chosen_keys`, `folders_of`
            and `Kept.without_known`.
    """
    kept = read_tables(out, append=append)
    keys = chosen_keys(kept, asked)
    folders_of(known(kept.without_known(runs)), () if kept.folder else keys)


def add_runs(
    out: Place,
    keys: Sequence[str],
    runs: Sequence[KnownRun],
    found: Crunched,
    told: Mapping[str, Any],
) -> None:
    """Add runs to the tables of a folder, a commit each, or make them.

    Args:
        out: the folder.
        keys: by whose values the files of tables are in folders; columns of texts, but for those
            that all tables have.
        runs: those that were crunched.
        found: of these.
        told: kept in the history of each table.

    Raises:
        ResultsError: another process has added some of the runs meanwhile, or the storage fails.
    """
    systems = [(run, one) for run in runs for one in run.systems]
    values = {(run.name, one.system): values_by_key(run, one) for run, one in systems}
    for name, columns in _TABLES.items():
        texts = pa.schema((key, _TEXT) for key in keys if key not in columns.names)
        schema = pa.unify_schemas([columns, texts])
        table = opened_delta(out / name, schema, keys)
        fresh = {run.name: run.digest for run in runs if not table.transaction_version(run.digest)}
        if fresh:
            parts = (
                _with_keys(part.filter(pc.is_in(part["run"], pa.array(fresh))), schema, values)
                for part in _parts(name, runs, found)
            )
            batches = (batch for part in parts for batch in part.to_batches())
            rows = pa.RecordBatchReader.from_batches(schema, batches)
            history = {key: json.dumps(value) for key, value in told.items()}
            append_to(out / name, table, rows, fresh.values(), history)


def _parts(name: str, runs: Sequence[KnownRun], found: Crunched) -> Iterator[pa.Table]:
    """The rows of a table, portions of them, without keys."""
    if name == "curves":
        with pq.ParquetFile(found.curves.file.source()) as curves:
            for place in range(curves.num_row_groups):
                yield curves.read_row_group(place, columns=_TABLES[name].names)
    elif name == "runs":
        rows = [_row(run, one.system) for run in runs for one in run.systems]
        yield pa.Table.from_pylist(rows, schema=_TABLES[name])
    else:
        columns = [[getattr(one, field) for one in found.values] for field in _TABLES[name].names]
        yield pa.table(columns, schema=_TABLES[name])


def _row(run: KnownRun, system: str) -> dict[str, Any]:
    scenario = flattened(condition_of(run.scenario, system))
    texts = [(key, _text(value)) for key, value in scenario]
    told = {name: getattr(run, name) for name in ("seed", "digest", "crunched_by")}
    return {"run": run.name, "system": system, "scenario": texts, **told}


def _with_keys(
    rows: pa.Table, schema: pa.Schema, values: Mapping[Owner, Mapping[str, Any]]
) -> pa.Table:
    """Rows with the columns of the keys of partitions."""
    owners, places = numbered_owners(rows)
    for key in schema.names[len(rows.column_names) :]:
        texts = pa.array([_text(values[one].get(key)) for one in owners], _TEXT)
        rows = rows.append_column(key, texts.take(pa.array(places)))
    return rows.cast(schema)


def _text(value: Any) -> str | None:
    """A value of a scenario as text: of texts themselves, of others as JSON."""
    return value if value is None or isinstance(value, str) else json.dumps(value)
