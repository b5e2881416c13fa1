"""Places by path and URL, claims, folders that grow whole or not, partitions as Hive has them."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import shutil
import signal
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

import gossamer.sim.results.storage.remote as remote
import gossamer.spark.storage.folders as claims
from gossamer.command.paths import StorageError
from gossamer.sim.errors import ResultsError
from gossamer.sim.results.storage.place import LocalPlace, Place, place_of
from gossamer.sim.results.storage.remote import Access, RemotePlace, failure_text
from gossamer.spark.storage.folders import (
    MARKER,
    SENT,
    WRITING,
    claimed,
    grown_folder,
    is_there,
    new_folder,
)
from gossamer.spark.storage.frames import partition_folder, read_split, split_table

AZURE = "abfss://box@mine.dfs.core.windows.net/a"
OLD, NEW = {"a": b"1", "k=1/x": b"12", "k=1/y": b"3"}, {"a": b"2", "k=1/x": b"12", "k=2/z": b"4"}
ROWS: dict[str, list[Any]] = {
    "run": ["r1", "r1", "r2", "r2", "r3"],
    "system": ["a", "b/c", "a", "a", "b/c"],
    "value": [1.0, 2.0, 3.0, 4.0, 5.0],
}
NODES = {"r1": 10, "r2": 20, "r3": None}


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RemotePlace:
    """A folder of a store that is a folder of this machine, but does not show it."""
    system = SubTreeFileSystem(str(tmp_path), LocalFileSystem())
    monkeypatch.setattr(remote, "_file_system", lambda *_: system)
    (tmp_path / "lake" / "out" / "_claims").mkdir(parents=True)
    return RemotePlace("s3", "lake", "out")


def names(place: Place) -> list[str]:
    return [one.name for one in place.files()]


@pytest.mark.parametrize(
    ("url", "key", "shown"),
    [
        ("s3://lake/a/b", "lake/a/b", "s3://lake/a/b"),
        ("S3A://lake/a//b/", "lake/a/b", "s3a://lake/a/b"),
        ("gs://lake/a", "lake/a", "gs://lake/a"),
        ("hdfs://name:9000/a/b", "/a/b", "hdfs://name:9000/a/b"),
        (AZURE, "box/a", AZURE),
    ],
)
def test_a_url_names_a_place(url: str, key: str, shown: str) -> None:
    assert place_of("file:///x/a%20b") == LocalPlace(Path("/x/a b"))
    place = place_of(url)
    assert isinstance(place, RemotePlace)
    assert ((place.key(), str(place)), str(place / "x/y")) == ((key, shown), f"{shown}/x/y")
    assert str((place / "x").beside("y")) == f"{shown}/y"


def test_a_folder_can_be_listed_while_its_files_get_other_names(tmp_path: Path) -> None:
    listed: list[str] = []

    def list_often() -> None:
        for _ in range(60):
            listed.extend(names(LocalPlace(tmp_path)))

    for number in range(50):
        (tmp_path / f"{number}").mkdir()
        (tmp_path / f"{number}" / "lasting").touch()
    with ThreadPoolExecutor(1) as pool:
        listing = pool.submit(list_often)
        while not listing.done():
            for number in range(50):
                part = tmp_path / f"{number}" / ".one.part"
                part.touch()
                part.rename(part.with_name("one.jsonl")).unlink()
        listing.result()
    assert Counter(listed)["7/lasting"] == 60


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("s3://lake", "is no folder of a store, expected s3://BUCKET/PATH"),
        ("s3:/lake/w", "is no place, expected s3://BUCKET/PATH"),
        ("s3://lake/../w", "is no folder of a store"),
        ("abfss://box/w", "expected abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH"),
        ("s3://lake/w?endpoint_override=x", "s3://lake/w has a query, expected credentials"),
        ("s3://key:secret@lake/w", "s3://...@lake/w is no place"),
        ("ftp://host/w", "is on storage called ftp"),
    ],
)
def test_a_url_of_no_place_is_refused_without_its_secrets(url: str, sentence: str) -> None:
    with pytest.raises(StorageError if url.startswith("ftp:") else ResultsError) as refused:
        place_of(url)
    assert sentence in str(refused.value)
    assert "secret" not in str(refused.value)


def test_credentials_are_options_of_spark_and_never_shown() -> None:
    options = {
        "spark.hadoop.fs.s3a.access.key": "a-key",
        "spark.hadoop.fs.s3a.secret.key": "a-secret",
        "spark.hadoop.fs.s3a.endpoint": "store:9000",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
    }
    place = place_of("s3a://lake/w", options)
    assert isinstance(place, RemotePlace)
    assert place.access.of_s3("lake").items() >= {
        ("access_key", "a-key"),
        ("secret_key", "a-secret"),
        ("endpoint_override", "http://store:9000"),
    }
    assert "a-secret" not in f"{place} {place!r}"


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ("AWS Error NO_SUCH_BUCKET during PutObject", "as there is no bucket lake"),
        ("AWS Error ACCESS_DENIED during HeadObject", "is refused to these credentials"),
        ("AWS Error SLOW_DOWN during PutObject", "its server is overloaded"),
        ("Unable to load libhdfs: not found", "PyArrow finds no libhdfs"),
        ("a\nb.", r"cannot be used \(a b\)"),
    ],
)
def test_what_fails_is_told_in_words(told: str, sentence: str) -> None:
    place = RemotePlace("s3", "lake", "w", Access((("endpoint", "http://store"),)))
    assert re.search(sentence, failure_text(OSError(told), place))


def test_a_new_folder_is_whole_when_its_marker_is_there(out: RemotePlace) -> None:
    with new_folder(out) as folder:
        assert names(out / "_claims")
        (folder / "x").write_bytes(b"12")
        assert MARKER not in names(out)
    assert names(out) == [MARKER, "x"]
    assert json.loads((out / MARKER).read_bytes()) == {"files": {"x": 2}}
    with pytest.raises(ResultsError, match="already holds results"), new_folder(out):
        pytest.fail("was begun")
    assert names(out) == [MARKER, "x"]


def fail_half_way(out: Place) -> None:
    with new_folder(out) as folder:
        (folder / "x").write_bytes(b"12")
        raise ZeroDivisionError


def test_an_error_leaves_nothing_and_a_second_process_gives_way(out: RemotePlace) -> None:
    with pytest.raises(ZeroDivisionError):
        fail_half_way(out)
    assert names(out) == []
    with claimed(out):
        told = rf"is being worked on by process {os.getpid()} on \S+, expected to be alone with it"
        with pytest.raises(ResultsError, match=told), claimed(out):
            pytest.fail("was not alone")
        assert len(names(out / "_claims")) == 1
    assert names(out) == []


@pytest.mark.parametrize("change", [{"process": 2**22 + 1}, {"begun": 1.0}])
def test_the_claim_of_a_process_gone_is_nobodys(out: RemotePlace, change: dict[str, Any]) -> None:
    (out / "_claims" / "other.json").write_bytes(json.dumps(claims._holder() | change).encode())
    (out / WRITING).write_bytes(b"all or nothing\n")
    (out / "half").write_bytes(b"1")
    with new_folder(out) as folder:
        (folder / "x").write_bytes(b"1")
    assert names(out) == [MARKER, "x"]


def test_an_old_claim_of_another_machine_is_nobodys(out: RemotePlace, tmp_path: Path) -> None:
    other = out / "_claims" / "other.json"
    other.write_bytes(json.dumps({"machine": "m", "host": "h", "process": 7}).encode())
    with pytest.raises(ResultsError, match="worked on by process 7 on h"), claimed(out):
        pytest.fail("was not alone")
    file = tmp_path / "lake" / "out" / "_claims" / "other.json"
    os.utime(file, (file.stat().st_mtime - 100,) * 2)
    with claimed(out):
        assert "other.json" not in names(out / "_claims")


# Folders that grow do so whole or not at all, whenever the process is killed


@pytest.fixture(params=["here", "store"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A folder of this machine, and one of a store."""
    if request.param == "here":
        return LocalPlace(tmp_path / "out")
    place: RemotePlace = request.getfixturevalue("out")
    # What a store makes by itself.
    for folder in (f"{SENT}/k=1", f"{SENT}/k=2", "k=1", "k=2"):
        (tmp_path / "lake" / "out" / folder).mkdir(parents=True)
    return place


