"""Traces by file name, and how a trace file comes to be: whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO, Final

from gossamer.sim.churn import avt
from gossamer.sim.churn.trace import ChurnTrace
from gossamer.sim.errors import TraceError

_WRITTEN: Final = (".avt", ".avt.gz", ".parquet")
_LISTS: Final = (".csv", ".tsv", ".tab", ".txt")
ENDINGS: Final = (*_WRITTEN, *_LISTS, *(f"{ending}.gz" for ending in _LISTS))
"""What names of trace files end in; all that end in .gz are text."""


def read_trace(path: str | os.PathLike[str]) -> ChurnTrace:
    """Read a churn trace in the format that its name tells: .avt, .parquet, or a list of others.

    Lists (.csv, .tsv, .tab, .txt; see `lists`) say by their header what they are. All text may be
    compressed, its name then ends in .gz.

    Raises:
        TraceError: the file is missing, unreadable, not of its format, or no possible trace.
    """
    path = Path(path)
    ending = _format(path, ENDINGS)
    if not path.is_file():
        found = "a folder" if path.is_dir() else "no regular file" if path.exists() else "missing"
        raise TraceError(str(path), "the trace file", str(path), "a file", found=found)
    try:
        with path.open("rb") as stream:
            if ending == ".parquet":
                from gossamer.sim.churn import parquet

                return parquet.read(stream, str(path))
            compressed = ending.endswith(".gz")
            if ending in _WRITTEN:
                return avt.read(stream, str(path), compressed=compressed)
            from gossamer.sim.churn import lists

            return lists.read(stream, str(path), compressed=compressed)
    except OSError as error:
        found = f"unreadable ({error.strerror or error})"
        expected = "a readable file"
        raise TraceError(str(path), "the trace file", str(path), expected, found=found) from error


def write_trace(trace: ChurnTrace, path: str | os.PathLike[str]) -> None:
    """Write a churn trace as .avt, .avt.gz or .parquet; a file of that name is replaced.

    The file appears whole: it is written aside in the same folder and then renamed.

    Raises:
        TraceError: the name tells no format, or a node name does not fit the format.
        OSError: the file cannot be written; whatever had that name is untouched.
    """
    path = Path(path)
    ending = _format(path, _WRITTEN)
    if ending == ".parquet":
        from gossamer.sim.churn import parquet

        _write_whole(path, lambda stream: parquet.write(trace, stream))
    else:
        text = avt.to_bytes(trace, str(path), compressed=ending == ".avt.gz")
        _write_whole(path, lambda stream: stream.write(text))


def _format(path: Path, endings: Sequence[str]) -> str:
    for ending in endings:
        if path.name.endswith(ending):
            return ending
    *others, last = endings
    expected = f"a name that ends in {', '.join(others)} or {last}"
    raise TraceError(str(path), "the name of the trace file", path.name, expected)


def _write_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    aside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with aside.open("wb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)
