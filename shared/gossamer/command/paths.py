"""Paths of the command line: this machine's, as such or as a `file:` URL; no other storage's.

`pathlib` takes `s3a://bucket/w` for a folder `s3a:` here, which would be made and filled.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final
from urllib.parse import unquote

# As RFC 3986 has it, but of two letters at least; Path makes one slash of two.
_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
_FILE: Final = re.compile(r"file:(?://(?:localhost)?)?(?=/)(?!//)", re.IGNORECASE)


class StorageError(Exception):
    """A path is on storage that is not this machine's; nothing was read or written.

    Attributes:
        path: as it was given.
        reason: what is wrong with it, and what was expected, in words.
    """

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path} {reason}")


def local_path(text: str | os.PathLike[str]) -> Path:
    """The path that is meant by a text of the command line; `file:///w` is `/w`.

    Raises:
        StorageError: it is a URL of another scheme, or of a file of another machine.
    """
    given = os.fspath(text)
    reason = foreign_storage(given)
    if reason is None:
        return Path(given)
    prefix = _FILE.match(given)
    if prefix is None:
        raise StorageError(given, reason)
    return Path(unquote(given[prefix.end() :]))


def foreign_storage(path: str | os.PathLike[str]) -> str | None:
    """Why a path cannot be used as it is, if it is a URL, or was one before it was a `Path`."""
    found = _URL.match(os.fspath(path))
    if found is None:
        return None
    if found[1].lower() == "file":
        return "is not a file of this machine, expected a path, or file:/// and an absolute one"
    return (
        f"is on storage called {found[1]}, expected a folder of this machine or mounted on it "
        "(a folder whose name looks like that can be given by its absolute path)"
    )
