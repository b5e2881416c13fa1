"""What one system's tables tell, but that of deliveries: a task can do it apart from all others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy.typing as npt

from gossamer.sim.results.storage.place import Place
from gossamer.sim.study.registry import study_of_kind
from gossamer.sim.study.statistics import MEASURE, Row
from gossamer.spark.storage.frames import opened_table

DELIVERIES: Final = "deliveries"


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
