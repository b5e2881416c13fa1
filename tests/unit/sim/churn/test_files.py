"""Trace files: the formats by example, one clear sentence for each bad input, nothing half-made."""

from __future__ import annotations

import gzip
import itertools
import os
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gossamer.sim.churn import ChurnTrace, read_trace, write_trace
from gossamer.sim.errors import TraceError
from support.checkout import SHARED_DATA

SKYPE = SHARED_DATA / "skype.avt.gz"
GOOD = "a\t2\t0 5 5 9\nb 1 1.5 2e0\nc\t0\n"


def fault_of(path: Path) -> TraceError:
    """The error of reading a file, after checking that it is one sentence naming the file."""
    with pytest.raises(TraceError) as caught:
        read_trace(path)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(str(path))
    assert ", expected " in message
    assert caught.value.file == str(path)
    return caught.value


def written(folder: Path, text: str | bytes, name: str) -> Path:
    """A file of a text, zipped if its name says so."""
    raw = text.encode() if isinstance(text, str) else text
    (folder / name).write_bytes(gzip.compress(raw) if name.endswith("gz") else raw)
    return folder / name


def trace_of(folder: Path, text: str, name: str = "a.avt") -> ChurnTrace:
    return read_trace(written(folder, text, name))


def fault_of_text(folder: Path, text: str | bytes, name: str = "bad.avt") -> TraceError:
    return fault_of(written(folder, text, name))


def fault_of_table(folder: Path, columns: Any) -> TraceError:
    pq.write_table(pa.table(columns), folder / "bad.parquet")
    return fault_of(folder / "bad.parquet")


def sessions_of(trace: ChurnTrace) -> list[tuple[str, float, float]]:
    columns = ([trace.names[i] for i in trace.node], trace.start_s.tolist(), trace.end_s.tolist())
    return list(zip(*columns, strict=True))


@pytest.mark.parametrize("name", ["good.avt", "good.avt.gz"])
def test_tabs_blanks_crlf_comments_and_touching_sessions(tmp_path: Path, name: str) -> None:
    trace = trace_of(tmp_path, ("# a comment\n\n" + GOOD).replace("\n", "\r\n"), name)
    assert trace.names == ("a", "b", "c")
    assert sessions_of(trace) == [("a", 0.0, 5.0), ("b", 1.5, 2.0), ("a", 5.0, 9.0)]
    assert trace.duration_s == 9.0


@pytest.mark.parametrize("name", ["good.avt", "good.avt.gz"])
def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path, name: str) -> None:
    for text, duration_s in (("\ufeff" + GOOD, 9), ("\ufeff# duration_s 20\r\n" + GOOD, 20)):
        trace = trace_of(tmp_path, text, name)
        assert (trace.names, trace.duration_s) == (("a", "b", "c"), duration_s)
    error = fault_of_text(tmp_path, GOOD.encode("utf-16"), name)
    assert "the content is not UTF-8 but UTF-16, expected text in UTF-8" in str(error)


def test_a_trace_that_was_cut_off_within_a_line_is_refused(tmp_path: Path) -> None:
    """Also where what is left of the line has the form of a whole one."""
    whole = "# duration_s 2000\na\t1\t0 1000\r\nb\t0\r\nc 2 5 10.5 200 1500\n"
    starts = [0, *(i + 1 for i, sign in enumerate(whole) if sign == "\n")]
    for end in range(1, len(whole)):
        if end not in starts:
            error = fault_of_text(tmp_path, whole[:end])
            assert (error.line, error.field) == (whole[:end].count("\n") + 1, "the last line")


