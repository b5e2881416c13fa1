"""New folders, whole or not at all; one process at a time; folders that grow.

On this machine a folder is built under another name and renamed. Object stores have no rename:
there files are written where they belong, and the marker ``_SUCCESS`` last, which lists them all.
What has no marker is half-written; it is removed after an error, or by whoever next works on the
folder if the process was killed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import tempfile
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import psutil

from gossamer.sim.errors import ResultsError
from gossamer.sim.results.held import held
from gossamer.sim.results.results import scratch_folder, whole_folder
from gossamer.sim.results.storage.place import LocalPlace, Place
from gossamer.sim.results.storage.remote import RemotePlace

# One process at a time for a folder of a store that can neither lock nor rename.
#
# Whoever wants a folder writes a claim of a name of its own below ``_claims``, and looks who else
# has one. A store that shows what was written to whoever lists later (S3 does) shows at least one
# of two processes the claim of the other, which gives way. A claim is renewed while its process
# works; one that has not been for a minute, by the store's clock, or whose process on this machine
# is gone, is nobody's.


CLAIMS: Final = "_claims"
_RENEWED_S: Final = 10.0
_STALE_S: Final = 60.0


@contextmanager
def claimed(folder: RemotePlace) -> Iterator[None]:
    """Keep every other process from working on a folder.

    Raises:
        ResultsError: another process is at work on it, or the store refuses.
    """
    own = folder / CLAIMS / f"{uuid.uuid4().hex}.json"
    content = json.dumps(_holder()).encode()
    try:
        own.write_bytes(content)
    except ResultsError as error:
        raise ResultsError(folder, error.reason) from error
    over = threading.Event()
    renewing = threading.Thread(target=_renew, args=(own, content, over), daemon=True)
    try:
        _require_others_gone(folder, own)
        renewing.start()
        yield
    finally:
        over.set()
        if renewing.ident is not None:
            renewing.join()
        with suppress(ResultsError):
            own.delete()


def _require_others_gone(folder: RemotePlace, own: RemotePlace) -> None:
    """Remove claims that are nobody's any more.

    Raises:
        ResultsError: one is somebody's.
    """
    claims = folder / CLAIMS
    others = [claims / one.name for one in claims.files() if one.name != own.name]
    now = own.modified() if others else 0.0
    for other in others:
        try:
            told, written = json.loads(other.read_bytes()), other.modified()
        except (FileNotFoundError, AttributeError):  # it has ended in the meantime
            continue
        if now - written < _STALE_S and not _is_gone(told):
            who = f"process {told['process']} on {told['host']}"
            reason = f"is being worked on by {who}, expected to be alone with it"
            raise ResultsError(folder, f"{reason} (its last sign is {now - written:.0f} s old)")
        other.delete()


def _renew(own: RemotePlace, content: bytes, over: threading.Event) -> None:
    while not over.wait(_RENEWED_S):
        with suppress(ResultsError):  # the next time may do; the work itself will meet the fault
            own.write_bytes(content)


def _holder() -> dict[str, Any]:
    """What tells a process from all others."""
    this = psutil.Process()
    told = {"host": socket.gethostname(), "machine": _machine()}
    return told | {"process": this.pid, "begun": this.create_time()}


def _is_gone(told: dict[str, Any]) -> bool:
    """Whether a process was one of this machine, and is no more."""
    if told.get("machine") != _machine():
        return False
    try:
        return bool(psutil.Process(int(told["process"])).create_time() != told["begun"])
    except psutil.NoSuchProcess:
        return True


def _machine() -> str:
    """What tells this machine since it was started, and the container, from others."""
    try:
        started = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{started} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()


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
        ResultsError: it is taken, or another process is at work on it.
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
        with suppress(ResultsError):  # what went wrong first is told
            clear(out)
        raise


def _make_empty(out: RemotePlace) -> None:
    """Refuse a folder that holds anything, but what a process that is gone left half-written."""
    there = [one.name for one in out.files() if not one.name.startswith(f"{CLAIMS}/")]
    if MARKER in there:
        raise ResultsError(out, ALREADY)
    if WRITING in there and (out / WRITING).read_bytes() == _ALL_OR_NOTHING:
        clear(out)
    elif there:
        raise ResultsError(out, ALREADY.replace("results", f"files ({there[0]})"))


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
        ResultsError: there are results, or another process is at work on it.
        OSError: the disk is full or not writable.
    """
    if isinstance(out, RemotePlace):
        with claimed(out):
            if (out / MARKER).exists():
                raise ResultsError(out, ALREADY)
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


# Folders that grow: what is there gives way to a whole new one, or stays as it was.
#
# On this machine the new folder is built beside the old one, which is renamed away; a process that
# is killed between the two renames leaves the old one, which the next puts back. In a store the new
# files are sent below ``_append``, where its own marker is written last: from then on they count.
# They are copied to where they belong, and the old ones removed, by this process or, if it is
# killed, by the next that works on the folder; meanwhile the folder has no marker.


# Below a folder of a store; Spark and others do not take what begins with _ for a part of a table.
SENT: Final = "_append"


@contextmanager
def grown_folder(out: Place) -> Iterator[tuple[Place | None, Place]]:
    """What is at ``out``, if anything, and a folder to write into that is ``out`` at the end.

    Nobody else works on ``out`` meanwhile. On any error it is as it was.

    Raises:
        ResultsError: it is a file, holds other things, or another process is at work
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
        ResultsError: another process is at work on it.
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
        with suppress(ResultsError):  # what went wrong first is told
            clear(sent)
        raise
    try:
        _settle(out)
    except ResultsError as error:
        kept = "the new files are kept, and the next append puts them in their places"
        raise ResultsError(out, f"is between two states ({error}); {kept}") from error


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
