"""Progress and interruption of a run, both by way of the callback that `simulate` reports to."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from gossamer.command.signals import ENDING, Stopped

Callback = Callable[[str, int, int], None]


@contextmanager
def progress_bars(unit: str = "rounds") -> Iterator[Callback]:
    """A callback that draws a bar per system on standard error, if that is a terminal.

    Args:
        unit: what is counted.
    """
    if not sys.stderr.isatty():
        yield lambda _system, _done, _total: None
        return
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        _Rate(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as progress:
        tasks = {"": progress.add_task("preparing, a first run compiles", total=None)}
        lock = threading.Lock()

        def show(system: str, done: int, total: int) -> None:
            with lock:
                if "" in tasks:
                    progress.remove_task(tasks.pop(""))
                if system not in tasks:
                    tasks[system] = progress.add_task(system, total=total)
            progress.update(tasks[system], completed=done)

        yield show


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
