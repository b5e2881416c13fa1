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
    """``progress``, but raising `KeyboardInterrupt` at the next report after Ctrl-C.

    Systems run in threads, which no signal reaches; they stop where their state is whole. A
    second Ctrl-C interrupts the process as usual.
    """
    interrupted = threading.Event()

    def note(_number: int, _frame: FrameType | None) -> None:
        interrupted.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        print("\nstopping after this round; Ctrl-C again stops at once", file=sys.stderr)

    def report(system: str, done: int, total: int) -> None:
        progress(system, done, total)
        if interrupted.is_set():
            raise KeyboardInterrupt

    previous = signal.signal(signal.SIGINT, note)
    try:
        yield report
    finally:
        signal.signal(signal.SIGINT, previous)


class _Rate(ProgressColumn):
    """Rounds a second, over the last of them."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.1f}/s")