def test_the_duration_comment_is_honoured_and_names_may_look_like_numbers(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, "# duration_s 20\n" + GOOD)
    assert trace.duration_s == 20.0
    write_trace(trace, tmp_path / "b.avt")
    assert (tmp_path / "b.avt").read_text().startswith("# duration_s 20\na\t2\t0 5 5 9\n")
    write_trace(trace.cut(0, 9), tmp_path / "c.avt")
    assert (tmp_path / "c.avt").read_text() == "a\t2\t0 5 5 9\nb\t1\t1.5 2\nc\t0\n"
    assert trace_of(tmp_path, "node_1 1 0 10\n").names == ("node_1",)
    assert trace_of(tmp_path, "# duration_s 8\na 0\n").population(4) == 0


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("x", "session count", ""),
        ("x two 1 2", "session count", "two"),
        ("x -1", "session count", "-1"),
        ("x 1.0 1 2", "session count", "1.0"),
        ("x " + "9" * 5000 + " 1 2", "session count", "9" * 5000),
        ("x 2 1 2", "session count", 2),
        ("x 1 1 2 3", "session count", 1),
        ("x 1 1 2 3 4", "session count", 1),
        ("x 2 1 2 3 4z", "end_s of session 2", "4z"),
        ("x 1 1_0 20", "start_s of session 1", "1_0"),
        ("x_y 1 1 two", "end_s of session 1", "two"),
        ("x 1 - 2", "start_s of session 1", "-"),
        ("x 1 1 inf", "end_s of session 1", float("inf")),
        ("x 1 1 1e999", "end_s of session 1", float("inf")),
        ("x 1 1 1e300", "end_s of session 1", 1e300),
        ("x 1 1e300 1e301", "start_s of session 1", 1e300),
        ("x 1 -1 2", "start_s of session 1", -1.0),
        ("x 1 5 4", "end_s of session 1", 4.0),
        ("x 1 5 5", "end_s of session 1", 5.0),
        ("x 3 0 2 3 6 5 8", "start_s of session 3", 5.0),
        ("x 2 5 8 0 2", "start_s of session 2", 0.0),
        ("a 1 1 2", "node id", "a"),
        ("# duration_s soon", "duration_s", "soon"),
        ("# duration_s -5", "duration_s", "-5"),
        ("# duration_s 1e300", "duration_s", "1e300"),
        ("# duration_s", "duration_s", "# duration_s"),
    ],
)
def test_a_bad_line_is_named_by_field(tmp_path: Path, line: str, field: str, value: object) -> None:
    error = fault_of_text(tmp_path, GOOD + line + "\n")
    assert (error.line, error.field, error.value) == (4, field, value)
    assert len(str(error)) < len(str(tmp_path)) + 220


def test_sentences_of_overlaps_and_of_what_is_no_number_or_text_tell_all(tmp_path: Path) -> None:
    error = fault_of_text(tmp_path, "# note\na 1 0 2\nb 2 1 5.5 4 8\n")
    assert str(error) == (
        f"{tmp_path}/bad.avt, line 3: start_s of session 2 is 4.0, "
        "expected a time at or after the end of the node's previous session, 5.5"
    )
    nan = fault_of_text(tmp_path, "a 1 0 2\nb 1 nan 2\n")
    assert (nan.line, nan.field) == (2, "start_s of session 1")
    no_utf8 = fault_of_text(tmp_path, b"\xff\xfe 1 1 2\n")
    assert (no_utf8.line, no_utf8.field) == (1, "node id")
    early = fault_of_text(tmp_path, "# duration_s 8\n" + GOOD)
    assert (early.field, early.value) == ("duration_s", 8.0)
    assert fault_of_text(tmp_path, "a 0\n").field == "duration_s"


def test_an_empty_file_is_refused_plain_and_zipped(tmp_path: Path) -> None:
    for text, name in itertools.product(["", "\n\n", "# nothing\n"], ["bad.avt", "bad.avt.gz"]):
        assert fault_of_text(tmp_path, text, name).found == "empty"


