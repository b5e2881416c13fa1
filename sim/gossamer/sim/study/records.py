"""Tables that a run leaves in memory, and what a measure of it is called and means.

A table is a mapping from column name to a one-dimensional NumPy array; all columns of a table
have one length.
"""

from __future__ import annotations

import math
import os
import platform
import re
import resource
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final, Generic, Literal, NamedTuple, Protocol, TypeVar, get_args

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


def message_table(names: Sequence[str], count: Column, size_bytes: Column) -> dict[str, Column]:
    """The table of messages: by name, how many were taken, and their bytes."""
    column = np.array(names, dtype=f"<U{max([1, *map(len, names)])}")
    return {"message": column, "count": count, "size_bytes": size_bytes}


def by_message(table: Table, column: str) -> dict[str, int]:
    """A column of a `message_table`, by message."""
    return dict(zip(table["message"].tolist(), table[column].tolist(), strict=True))


# One measure of a run: what it is called, how it is printed and what it means.


Kind = Literal["ratio", "number", "fine", "count"]
Better = Literal["higher", "lower"]


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
    better: Better | None
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


def measures_of(text: str) -> tuple[Measure, ...]:
    """Measures as a text has them, in its order.

    A line of each has its key and, behind a colon, label, kind, what is better (- for neither) and
    perhaps "brief", with bars between them; indented below it stands its meaning.
    """
    found = []
    for part in re.split(r"\n(?! )", textwrap.dedent(text).strip()):
        head, *meaning = part.splitlines()
        key, _, about = head.partition(": ")
        label, kind, better, *brief = (one.strip() for one in about.split(" | "))
        assert kind in get_args(Kind), kind
        assert better in (*get_args(Better), "-"), better
        assert brief in ([], ["brief"]), brief
        told = " ".join(line.strip() for line in meaning)
        typed: dict[str, Any] = {"kind": kind, "better": None if better == "-" else better}
        found.append(Measure(key, label, **typed, meaning=told, brief=bool(brief)))
    return tuple(found)


# Statistics of the columns of tables, and the rows in which they are gathered.
#
# Everything here is exact, and a function of its arguments alone.


Floats = npt.NDArray[np.float64]
Columns = Mapping[str, npt.NDArray[Any]]

MEASURE, CDF, LORENZ, SERIES, RANKS = "measure", "cdf", "lorenz", "series", "ranks"

# Points of a distribution that are kept: whole per cents.
PER_CENTS: Final = np.arange(101)
# Points of a series that are kept; longer ones are drawn in groups.
MOST_POINTS: Final = 400


class Row(NamedTuple):
    """One value: of a measure (x is 0), or a point (x, value) of a curve."""

    part: str
    name: str
    x: float
    value: float


def percentile(values: Column, per_cent: float) -> float:
    """The smallest observed value that ``per_cent`` of ``values`` do not exceed; NaN of none."""
    if len(values) == 0:
        return math.nan
    place = percentile_place(len(values), per_cent)
    return float(np.partition(values, place)[place])


def percentile_place(count: int, per_cent: float) -> int:
    """The place of that value among ``count`` values in order, of which there is one at least."""
    # In fractions: in floating point 28 % of 25 values are a little more than 7.
    return max(math.ceil(Fraction(per_cent) * count / 100), 1) - 1


def measure_rows(found: Mapping[str, float]) -> Iterator[Row]:
    """Measures by name as rows."""
    for name, value in found.items():
        yield Row(MEASURE, name, 0.0, value)


