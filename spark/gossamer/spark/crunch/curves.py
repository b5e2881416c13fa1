"""Distributions and series of systems: written as they are found, and read again to be drawn.

There are about a thousand points of each system, so that those of thousands of runs do not fit
into memory: nobody holds more of them than of one portion of runs, or of one name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gossamer.sim.results.intervals import Condition
from gossamer.sim.results.storage.place import Place

CURVES_FILE: Final = "curves.parquet"
_SCHEMA: Final = pa.schema(
    [
        ("run", pa.string()),
        ("condition", pa.string()),
        ("seed", pa.int64()),
        ("system", pa.string()),
        ("part", pa.string()),
        ("name", pa.string()),
        ("x", pa.float64()),
        ("value", pa.float64()),
    ]
)


@attrs.frozen(kw_only=True, eq=False)
class Curve:
    """A distribution or series of one system of one run.

    Attributes:
        points: float64[n, 2], places and values, in the order of places.
    """

    run: str
    condition: Condition
    seed: int
    system: str
    part: str
    name: str
    points: npt.NDArray[np.float64]


@attrs.frozen
class Owner:
    """The system of a run that curves are of."""

    run: str
    condition: Condition
    seed: int
    system: str


def condition_text(condition: Condition) -> str:
    """A condition for people: ``key=value`` with commas between them."""
    return ", ".join(f"{name}={value}" for name, value in condition)


class CurveWriter:
    """Writes curves to a file, a portion of systems at a time."""

    def __init__(self, file: Any, owners: Mapping[int, Owner]) -> None:
        self._writer = pq.ParquetWriter(file, _SCHEMA, compression="zstd")
        self._owners = owners

    def write(self, rows: pa.Table) -> None:
        """Add curves, of `deliveries.ROW_SCHEMA`; those of systems without an owner are left out.

        Args:
            rows: all of the systems that it has any of.
        """
        keys = [(name, "ascending") for name in ("system", "part", "name", "x")]
        rows = rows.filter(pc.is_in(rows["system"], self._known())).sort_by(keys)
        numbers = rows["system"].to_numpy()
        owners = {number: self._owners[number] for number in np.unique(numbers).tolist()}
        # One place of each owner, by which all its rows name it.
        at = pa.array(np.searchsorted(list(owners), numbers))
        columns = {
            "run": [one.run for one in owners.values()],
            "condition": [condition_text(one.condition) for one in owners.values()],
            "seed": [one.seed for one in owners.values()],
            "system": [one.system for one in owners.values()],
        }
        told = [
            pa.array(values, _SCHEMA.field(name).type).take(at) for name, values in columns.items()
        ]
        told += [rows[name] for name in ("part", "name", "x", "value")]
        self._writer.write_table(pa.table(told, schema=_SCHEMA))

    def _known(self) -> pa.Array:
        return pa.array(list(self._owners), pa.int32())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._writer.close()


@attrs.frozen
class Curves:
    """The curves of a file.

    Attributes:
        file: written by a `CurveWriter`.
        conditions: by run and system.
    """

    file: Place
    conditions: Mapping[tuple[str, str], Condition]

    def names(self, part: str) -> list[str]:
        """What there are curves of, in order."""
        table = pq.read_table(self.file.source(), columns=["part", "name"])
        return sorted(table.filter(pc.field("part") == part)["name"].unique().to_pylist())

    def of(self, part: str, name: str) -> Sequence[Curve]:
        """The curves of this name, in the order of the file."""
        wanted = (pc.field("part") == part) & (pc.field("name") == name)
        table = pq.read_table(self.file.source(), filters=wanted)
        return list(_curves(table, self.conditions, part, name))


def _curves(
    table: pa.Table, conditions: Mapping[tuple[str, str], Condition], part: str, name: str
) -> Iterator[Curve]:
    """The curves of a table, whose rows of one curve follow each other."""
    if len(table) == 0:
        return
    runs, systems = (table[one].combine_chunks().dictionary_encode() for one in ("run", "system"))
    codes = np.stack([one.indices.to_numpy() for one in (runs, systems)])
    begins = np.flatnonzero(np.any(codes[:, 1:] != codes[:, :-1], axis=0)) + 1
    points = np.stack([table["x"].to_numpy(), table["value"].to_numpy()], axis=1)
    for begin, curve in zip([0, *begins.tolist()], np.split(points, begins), strict=True):
        run, system = (
            one.dictionary[int(one.indices[begin].as_py())].as_py() for one in (runs, systems)
        )
        yield Curve(
            run=run,
            condition=conditions[run, system],
            seed=table["seed"][begin].as_py(),
            system=system,
            part=part,
            name=name,
            points=curve,
        )
