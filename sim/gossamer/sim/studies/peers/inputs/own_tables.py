"""Subscriptions and events of the user's own: what rows of Parquet files mean.

Subscriptions, a row a subscription and attribute that it constrains: ``node``, ``subscription``
(any number, another for each of a node), ``attribute`` (from 1), ``low`` and ``high``.

Events, a row an event and attribute: ``event`` (any number), ``attribute``, ``value``, when it is
published (``time_s`` in seconds, or ``round`` from 0), and perhaps ``publisher``, a node.

Values are places in the domain of their attribute, 0 to 1, or whole numbers as peers compare them
(``low_hashed``, ``high_hashed``, ``value_hashed``), or both, which then agree. These are the tables
that results keep (`measuring.kept_workload`). Rows come in any order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gossamer.protocol.peer.space.ring import RING_MASK
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.peers.inputs.workload import to_ring
from gossamer.sim.study.draws import Floats, Int64s

# Parquet files of the user's own: columns of known names and types, read strictly.


Bools = npt.NDArray[np.bool_]


@attrs.frozen(eq=False)
class OwnTable:
    """A table of a file, as arrays of one length.

    Attributes:
        path: of the file.
        wholes: columns of whole numbers by name, int64.
        numbers: columns of numbers by name, float64, NaN and infinities among them.
    """

    path: Path
    wholes: Mapping[str, Int64s]
    numbers: Mapping[str, Floats]

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(next(iter(self.wholes.values())))

    def has(self, column: str) -> bool:
        """Whether there is such a column."""
        return column in self.wholes or column in self.numbers

    def column(self, name: str) -> npt.NDArray[Any]:
        """A column by name."""
        return self.wholes[name] if name in self.wholes else self.numbers[name]

    def error(self, row: int, column: str, expected: str) -> ScenarioError:
        """That the value in a row, from 0 on, is another than was expected."""
        value = self.column(column)[row].item()
        return ScenarioError(f"{self.path}, row {row + 1}", column, value, expected)

    def check(self, column: str, holds: Bools, expected: str) -> None:
        """Raise `ScenarioError` about the first row in which a column does not hold."""
        if not holds.all():
            raise self.error(int(np.argmin(holds)), column, expected)

    def require(self, *columns: str) -> None:
        """Raise `ScenarioError` about the first column that is missing."""
        for name in columns:
            if not self.has(name):
                there = ", ".join((*self.wholes, *self.numbers))
                expected = f"a column beside {there}"
                raise ScenarioError(str(self.path), f"column {name}", None, expected, "missing")


def read_own(path: Path, wholes: Sequence[str], numbers: Sequence[str]) -> OwnTable:
    """The columns of a file, each of which has to be known by name.

    Raises:
        ScenarioError: there is no such file, it is damaged, has no rows, or a column that is not
            known, twice there, of another type, or has nulls.
    """
    table = _read(path)
    known = (*wholes, *numbers)
    names = table.column_names
    for name in names:
        if name not in known or names.count(name) > 1:
            found = "unknown" if name not in known else "there twice"
            expected = f"columns among {', '.join(known)}"
            raise ScenarioError(str(path), f"column {name}", None, expected, found)
    if not names or len(table) == 0:
        raise ScenarioError(str(path), "number of rows", 0, "at least one")
    return OwnTable(
        path,
        {name: _whole(path, name, table[name]) for name in names if name in wholes},
        {name: _number(path, name, table[name]) for name in names if name in numbers},
    )


def content_of(path: Path) -> dict[str, str]:
    """A file by its name and content, in place of where it lies.

    Raises:
        ScenarioError: it cannot be read.
    """
    try:
        with path.open("rb") as stream:
            fingerprint = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise _unreadable(path, error) from None
    return {"file": path.name, "fingerprint": fingerprint}


def _read(path: Path) -> pa.Table:
    try:
        with path.open("rb") as stream:
            source = pq.ParquetFile(stream, page_checksum_verification=True)
            table = source.read()
            table.validate(full=True)
    except pa.ArrowException as error:
        found = f"damaged or not Parquet ({_reason(error)})"
        expected = "a complete Parquet file"
        raise ScenarioError(str(path), "the content", None, expected, found) from error
    except OSError as error:
        raise _unreadable(path, error) from None
    return table


def _unreadable(path: Path, error: OSError) -> ScenarioError:
    # Arrow raises some without a number.
    found = error.strerror or _reason(error)
    return ScenarioError(str(path), "the file", None, "a readable Parquet file", found)


def _reason(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")


def _check(path: Path, name: str, column: pa.ChunkedArray, fits: bool, expected: str) -> None:
    if not fits:
        raise ScenarioError(str(path), f"the type of column {name}", str(column.type), expected)
    if column.null_count:
        row = pc.index(column.is_null(), True).as_py() + 1
        raise ScenarioError(f"{path}, row {row}", name, None, "a value", "null")


def _whole(path: Path, name: str, column: pa.ChunkedArray) -> Int64s:
    _check(path, name, column, pa.types.is_integer(column.type), "whole numbers")
    try:
        return np.asarray(column.cast(pa.int64()).to_numpy(), np.int64)
    except pa.ArrowInvalid:
        raise ScenarioError(str(path), name, None, "numbers of 64 bits", "too large") from None


def _number(path: Path, name: str, column: pa.ChunkedArray) -> Floats:
    fits = pa.types.is_floating(column.type) or pa.types.is_integer(column.type)
    _check(path, name, column, fits, "numbers")
    return np.asarray(column.to_numpy(), np.float64)


NODE, SUBSCRIPTION, ATTRIBUTE = "node", "subscription", "attribute"
EVENT, TIME, ROUND, PUBLISHER, VALUE = "event", "time_s", "round", "publisher", "value"
SINCE, LOW, HIGH = "since_s", "low", "high"
_HASHED: Final = "_hashed"
_LONGEST_S: Final = 1e15
# By how much a place may differ from what is hashed: what a float64 rounds.
_ROUNDED: Final = 1 << 10


@attrs.frozen(eq=False)
class Subscribed:
    """Subscriptions of a file, in order of nodes and of their numbers.

    Attributes:
        node: int64[k], who has them.
        slot: int64[k], their places among those of the node, from 0 on.
        boxes: int64[k, 2A], ends of ranges; all of the ring where an attribute is not constrained.
        constrained: int64[k], bits of the attributes that they constrain.
        table, rows: what they were read from, and a row of each, int64[k].
    """

    node: Int64s
    slot: Int64s
    boxes: Int64s
    constrained: Int64s
    table: OwnTable
    rows: Int64s


@attrs.frozen(eq=False)
class Published:
    """Events of a file, in order of rounds and, within one, of their numbers.

    Attributes:
        cycle: int64[k], the round in which they are published.
        time_s: float64[k], the time from which on they are; None where only rounds are known.
        publisher: int64[k], nodes; None where the file names none.
        values: int64[k, A].
        table, rows: what they were read from, and a row of each, int64[k].
    """

    cycle: Int64s
    time_s: Floats | None
    publisher: Int64s | None
    values: Int64s
    table: OwnTable
    rows: Int64s


def subscribed(path: Path, attributes: int, per_node: int) -> Subscribed:
    """The subscriptions of a file.

    Raises:
        ScenarioError: it is no such table; names the row and column.
    """
    return _subscribed(path, _stamp(path), attributes, per_node)


def published(path: Path, attributes: int, round_s: float) -> Published:
    """The events of a file, for rounds of ``round_s`` seconds.

    Raises:
        ScenarioError: it is no such table; names the row and column.
    """
    return _published(path, _stamp(path), attributes, round_s)


def _stamp(path: Path) -> tuple[int, int]:
    """Another one where a file has been written anew."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0  # reading it says what is wrong
    return found.st_mtime_ns, found.st_size