def series(
    name: str, time: npt.NDArray[Any], parts: npt.NDArray[Any], wholes: npt.NDArray[Any]
) -> Iterator[Row]:
    """Parts over wholes in the course of time, long ones in groups; none where no whole is."""
    size = max(1, -(-len(time) // MOST_POINTS))
    group = np.arange(len(time)) // size
    known = ~np.isnan(parts.astype(np.float64))
    over = np.bincount(group, np.where(known, wholes, 0).astype(np.float64))
    under = np.bincount(group, np.where(known, parts, 0).astype(np.float64))
    for place in np.flatnonzero(over > 0):
        yield Row(SERIES, name, float(time[place * size]), float(under[place] / over[place]))


def distribution(name: str, values: npt.NDArray[Any]) -> Iterator[Row]:
    """Percentiles and the Lorenz curve of values, at every per cent."""
    if len(values) == 0:
        return
    ordered = np.sort(values.astype(np.float64))
    for per_cent in PER_CENTS.tolist():
        yield Row(CDF, name, float(per_cent), percentile(ordered, per_cent))
    for share, part in zip(PER_CENTS / 100, lorenz(ordered), strict=True):
        yield Row(LORENZ, name, float(share), float(part))


def lorenz(values: npt.NDArray[Any]) -> Floats:
    """float64[101]: the part of the sum that the lowest 0, 1, .. 100 % of the values have.

    Between two values the curve is straight; of values that are all 0 it is the diagonal.
    """
    ordered = np.sort(values.astype(np.float64))
    sums = np.concatenate([[0.0], np.cumsum(ordered)])
    if sums[-1] <= 0:
        return PER_CENTS / 100
    places = np.linspace(0, len(ordered), len(PER_CENTS))
    return np.asarray(np.interp(places, np.arange(len(sums)), sums) / sums[-1])


def gini(values: npt.NDArray[Any]) -> float:
    """Gini's coefficient: 0 where all values are equal, near 1 where one has everything.

    Twice the area between the Lorenz curve and the diagonal; 0 of values that are all 0, NaN of
    none.
    """
    if len(values) == 0:
        return math.nan
    ordered = np.sort(values.astype(np.float64))
    whole = float(ordered.sum())
    if whole <= 0:
        return 0.0
    count = len(ordered)
    ranks = np.arange(1, count + 1)
    return float(2 * (ranks @ ordered) / (count * whole) - (count + 1) / count)


def mean(values: npt.NDArray[Any]) -> float:
    """The mean; NaN of none."""
    return float(values.mean(dtype=np.float64)) if len(values) else math.nan


def total(table: Columns, column: str) -> float:
    """The sum of a column of whole numbers; NaN where it is missing."""
    return float(table[column].sum(dtype=np.int64)) if column in table else math.nan


def ratio(part: float, whole: float) -> float:
    """A part of a whole; NaN where there is none."""
    return float(part) / float(whole) if whole > 0 else math.nan


# What a run ran on: versions and memory, which are kept with its results.


def versions() -> dict[str, str]:
    """Versions of what a run's speed, and nothing else, may depend on."""
    found = {"python": platform.python_version()}
    for package in ("gossamer", "numpy", "numba"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def peak_memory_bytes() -> int:
    """Largest resident memory of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else peak * 1024)


def usable_cores() -> int:
    """Cores that this process may use, of which a container has often fewer than the machine."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# What runs leave in memory.


class SystemRecord(Protocol):
    """What one system of a run leaves in memory."""

    @property
    def totals(self) -> Mapping[str, int | float]:
        """Counts that enter the result hash, so that the seed alone must decide them."""

    def tables(self) -> Iterable[tuple[str, Table]]:
        """Every table with its name, always in the same order."""


One = TypeVar("One", bound=SystemRecord, covariant=True)


@dataclass(frozen=True, kw_only=True)
class RunRecord(Generic[One]):
    """What a finished run leaves in memory.

    Attributes:
        scenario: as plain values, with its `kind` (of peers, without).
        scenario_text: its file.
        seed: of everything random.
        versions: see `versions`.
        wall_s: wall-clock time of the run.
        peak_rss_bytes: largest resident memory of a process.
        systems: by name.
    """

    scenario: Mapping[str, Any]
    scenario_text: str
    seed: int
    versions: Mapping[str, str] = field(default_factory=versions)
    wall_s: float
    peak_rss_bytes: int = field(default_factory=peak_memory_bytes)
    systems: Mapping[str, One]
