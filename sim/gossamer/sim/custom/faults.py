"""Errors that a user's own code raises, as one sentence with file and line."""

from __future__ import annotations

import os
import signal
import sys
import sysconfig
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

import numpy as np

import gossamer
from gossamer.protocol.kernel.debugging.checked_run import is_wanted
from gossamer.protocol.kernel.errors import ProtocolError
from gossamer.sim.errors import SimulationError

_OURS: Final = tuple(
    f"{Path(folder)}{os.sep}"
    for folder in (
        *gossamer.__path__,
        *np.__path__,
        sysconfig.get_path("stdlib"),
    )
)


class HandlerError(SimulationError):
    """A handler, or what it calls, raised something or did not end."""


@contextmanager
def explained_faults(kind: type[SimulationError] = SimulationError) -> Iterator[None]:
    """Say in one sentence what the user's code raises within; in checked runs, let it pass.

    Args:
        kind: of the error that says it.

    Raises:
        SimulationError: the user's code raised something; what it raised is the cause.
    """
    try:
        yield
    except (SimulationError, ProtocolError, SyntaxError):
        raise
    except (Exception, SystemExit) as error:
        place = _place_in_user_code(error)
        if place is None or is_wanted(None):
            raise
        words = " ".join(str(error).split())
        said = f"{type(error).__name__}: {words}" if words else type(error).__name__
        raise kind(f"{place} raised {said}") from error


def _place_in_user_code(error: BaseException) -> str | None:
    """The innermost place in a file that is of no package, None where there is none."""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if _is_theirs(frame.filename)]
    if not theirs:
        return None
    return f"{theirs[-1].filename}, line {theirs[-1].lineno}: {theirs[-1].name}"


def _is_theirs(file: str) -> bool:
    return not file.startswith((*_OURS, "<")) and "site-packages" not in file


@contextmanager
def at_most(seconds: float, whose: str) -> Iterator[None]:
    """End what handlers do within after so many seconds of computing; in the main thread only.

    Args:
        seconds: of this process.
        whose: handlers they are, with file and line, to be named where none is running.

    Raises:
        HandlerError: they had not ended; names where they were.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    # Whoever asks, behind the frame of the context manager; nobody beyond that runs a handler.
    asking = sys._getframe(2)

    def end(_signal: int, frame: FrameType | None) -> None:
        while frame and frame is not asking and not _is_theirs(frame.f_code.co_filename):
            frame = frame.f_back
        place = whose
        if frame is not None and frame is not asking:
            place = f"{frame.f_code.co_filename}, line {frame.f_lineno}: {frame.f_code.co_name}"
        raise HandlerError(
            f"{place} is running after {seconds:g} s of a rehearsal with a few nodes, expected "
            "handlers that end, and no message without delay that is answered for ever"
        )

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
