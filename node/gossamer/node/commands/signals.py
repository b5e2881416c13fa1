"""Signals that end a command in order: Ctrl-C, SIGTERM, and SIGHUP when its terminal is closed.

A process without a terminal cannot lose it: to such a node SIGHUP says, as to any daemon, that its
configuration has changed.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

# What a shell adds to the number of a signal that ended a command.
SIGNALLED: Final = 128
EXIT_INTERRUPTED: Final = SIGNALLED + signal.SIGINT


def ending_signals() -> tuple[signal.Signals, ...]:
    """Those that ask this process to end, but Ctrl-C.

    SIGHUP is none of them where it is ignored: 'nohup' does that for what is to outlive a terminal.
    """
    found = [signal.SIGTERM]
    hang_up = getattr(signal, "SIGHUP", None)
    if hang_up is not None and signal.getsignal(hang_up) is not signal.SIG_IGN:
        found.append(hang_up)
    return tuple(found)


def has_terminal() -> bool:
    """Whether this process has a controlling terminal, whose end it would be told by SIGHUP."""
    try:
        descriptor = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False
    os.close(descriptor)
    return True


@contextmanager
def ended_as_by_interrupt() -> Iterator[None]:
    """Within the block SIGTERM and SIGHUP do what Ctrl-C does; the exit code names the signal.

    Raises:
        SystemExit: one of them came, and the `KeyboardInterrupt` by it was not dealt with inside.
    """
    noted: list[int] = []

    def interrupt(number: int, _: FrameType | None) -> None:
        noted.append(number)
        if is_deaf:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        signal.raise_signal(signal.SIGINT)

    before: dict[int, Any] = {}
    # As in the background of a script: Ctrl-C is not for this process, `interrupt` has to be heard.
    is_deaf = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if is_deaf:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        before[signal.SIGINT] = signal.signal(signal.SIGINT, signal.default_int_handler)
    before |= {number: signal.signal(number, interrupt) for number in ending_signals()}
    try:
        yield
    except KeyboardInterrupt:
        if not noted:
            raise
        raise SystemExit(SIGNALLED + noted[0]) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if is_deaf:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
