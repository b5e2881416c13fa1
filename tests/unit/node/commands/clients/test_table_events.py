"""Events of workloads as lines, for clients that publish them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gossamer.node.commands.clients.table_events import opened_table
from gossamer.node.errors import EventInputError

QUOTES: dict[str, Any] = {
    "event": list(range(2_500)),
    "symbol": ["IBM", "T"] * 1_250,
    "close": [80.5 + row for row in range(2_500)],
    "volume": list(range(2_500)),
}


def written(folder: Path, rows: dict[str, Any], files: int = 2) -> Path:
    """A workload whose events are these rows."""
    table = pa.table(rows)
    (folder / "events").mkdir()
    for part in range(files):
        first, end = (at * len(table) // files for at in (part, part + 1))
        file = folder / "events" / f"part-{part:05}.parquet"
        pq.write_table(table.slice(first, end - first), file, write_page_checksum=True)
    return folder


def lines(folder: Path, *columns: str) -> list[dict[str, Any]]:
    """The events that are read from the pipe."""
    with opened_table(folder, columns) as file, os.fdopen(os.dup(file), "rb") as stream:
        return [json.loads(line) for line in stream]


def test_rows_come_in_order_with_the_columns_asked_for(tmp_path: Path) -> None:
    found = lines(written(tmp_path, QUOTES), "symbol", "price=close")
    assert len(found) == 2_500
    assert found[:2] == [{"symbol": "IBM", "price": 80.5}, {"symbol": "T", "price": 81.5}]
    assert [event["price"] for event in found] == QUOTES["close"]


def test_all_columns_are_published_but_the_number_of_the_row(tmp_path: Path) -> None:
    assert lines(written(tmp_path, QUOTES))[3] == {"symbol": "T", "close": 83.5, "volume": 3}


def test_rows_of_siena_have_names_of_their_own(tmp_path: Path) -> None:
    rows = {"event": [0, 1], "names": [["a", "b"], ["c"]], "values": [[1, 2], [3]]}
    assert lines(written(tmp_path, rows)) == [{"a": 1, "b": 2}, {"c": 3}]


def test_whoever_stops_reading_is_not_waited_for(tmp_path: Path) -> None:
    with opened_table(written(tmp_path, QUOTES), ()) as file:
        assert os.read(file, 10)


def test_what_is_wrong_is_told_before_anything_is_published(tmp_path: Path) -> None:
    with pytest.raises(EventInputError, match="holds no table events, expected a workload"):
        lines(tmp_path)
    folder = written(tmp_path, QUOTES)
    with pytest.raises(EventInputError, match=r"has no column price \(there are event, symbol,"):
        lines(folder, "price")


def test_damage_in_the_middle_is_told_after_what_came_before(tmp_path: Path) -> None:
    folder = written(tmp_path, QUOTES)
    second = folder / "events" / "part-00001.parquet"
    second.write_bytes(second.read_bytes()[:-20])
    with pytest.raises(EventInputError, match=r"part-00001\.parquet: is damaged"):
        lines(folder)
