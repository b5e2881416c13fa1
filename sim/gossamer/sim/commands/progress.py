"""Progress and interruption of a run, both by way of the callback that `simulate` reports to."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from gossamer.command.signals import ENDING, Stopped

Callback = Callable[[str, int, int], None]

# Between two lines of progress there are so many seconds at least, and hardly more than so many.
LEAST_APART_S = 5.0
MOST_APART_S = 60.0
# While nothing is done, in the first minute: compiling takes half of one on an idle processor.
WAITING_APART_S = 10.0
# A line comes as well when so many parts of the whole more are done.
PARTS = 10
# What is said while nothing is done.
COMPILING = "a first run compiles"
BEGUN = "begun"


@contextmanager
def progress_bars(unit: str = "rounds", *, compiles: bool = True) -> Iterator[Callback]:
    """A callback that shows how far each system is, on standard error.

    On a terminal that is a bar a system; elsewhere it is a line now and then, see `ProgressLines`.
    Both show for how long nothing has been done yet, so that compiling is seen to go on.

    """
    beginning = COMPILING if compiles else BEGUN
    if not sys.stderr.isatty():
        lines = ProgressLines(unit, beginning=beginning)
        with reminded(lines.remind):
            yield lines
        return
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        _Done(unit),
        _Rate(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as progress:
        tasks = {"": progress.add_task(f"preparing, {beginning}", total=None)}
        lock = threading.Lock()

        def show(system: str, done: int, total: int) -> None:
            with lock:
                if done and "" in tasks:
                    progress.remove_task(tasks.pop(""))
                if system not in tasks:
                    tasks[system] = progress.add_task(system, total=total)
            progress.update(tasks[system], completed=done)

        yield show


class ProgressLines:
    """A callback that writes how far all systems are, as plain lines for logs.

    The first report is a line at once. Later ones are where a tenth of the whole more is done, or a
    minute has passed, but none within five seconds of another; so a run of any length writes at
    most ten lines and one a minute more. What is not reported is reminded of: every ten seconds in
    the first minute while nothing is done, and every minute of silence later.

    Args:
        unit: what is counted.
        beginning: what is said while nothing is done.
        clock: the time in seconds.
        write: takes a line; standard error, as it is then, if None.
    """

    def __init__(
        self,
        unit: str,
        *,
        beginning: str = COMPILING,
        clock: Callable[[], float] = time.monotonic,
        write: Callable[[str], object] | None = None,
    ) -> None:
        self._unit = unit
        self._beginning = beginning
        self._clock = clock
        self._write = write or (lambda line: print(line, file=sys.stderr, flush=True))
        self._begun = clock()
        self._told_s: float | None = None
        self._told_part = 0
        self._systems: dict[str, tuple[int, int]] = {}
        self._lock = threading.Lock()

    def __call__(self, system: str, done: int, total: int) -> None:
        """Take a report; any thread may."""
        with self._lock:
            self._systems[system] = (done, total)
            now = self._clock()
            if self._is_due(now):
                self._told_s, self._told_part = now, self._part()
                self._write(self._line(now))

    def remind(self) -> None:
        """Write a line if none has come for long; any thread may, as often as it likes."""
        with self._lock:
            now = self._clock()
            passed = now - (self._begun if self._told_s is None else self._told_s)
            waits = not self._has_begun() and now - self._begun <= MOST_APART_S
            if passed >= (WAITING_APART_S if waits else MOST_APART_S):
                self._told_s, self._told_part = now, self._part()
                self._write(self._line(now))

    def _has_begun(self) -> bool:
        return any(done for done, _ in self._systems.values())

    def _is_due(self, now: float) -> bool:
        if self._told_s is None:
            return True
        passed = now - self._told_s
        further = self._part() != self._told_part
        return passed >= MOST_APART_S or (passed >= LEAST_APART_S and further)

    def _part(self) -> int:
        done = sum(one for one, _ in self._systems.values())
        total = sum(one for _, one in self._systems.values())
        return PARTS * done // max(total, 1)

    def _line(self, now: float) -> str:
        told = ", ".join(
            f"{system} {done:,} of {total:,} {self._unit}"
            for system, (done, total) in self._systems.items()
        )
        passed = f"{now - self._begun:,.0f} s"
        when = f"after {passed}"
        if not self._has_begun():
            early = now - self._begun < WAITING_APART_S
            when = self._beginning if early else f"{self._beginning}, {passed} so far"
        return f"gossamer: {told or 'preparing'}, {when}"


@contextmanager
def reminded(remind: Callable[[], object], every_s: float = 1.0) -> Iterator[None]:
    """Call ``remind`` every so many seconds, in a thread of its own, until the end of the block."""
    ended = threading.Event()

    def go_on() -> None:
        while not ended.wait(every_s):
            remind()

    thread = threading.Thread(target=go_on, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def stops_between_rounds(progress: Callback) -> Iterator[Callback]:
    """``progress``, but raising `Stopped` at the next report after Ctrl-C or a signal to end.

    Systems run in threads, which no signal reaches; they stop where their state is whole. A
    second Ctrl-C interrupts the process as usual.
    """
    asked: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        asked.append(number)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        print("\nstopping after this round; Ctrl-C again stops at once", file=sys.stderr)

    def report(system: str, done: int, total: int) -> None:
        progress(system, done, total)
        if asked:
            raise Stopped(asked[0])

    previous = {
        number: before
        for number in (signal.SIGINT, *ENDING)
        if (before := signal.getsignal(number)) is not signal.SIG_IGN
    }
    for number in previous:
        signal.signal(number, note)
    try:
        yield report
    finally:
        for number, before in previous.items():
            signal.signal(number, before)


class _Rate(ProgressColumn):
    """Rounds a second, over the last of them."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.1f}/s")


class _Done(ProgressColumn):
    """How much is done, of how much; the seconds passed where nothing is counted yet."""

    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def render(self, task: Task) -> Text:
        if task.total is None:
            return Text(f"{task.elapsed or 0.0:,.0f} s")
        return Text(f"{int(task.completed):,}/{int(task.total):,} {self._unit}")
