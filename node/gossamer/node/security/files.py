"""Files that are either there as a whole or not at all, and private keys that nobody else reads."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path
from typing import Final

from gossamer.node.errors import ClusterFolderError, KeyFileError

PRIVATE: Final = 0o600
PUBLIC: Final = 0o644


def write_file(path: Path, content: bytes, mode: int = PUBLIC) -> None:
    """Put ``content`` at ``path``, in place of what was there, with at most the rights ``mode``.

    Written aside, synced and renamed: a crash leaves the old file or the new one.

    Raises:
        OSError: it could not be written; the old file stays.
    """
    aside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        aside.rename(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def read_file(path: Path, limit: int) -> bytes:
    """The content of a public file of at most ``limit`` bytes.

    Raises:
        ClusterFolderError: it is missing, unreadable or too large.
    """
    try:
        with path.open("rb") as file:
            content = file.read(limit + 1)
    except OSError as error:
        raise ClusterFolderError(path, f"cannot be read: {error.strerror}") from error
    if len(content) > limit:
        raise ClusterFolderError(path, f"is too large, expected at most {limit} bytes")
    return content


def read_private(path: Path, limit: int) -> bytes:
    """The content of a private file, which nobody but its owner may read.

    Raises:
        KeyFileError: it is missing, unreadable, too large, or others can read it.
    """
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            content = file.read(limit + 1)
    except OSError as error:
        raise KeyFileError(path, f"cannot be read: {error.strerror}") from error
    if mode & 0o077:
        raise KeyFileError(
            path, f"can be used by others (mode {mode:o}), expected mode 600; run: chmod 600 {path}"
        )
    if len(content) > limit:
        raise KeyFileError(path, f"is too large for a key, expected at most {limit} bytes")
    return content


def make_folder(path: Path) -> None:
    """Make ``path`` and its parents where missing, with mode 700.

    Raises:
        ClusterFolderError: it cannot be made.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ClusterFolderError(path, f"cannot be made: {error.strerror}") from error


def _sync_folder(folder: Path) -> None:
    """Make a rename in ``folder`` last."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
