"""That a user runs a peer once only on a machine, from whatever folders.

The folder's own lock keeps a second node out of it. Of a copy of the folder it knows nothing: two
nodes of one identity would take each other's connections for their own, and sign descriptors that
others take for lies. Another machine, or user, is out of reach of this; so is a system without a
folder for what runs, where nothing is checked.
"""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from gossamer.node.errors import CommandError
from gossamer.node.security.identity import PRIVATE


@contextmanager
def only_one(key: str, folder: Path) -> Iterator[None]:
    """Keep any other node of this user from running as the peer ``key``, for as long as this does.

    Raises:
        CommandError: one does already.
    """
    path = _file_of(key)
    if path is None:
        yield
        return
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            reason = f"is of peer {key}, which runs in {_holder(path)} already"
            raise CommandError(folder, f"{reason}, expected one at a time") from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, os.fsencode(folder.absolute()))
        yield
        path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def runs_here(key: str) -> str | None:
    """The folder from which a node of this user runs as the peer ``key``, None if none does."""
    path = _file_of(key)
    if path is None:
        return None
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _holder(path)
    finally:
        os.close(descriptor)
    return None


def _file_of(key: str, environment: Mapping[str, str] = os.environ) -> Path | None:
    """Where it is noted that a peer runs; None where there is no folder that is ours alone."""
    base = environment.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    folder = Path(base) / f"gossamer-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    return folder / f"{key}.lock" if ours and not found.st_mode & 0o077 else None


def _holder(path: Path) -> str:
    try:
        return os.fsdecode(path.read_bytes()) or "another folder"
    except OSError:
        return "another folder"
