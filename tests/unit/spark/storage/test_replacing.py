"""Folders that grow do so whole or not at all, whenever the process is killed."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

import gossamer.sim.results.storage.remote as remote
from gossamer.sim.results.results import ResultsError
from gossamer.sim.results.storage.place import LocalPlace, Place, PlaceError
from gossamer.sim.results.storage.remote import RemotePlace
from gossamer.spark.storage.folders import MARKER, new_folder
from gossamer.spark.storage.replacing import SENT, grown_folder, is_there

OLD, NEW = {"a": b"1", "k=1/x": b"12", "k=1/y": b"3"}, {"a": b"2", "k=1/x": b"12", "k=2/z": b"4"}


@pytest.fixture(params=["here", "store"])
def out(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A folder of this machine, and one of a store that is such but does not show it."""
    if request.param == "here":
        return LocalPlace(tmp_path / "out")
    system = SubTreeFileSystem(str(tmp_path), LocalFileSystem())
    monkeypatch.setattr(remote, "_file_system", lambda *_: system)
    # What a store makes by itself.
    for folder in ("_claims", f"{SENT}/k=1", f"{SENT}/k=2", "k=1", "k=2"):
        (tmp_path / "lake" / "out" / folder).mkdir(parents=True)
    return RemotePlace("s3", "lake", "out")


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


def test_a_folder_is_new_and_then_another_and_an_error_or_a_second_process_leaves_it(
    out: Place, tmp_path: Path
) -> None:
    assert not is_there(out)
    with pytest.raises(ZeroDivisionError):
        grow_half_way(out)
    assert contents(out) == {}
    with grown_folder(out) as (before, folder):
        assert before is None
        write(folder, OLD)
    assert contents(out) == OLD
    assert is_there(out)
    with pytest.raises(ZeroDivisionError):
        grow_half_way(out)
    assert contents(out) == OLD
    assert not list(tmp_path.glob(".*"))
    sentence = f"is being worked on by process {os.getpid()}.* expected to be alone with it"
    with grown_folder(out) as (before, folder):
        assert before == out
        assert contents(before) == OLD
        write(folder, NEW)
        for second in (partial(grow, out, OLD), partial(is_there, out)):
            with pytest.raises((ResultsError, PlaceError), match=sentence):
                second()
    assert contents(out) == NEW
    with pytest.raises((ResultsError, PlaceError), match="already holds results"), new_folder(out):
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


def test_a_killed_process_leaves_the_old_folder_or_the_new(out: Place, tmp_path: Path) -> None:
    seen = set()
    for step in range(100):
        grow(out, OLD)
        was_killed = killed_at(step, out, NEW)
        assert is_there(out)  # as the next command asks before all else
        found = contents(out)
        assert found in (OLD, NEW), step
        seen.add(found == NEW)
        assert not list(tmp_path.glob(".*"))
        if not was_killed:
            break
    else:
        pytest.fail("was killed at every step")
    assert step > 4
    assert seen == {False, True}


def test_what_cannot_be_put_in_its_place_is_kept(
    out: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    if isinstance(out, LocalPlace):
        pytest.skip("is renamed")
    grow(out, OLD)

    def refuse(place: RemotePlace, _: RemotePlace) -> None:
        raise PlaceError(place, "is refused")

    with monkeypatch.context() as patch:
        patch.setattr(RemotePlace, "copy_to", refuse)
        sentence = "is between two states .* the next append puts them in their places"
        with pytest.raises(PlaceError, match=sentence) as failed:
            grow(out, NEW)
        assert "\n" not in str(failed.value)
    assert is_there(out)
    assert contents(out) == NEW


def test_what_is_no_folder_of_results_is_left_alone(out: Place) -> None:
    if isinstance(out, LocalPlace):
        out.path.write_bytes(b"mine")
        with pytest.raises(ResultsError, match="is a file, expected a new folder"):
            grow(out, NEW)
        assert out.path.read_bytes() == b"mine"
        return
    write(out, {"mine": b"1"})
    with pytest.raises(PlaceError, match=r"already holds files \(mine\)"):
        grow(out, NEW)
    assert (out / "mine").read_bytes() == b"1"


def test_a_folder_that_cannot_be_renamed_is_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
