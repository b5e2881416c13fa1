"""What a tree of processes takes: processor time, and time in which nothing of it could run.

Both come from Linux's /proc. A process that waits for a processor on a busy machine does not wait
here: it could run.
"""

from __future__ import annotations

import contextlib
import os
import resource
import threading
import time
from typing import Final

import attrs

MEASURES_WAITS: Final = os.path.isdir("/proc/self/task")
# A snapshot is taken so often, and the first one later, since most tests are short.
INTERVAL_S: Final = 0.25
FIRST_S: Final = 1.0

_TICKS: Final = os.sysconf("SC_CLK_TCK")
# Places in /proc/<pid>/stat behind the name.
_STATE, _STARTED = 0, 19
_TIMES: Final = slice(11, 15)  # in user and kernel mode: its own, its reaped children's
_COULD_RUN: Final = ("R", "D")


class ProcessTree:
    """A process, all that descend from it, and those of them that another process has adopted."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._known: dict[int, str] = {}  # by number, when each was started

    def processes(self) -> dict[int, list[str]]:
        """What /proc says of each process, by its number."""
        found: dict[int, list[str]] = {}
        left = [self._root, *(one for one, since in self._known.items() if _started(one) == since)]
        while left:
            number = left.pop()
            stat = None if number in found else _stat(f"{number}/stat")
            if stat is not None:
                found[number] = stat
                left += [child for task in _tasks(number) for child in _children(number, task)]
        self._known = {one: stat[_STARTED] for one, stat in found.items() if one != self._root}
        return found

    def snapshot(self, besides: int = 0) -> Snapshot:
        """Where the tree is now, without the thread ``besides``."""
        queued, runnable = 0, False
        stats = self.processes()
        for number in stats:
            for task in _tasks(number):
                if int(task) == besides:
                    continue
                times = _words(f"{number}/task/{task}/schedstat")
                queued += int(times[1]) if times else 0
                stat = None if runnable else _stat(f"{number}/task/{task}/stat")
                runnable = runnable or (stat is not None and stat[_STATE] in _COULD_RUN)
        ticks = sum(sum(map(int, stat[_TIMES])) for stat in stats.values())
        taken = ticks / _TICKS if MEASURES_WAITS else _own_seconds()
        return Snapshot(time.monotonic(), taken, queued / 1e9, runnable)


@attrs.frozen
class Snapshot:
    """A tree of processes at one moment.

    Attributes:
        at: when that was.
        taken_s: processor time until then, that of dead children among it.
        queued_s: how long threads have waited for a processor, those that live.
        runnable: whether one is running, or could.
    """

    at: float
    taken_s: float
    queued_s: float
    runnable: bool

    def waited_since(self, before: Snapshot, planned_s: float) -> float:
        """For how long nothing could run since ``before``; when this comes late it is not known."""
        if self.runnable:
            return 0.0
        taken = max(0.0, self.taken_s - before.taken_s)
        queued = max(0.0, self.queued_s - before.queued_s)
        return max(0.0, min(self.at - before.at, planned_s + INTERVAL_S) - taken - queued)


class Waits:
    """Measures in a thread of its own how long a tree of processes waits."""

    def __init__(self, tree: ProcessTree) -> None:
        self._tree = tree
        self._changed = threading.Condition()
        self._begun: Snapshot | None = None
        self._first_s = FIRST_S
        self.waited_s = 0.0
        self._thread: threading.Thread | None = None

    def begin(self, first_s: float = FIRST_S) -> Snapshot:
        """Measure from now on, ``first_s`` seconds at once; give what was taken so far."""
        with self._changed:
            self._begun = begun = self._tree.snapshot()
            self._first_s, self.waited_s = first_s, 0.0
            self._changed.notify()
        if self._thread is None and MEASURES_WAITS:
            self._thread = threading.Thread(target=self._measure, name="waits", daemon=True)
            self._thread.start()
        return begun

    def end(self) -> float:
        """For how long nothing could run, of what was measured since the begin."""
        with self._changed:
            self._begun = None
            self._changed.notify()
            return self.waited_s

    def _measure(self) -> None:
        own = threading.get_native_id()
        with self._changed:
            while True:
                begun = self._begun
                if begun is None:
                    self._changed.wait()
                    continue
                before, planned = begun, self._first_s
                while not self._changed.wait(planned) and self._begun is begun:
                    now = self._tree.snapshot(besides=own)
                    self.waited_s += now.waited_since(before, planned)
                    before, planned = now, INTERVAL_S


def _own_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _stat(path: str) -> list[str] | None:
    return _words(path, behind=")")


def _started(number: int) -> str | None:
    stat = _stat(f"{number}/stat")
    return None if stat is None else stat[_STARTED]


def _tasks(number: int) -> list[str]:
    with contextlib.suppress(OSError):
        return os.listdir(f"/proc/{number}/task")
    return []


def _children(number: int, task: str) -> list[int]:
    return list(map(int, _words(f"{number}/task/{task}/children") or ()))


def _words(path: str, behind: str = "") -> list[str] | None:
    """The words of a file of /proc; None when what it is about has ended."""
    try:
        with open(f"/proc/{path}", errors="replace") as file:
            text = file.read()
    except OSError:
        return None
    return (text.rpartition(behind)[2] if behind else text).split()
