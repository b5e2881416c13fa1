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
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Final

import attrs
import pytest

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
    at: float  # when that was
    taken_s: float  # processor time until then, that of dead children among it
    queued_s: float  # how long threads have waited for a processor, those that live
    runnable: bool  # whether one is running, or could

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


# What no unmarked test may exceed.


DEAR: Final = "dear"


@attrs.frozen
class Limits:
    """In seconds: of the processor for a test and for a shared fixture, and of waiting."""

    test: float = 5.0
    fixture: float = 15.0
    waiting: float = 2.0
    first: float = FIRST_S


DEFAULT_LIMITS: Final = Limits()


class EffortGuard:
    """A plugin of pytest that names the unmarked tests which are dear, and fails the dearest.

    A busy machine takes up to twice as long for the same, and no test is to fail for that. A test
    while machine code came into the cache is not judged, since whoever comes first compiles. What
    makes a fixture that tests share has a limit of its own.

    Args:
        root: the process whose tests are run.
        caches: the folder in whose folders machine code is kept.
        limits: what a test may take.
        busy: it fails from so many times as much on.
    """

    def __init__(
        self, root: int, caches: Path, *, limits: Limits = DEFAULT_LIMITS, busy: float = 3.0
    ) -> None:
        self._waits = Waits(ProcessTree(root))
        self._caches = caches
        self._limits = limits
        self._busy = busy
        self._own_s = self._waited_s = 0.0
        self._marked_s = 0.0  # what the tree had taken when it was last asked
        self._fixtures: dict[str, float] = {}
        self._cached: list[int] = []

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self) -> Iterator[None]:
        self._own_s, self._waited_s, self._fixtures = 0.0, 0.0, {}
        self._cached = self._times_of_caches()
        self._marked_s = self._waits.begin(self._limits.first).taken_s
        yield

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[object]
    ) -> Generator[None, object, object]:
        """Let what makes a shared fixture have an account of its own."""
        if fixturedef.scope == "function":
            return (yield)
        self._own_s += self._mark()
        try:
            return (yield)
        finally:
            self._fixtures[fixturedef.argname] = self._mark(of_test=False)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Iterator[None]:
        if nextitem is None or nextitem.path != item.path:
            self._own_s += self._mark()  # before shared fixtures are removed
        yield
        self._own_s += self._mark()
        self._waits.end()
        if item.get_closest_marker("campaign") or self._compiled():
            return
        if found := self._exceeded(self._busy):
            pytest.fail(found, pytrace=False)
        if found := self._exceeded():
            item.user_properties.append((DEAR, found))

    def pytest_fixture_post_finalizer(self, fixturedef: pytest.FixtureDef[object]) -> None:
        """Leave out what removes a shared fixture, which the last test of all happens to do."""
        if fixturedef.scope != "function":
            self._mark(of_test=False)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        reports = [one for some in terminalreporter.stats.values() for one in some]
        dear = [
            f"{report.nodeid}: {found}"
            for report in reports
            if getattr(report, "when", None) == "teardown"
            for name, found in report.user_properties
            if name == DEAR
        ]
        if dear:
            terminalreporter.section("dear tests")
            terminalreporter.write_line("\n".join(sorted(dear)))

    def _mark(self, of_test: bool = True) -> float:
        """What the tree has taken since it was last asked; the test may have waited."""
        waited = self._waits.end()
        before, self._marked_s = self._marked_s, self._waits.begin(self._limits.first).taken_s
        self._waited_s += waited if of_test else 0.0
        return self._marked_s - before

    def _exceeded(self, times: float = 1.0) -> str:
        limits = self._limits
        accounts = [
            (f"fixture {name} takes", taken, "s of the processor, may take", limits.fixture)
            for name, taken in self._fixtures.items()
        ]
        accounts.append(("takes", self._own_s, "s of the processor, may take", limits.test))
        accounts.append(("waits for", self._waited_s, "s, may wait for", limits.waiting))
        return "; ".join(
            f"{does} {taken:.1f} {may} {limit:g}"
            for does, taken, may, limit in accounts
            if taken > times * limit
        )

    def _compiled(self) -> bool:
        return self._times_of_caches() != self._cached

    def _times_of_caches(self) -> list[int]:
        if not self._caches.is_dir():
            return []
        folders = [one for one in sorted(self._caches.iterdir()) if one.is_dir()]
        return [one.stat().st_mtime_ns for one in folders]
