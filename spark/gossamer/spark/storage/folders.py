"""New folders, whole or not at all.

On this machine a folder is built under another name and renamed. Object stores have no rename:
there files are written where they belong, and the marker ``_SUCCESS`` last, which lists them all.
What has no marker is half-written; it is removed after an error, or by whoever next works on the
folder if the process was killed.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from gossamer.sim.results.storage.place import LocalPlace, Place, PlaceError
from gossamer.sim.results.storage.remote import RemotePlace
from gossamer.spark.storage.claims import CLAIMS, claimed

# As Hadoop calls it; Spark and others do not take what begins with _ for a part of a table.
MARKER: Final = "_SUCCESS"
# There while files are being written: tasks that were given up find it gone, and write nothing.
WRITING: Final = "_WRITING"
# Its content in a folder all of which is void unless the marker comes.
_ALL_OR_NOTHING: Final = b"all or nothing\n"
ALREADY: Final = "already holds results; choose another folder, or move this one away"


@contextmanager
def new_folder(out: Place) -> Iterator[Place]:
    """A folder to write into that is ``out`` at the end, or gone on any error.

    Nobody else works on ``out`` meanwhile, and nothing is there before.

    Raises:
        ResultsError, PlaceError: it is taken, or another process is at work on it.
        OSError: the disk is full or not writable.
    """
    if isinstance(out, RemotePlace):
        with alone(out):
            yield out
            commit(out)
        return
    from gossamer.sim.results.held import held
    from gossamer.sim.results.results import whole_folder

    path = local_of(out)
    with held(path), whole_folder(path, replace=False) as folder:
        yield LocalPlace(folder)


@contextmanager
def alone(out: RemotePlace) -> Iterator[None]:
    """Be the only one who works on a new folder of a store; on any error it is emptied."""
    with claimed(out), all_or_nothing(out):
        yield


@contextmanager
def all_or_nothing(out: RemotePlace) -> Iterator[None]:
    """Work on a new folder of a store that is claimed; on any error it is emptied."""
    _make_empty(out)
    try:
        (out / WRITING).write_bytes(_ALL_OR_NOTHING)
        yield
    except BaseException:
        with suppress(PlaceError):  # what went wrong first is told
            clear(out)
        raise


def _make_empty(out: RemotePlace) -> None:
    """Refuse a folder that holds anything, but what a process that is gone left half-written."""
    there = [one.name for one in out.files() if not one.name.startswith(f"{CLAIMS}/")]
    if MARKER in there:
        raise PlaceError(out, ALREADY)
    if WRITING in there and (out / WRITING).read_bytes() == _ALL_OR_NOTHING:
        clear(out)
    elif there:
        raise PlaceError(out, ALREADY.replace("results", f"files ({there[0]})"))


def clear(out: RemotePlace) -> None:
    """Remove all below a folder but claims; what says that it is whole, or being written, first."""
    names = [one.name for one in out.files() if not one.name.startswith(f"{CLAIMS}/")]
    for name in sorted(names, key=lambda name: name not in (MARKER, WRITING)):
        (out / name).delete()


def commit(out: RemotePlace) -> None:
    """Say that a folder is whole: its marker lists all files with their bytes."""
    (out / WRITING).delete()
    listed = {one.name: one.size for one in out.files() if not one.name.startswith(f"{CLAIMS}/")}
    (out / MARKER).write_bytes(json.dumps({"files": listed}, indent=2).encode() + b"\n")


def check_is_free(out: Place) -> None:
    """See whether work on a new folder could begin: for those who do something long before.

    An unfinished sweep is no obstacle in a store, where it lies where it is to be.

    Raises:
        ResultsError, PlaceError: there are results, or another process is at work on it.
        OSError: the disk is full or not writable.
    """
    if isinstance(out, RemotePlace):
        with claimed(out):
            if (out / MARKER).exists():
                raise PlaceError(out, ALREADY)
        return
    from gossamer.sim.results.held import check_is_free as check_path

    check_path(local_of(out))


def local_of(place: Place) -> Path:
    """The path of a place of this machine."""
    assert isinstance(place, LocalPlace)
    return place.path


@contextmanager
def sent_file(place: Place) -> Iterator[Path]:
    """A path of this machine to write to; what is there at the end is the file ``place``."""
    if not isinstance(place, RemotePlace):
        yield local_of(place)
        return
    with tempfile.TemporaryDirectory(prefix="gossamer-sent-") as made:
        yield Path(made) / place.name
        place.upload(Path(made) / place.name)


@contextmanager
def sent_folder(folder: Place) -> Iterator[Path]:
    """A folder of this machine to write into; its files at the end are those of ``folder``."""
    if not isinstance(folder, RemotePlace):
        yield local_of(folder)
        return
    with tempfile.TemporaryDirectory(prefix="gossamer-sent-") as made:
        yield Path(made)
        for file in LocalPlace(Path(made)).files():
            (folder / file.name).upload(Path(made) / file.name)