@lru_cache(maxsize=4)
def _subscribed(
    path: Path, _stamped: tuple[int, int], attributes: int, per_node: int
) -> Subscribed:
    wholes = (NODE, SUBSCRIPTION, ATTRIBUTE, LOW + _HASHED, HIGH + _HASHED)
    table = read_own(path, wholes, (SINCE, LOW, HIGH))
    table.require(NODE, SUBSCRIPTION, ATTRIBUTE)
    node, number, attribute = (table.wholes[name] for name in (NODE, SUBSCRIPTION, ATTRIBUTE))
    table.check(NODE, node >= 0, "a node, from 0 on")
    _check_attributes(table, attributes)
    if table.has(SINCE):
        expected = "-inf or 0: those of the beginning, as subscriptions of a file do not change"
        since_s = table.numbers[SINCE]
        table.check(SINCE, (since_s == -np.inf) | (since_s == 0), expected)
    low, high = _hashed(table, LOW), _hashed(table, HIGH)
    if (low > high).any():
        at = int(np.argmax(low > high))
        ends = (LOW, HIGH) if table.has(LOW) else (LOW + _HASHED, HIGH + _HASHED)
        expected = f"at least {table.column(ends[0])[at].item()!r}, which is {ends[0]}"
        raise table.error(at, ends[1], expected)
    order = np.lexsort((attribute, number, node))
    is_first = _begins(node[order], number[order])
    repeated = ~is_first
    repeated[1:] &= attribute[order][1:] == attribute[order][:-1]
    if repeated.any():
        expected = "one that no other row of this subscription has"
        raise table.error(int(order[np.argmax(repeated)]), ATTRIBUTE, expected)
    which = np.cumsum(is_first) - 1
    rows = order[is_first]
    boxes = np.tile(np.array([0, RING_MASK], np.int64), (len(rows), attributes))
    column = 2 * (attribute[order] - 1)
    boxes[which, column], boxes[which, column + 1] = low[order], high[order]
    constrained = np.zeros(len(rows), np.int64)
    np.add.at(constrained, which, 1 << (attribute[order] - 1))
    slot = _places(_begins(node[rows]))
    if (slot >= per_node).any():
        at = int(np.argmax(slot >= per_node))
        expected = f"no more than {per_node} of a node, which subscriptions.per_node says"
        raise table.error(int(rows[at]), SUBSCRIPTION, expected)
    return Subscribed(node[rows], slot, boxes, constrained, table, rows)


