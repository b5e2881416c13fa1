"""A folder of machine code, one file for each piece, shared by all processes of a user.

A name says all that the code depends on, so a file is never stale and never written a second time
with other content. What has not been asked for longest is removed once there is too much.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import logging
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from gossamer.protocol.kernel.rules import keep_code_in

if sys.platform != "win32":
    import fcntl

_log = logging.getLogger(__name__)

MOST_BYTES = 1 << 30
_CHECK_BYTES = hashlib.sha256().digest_size
_SUFFIX = ".code"
# By path, the open file of locks.
_lock_files: dict[Path, int] = {}
_opening = threading.Lock()
# What makes code for this process; their input stays open as long as it lives.
_helpers: list[subprocess.Popen[bytes]] = []
# The longest that is waited for what another process makes, which may have been stopped, and how
# often it is looked whether it is done.
_PATIENCE_S = 300.0
_LOOKING_S = 0.05


def cache_root() -> Path:
    """The folder for all caches: $GOSSAMER_CACHE, or the user's cache folder."""
    chosen = os.environ.get("GOSSAMER_CACHE")
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "gossamer" / "cache"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "gossamer"


def keep_compiled_code() -> None:
    """Let machine code of rules be kept in the folder of the user's caches.

    Where there is none, or it cannot be written, code is compiled anew in each process.
    """
    try:
        folder = cache_root() / "compiled"
    except RuntimeError:  # nobody's home
        return
    keep_code_in(FolderStore(folder))


class FolderStore:
    """Machine code in files of a folder.

    Args:
        folder: made when the first piece is saved.
        most_bytes: what all files may take; the least recently used are removed beyond that.
    """

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES) -> None:
        self._folder = folder
        self._most_bytes = most_bytes

    def load(self, name: str) -> bytes | None:
        """What was saved under a name; None where that is nothing, or damaged."""
        path = self._path(name)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        code = content[_CHECK_BYTES:]
        if hashlib.sha256(code).digest() != content[:_CHECK_BYTES]:
            _log.warning("%s is damaged: it is compiled anew", path)
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return code

    def save(self, name: str, code: bytes) -> None:
        """Keep ``code`` under a name; the file appears whole, or not at all."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._write(self._path(name), hashlib.sha256(code).digest() + code)
            self._make_room()
        except OSError as error:
            _log.debug("%s is not kept: %s", self._path(name), error)

    @contextlib.contextmanager
    def making(self, name: str, *, waits: bool = True) -> Iterator[bool]:
        """Be the only process that makes what is kept under a name.

        The lock goes with the process. Where locks cannot be had, or another process keeps one for
        minutes, two may make the same.

        Args:
            name: of what is made.
            waits: for another process that makes it; if not, that process is still at it.

        Yields:
            Whether another process was making it until now.
        """
        place = int(hashlib.sha256(name.encode()).hexdigest()[:15], 16)
        number = self._locks()
        if number is None:
            yield False
            return
        try:
            yield _wait_for_turn(number, place, _PATIENCE_S if waits else 0.0)
        finally:
            _leave(number, place)

    def make_beside(self, called: bytes) -> None:
        """Let a process for each further processor make standalone rules, and keep them here.

        There are no more of them at a time, whoever asks; they end when this process does. Where
        nothing can be kept they are of no use, and there are none.

        Args:
            called: the rules (`standalone.make_all`), pickled; those at its beginning first.
        """
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
        if not os.access(self._folder, os.W_OK):
            return
        for place in range(1, _processors()):
            with contextlib.suppress(OSError):
                helper = subprocess.Popen(
                    [sys.executable, "-m", "gossamer.compiled.beside", self._folder, str(place)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
                _helpers.append(helper)
                assert helper.stdin is not None
                helper.stdin.write(b"%d\n%s" % (len(called), called))
                helper.stdin.flush()
                atexit.register(helper.stdin.close)

    def _locks(self) -> int | None:
        """The file of locks, one for the process: closing one would give up all of them."""
        path = self._folder.with_name(f"{self._folder.name}.lock")
        with _opening:
            known = _lock_files.get(path)
            if known is not None and _is_at(known, path):
                return known
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                made = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            except OSError:
                return None
            if known is not None:
                os.close(known)  # of a file that somebody has removed
            _lock_files[path] = made
            return made

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}{_SUFFIX}"

    def _write(self, path: Path, content: bytes) -> None:
        number, temporary = tempfile.mkstemp(dir=self._folder, prefix=".", suffix=_SUFFIX)
        try:
            with open(number, "wb") as file:
                file.write(content)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise

    def _make_room(self) -> None:
        """Remove what was not used for longest, others' unfinished files among it."""
        found = []
        for entry in os.scandir(self._folder):
            with contextlib.suppress(FileNotFoundError):
                if entry.is_file(follow_symlinks=False):
                    found.append((entry.stat().st_mtime, entry.stat().st_size, entry.path))
        taken = sum(size for _, size, _ in found)
        for _, size, path in sorted(found):
            if taken <= self._most_bytes:
                return
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            taken -= size


def _processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(os.getpid()))  # a thread may have one of its own
    return os.cpu_count() or 1


def _is_at(number: int, path: Path) -> bool:
    """Whether an open file is the one of this name."""
    try:
        return os.path.samestat(os.fstat(number), path.stat())
    except OSError:
        return False


def _wait_for_turn(number: int, place: int, patience_s: float) -> bool:
    """Lock a byte of a file, and tell whether another process had it."""
    if sys.platform == "win32":
        return False
    deadline = time.monotonic() + patience_s
    waited = False
    while not waited or time.monotonic() < deadline:
        try:
            fcntl.lockf(number, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except (BlockingIOError, PermissionError):
            waited = True
            time.sleep(min(_LOOKING_S, patience_s))
        except OSError:
            break
        else:
            break
    return waited


def _leave(number: int, place: int) -> None:
    """Unlock a byte of a file."""
    if sys.platform != "win32":
        with contextlib.suppress(OSError):
            fcntl.lockf(number, fcntl.LOCK_UN, 1, place)
