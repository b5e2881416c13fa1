"""What takes long is shown on a terminal, and gone when it is done; nothing is shown elsewhere."""

from __future__ import annotations

import io
import re
import sys
import threading
from contextlib import suppress

import pytest

from gossamer.command.waiting import waiting


class Terminal(io.StringIO):
    """A terminal in memory.

    Attributes:
        shown: set once what is waited for was written.
    """

    def __init__(self) -> None:
        super().__init__()
        self.shown = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if "drawing plots" in text:
            self.shown.set()
        return super().write(text)


def terminal_of(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal as standard error, which pytest replaces between the parts of a test."""
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setenv("TERM", "xterm")
    return shown


def until_shown(terminal: Terminal) -> None:
    assert terminal.shown.wait(20), "nothing is shown"


def test_what_takes_long_is_shown_and_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of(monkeypatch)
    with waiting("drawing plots", patience_s=0):
        until_shown(terminal)
    shown = terminal.getvalue()
    assert re.search(r"drawing plots.*0:00:0", shown)
    assert "\x1b[2K" in shown.rpartition("drawing plots")[2], "the line is erased"


def test_what_is_done_soon_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of(monkeypatch)
    with waiting("drawing plots", patience_s=60):
        pass
    assert terminal.getvalue() == ""


def test_an_error_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of(monkeypatch)
    with suppress(KeyError), waiting("drawing plots", patience_s=0):
        until_shown(terminal)
        raise KeyError
    assert "\x1b[?25h" in terminal.getvalue(), "the cursor is there again"


def test_logs_get_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    log = io.StringIO()
    for stream in (log, None):
        monkeypatch.setattr(sys, "stderr", stream)
        with waiting("drawing plots", patience_s=0):
            pass
    assert log.getvalue() == ""
