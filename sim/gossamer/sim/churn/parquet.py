"""Churn traces as Parquet tables: one row a session, columns `node`, `start_s` and `end_s`.

`node` holds texts or whole numbers, the times are seconds, rows come in any order and further
columns are ignored. Nodes are numbered by first appearance. What rows cannot tell, the metadata
does: the duration (otherwise the end of the last session) and the nodes without any session.
"""

from __future__ import annotations

import json
from typing import Any, BinaryIO

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gossamer.sim.churn.trace import ChurnTrace, Floats, Nodes, first_fault
from gossamer.sim.errors import TraceError

_COLUMNS = ("node", "start_s", "end_s")
_METADATA = b"gossamer.churn"


@attrs.frozen
class _Extras:
    """The metadata of a trace: its duration, and sessionless nodes as (index, name)."""

    duration_s: float | None = None
    sessionless: tuple[tuple[int, str], ...] = ()


def read(stream: BinaryIO, file: str) -> ChurnTrace:
    """Read a trace from a seekable binary stream; `file` is its name in errors.

    Raises:
        TraceError: the content is not a trace; names the column, and the row where one is at
            fault.
    """
    table = _read_table(stream, file)
    extras = _read_extras(table.schema.metadata or {}, file)
    node, appeared = _read_nodes(table["node"], file)
    start_s, end_s = (_read_times(table[name], name, file) for name in _COLUMNS[1:])
    if not appeared and not extras.sessionless:
        raise TraceError(file, "number of rows", 0, "at least one session")
    _check_sessions(node, start_s, end_s, file)
    names, index = _all_names(appeared, extras, file)
    duration_s = extras.duration_s
    if duration_s is None:
        duration_s = float(end_s.max(initial=0.0))
    try:
        return ChurnTrace(names, index[node], start_s, end_s, duration_s)
    except TraceError as error:
        raise attrs.evolve(error, file=file) from None


def write(trace: ChurnTrace, stream: BinaryIO) -> None:
    """Write a trace to a binary stream, rows in (node, start) order."""
    order = np.lexsort((trace.start_s, trace.node))
    node = trace.node[order]
    present = np.zeros(len(trace.names), dtype=np.bool_)
    present[node] = True
    sessionless = [(i, trace.names[i]) for i in np.flatnonzero(~present).tolist()]
    extras = {"duration_s": trace.duration_s, "sessionless": sessionless}
    columns = {
        "node": pa.array(trace.names, type=pa.string()).take(pa.array(node)),
        "start_s": pa.array(trace.start_s[order]),
        "end_s": pa.array(trace.end_s[order]),
    }
    table = pa.table(columns).replace_schema_metadata({_METADATA: json.dumps(extras)})
    pq.write_table(table, stream, compression="zstd", write_page_checksum=True)


def _read_table(stream: BinaryIO, file: str) -> Any:
    try:
        source = pq.ParquetFile(stream, page_checksum_verification=True)
        present = source.schema_arrow.names
        for name in _COLUMNS:
            if present.count(name) != 1:
                expected = f"one column each of {', '.join(_COLUMNS)}"
                raise TraceError(file, f"column {name}", present, expected, found="missing")
        table = source.read(columns=list(_COLUMNS))
        table.validate(full=True)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        found = f"damaged or not Parquet ({reason})"
        expected = "a complete Parquet file"
        raise TraceError(file, "the content", None, expected, found=found) from error
    return table


def _check_column(column: Any, name: str, file: str, fits: bool, expected: str) -> None:
    if not fits:
        raise TraceError(file, f"the type of column {name}", str(column.type), expected)
    if column.null_count:
        row = pc.index(column.is_null(), True).as_py() + 1
        raise TraceError(file, name, None, "a value", found="null", line=row, unit="row")


def _read_nodes(column: Any, file: str) -> tuple[Nodes, list[str]]:
    """The number of each row's node by first appearance, and the names in that order."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    fits = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind)
    _check_column(column, "node", file, fits, "text or whole numbers")
    encoded = column.combine_chunks().dictionary_encode()
    names = encoded.dictionary.cast(pa.large_string()).to_pylist()
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32), names


def _read_times(column: Any, name: str, file: str) -> Floats:
    fits = pa.types.is_floating(column.type) or pa.types.is_integer(column.type)
    _check_column(column, name, file, fits, "numbers of seconds")
    return np.asarray(column.to_numpy(), dtype=np.float64)


def _check_sessions(node: Nodes, start_s: Floats, end_s: Floats, file: str) -> None:
    order = np.lexsort((start_s, node))
    fault = first_fault(node[order], start_s[order], end_s[order])
    if fault is not None:
        row = int(order[fault.session]) + 1
        raise TraceError(file, *fault[1:], line=row, unit="row")


def _read_extras(metadata: dict[bytes, bytes], file: str) -> _Extras:
    text = metadata.get(_METADATA)
    if text is None:
        return _Extras()
    try:
        extras = json.loads(text)
        found = _Extras(float(extras["duration_s"]), tuple(map(_named, extras["sessionless"])))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        expected = "a JSON object with a number duration_s and a list sessionless of [index, name]"
        raise TraceError(file, f"metadata {_METADATA.decode()}", text, expected) from None
    return found


def _named(entry: Any) -> tuple[int, str]:
    """A node without sessions, of the metadata; raises `ValueError` or `TypeError`."""
    index, name = entry
    if type(index) is not int or not isinstance(name, str) or not name:
        raise ValueError
    return index, name


def _all_names(appeared: list[str], extras: _Extras, file: str) -> tuple[list[str], Nodes]:
    """All names, and where among them each name that appeared in rows stands."""
    total = len(appeared) + len(extras.sessionless)
    sessionless = dict(extras.sessionless)
    if len(sessionless) < len(extras.sessionless) or not sessionless.keys() <= set(range(total)):
        field = f"sessionless in metadata {_METADATA.decode()}"
        expected = f"distinct indices below {total}, the number of nodes"
        raise TraceError(file, field, list(sessionless), expected)
    index = np.array([i for i in range(total) if i not in sessionless], dtype=np.int32)
    names_of_rows = iter(appeared)
    names = [sessionless[i] if i in sessionless else next(names_of_rows) for i in range(total)]
    return names, index
