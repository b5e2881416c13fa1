"""Places by path and URL, and what keeps processes apart where there are no locks."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

import gossamer.sim.results.storage.remote as remote
import gossamer.spark.storage.claims as claims
from gossamer.command.paths import StorageError
from gossamer.sim.results.storage.options import Access
from gossamer.sim.results.storage.place import LocalPlace, Place, PlaceError, place_of
from gossamer.sim.results.storage.remote import RemotePlace, failure_text
from gossamer.spark.storage.claims import claimed
from gossamer.spark.storage.folders import MARKER, WRITING, new_folder

AZURE = "abfss://box@mine.dfs.core.windows.net/a"


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
    assert (place.key(), str(place)) == (key, shown)
    assert str(place / "x/y") == f"{shown}/x/y"
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
    error = StorageError if url.startswith("ftp:") else PlaceError
    with pytest.raises(error) as refused:
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
    with pytest.raises(PlaceError, match="already holds results"), new_folder(out):
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
        with pytest.raises(PlaceError, match=told), claimed(out):
            pytest.fail("was not alone")
        assert len(names(out / "_claims")) == 1
    assert names(out) == []


@pytest.mark.parametrize("change", [{"process": 2**22 + 1}, {"begun": 1.0}])
def test_the_claim_of_a_process_that_is_gone_is_nobodys(
    out: RemotePlace, change: dict[str, Any]
) -> None:
    other = out / "_claims" / "other.json"
    other.write_bytes(json.dumps(claims._holder() | change).encode())
    (out / WRITING).write_bytes(b"all or nothing\n")
    (out / "half").write_bytes(b"1")
    with new_folder(out) as folder:
        (folder / "x").write_bytes(b"1")
    assert names(out) == [MARKER, "x"]


def test_a_claim_of_another_machine_is_nobodys_when_it_is_old(
    out: RemotePlace, tmp_path: Path
) -> None:
    other = out / "_claims" / "other.json"
    other.write_bytes(json.dumps({"machine": "m", "host": "h", "process": 7}).encode())
    with pytest.raises(PlaceError, match="worked on by process 7 on h"), claimed(out):
        pytest.fail("was not alone")
    file = tmp_path / "lake" / "out" / "_claims" / "other.json"
    os.utime(file, (file.stat().st_mtime - 100,) * 2)
    with claimed(out):
        assert "other.json" not in names(out / "_claims")
