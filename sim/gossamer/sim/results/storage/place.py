"""Places: folders and files, of this machine or of storage elsewhere, behind one interface."""

from __future__ import annotations

import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import attrs

from gossamer.command.paths import local_path


@attrs.frozen
class Listed:
    """A file below a folder.

    Attributes:
        name: relative to the folder, with slashes.
        size: its bytes.
    """

    name: str
    size: int


class Place(ABC):
    """A folder or file. It can be pickled, so that tasks open it on their machines.

    All methods but `shown` and the operators raise `ResultsError` where storage elsewhere refuses
    or does not answer, and `OSError` where this machine's does.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """The last part."""

    @abstractmethod
    def __truediv__(self, name: str) -> Place:
        """What is of this name within; slashes lead further down."""

    @abstractmethod
    def beside(self, name: str) -> Place:
        """What has this name in the same folder."""

    @abstractmethod
    def exists(self) -> bool:
        """Whether there is such a file."""

    @abstractmethod
    def read_bytes(self) -> bytes:
        """The content of a file; raises `FileNotFoundError` where there is none."""

    @abstractmethod
    def write_bytes(self, content: bytes) -> None:
        """Write a file, whole or not at all where storage is elsewhere."""

    @abstractmethod
    def source(self) -> Any:
        """What PyArrow reads the file from; raises `FileNotFoundError` where there is none."""

    @abstractmethod
    def files(self) -> list[Listed]:
        """All files below a folder in the order of their names; none where there is no folder."""

    @abstractmethod
    def fetched(self) -> AbstractContextManager[Path]:
        """A file of this machine with the same name and content, at least as long as it is used."""

    @abstractmethod
    def absolute(self) -> Place:
        """The same place for processes with other working folders."""

    @abstractmethod
    def shown(self) -> str:
        """The place in the words of the user."""

    def tables(self) -> Sequence[Place]:
        """The Parquet files directly within a folder, in the order of their names."""
        names = [one.name for one in self.files() if "/" not in one.name]
        return [self / name for name in names if name.endswith(".parquet")]

    def __str__(self) -> str:
        return self.shown()


@attrs.frozen(order=True)
class LocalPlace(Place):
    """A place on this machine, or on storage that is mounted on it."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    def __truediv__(self, name: str) -> LocalPlace:
        return LocalPlace(self.path / name)

    def beside(self, name: str) -> LocalPlace:
        return LocalPlace(self.path.parent / name)

    def exists(self) -> bool:
        return self.path.exists()

    def read_bytes(self) -> bytes:
        return self.path.read_bytes()

    def write_bytes(self, content: bytes) -> None:
        self.path.write_bytes(content)

    def source(self) -> Any:
        """The path, which PyArrow opens itself."""
        return os.fspath(self.path)

    def files(self) -> list[Listed]:
        """All files below a folder, but for those that get another name or go while it is read."""
        found = []
        for folder, _, names in os.walk(self.path, onerror=_raise_unless_gone):
            for path in (Path(folder, name) for name in names):
                with suppress(FileNotFoundError):
                    status = path.stat()
                    if stat.S_ISREG(status.st_mode):
                        name = path.relative_to(self.path).as_posix()
                        found.append(Listed(name, status.st_size))
        return sorted(found, key=lambda one: one.name)

    @contextmanager
    def fetched(self) -> Iterator[Path]:
        yield self.path

    def absolute(self) -> LocalPlace:
        return LocalPlace(self.path.absolute())

    def shown(self) -> str:
        return str(self.path)


def _raise_unless_gone(error: OSError) -> None:
    """A folder that is there and cannot be read is not taken for an empty one."""
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error


AnyPlace = Place | Path


def as_place(where: AnyPlace) -> Place:
    """A place; a path is one of this machine."""
    return where if isinstance(where, Place) else LocalPlace(Path(where))


def place_of(text: str | os.PathLike[str], options: Mapping[str, str] | None = None) -> Place:
    """The place that is meant by a path or URL of the command line.

    Args:
        text: a path, ``file:``, ``s3:``, ``s3a:``, ``gs:``, ``abfs:``, ``abfss:`` or ``hdfs:``.
        options: of Spark, among which credentials and endpoints may be.

    Raises:
        StorageError: it is a URL of a scheme that is not known here, or of a file elsewhere.
        ResultsError: the URL names no place.
    """
    from gossamer.sim.results.storage.remote import SCHEMES, remote_place

    given = os.fspath(text)
    if given.partition(":/")[0].lower() in SCHEMES:
        return remote_place(given, options or {})
    return LocalPlace(local_path(given))
