"""Traces by file name, and how a trace file comes to be: whole or not at all."""

from __future__ import annotations

import codecs
import gzip
import os
import zlib
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Final

import attrs
import numpy as np

from gossamer.sim.churn.trace import LONGEST_S, ChurnTrace, Floats, first_fault
from gossamer.sim.errors import TraceError

# The availability-trace text format, `.avt`, plain or gzipped.
#
# A line is a node: `node-id count start end start end ...`, fields apart by blanks or tabs, times
# in seconds, sessions in order of time. Two additions: empty lines and lines that begin with `#`
# are skipped, and the comment `# duration_s 86400` gives the duration of the trace, which is
# otherwise the end of the last session. It is written only where the two differ. A byte order mark
# may be before the first line, and the last one has an end: a trace that was cut off lacks it.


_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_FORMAT = 16 + zlib.MAX_WBITS
_CHUNK_BYTES = 1 << 20
_DURATION = b"duration_s"
_BLANKS = frozenset(" \t\n\r\x0b\x0c")  # what bytes.split takes for blanks


@attrs.define
class _Lines:
    """What the lines read so far hold; times alternate between starts and ends."""

    file: str
    duration_s: float | None = None
    line_of_name: dict[str, int] = attrs.Factory(dict)
    counts: list[int] = attrs.Factory(list)
    times_s: list[float] = attrs.Factory(list)

    def error(self, line: int, field: str, value: object, expected: str) -> TraceError:
        return TraceError(self.file, field, value, expected, line=line)


def read(stream: BinaryIO, file: str, *, compressed: bool) -> ChurnTrace:
    """Read a trace from a binary stream; `file` is its name in errors.

    Raises:
        TraceError: the content is not a trace; names the line, field and value.
    """
    text = _text(unpacked(stream, file, compressed=compressed), file)
    lines = _Lines(file)
    for number, line in enumerate(text.split(b"\n"), start=1):
        if line.startswith(b"#"):
            _read_comment(lines, number, line)
        elif line and not line.isspace():
            _read_node(lines, number, line)
    if not lines.counts:
        expected = "at least one line with a node and its sessions"
        raise TraceError(file, "the content", text[:80], expected, found="empty")
    return _to_trace(lines)


def unpacked(stream: BinaryIO, file: str, *, compressed: bool) -> bytes:
    """All of a text file, or of one that is compressed by gzip, as its name says.

    Raises:
        TraceError: it is not what its name says, or the gzip data is damaged.
    """
    if compressed:
        return _decompressed(stream, file)
    raw = stream.read()
    if raw.startswith(_GZIP_MAGIC):
        expected = "text (the name of a compressed trace ends in .gz)"
        raise TraceError(file, "the content", raw[:16], expected, found="gzip data")
    return raw


def _text(raw: bytes, file: str) -> bytes:
    """The text of a trace without a byte order mark, where its last line has an end."""
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and b"\0" in raw:
        expected = "text in UTF-8"
        raise TraceError(file, "the content", raw[:16], expected, found="not UTF-8 but UTF-16")
    text = raw.removeprefix(codecs.BOM_UTF8)
    last = text.rpartition(b"\n")[2]
    if last and not last.isspace():
        expected = "one with a line end, which a trace that was cut off lacks"
        value = last.decode(errors="replace")
        raise TraceError(file, "the last line", value, expected, line=text.count(b"\n") + 1)
    return text


def to_bytes(trace: ChurnTrace, file: str, *, compressed: bool) -> bytes:
    """The content of an .avt file; equal traces give equal bytes (of one zlib, if compressed).

    Raises:
        TraceError: a node name has blanks or begins with `#`, which the format cannot express.
    """
    for name in trace.names:
        if name.startswith("#") or not _BLANKS.isdisjoint(name):
            expected = "a name without blanks that does not begin with #"
            raise TraceError(file, "node id", name, expected)
    order = np.lexsort((trace.start_s, trace.node))
    times_s = np.column_stack((trace.start_s[order], trace.end_s[order])).ravel().tolist()
    counts = np.bincount(trace.node, minlength=len(trace.names)).tolist()
    lines = []
    if trace.duration_s != trace.end_s.max(initial=0.0):
        lines.append(f"# {_DURATION.decode()} {_seconds(trace.duration_s)}\n")
    done = 0
    for name, count in zip(trace.names, counts, strict=True):
        times = " ".join(map(_seconds, times_s[done : done + 2 * count]))
        lines.append(f"{name}\t{count}\t{times}\n" if count else f"{name}\t0\n")
        done += 2 * count
    text = "".join(lines).encode()
    # The same trace gives the same bytes: there is no time of day in them, and what Python's gzip
    # writes of the system differs from one version to the next.
    return zlib.compress(text, 9, _GZIP_FORMAT) if compressed else text