def write(folder: Place, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        if isinstance(folder, LocalPlace):
            (folder / name).path.parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def contents(place: Place) -> dict[str, bytes]:
    """All files of a folder but claims and its marker, which has to list them."""
    names = [one.name for one in place.files() if not one.name.startswith("_claims/")]
    found = {name: (place / name).read_bytes() for name in names}
    if isinstance(place, RemotePlace) and found:
        listed = json.loads(found.pop(MARKER))["files"]
        assert listed == {name: len(content) for name, content in found.items()}
    return found


def grow(out: Place, files: dict[str, bytes]) -> None:
    with grown_folder(out) as (_, folder):
        write(folder, files)


def grow_half_way(out: Place) -> None:
    with grown_folder(out) as (_, folder):
        write(folder, NEW)
        raise ZeroDivisionError


def test_a_folder_is_new_then_another_and_left_by_an_error(either: Place, tmp_path: Path) -> None:
    assert not is_there(either)
    with pytest.raises(ZeroDivisionError):
        grow_half_way(either)
    assert contents(either) == {}
    with grown_folder(either) as (before, folder):
        assert before is None
        write(folder, OLD)
    assert contents(either) == OLD
    assert is_there(either)
    with pytest.raises(ZeroDivisionError):
        grow_half_way(either)
    assert contents(either) == OLD
    assert not list(tmp_path.glob(".*"))
    sentence = f"is being worked on by process {os.getpid()}.* expected to be alone with it"
    with grown_folder(either) as (before, folder):
        assert before == either
        assert contents(before) == OLD
        write(folder, NEW)
        for second in (partial(grow, either, OLD), partial(is_there, either)):
            with pytest.raises(ResultsError, match=sentence):
                second()
    assert contents(either) == NEW
    with (
        pytest.raises(ResultsError, match="already holds results"),
        new_folder(either),
    ):
        pytest.fail("was begun")


def killed_at(step: int, out: Place, files: dict[str, bytes]) -> bool:
    """Grow a folder in a process that is killed before its so-manieth change; whether it was.

    Changes are renames here, and what is written, copied or removed in a store.
    """
    left = iter(range(step))

    def counted(change: Callable[..., Any]) -> Callable[..., Any]:
        def do(*given: Any, **named: Any) -> Any:
            if next(left, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)
            return change(*given, **named)

        return do

    def work() -> None:
        for kind, names in (
            (RemotePlace, ("write_bytes", "copy_to", "delete")),
            (LocalPlace, ("write_bytes",)),
            (Path, ("rename",)),
        ):
            for name in names:
                setattr(kind, name, counted(getattr(kind, name)))
        shutil.rmtree = counted(shutil.rmtree)  # type: ignore[assignment]
        grow(out, files)

    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


def test_a_killed_process_leaves_the_old_folder_or_the_new(either: Place, tmp_path: Path) -> None:
    seen = set()
    for step in range(100):
        grow(either, OLD)
        was_killed = killed_at(step, either, NEW)
        assert is_there(either)  # as the next command asks before all else
        found = contents(either)
        assert found in (OLD, NEW), step
        seen.add(found == NEW)
        assert not list(tmp_path.glob(".*"))
        if not was_killed:
            break
    else:
        pytest.fail("was killed at every step")
    assert step > 4
    assert seen == {False, True}


def test_what_cannot_be_placed_is_kept(either: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    if isinstance(either, LocalPlace):
        pytest.skip("is renamed")
    grow(either, OLD)

    def refuse(place: RemotePlace, _: RemotePlace) -> None:
        raise ResultsError(place, "is refused")

    with monkeypatch.context() as patch:
        patch.setattr(RemotePlace, "copy_to", refuse)
        sentence = "is between two states .* the next append puts them in their places"
        with pytest.raises(ResultsError, match=sentence) as failed:
            grow(either, NEW)
        assert "\n" not in str(failed.value)
    assert is_there(either)
    assert contents(either) == NEW


def test_what_is_no_folder_of_results_is_left_alone(either: Place) -> None:
    if isinstance(either, LocalPlace):
        either.path.write_bytes(b"mine")
        with pytest.raises(ResultsError, match="is a file, expected a new folder"):
            grow(either, NEW)
        assert either.path.read_bytes() == b"mine"
        return
    write(either, {"mine": b"1"})
    with pytest.raises(ResultsError, match=r"already holds files \(mine\)"):
        grow(either, NEW)
    assert (either / "mine").read_bytes() == b"1"


def test_a_folder_not_renamed_is_put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = LocalPlace(tmp_path / "out")
    grow(out, OLD)
    rename = Path.rename

    def once(path: Path, target: Path) -> Path:
        if path.name.endswith(".tmp") and Path(target) == out.path:
            raise OSError("no")
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", once)
        with pytest.raises(OSError, match="no"):
            grow(out, NEW)
    assert contents(out) == OLD


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
    assert read.select(["run", "system", "value"]).sort_by("value").to_pydict() == ROWS
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
