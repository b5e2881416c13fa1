"""Tables that a run leaves in memory, and what a measure of it is called and means.

A table is a mapping from column name to a one-dimensional NumPy array; all columns of a table
have one length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import attrs
import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.errors import InvariantError

Column = npt.NDArray[Any]
Table = Mapping[str, Column]


WHOLE: Final = "whole numbers"
REAL: Final = "numbers"
TEXT: Final = "texts"


@attrs.frozen
class Expected:
    """What is expected of a table that is read back.

    Results of older versions may lack a column: what hangs on it is then left out and said. A
    column that nothing can do without is refused where it is missing, and so is one of another
    type; whole numbers of any width will do, and may be where a real number is expected.

    Attributes:
        needed: columns that have to be there, and what they hold.
        welcome: columns that may be missing.
    """

    needed: Mapping[str, str]
    welcome: Mapping[str, str] = attrs.field(factory=dict)


def check_table(name: str, table: Table, columns: Mapping[str, str]) -> None:
    """Check that ``table`` has exactly ``columns``, with their dtypes and one common length.

    Raises:
        InvariantError: it does not; an engine has filled it wrongly.
    """
    if set(table) != set(columns):
        odd = ", ".join(sorted(set(table) ^ set(columns)))
        raise InvariantError(f"table {name} has missing or foreign columns: {odd}")
    lengths = {column: values.shape for column, values in table.items()}
    if len(set(lengths.values())) > 1 or any(len(shape) != 1 for shape in lengths.values()):
        raise InvariantError(f"table {name} has columns of unequal shape: {lengths}")
    for column, dtype in columns.items():
        if table[column].dtype != np.dtype(dtype):
            raise InvariantError(
                f"column {column} of table {name} is {table[column].dtype}, expected {dtype}"
            )


def empty_table(columns: Mapping[str, str]) -> dict[str, Column]:
    """A table of no rows with these ``columns``."""
    return {column: np.empty(0, dtype=dtype) for column, dtype in columns.items()}


def table_of_rows(
    rows: Sequence[tuple[float, ...]], columns: Mapping[str, str]
) -> dict[str, Column]:
    """The table whose rows hold the values of ``columns`` in their order."""
    if not rows:
        return empty_table(columns)
    values = zip(*rows, strict=True)
    return {
        name: np.array(column).astype(kind)
        for (name, kind), column in zip(columns.items(), values, strict=True)
    }


# One measure of a run: what it is called, how it is printed and what it means.


Kind = Literal["ratio", "number", "fine", "count"]


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure of a system.

    Attributes:
        key: its name in ``summary.json``.
        label: its name for people.
        kind: "ratio" (0 to 1, printed as per cent), "number" (printed with two decimals), "fine"
            (with three significant digits at least) or "count" (printed whole).
        better: which direction is better, or None where neither is.
        meaning: one sentence that explains it.
        brief: whether it belongs in the short table at the end of a run.
    """

    key: str
    label: str
    kind: Kind
    better: Literal["higher", "lower"] | None
    meaning: str
    brief: bool = False

    @property
    def unit(self) -> str:
        """The unit of its values: words in brackets at the end of its label, or what it counts."""
        if self.kind == "ratio":
            return "share, 0 to 1"
        counted, _, in_brackets = self.label.rstrip(")").partition("(")
        return in_brackets or counted.partition(",")[0]

    def format(self, value: float | None) -> str:
        """``value`` as people read it; a dash where there was nothing to measure."""
        if value is None:
            return "-"
        if self.kind == "ratio":
            return f"{100 * value:.2f} %"
        if self.kind == "fine":
            return f"{value:,.3g}" if abs(value) < 100 else f"{value:,.0f}"
        if self.kind == "number":
            return f"{value:,.2f}"
        return f"{value:,.0f}"
