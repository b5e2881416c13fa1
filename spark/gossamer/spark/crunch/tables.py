"""The tables of one system, which its study expects: checked against that, and what they tell.

All but that of deliveries are small, so that a task reads them apart from all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy.typing as npt
import pyarrow as pa

from gossamer.sim.errors import ResultsError, ScenarioError
from gossamer.sim.results.storage.place import Place
from gossamer.sim.study.records import REAL, TEXT, Expected
from gossamer.sim.study.registry import study_of_kind, study_of_values
from gossamer.sim.study.statistics import MEASURE, Row
from gossamer.spark.storage.frames import opened_table, unreadable

# Beside the kinds of studies: workloads, and kinds of which no tables are read.
WORKLOADS, OTHERS = "workloads", "others"

DELIVERIES: Final = "deliveries"


def expected_tables(scenario: Mapping[str, Any]) -> tuple[str, Mapping[str, Expected]]:
    """The kind of a run, and by name what is expected of the tables of each of its systems.

    Args:
        scenario: that of the run's summary.

    Returns:
        `OTHERS` and nothing where its study has no tables that are read, or is not here.
    """
    try:
        study = study_of_values(scenario)
    except ScenarioError:
        return OTHERS, {}
    return (study.kind, study.tables) if study.tables else (OTHERS, {})


def check_file(file: Place, expected: Expected) -> tuple[int, tuple[str, ...]]:
    """Rows of a table, and the welcome columns that it lacks.

    Raises:
        ResultsError: it is missing, damaged, or a column is missing or of another type.
    """
    try:
        with opened_table(file) as opened:
            schema, rows = opened.schema_arrow, opened.metadata.num_rows
    except FileNotFoundError:
        raise ResultsError(file, "does not exist, expected a table of the results") from None
    except (pa.ArrowException, OSError) as error:
        raise ResultsError(
            file, unreadable(file, error, "is damaged or no Parquet table")
        ) from error
    for name, kind in expected.needed.items():
        if name not in schema.names:
            raise ResultsError(file, f"has no column {name}, expected one of {kind}")
    for name, kind in (*expected.needed.items(), *expected.welcome.items()):
        if name in schema.names and not _fits(schema.field(name).type, kind):
            found = schema.field(name).type
            raise ResultsError(file, f"has a column {name} of {found}, expected {kind}")
    lacking = tuple(name for name in expected.welcome if name not in schema.names)
    return rows, lacking


def _fits(kind: pa.DataType, expected: str) -> bool:
    if expected == TEXT:
        return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
    whole = pa.types.is_integer(kind)
    return bool(whole or (expected == REAL and pa.types.is_floating(kind)))


def rows_of(kind: str, folder: Place) -> Iterator[Row]:
    """All that is told by the tables of a system in a folder.

    Args:
        kind: of its study.
        folder: of its tables.
    """
    study = study_of_kind(kind)
    names = [name for name in study.tables if name != DELIVERIES]
    yield from study.rows({name: _columns(folder / f"{name}.parquet") for name in names})


def _columns(file: Place) -> dict[str, npt.NDArray[Any]]:
    with opened_table(file) as opened:
        table = opened.read()
    return {name: table[name].to_numpy() for name in table.column_names}


def summary_rows(measures: Mapping[str, Any]) -> Iterator[Row]:
    """The numbers of a summary's entry, totals included."""
    for name, value in measures.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield Row(MEASURE, name, 0.0, float(value))
    for name, value in (measures.get("totals") or {}).items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield Row(MEASURE, f"total_{name}", 0.0, float(value))
