"""Tables of what was crunched, as Parquet and CSV, in memory that does not grow with their rows."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs
import pyarrow as pa
import pyarrow.parquet as pq

from gossamer.sim.figures.common.claims import write_claims
from gossamer.sim.study.environment import versions
from gossamer.spark.crunch.conditions import ConditionColumns
from gossamer.spark.crunch.curves import condition_text

if TYPE_CHECKING:
    from gossamer.spark.crunch.claims import CheckedClaim
    from gossamer.spark.crunch.crunching import Crunched

CRUNCH_FILE: Final = "crunch.json"
# Rows that are held as rows.
_PORTION: Final = 20_000

Rows = Iterable[Mapping[str, Any]]


def write_tables(found: Crunched, folder: Path) -> None:
    """Write all but curves, plots and page."""
    columns = ConditionColumns(one.condition for one in found.values)
    for name, several in (
        ("measures", found.values),
        ("intervals", found.intervals),
        ("comparisons", found.comparisons),
    ):
        _write_rows(_WithConditions(several, columns), folder / name)
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


@attrs.frozen
class _WithConditions:
    """Values, intervals or comparisons as rows, the condition as text and as columns."""

    several: Sequence[Any]
    columns: ConditionColumns

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for one in self.several:
            fields = attrs.asdict(one, recurse=False)
            fields["condition"] = condition_text(one.condition)
            yield fields | self.columns.of(one.condition)


def _write_rows(rows: Rows, stem: Path) -> None:
    """The same rows as Parquet and CSV; no file where there are none.

    Args:
        rows: gone through several times.
        stem: of the files' names.
    """
    first = next(iter(rows), None)
    if first is None:
        return
    # Types come from all rows, as some have nothing in columns where others have numbers.
    schema = pa.unify_schemas([one.schema for one in _portions(rows)], promote_options="permissive")
    with pq.ParquetWriter(stem.with_suffix(".parquet"), schema, compression="zstd") as writer:
        for table in _portions(rows, schema):
            writer.write_table(table)
    with stem.with_suffix(".csv").open("w", newline="", encoding="utf-8") as stream:
        lines = csv.DictWriter(stream, fieldnames=list(first))
        lines.writeheader()
        lines.writerows(rows)


def _portions(rows: Rows, schema: pa.Schema | None = None) -> Iterator[pa.Table]:
    left = iter(rows)
    while portion := list(itertools.islice(left, _PORTION)):
        yield pa.Table.from_pylist(portion, schema=schema)
