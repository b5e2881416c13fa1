"""One process at a time for a result folder, by a lock beside it that ends with its process.

Beside the folder `w`, the file `.w.lock` tells who is at work on it. It is removed at the end; one
that a killed process left is nobody's, as the system has dropped the lock.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from gossamer.sim.errors import ResultsError
from gossamer.sim.results.results import check_destination, unfinished_siblings

_LONGEST: Final = 300
_READABLE: Final = 0o644


@contextmanager
def held(path: Path, *, replaces: bool = False) -> Iterator[None]:
    """Keep every other process from working on the result folder ``path``.

    What a process that was killed left half-written beside it is removed. With ``replaces`` there
    may be results, which are to be replaced.

    Raises:
        ResultsError: another process is at work on it, or there are results in it already.
        OSError: its parent folder cannot be made or written to, or cannot lock files.
    """
    check_destination(path, resumed=replaces)
    # Of the folder itself, whatever it is called in the course of the work.
    path = Path(path).absolute()
    file = path.with_name(f".{path.name}.lock")
    descriptor = _locked(file, path)
    try:
        check_destination(path, resumed=replaces)  # whoever held it before may have finished
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()} {socket.gethostname()}\n".encode())
        for folder in unfinished_siblings(path):
            shutil.rmtree(folder, ignore_errors=True)
        yield
    finally:
        file.unlink(missing_ok=True)
        os.close(descriptor)


def check_is_free(path: Path) -> None:
    """See whether `held` would work now: for those who do something long before they begin.

    Raises:
        ResultsError, OSError: as `held`.
    """
    with held(path):
        pass


def _locked(file: Path, path: Path) -> int:
    """A descriptor of the lock file, locked."""
    while True:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _READABLE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is(file, descriptor):
                return descriptor
        except BlockingIOError:
            holder = _holder(descriptor)
            os.close(descriptor)
            raise ResultsError(
                path, f"is being worked on by {holder}, expected to be alone with it"
            ) from None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # removed by whoever held it, between opening and locking


def _is(file: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(file), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _holder(descriptor: int) -> str:
    """The process that the lock file tells, in words; it may not have written its name yet."""
    told = os.pread(descriptor, _LONGEST, 0).decode(errors="replace").split()
    if len(told) != 2:
        return "another process"
    number, host = told
    return f"process {number}" + ("" if host == socket.gethostname() else f" of {host}")


# Behind the name of a folder, that of what is kept until it is whole.
UNFINISHED: Final = ".unfinished"


def file_name(text: str) -> str:
    """``text`` as part of a file name."""
    kept = "".join(c if c.isalnum() or c in "-_." else "-" for c in text)
    return kept.lstrip(".")[:100] or "run"
