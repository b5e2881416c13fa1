"""Signals that end a command: like Ctrl-C, they let it clear up; only its exit code differs."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

# What a service manager and `kill` send, and what a terminal sends when it is closed; systems
# without the second say what does not run there, and need this module for that.
ENDING: Final = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)
)

# A signal that came where Python drops exceptions is sent again after so long.
AGAIN_S: Final = 0.01

# Signals that have come, of this process as they are.
_asked: list[int] = []


class Stopped(KeyboardInterrupt):
    """The process was asked to end by a signal.

    Attributes:
        number: of the signal.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(signal.Signals(number).name)


def exit_code_of(interrupt: KeyboardInterrupt) -> int:
    """128 and the signal's number, as shells have it; Ctrl-C is SIGINT."""
    return 128 + (interrupt.number if isinstance(interrupt, Stopped) else signal.SIGINT)


def interrupt_behind(error: BaseException) -> KeyboardInterrupt | None:
    """The interrupt that an error hides, or None: clearing up failed, or other tasks did too."""
    behind: BaseException | None = error
    while behind is not None and not isinstance(behind, KeyboardInterrupt):
        if isinstance(behind, BaseExceptionGroup):
            found = filter(None, map(interrupt_behind, behind.exceptions))
            if (first := next(found, None)) is not None:
                return first
        behind = behind.__context__
    return behind


@contextmanager
def ending_first() -> Iterator[None]:
    """Raise the interrupt in place of an error that follows from Ctrl-C or a signal to end.

    Such a signal often goes to all processes of a command, which then fail in each other's eyes;
    and libraries that clear up after an interrupt may fail in doing so.
    """
    try:
        yield
    except Exception as error:
        interrupt = interrupt_behind(error)
        if interrupt is None and _asked:
            interrupt = Stopped(_asked[0])
        if interrupt is not None:
            raise interrupt from None
        raise


@contextmanager
def interruptible() -> Iterator[None]:
    """A command that Ctrl-C and signals end with one sentence, by an exit code that tells which.

    Raises:
        SystemExit: it was ended, and has said nothing of it itself.
    """
    with stopped_by_signals():
        try:
            yield
        except KeyboardInterrupt as interrupt:
            print("gossamer: interrupted", file=sys.stderr)
            raise SystemExit(exit_code_of(interrupt)) from None


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Raise `Stopped` in the main thread at SIGTERM or SIGHUP, once; what is ignored stays so.

    More of them, which a service manager sends by the way, do not disturb the clearing up. One
    that comes within a finalizer or a hook of fork, where Python drops exceptions, is raised
    again behind it, and Ctrl-C likewise.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    _asked.clear()

    def stop(number: int, _frame: FrameType | None) -> None:
        _asked.append(number)
        for each in taken:
            signal.signal(each, signal.SIG_IGN)
        raise Stopped(number)

    def dropped(unraisable: sys.UnraisableHookArgs) -> None:
        interrupt = unraisable.exc_value
        if not isinstance(interrupt, KeyboardInterrupt):
            unraisable_before(unraisable)
            return
        number = exit_code_of(interrupt) - 128
        if number in taken:
            signal.signal(number, stop)
        threading.Timer(AGAIN_S, os.kill, (os.getpid(), number)).start()

    unraisable_before = sys.unraisablehook
    taken = {
        number: before
        for number in ENDING
        if (before := signal.getsignal(number)) is not signal.SIG_IGN
    }
    for number in taken:
        signal.signal(number, stop)
    sys.unraisablehook = dropped
    try:
        yield
    finally:
        sys.unraisablehook = unraisable_before
        for number, before in taken.items():
            signal.signal(number, before)
        _asked.clear()
