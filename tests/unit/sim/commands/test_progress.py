"""How far a run has come: bars on a terminal, lines elsewhere."""

from __future__ import annotations

import io
import sys
from itertools import pairwise

import pytest

from gossamer.sim.commands.progress import ProgressLines, progress_bars


class Terminal(io.StringIO):
    """A terminal that keeps what is drawn on it."""

    def isatty(self) -> bool:
        return True


def test_progress_is_bars_on_a_terminal_and_lines_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for stream in (Terminal(), io.StringIO()):
        monkeypatch.setattr(sys, "stderr", stream)
        with progress_bars() as report:
            report("vinifera", 5, 10)
            report("baseline", 10, 10)
        assert ("5/10" in stream.getvalue()) == stream.isatty()
        line = "gossamer: vinifera 5 of 10 rounds, after 0 s\n"
        assert (stream.getvalue() == line) != stream.isatty()


class Clock:
    """A clock that is set by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_lines_of_progress_come_by_tenths_or_minutes_and_never_fast() -> None:
    clock = Clock()
    lines: list[str] = []
    report = ProgressLines("rounds", clock=clock, write=lines.append)
    report("a", 0, 1000)
    report("b", 0, 1000)
    assert lines == ["gossamer: a 0 of 1,000 rounds, a first run compiles"]
    ProgressLines("tasks", beginning="begun", clock=clock, write=lines.append)("b", 0, 2)
    assert lines.pop() == "gossamer: b 0 of 2 tasks, begun"
    for done in range(1, 401):  # within five seconds of the first
        clock.now = done / 100
        report("a", done, 1000)
    assert len(lines) == 1
    clock.now = 5.0
    report("b", 1, 1000)
    assert lines[1:] == ["gossamer: a 400 of 1,000 rounds, b 1 of 1,000 rounds, after 5 s"]
    clock.now = 64.9
    report("b", 2, 1000)
    assert len(lines) == 2
    clock.now = 65.0
    report("b", 3, 1000)
    assert lines[-1].endswith("b 3 of 1,000 rounds, after 65 s")


@pytest.mark.parametrize(("round_s", "rounds"), [(0.001, 5000), (1.0, 400), (30.0, 1000)])
def test_a_run_of_any_length_writes_few_lines(round_s: float, rounds: int) -> None:
    clock, times = Clock(), []
    report = ProgressLines("rounds", clock=clock, write=lambda _line: times.append(clock.now))
    for done in range(rounds + 1):
        clock.now = done * round_s
        report("a", done, rounds)
    assert times[0] == 0.0
    assert all(later - sooner >= 5.0 for sooner, later in pairwise(times))
    assert min(10, clock.now // 6) <= len(times) <= 11 + clock.now / 60
