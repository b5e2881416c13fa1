"""Results of tasks go through storage: a task writes files, and hands back names and sizes alone.

On storage that machines share as a file system the driver makes a folder under a name that nobody
else has, so that a task that finds it shares the storage, and one that does not says so and writes
nothing. Each attempt at a task writes into a folder of its own within, and the driver takes what
the attempt that succeeded tells of.

To an object store tasks send whole files by the names that they are to have. Two attempts at a task
make the same rows, so that it does not matter which of them was last. One that was given up may go
on for a while, and finds that nobody waits for its files any more.
"""

from __future__ import annotations

import hashlib
import os
import socket
import tempfile
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import attrs

from gossamer.sim.errors import ResultsError
from gossamer.sim.results.storage.place import AnyPlace, LocalPlace, Place, as_place
from gossamer.sim.results.storage.remote import RemotePlace
from gossamer.spark.errors import ClusterLost, JobError
from gossamer.spark.storage.folders import WRITING


@attrs.frozen
class Handed:
    """A file that a task has written.

    Attributes:
        attempt: the name of the attempt's folder; empty where it has none.
        file: the name within.
        size: its bytes.
    """

    attempt: str
    file: str
    size: int


class Handover(ABC):
    """Where tasks put files, and the driver finds them."""

    @abstractmethod
    def attempt(self) -> AbstractContextManager[Path]:
        """A folder of the task's machine for one attempt at a task; called in the task."""

    @abstractmethod
    def hand_over(self, folder: Path, files: Sequence[Path]) -> list[Handed]:
        """Let the driver have files of the attempt, in this order; called in the task.

        Args:
            folder: to which names are relative.
            files: below it.
        """

    @abstractmethod
    def check(self, handed: Sequence[Handed], below: str = "") -> None:
        """See, in the driver, whether files are there as tasks wrote them.

        Args:
            handed: what tasks told of.
            below: the folder of the attempt that names are relative to.

        Raises:
            JobError: one is not there, or of another size.
        """


@attrs.frozen
class SharedFolder(Handover):
    """A folder that the driver has made for tasks.

    Attributes:
        path: the folder, of a name that is never used again.
        shown: the folder that it will be part of, for people.
    """

    path: Path
    shown: Path

    @contextmanager
    def attempt(self) -> Iterator[Path]:
        """A new folder within, which stays; raises as `own_folder`."""
        yield self.own_folder()

    def own_folder(self) -> Path:
        """A new folder within for one attempt at a task.

        Raises:
            ClusterLost: the machine of the task does not see the folder.
        """
        mine = self.path / f"attempt-{uuid.uuid4().hex[:12]}"
        try:
            mine.mkdir()
        except FileNotFoundError:
            raise ClusterLost(unseen_sentence(self.shown, socket.gethostname())) from None
        return mine

    def hand_over(self, folder: Path, files: Sequence[Path]) -> list[Handed]:
        """Tell of files; they are where the driver takes them from."""
        attempt = folder.relative_to(self.path).parts[0]
        return [
            Handed(attempt, file.relative_to(folder).as_posix(), file.stat().st_size)
            for file in files
        ]

    def check(self, handed: Sequence[Handed], below: str = "") -> None:
        """See whether files are there as tasks wrote them."""
        for one in handed:
            path = self.path / one.attempt / below / one.file
            try:
                found = os.stat(path).st_size
            except FileNotFoundError:
                raise JobError(unseen_sentence(path.parent, "this one")) from None
            _require_size(path, found, one.size)


@attrs.frozen
class Uploads(Handover):
    """A folder of an object store.

    Attributes:
        folder: to which names are relative.
        whole: the new folder that it will be part of.
    """

    folder: RemotePlace
    whole: RemotePlace

    @contextmanager
    def attempt(self) -> Iterator[Path]:
        """A folder of the machine's own, gone at the end."""
        with tempfile.TemporaryDirectory(prefix="gossamer-attempt-") as made:
            yield Path(made)

    def hand_over(self, folder: Path, files: Sequence[Path]) -> list[Handed]:
        """Send files by the names that they are to have.

        Raises:
            ResultsError: the store refuses, or nobody waits for the files any more.
        """
        if not (self.whole / WRITING).exists():
            raise ResultsError(self.whole, "is not being written any more, expected it to be")
        handed = []
        for file in files:
            name = file.relative_to(folder).as_posix()
            handed.append(Handed("", name, (self.folder / name).upload(file)))
        return handed

    def check(self, handed: Sequence[Handed], below: str = "") -> None:
        """See whether files are there as tasks sent them."""
        del below
        sizes = {one.name: one.size for one in self.folder.files()}
        for one in handed:
            if one.file not in sizes:
                raise JobError(f"{self.folder / one.file} does not exist, expected it of a worker")
            _require_size(self.folder / one.file, sizes[one.file], one.size)


def _require_size(file: object, found: int, written: int) -> None:
    if found != written:
        expected = f"expected the {written:,} that a worker wrote"
        raise JobError(f"{file} has {found:,} bytes, {expected}")


@attrs.frozen
class Mark:
    """A file by which a task tells whether it sees the same folder as the driver.

    Attributes:
        file: the file.
        digest: of its content.
    """

    file: Place
    digest: str

    def check(self) -> None:
        """See whether the file is here what it is for the driver; called in tasks.

        Raises:
            ClusterLost: it is not there, or another one.
            ResultsError: its storage fails.
        """
        try:
            same = _digest(self.file) == self.digest
        except OSError:
            same = False
        if not same:
            folder = str(self.file).rpartition("/")[0]
            raise ClusterLost(unseen_sentence(folder, socket.gethostname()))


def mark_of(file: AnyPlace) -> Mark:
    """What tells tasks that they see this file as this process does."""
    place = as_place(file)
    return Mark(place, _digest(place))


def files_below(folder: Path) -> list[Path]:
    """All files below a folder of this machine, in the order of their names."""
    return [folder / one.name for one in LocalPlace(folder).files()]


def unseen_sentence(folder: object, host: str) -> str:
    """What is wrong where a machine does not see a folder of the driver, or not as the driver."""
    expected = "expected storage that all machines share"
    return f"executors do not see the folder {folder} of the driver (on {host}), {expected}"


def _digest(file: Place) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
