"""Folders that grow: what is there gives way to a whole new one, or stays as it was.

On this machine the new folder is built beside the old one, which is renamed away; a process that
is killed between the two renames leaves the old one, which the next puts back. In a store the new
files are sent below ``_append``, where its own marker is written last: from then on they count.
They are copied to where they belong, and the old ones removed, by this process or, if it is killed,
by the next that works on the folder; meanwhile the folder has no marker.
"""

from __future__ import annotations

import json
import re
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from gossamer.sim.results.held import held
from gossamer.sim.results.results import scratch_folder, whole_folder
from gossamer.sim.results.storage.place import LocalPlace, Place, PlaceError
from gossamer.sim.results.storage.remote import RemotePlace
from gossamer.spark.storage.claims import CLAIMS, claimed
from gossamer.spark.storage.folders import MARKER, all_or_nothing, clear, commit, local_of

# Below a folder of a store; Spark and others do not take what begins with _ for a part of a table.
SENT: Final = "_append"


@contextmanager
def grown_folder(out: Place) -> Iterator[tuple[Place | None, Place]]:
    """What is at ``out``, if anything, and a folder to write into that is ``out`` at the end.

    Nobody else works on ``out`` meanwhile. On any error it is as it was.

    Raises:
        ResultsError, PlaceError: it is a file, holds other things, or another process is at work
            on it.
        OSError: the disk is full or not writable.
    """
    if isinstance(out, RemotePlace):
        with claimed(out), _in_store(out) as both:
            yield both
        return
    path = local_of(out)
    with held(path, replaces=True):
        _restore(path)
        if not _is_filled(path):
            with whole_folder(path, replace=False) as folder:
                yield None, LocalPlace(folder)
            return
        with scratch_folder(path) as folder:
            yield out, LocalPlace(folder)
            _exchange(folder, path)


def is_there(out: Place) -> bool:
    """Whether there is anything that could grow; what a killed process left is settled first.

    Raises:
        ResultsError, PlaceError: another process is at work on it.
    """
    if isinstance(out, RemotePlace):
        with claimed(out):
            _settle(out)
            return (out / MARKER).exists()
    path = local_of(out)
    with held(path, replaces=True):
        _restore(path)
        return _is_filled(path)


@contextmanager
def _in_store(out: RemotePlace) -> Iterator[tuple[Place | None, Place]]:
    _settle(out)
    if not (out / MARKER).exists():
        with all_or_nothing(out):
            yield None, out
            commit(out)
        return
    sent = out / SENT
    try:
        yield out, sent
        commit(sent)
    except BaseException:
        with suppress(PlaceError):  # what went wrong first is told
            clear(sent)
        raise
    try:
        _settle(out)
    except PlaceError as error:
        kept = "the new files are kept, and the next append puts them in their places"
        raise PlaceError(out, f"is between two states ({error}); {kept}") from error


def _settle(out: RemotePlace) -> None:
    """Let files that were sent whole take the place of all others; remove them otherwise."""
    sent = out / SENT
    if (sent / MARKER).exists():
        content = (sent / MARKER).read_bytes()
        listed = json.loads(content)["files"]
        (out / MARKER).delete()
        for name in listed:
            (sent / name).copy_to(out / name)
        aside = tuple(f"{folder}/" for folder in (CLAIMS, SENT))
        for one in out.files():
            if one.name not in listed and not one.name.startswith(aside):
                (out / one.name).delete()
        (out / MARKER).write_bytes(content)
    clear(sent)


def _exchange(folder: Path, path: Path) -> None:
    """Put a folder in the place of another, which is removed."""
    before = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}.before")
    path.rename(before)
    try:
        folder.rename(path)
    except BaseException:
        before.rename(path)
        raise
    shutil.rmtree(before, ignore_errors=True)


def _restore(path: Path) -> None:
    """Put back what a process that was killed had renamed away, or remove it."""
    pattern = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{12}}\.before")
    for before in path.absolute().parent.iterdir():
        if pattern.fullmatch(before.name):
            if path.exists():
                shutil.rmtree(before, ignore_errors=True)
            else:
                before.rename(path)


def _is_filled(path: Path) -> bool:
    return path.is_dir() and any(path.iterdir())
