"""From the tables of a run to ``summary.json``: the measures of each system and the result hash."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from datetime import date, time
from os import PathLike, fspath
from typing import Any

import numpy as np

from gossamer.sim.study.contract import RunRecord
from gossamer.sim.study.records import Column, Table
from gossamer.sim.study.registry import study_of_values


def summarise(record: RunRecord) -> dict[str, Any]:
    """The content of ``summary.json``: plain values only, NaN and infinity replaced by None.

    Raises:
        ScenarioError: there is no study of the run's kind.
    """
    study = study_of_values(record.scenario)
    summary: dict[str, Any] = {
        "scenario": dict(record.scenario),
        "seed": record.seed,
        "versions": dict(record.versions),
        "wall_s": record.wall_s,
        "peak_rss_bytes": record.peak_rss_bytes,
        "result_hash": result_hash(record),
        "systems": {name: study.summarise(system) for name, system in record.systems.items()},
    }
    plain: dict[str, Any] = _plain(summary)
    return plain


def result_hash(record: RunRecord) -> str:
    """SHA-256, in hexadecimal, over everything in ``record`` that seed and scenario decide.

    Covers the tables, overlays and totals of every system and the seed; not wall-clock time,
    memory, versions, tables that the study names `unhashed`, the scenario's wording, the byte
    order of the machine or the order of rows.
    """
    # Tables whose rows an engine may write in any order are hashed in one.
    study = study_of_values(record.scenario)
    row_order = study.row_order
    digest = hashlib.sha256()
    digest.update(f"gossamer result 1\nseed {record.seed}\n".encode())
    for name in sorted(record.systems):
        system = record.systems[name]
        totals = json.dumps(_plain(dict(system.totals)), sort_keys=True)
        digest.update(f"system {name}\ntotals {totals}\n".encode())
        for table_name, table in system.tables():
            if table_name not in study.unhashed:
                _hash_table(digest, table_name, table, row_order.get(table_name, ()))
    return digest.hexdigest()


def dump_json(summary: Mapping[str, Any]) -> str:
    """The text of ``summary.json``, ending in a newline."""
    return json.dumps(summary, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _hash_table(digest: hashlib._Hash, name: str, table: Table, order_by: Sequence[str]) -> None:
    """Feed the canonical bytes of ``table``, its rows in the order of columns, to ``digest``."""
    keys = [table[column] for column in reversed(order_by)]
    order = np.lexsort(keys) if keys else slice(None)
    for column in sorted(table):
        values = table[column][order]
        digest.update(f"{name}.{column} {values.dtype.name} {len(values)}\n".encode())
        digest.update(_canonical(values))


def _canonical(values: Column) -> bytes:
    """Little-endian bytes of ``values``, with one bit pattern for zero and one for NaN."""
    if values.dtype.kind == "f":
        values = np.where(np.isnan(values), np.nan, values + 0.0)
    return np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<")).tobytes()


def _plain(value: Any) -> Any:
    """``value`` with only the types that JSON has; NaN and infinities become None."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic | np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, PathLike):
        return fspath(value)
    return value
