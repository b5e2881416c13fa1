"""Results of tasks go through storage: a task writes into a folder of the driver's, and hands back
names and sizes alone.

The driver makes the folder under a name that nobody else has, so that a task that finds it shares
the storage, and one that does not says so and writes nothing. Each attempt at a task writes into
a folder of its own within, and the driver takes what the attempt that succeeded tells of: one that
was given up may go on for a while, and finds no folder to write into.
"""

from __future__ import annotations

import hashlib
import os
import socket
import uuid
from collections.abc import Iterable
from pathlib import Path

import attrs

from gossamer.spark.errors import FolderUnseen, JobError


@attrs.frozen
class SharedFolder:
    """A folder that the driver has made for tasks.

    Attributes:
        path: the folder, of a name that is never used again.
        shown: the folder that it will be part of, for people.
    """

    path: Path
    shown: Path

    def own_folder(self) -> Path:
        """A new folder within for one attempt at a task; called in the task.

        Raises:
            FolderUnseen: the machine of the task does not see the folder.
        """
        mine = self.path / f"attempt-{uuid.uuid4().hex[:12]}"
        try:
            mine.mkdir()
        except FileNotFoundError:
            raise FolderUnseen(unseen_sentence(self.shown, socket.gethostname())) from None
        return mine


@attrs.frozen
class Mark:
    """A file by which a task tells whether it sees the same folder as the driver.

    Attributes:
        file: the file.
        digest: of its content.
    """

    file: Path
    digest: str

    def check(self) -> None:
        """See whether the file is here what it is for the driver; called in tasks.

        Raises:
            FolderUnseen: it is not there, or another one.
        """
        try:
            same = _digest(self.file) == self.digest
        except OSError:
            same = False
        if not same:
            raise FolderUnseen(unseen_sentence(self.file.parent, socket.gethostname()))


def mark_of(file: Path) -> Mark:
    """What tells tasks that they see this file as this process does."""
    return Mark(file, _digest(file))


@attrs.frozen
class Handed:
    """A file that a task has written.

    Attributes:
        path: where.
        size: its bytes.
    """

    path: Path
    size: int

    def check(self) -> None:
        """See whether the file is here what the task wrote.

        Raises:
            JobError: it is not there, or of another size.
        """
        try:
            found = os.stat(self.path).st_size
        except FileNotFoundError:
            raise JobError(unseen_sentence(self.path.parent, "this one")) from None
        if found != self.size:
            expected = f"expected the {self.size:,} that a worker wrote"
            raise JobError(f"{self.path} has {found:,} bytes, {expected}")


def files_below(folder: Path) -> Iterable[Handed]:
    """All files below a folder."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield Handed(path, path.stat().st_size)


def unseen_sentence(folder: Path, host: str) -> str:
    """What is wrong where a machine does not see a folder of the driver, or not as the driver."""
    expected = "expected storage that all machines share"
    return f"executors do not see the folder {folder} of the driver (on {host}), {expected}"


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