@lru_cache(maxsize=4)
def _published(path: Path, _stamped: tuple[int, int], attributes: int, round_s: float) -> Published:
    wholes = (EVENT, ATTRIBUTE, ROUND, PUBLISHER, VALUE + _HASHED)
    table = read_own(path, wholes, (TIME, VALUE))
    table.require(EVENT, ATTRIBUTE)
    if table.has(TIME) == table.has(ROUND):
        found = "there as well" if table.has(TIME) else "missing, as is time_s"
        expected = f"one of {TIME} and {ROUND}"
        raise ScenarioError(str(path), f"column {ROUND}", None, expected, found)
    event, attribute = table.wholes[EVENT], table.wholes[ATTRIBUTE]
    _check_attributes(table, attributes)
    value = _hashed(table, VALUE)
    order = np.lexsort((attribute, event))
    is_first = _begins(event[order])
    for column in (TIME, ROUND, PUBLISHER):
        if table.has(column):
            _check_when_and_who(table, column, order, is_first)
    expected_attribute = _places(is_first) + 1
    wrong = attribute[order] != expected_attribute
    # An event ends with its last attribute.
    ends = np.append(is_first[1:], True)
    wrong |= ends & (attribute[order] != attributes)
    if wrong.any():
        at = int(order[np.argmax(wrong)])
        expected = f"each of 1 to {attributes} once for event {event[at]}"
        raise table.error(at, ATTRIBUTE, expected)
    rows = order[is_first]
    values = value[order].reshape(len(rows), attributes)
    if table.has(TIME):
        cycle = round_of(table.numbers[TIME][rows], round_s)
    else:
        cycle = table.wholes[ROUND][rows]
    place = np.argsort(cycle, kind="stable")
    rows = rows[place]
    return Published(
        cycle=cycle[place],
        time_s=table.numbers[TIME][rows] if table.has(TIME) else None,
        publisher=table.wholes[PUBLISHER][rows] if table.has(PUBLISHER) else None,
        values=values[place],
        table=table,
        rows=rows,
    )


def round_of(time_s: Floats, round_s: float) -> Int64s:
    """The round at whose end, or before, each time is, but not at the end of the one before."""
    found = np.maximum(np.ceil(time_s / round_s) - 1, 0)
    # What the division rounds.
    found -= (found > 0) & (found * round_s >= time_s)
    found += (found + 1) * round_s < time_s
    return np.asarray(found, np.int64)


def _check_attributes(table: OwnTable, attributes: int) -> None:
    attribute = table.wholes[ATTRIBUTE]
    expected = f"at least 1 and at most {attributes}, the value of subscriptions.attributes"
    table.check(ATTRIBUTE, (attribute >= 1) & (attribute <= attributes), expected)


def _check_when_and_who(table: OwnTable, column: str, order: Int64s, is_first: Bools) -> None:
    values = table.column(column)
    most = _LONGEST_S if column == TIME else 2**31 - 1
    expected = {TIME: "a time of at least 0 s", ROUND: "a round, from 0 on"}
    holds = (values >= 0) & (values <= most)
    table.check(column, holds, expected.get(column, "a node, from 0 on"))
    first = values[order][np.flatnonzero(is_first)][np.cumsum(is_first) - 1]
    others = values[order] != first
    if others.any():
        at = int(np.argmax(others))
        expected_value = f"{first[at].item()!r}, as in another row of this event"
        raise table.error(int(order[at]), column, expected_value)


def _hashed(table: OwnTable, column: str) -> Int64s:
    """The values of a column as peers compare them, from whichever form the file has."""
    hashed = column + _HASHED
    if not table.has(hashed):
        table.require(column)
        return to_ring(_places_in_domain(table, column))
    found = table.wholes[hashed]
    expected = f"a whole number from 0 to {RING_MASK}"
    table.check(hashed, (found >= 0) & (found <= RING_MASK), expected)
    if table.has(column):
        differs = np.abs(to_ring(_places_in_domain(table, column)) - found)
        expected = f"what {hashed} stands for; leave out the one that does not hold"
        table.check(column, differs <= _ROUNDED, expected)
    return found


def _places_in_domain(table: OwnTable, column: str) -> Floats:
    found = table.numbers[column]
    table.check(column, (found >= 0) & (found <= 1), "a place in the domain, from 0 to 1")
    return found


def _begins(*columns: Int64s) -> Bools:
    """bool[k]: which rows of sorted columns differ from the one before."""
    found = np.ones(len(columns[0]), np.bool_)
    found[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return found


def _places(is_first: Bools) -> Int64s:
    """int64[k]: how far each row is from the first of its group."""
    rows = np.arange(len(is_first))
    return rows - np.maximum.accumulate(np.where(is_first, rows, 0))
