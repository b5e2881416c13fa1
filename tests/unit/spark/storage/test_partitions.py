"""Partitions are what others read as Hive's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.sim.errors import ResultsError
from gossamer.sim.results.storage.place import LocalPlace
from gossamer.spark.storage.frames import partition_folder, read_split, split_table

ROWS: dict[str, list[Any]] = {
    "run": ["r1", "r1", "r2", "r2", "r3"],
    "system": ["a", "b/c", "a", "a", "b/c"],
    "value": [1.0, 2.0, 3.0, 4.0, 5.0],
}
NODES = {"r1": 10, "r2": 20, "r3": None}


def split(folder: Path, keys: tuple[str, ...]) -> None:
    pq.write_table(pa.table(ROWS), folder / "t.parquet", row_group_size=2)
    folders = {
        (run, system): partition_folder(
            {key: {"system": system, "nodes": NODES[run]}[key] for key in keys}
        )
        for run, system in zip(ROWS["run"], ROWS["system"], strict=True)
    }
    split_table(folder / "t.parquet", keys, folders)


@pytest.mark.parametrize("keys", [("nodes",), ("system",), ("system", "nodes")])
def test_others_read_the_same_rows(tmp_path: Path, keys: tuple[str, ...]) -> None:
    split(tmp_path, keys)
    assert [path.name for path in tmp_path.iterdir()] == ["t"]
    kinds: dict[str, Any] = {"system": pa.string(), "nodes": pa.int32()}
    schema = pa.schema([(key, kinds[key]) for key in keys])
    read = ds.dataset(tmp_path / "t", partitioning=ds.HivePartitioning(schema)).to_table()
    wanted = {**ROWS, "nodes": [NODES[run] for run in ROWS["run"]]}
    rows = read.select(["run", "system", "value"]).sort_by("value").to_pydict()
    assert rows == ROWS
    if "nodes" in keys:
        assert read.sort_by("value")["nodes"].to_pylist() == wanted["nodes"]
    own = list(read_split(LocalPlace(tmp_path), "t", ("run", "system", "value")))
    assert pa.concat_tables(own).sort_by("value").to_pydict() == ROWS


def test_values_are_written_as_hive_does() -> None:
    given = {"system": "b/c", "on": True, "nodes": None, "x": 0.5, "text": "", "sum": "a=b c"}
    assert partition_folder(given) == (
        "system=b%2Fc/on=true/nodes=__HIVE_DEFAULT_PARTITION__/x=0.5/"
        "text=__HIVE_DEFAULT_PARTITION__/sum=a%3Db%20c"
    )


@given(st.text(min_size=1))
def test_no_value_leaves_its_folder(value: str) -> None:
    assert "/" not in partition_folder({"system": value.encode(errors="replace").decode()})


def test_a_table_that_is_missing_or_damaged_is_named(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match=r"t\.parquet does not exist, expected a table"):
        list(read_split(LocalPlace(tmp_path), "t", ("run",)))
    split(tmp_path, ("nodes",))
    file = tmp_path / "t" / "nodes=10" / "part-00000.parquet"
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(ResultsError, match=r"nodes=10/part-00000\.parquet is damaged"):
        list(read_split(LocalPlace(tmp_path), "t", ("run", "system", "value")))