def _seconds(time_s: float) -> str:
    """The shortest text that reads back as the same number."""
    return str(int(time_s)) if time_s.is_integer() and time_s < 1e15 else repr(time_s)


def _decompressed(stream: BinaryIO, file: str) -> bytes:
    """All of a gzip stream, or the line at which it breaks off."""
    head = stream.read(len(_GZIP_MAGIC))
    stream.seek(0)
    if not head:
        return b""
    if head != _GZIP_MAGIC:
        expected = "gzip data (the name of a trace in plain text does not end in .gz)"
        raise TraceError(file, "the content", head, expected, found="not gzip")
    text = BytesIO()
    try:
        with gzip.GzipFile(fileobj=stream) as source:
            while chunk := source.read(_CHUNK_BYTES):
                text.write(chunk)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        found = "truncated" if isinstance(error, EOFError) else f"damaged ({error})"
        line = text.getvalue().count(b"\n") + 1
        expected = "a complete gzip file"
        raise TraceError(file, "the gzip data", head, expected, found=found, line=line) from error
    return text.getvalue()


def _number(lines: _Lines, line: int, field: str, token: bytes) -> float:
    try:
        number = float(token)
    except ValueError:
        number = float("nan")
    # float() takes 1_0 for 10; NaN fails the comparison.
    if b"_" in token or not 0 <= number <= LONGEST_S:
        value = token.decode(errors="replace")
        expected = f"a finite number of seconds from 0 to {LONGEST_S:g}"
        raise lines.error(line, field, value, expected)
    return number


def _read_comment(lines: _Lines, line: int, text: bytes) -> None:
    fields = text[1:].split()
    if fields[:1] != [_DURATION]:
        return
    if len(fields) != 2:
        raise lines.error(line, "duration_s", text.decode(errors="replace"), "one number")
    lines.duration_s = _number(lines, line, "duration_s", fields[1])


def _read_node(lines: _Lines, line: int, text: bytes) -> None:
    fields = text.split()
    name, times = _node_name(lines, line, fields[0]), fields[2:]
    count = _session_count(lines, line, fields)
    try:
        if b"_" in text:
            raise ValueError
        times_s = list(map(float, times))
    except ValueError:
        times_s = [_number(lines, line, _time_field(i), time) for i, time in enumerate(times)]
    lines.line_of_name[name] = line
    lines.counts.append(count)
    lines.times_s += times_s


def _node_name(lines: _Lines, line: int, token: bytes) -> str:
    try:
        name = token.decode()
    except UnicodeDecodeError:
        raise lines.error(line, "node id", token, "text in UTF-8") from None
    if name in lines.line_of_name:
        expected = f"an id that is not on line {lines.line_of_name[name]} already"
        raise lines.error(line, "node id", name, expected)
    return name


def _session_count(lines: _Lines, line: int, fields: list[bytes]) -> int:
    times = len(fields) - 2
    if times < 0:
        raise lines.error(line, "session count", "", "a count of sessions after the node id")
    token = fields[1].decode(errors="replace")
    if not (fields[1].isdigit() and len(fields[1]) < 19):
        raise lines.error(line, "session count", token, "a whole number of at least 0")
    if times != 2 * int(token):
        expected = f"half of the {times} times that follow it"
        raise lines.error(line, "session count", int(token), expected)
    return int(token)


def _time_field(index: int) -> str:
    return f"{'end_s' if index % 2 else 'start_s'} of session {index // 2 + 1}"


def _to_trace(lines: _Lines) -> ChurnTrace:
    times_s: Floats = np.array(lines.times_s, dtype=np.float64).reshape(-1, 2)
    node = np.repeat(np.arange(len(lines.counts), dtype=np.int32), lines.counts)
    start_s, end_s = times_s[:, 0], times_s[:, 1]
    fault = first_fault(node, start_s, end_s)
    if fault is not None:
        line = list(lines.line_of_name.values())[node[fault.session]]
        number = fault.session - int(np.searchsorted(node, node[fault.session])) + 1
        field = f"{fault.field} of session {number}"
        raise lines.error(line, field, fault.value, fault.expected)
    duration_s = float(end_s.max(initial=0.0)) if lines.duration_s is None else lines.duration_s
    try:
        return ChurnTrace(tuple(lines.line_of_name), node, start_s, end_s, duration_s)
    except TraceError as error:
        raise attrs.evolve(error, file=lines.file) from None


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
                return read(stream, str(path), compressed=compressed)
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
        text = to_bytes(trace, str(path), compressed=ending == ".avt.gz")
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