def test_a_truncated_gzip_names_the_line_where_it_breaks_off(tmp_path: Path) -> None:
    ends = np.random.default_rng(5).integers(1, 10**9, size=20_000)
    whole = gzip.compress("".join(f"n{i} 1 0 {end}\n" for i, end in enumerate(ends)).encode())
    path = tmp_path / "cut.avt.gz"
    path.write_bytes(whole[: len(whole) // 2])
    error = fault_of(path)
    assert error.found == "truncated"
    assert error.line is not None
    path.write_bytes(whole[:-1])
    assert fault_of(path).found == "truncated"


def test_files_that_are_damaged_missing_or_named_otherwise_are_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.parquet").mkdir()
    whole = gzip.compress(GOOD.encode())
    flipped = bytearray(whole)
    flipped[-6] ^= 0xFF  # within the checksum
    for name, content, said in (
        ("empty.avt.gz", b"", " is empty, expected"),
        ("bad.avt.gz", flipped, "damaged"),
        ("tail.avt.gz", whole + b"junk", "damaged"),
        ("text.avt.gz", GOOD.encode(), " is not gzip, expected"),
        ("zipped.avt", whole, " is gzip data, expected"),
        ("absent.avt", None, " is missing, expected"),
        ("folder.parquet", None, " is a folder, expected"),
        ("trace.zip", GOOD.encode(), "ends in .avt, .avt.gz, .parquet, .csv"),
    ):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        assert said in str(fault_of(tmp_path / name))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read any file")
def test_an_unreadable_file_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD, "secret.avt")
    path.chmod(0)
    assert "unreadable" in str(fault_of(path))


def test_columns_of_parquet_are_read_in_any_order(tmp_path: Path) -> None:
    """Also in several groups of rows, with names of any type."""
    names = pa.array(["7", "3", "7"])
    for node in (
        names,
        names.cast(pa.uint8()),
        names.cast("large_string"),
        names.dictionary_encode(),
    ):
        columns = {"end_s": [9, 4, 6], "start_s": [6.0, 1, 2], "node": node, "more": list("xyz")}
        pq.write_table(pa.table(columns), tmp_path / "a.parquet", row_group_size=2)
        trace = read_trace(tmp_path / "a.parquet")
        assert trace.names == ("7", "3")
        assert sessions_of(trace) == [("3", 1.0, 4.0), ("7", 2.0, 6.0), ("7", 6.0, 9.0)]


@pytest.mark.parametrize(
    ("changed", "field", "row"),
    [
        ({"node": [True, False]}, "the type of column node", None),
        ({"node": [1.5, 2.5]}, "the type of column node", None),
        ({"start_s": ["1", "2"]}, "the type of column start_s", None),
        ({"end_s": [[1], [2]]}, "the type of column end_s", None),
        ({"node": ["a", None]}, "node", 2),
        ({"start_s": [None, 1.0]}, "start_s", 1),
        ({"end_s": [8.0, None]}, "end_s", 2),
        ({"end_s": [8.0, float("nan")]}, "end_s", 2),
        ({"start_s": [-1.0, 5.0]}, "start_s", 1),
        ({"end_s": [8.0, float("inf")]}, "end_s", 2),
        ({"end_s": [8.0, 1e300]}, "end_s", 2),
        ({"end_s": [8, (1 << 63) - 1]}, "end_s", 2),
        ({"node": ["a", "a"], "start_s": [5.0, 0.0], "end_s": [9.0, 6.0]}, "start_s", 1),
    ],
)
def test_a_bad_parquet_cell_is_named(tmp_path: Path, changed: Any, field: str, row: Any) -> None:
    good = {"node": ["a", "b"], "start_s": [0.0, 5.0], "end_s": [8.0, 9.0]}
    error = fault_of_table(tmp_path, good | changed)
    assert (error.field, error.line) == (field, row)


def test_parquet_without_columns_rows_sense_or_end_is_refused(tmp_path: Path) -> None:
    error = fault_of_table(tmp_path, {"node": ["a"], "start": [0.0], "end_s": [1.0]})
    assert "column start_s is missing" in str(error)
    nothing = pa.array([], pa.float64())
    empty = {"node": pa.array([], pa.string()), "start_s": nothing, "end_s": nothing}
    assert fault_of_table(tmp_path, empty).field == "number of rows"
    for text in (GOOD, ""):
        assert "not Parquet" in str(fault_of_text(tmp_path, text, "text.parquet"))
    path = tmp_path / "whole.parquet"
    write_trace(ChurnTrace(("a",), [0], [0.0], [1.0], 1.0), path)
    path.write_bytes(path.read_bytes()[:-20])
    assert "damaged" in str(fault_of(path))


@pytest.mark.parametrize(
    "metadata",
    [
        "nonsense",
        "{}",
        '{"duration_s": 20}',
        '{"duration_s": "long", "sessionless": []}',
        '{"duration_s": 20, "sessionless": [[5, "z"]]}',
        '{"duration_s": 20, "sessionless": [[0, "y"], [0, "z"]]}',
        '{"duration_s": 20, "sessionless": [[1, "a"]]}',
        '{"duration_s": 0.5, "sessionless": []}',
        '{"duration_s": 1e300, "sessionless": []}',
        '{"duration_s": NaN, "sessionless": []}',
        '{"duration_s": 1' + "0" * 400 + ', "sessionless": []}',
        '{"duration_s": 20, "sessionless": [[Infinity, "z"]]}',
        '{"duration_s": 20, "sessionless": [[1, ""]]}',
        '{"duration_s": 20, "sessionless": ' + "[" * 100_000,
    ],
)
def test_parquet_metadata_that_contradicts_rows_is_refused(tmp_path: Path, metadata: str) -> None:
    table = pa.table({"node": ["a"], "start_s": [0.0], "end_s": [1.0]})
    path = tmp_path / "bad.parquet"
    pq.write_table(table.replace_schema_metadata({"gossamer.churn": metadata}), path)
    assert fault_of(path).file == str(path)


@pytest.mark.parametrize("name", ["a.avt", "a.avt.gz", "a.parquet"])
def test_a_file_with_flipped_bytes_is_refused_in_words_or_read(tmp_path: Path, name: str) -> None:
    """Text may stay text; the checksums of gzip and of Parquet pages let no session change.

    A Parquet footer, which holds the duration, has no checksum.
    """
    names = tuple(f"n{i}" for i in range(8))
    trace = ChurnTrace(names, np.arange(8), np.arange(8.0), np.arange(8.0) + 20, 40.0)
    path = tmp_path / name
    write_trace(trace, path)
    whole = path.read_bytes()
    rng = np.random.default_rng(11)
    messages = []
    for _ in range(100):
        damaged = bytearray(whole)
        damaged[rng.integers(len(whole))] ^= rng.integers(1, 256)
        path.write_bytes(damaged)
        try:
            same = sessions_of(read_trace(path)) == sessions_of(trace)
        except TraceError as error:
            messages.append(str(error))
        else:
            assert same or name == "a.avt", "seed 11"
    assert len(messages) > 50, "seed 11"
    assert not any("\n" in message for message in messages), "seed 11"


def test_a_name_that_avt_cannot_hold_is_refused_and_nothing_lost(tmp_path: Path) -> None:
    path = written(tmp_path, "old", "a.avt")
    for name in ("two words", "tab\t", "#x"):
        with pytest.raises(TraceError, match="node id is"):
            write_trace(ChurnTrace((name,), [0], [0.0], [1.0], 1.0), path)
        assert path.read_text() == "old"


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("name", ["a.avt", "a.avt.gz", "a.parquet"])
def test_a_write_leaves_the_new_file_alone_or_if_it_fails_the_old_one(
    tmp_path: Path, name: str, step: str
) -> None:
    path, trace = tmp_path / name, ChurnTrace(("a",), [0], [0.0], [1.0], 1.0)
    path.write_text("old")
    full = mock.patch.object(os, step, side_effect=OSError(28, "No space left on device"))
    with full, pytest.raises(OSError, match="No space left"):
        write_trace(trace, path)
    assert (path.read_text(), os.listdir(tmp_path)) == ("old", [name])
    write_trace(trace, path)
    assert os.listdir(tmp_path) == [name]


@pytest.mark.shared_data
@pytest.mark.skipif(not SKYPE.exists(), reason="the shared data folder is not beside the checkout")
def test_the_measured_skype_trace_reads_as_its_notes_say() -> None:
    trace = read_trace(SKYPE)
    assert (len(trace.names), trace.session_count, trace.duration_s) == (2081, 29217, 2478200.0)
    before, after = trace.population(np.array([251.9, 252.9]) * 3600)
    assert after > 1.9 * before
