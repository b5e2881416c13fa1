"""Events as files of JSON lines that appear whole: what `gossamer spark stream` follows.

    FOLDER/SUBSCRIBER/subscription.json           what is subscribed to, and since when
    FOLDER/SUBSCRIBER/SUBSCRIBER-<ns>-<pid>.jsonl  events, a line each

A file is written under a hidden name and renamed when it is full or old enough, so that a reader
never sees half of one. What a process that was killed has left is finished by the next one of the
same subscriber; a line that it had not finished is dropped, as its event was not acknowledged.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TextIO

from gossamer.node.errors import EventInputError

SUBSCRIPTION_FILE: Final = "subscription.json"
_SUFFIX: Final = ".jsonl"
_PART: Final = ".part"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class EventFiles(io.TextIOBase):
    """A stream of lines that become files; text is one line or more, never part of one.

    Args:
        folder: of the files; made where it is not there.
        subscriber: whose events these are.
        every_s: age at which a file is finished, see `finish_old`.
        most: lines of a file.
        clock: Unix nanoseconds.

    Raises:
        EventInputError: the subscriber's name is none for files.
        OSError: the folder cannot be made or written to.
    """

    def __init__(
        self,
        folder: Path,
        subscriber: str,
        *,
        every_s: float,
        most: int,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._part: TextIO | None = None  # whatever is refused is closed
        if not _NAME.fullmatch(subscriber):
            expected = "expected letters, digits, '.', '_' and '-' (--as)"
            raise EventInputError(f"--as is {subscriber!r}", expected)
        self.folder = folder / subscriber
        self.subscriber = subscriber
        self._every_ns = int(every_s * 1e9)
        self._most = most
        self._clock = clock
        self._begun_ns = 0
        self._lines = 0
        self.folder.mkdir(parents=True, exist_ok=True)
        self._finish_left()

    def describe(self, expression: str, schema: Mapping[str, Any] | None) -> None:
        """Say what is subscribed to; since when is kept as long as that stays the same."""
        file = self.folder / SUBSCRIPTION_FILE
        told = {"subscriber": self.subscriber, "expression": expression, "schema": schema}
        try:
            before = json.loads(file.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            before = {}
        plain = json.loads(json.dumps(told, default=str))
        if {**before, **plain} == before:
            return
        temporary = self.folder / f".{SUBSCRIPTION_FILE}{_PART}-"
        content = json.dumps(plain | {"since": self._clock() / 1e9}, indent=2) + "\n"
        temporary.write_text(content, encoding="utf-8")
        temporary.rename(file)

    def write(self, text: str) -> int:
        """Add lines."""
        part = self._part or self._begin()
        part.write(text)
        self._lines += text.count("\n")
        return len(text)

    def flush(self) -> None:
        """Let the system have what was written, and finish a file that is full."""
        if self._part is not None:
            self._part.flush()
            if self._lines >= self._most:
                self.finish()
        self.finish_old()

    def finish_old(self) -> None:
        """Finish the file if its age asks for that."""
        if self._part is not None and self._clock() - self._begun_ns >= self._every_ns:
            self.finish()

    def finish(self) -> None:
        """Let the file appear that is being written, if there is one."""
        if self._part is None:
            return
        part, self._part = self._part, None
        part.flush()
        os.fsync(part.fileno())
        _appear(Path(part.name))
        part.close()

    def close(self) -> None:
        """Finish the last file."""
        if not self.closed:
            self.finish()
        super().close()

    def _begin(self) -> TextIO:
        self._begun_ns = self._clock()
        self._lines = 0
        name = f".{self.subscriber}-{self._begun_ns:020}-{os.getpid()}{_SUFFIX}{_PART}"
        self._part = (self.folder / name).open("x", encoding="utf-8")
        fcntl.flock(self._part, fcntl.LOCK_EX)
        return self._part

    def _finish_left(self) -> None:
        """Finish files of processes that are gone, which no longer hold their locks."""
        for path in sorted(self.folder.glob(f".*{_SUFFIX}{_PART}")):
            with path.open("rb+") as left:
                try:
                    fcntl.flock(left, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                whole = left.read().rfind(b"\n") + 1
                left.truncate(whole)
                os.fsync(left.fileno())
                if whole:
                    _appear(path)
                else:
                    path.unlink(missing_ok=True)


def _appear(part: Path) -> None:
    """Give a finished file its name, which lasts."""
    part.rename(part.with_name(part.name.removeprefix(".").removesuffix(_PART)))
    above = os.open(part.parent, os.O_RDONLY)
    try:
        os.fsync(above)
    finally:
        os.close(above)
