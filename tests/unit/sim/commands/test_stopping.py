"""`gossamer sim`: how far runs have come, how they stop and go on, and are kept from each other."""

from __future__ import annotations

import io
import os
import re
import signal
import sys
import threading
from itertools import pairwise
from pathlib import Path
from queue import Queue

import pytest

from gossamer.sim.commands import progress
from gossamer.sim.results.results import whole_folder
from support.installed_command import MadeUpSimulation, content_of, unchanged
from support.made_up_results import another_at_work
from support.sim_commands import sim

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch
Simulation = MadeUpSimulation


def interrupt(simulation: Simulation, line: str) -> None:
    simulation.leaves_checkpoint = True
    simulation.meanwhile = lambda: signal.raise_signal(signal.SIGINT)
    assert sim(line) == 130
    simulation.meanwhile = lambda: None


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_before_a_checkpoint_leaves_nothing(
    work: Path, simulation: Simulation, capsys: Capture, number: signal.Signals, code: int
) -> None:
    simulation.meanwhile = lambda: signal.raise_signal(number)
    assert sim("run s.toml --out o") == code
    told = capsys.readouterr().err.splitlines()[-1]
    assert told == "gossamer: interrupted; there was no checkpoint yet, nothing is kept"
    assert set(content_of(work)) == {"s.toml", "t.avt"}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.usefixtures("work")
def test_ctrl_c_tells_how_to_resume(simulation: Simulation, capsys: Capture) -> None:
    interrupt(simulation, "run s.toml --seed 7 --no-plots")
    told = capsys.readouterr().err.splitlines()[-1]
    assert "the checkpoint in results/small-7.unfinished is kept" in told
    command = re.search(r"go on with it by 'gossamer sim (.*)'$", told)
    assert command is not None
    assert os.listdir("results") == ["small-7.unfinished"]
    assert sim(command[1] + " --no-plots") == 0
    (first, text, fresh), (second, kept, resumed) = simulation.calls
    assert (first, text, fresh, resumed) == (second, kept, False, True)
    assert os.listdir("results") == ["small-7"]


@pytest.mark.usefixtures("work")
def test_resume_finds_the_only_unfinished_run_or_starts_over(simulation: Simulation) -> None:
    assert sim("run s.toml --no-plots") == 0
    interrupt(simulation, "run s.toml")
    assert sim("run s.toml --no-plots --resume") == 0
    assert set(os.listdir("results")) == {"small-5", "small-5-2"}
    interrupt(simulation, "run s.toml --out o")
    Path("o.unfinished/checkpoint/kindred.checkpoint").unlink()
    assert sim("run s.toml --no-plots --out o --resume") == 0
    assert os.path.isfile("o/summary.json")
    assert not os.path.exists("o.unfinished")


@pytest.mark.parametrize(
    ("runs", "line", "said"),
    [
        ([], "--resume", "results/small-5.unfinished does not exist"),
        ([], "--resume --out o", "o.unfinished does not exist"),
        (["run s.toml"] * 2, "--resume", "expected --out with results/small-5, results/small-5-2"),
        (["run s.toml --out o"], "--resume --out o --nodes 60", "the scenario is another one"),
        (["run s.toml --out o"], "--out o", "o.unfinished holds an unfinished run; go on with it"),
    ],
)
def test_what_cannot_be_resumed_or_begun_says_why(
    work: Path, simulation: Simulation, capsys: Capture, runs: list[str], line: str, said: str
) -> None:
    for earlier in runs:
        interrupt(simulation, earlier)
    capsys.readouterr()
    with unchanged(work):
        assert sim(f"run s.toml {line}") == 2
    told = capsys.readouterr().err
    assert said in told
    assert (told.count("\n"), len(simulation.calls)) == (1, len(runs))


def test_signals_and_others_at_work_are_told_by_commands_that_keep_nothing(
    work: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    def half_written(out: Path, **_: object) -> None:
        with whole_folder(out, replace=False):
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr("gossamer.sim.figures.FIGURES", {"vinifera": half_written})
    with unchanged(work):
        assert sim("figures vinifera --out o") == 143
    assert capsys.readouterr().err == "gossamer: interrupted\n"
    with another_at_work(work / "o") as process, unchanged(work):
        for line in ("figures vinifera --out o", "bench --out o"):
            assert sim(line) == 2
            assert f"is being worked on by process {process.pid}" in capsys.readouterr().err


@pytest.mark.parametrize("line", ["run s.toml --out o", "run s.toml --out o --resume"])
def test_a_run_beside_a_live_one_is_refused(
    work: Path, simulation: Simulation, capsys: Capture, line: str
) -> None:
    interrupt(simulation, "run s.toml --out o")
    capsys.readouterr()
    with another_at_work(work / "o") as process, unchanged(work):
        assert sim(line) == 2
    told = capsys.readouterr().err
    assert f"is being worked on by process {process.pid}, expected to be alone with it" in told
    assert told.count("\n") == len(simulation.calls) == 1
    assert sim("run s.toml --out o --resume --no-plots") == 0
    assert sorted(path.name for path in work.iterdir()) == ["o", "s.toml", "t.avt"]


def test_a_second_ctrl_c_interrupts_at_once() -> None:
    before = signal.getsignal(signal.SIGINT)
    reports: list[int] = []
    with progress.stops_between_rounds(
        lambda _system, done, _total: reports.append(done)
    ) as report:
        report("v", 1, 3)
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            report("v", 2, 3)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert reports == [1, 2]
    assert signal.getsignal(signal.SIGINT) is before


def test_progress_is_bars_on_a_terminal_and_else_lines(monkeypatch: Patch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for stream in (Terminal(), io.StringIO()):
        monkeypatch.setattr(sys, "stderr", stream)
        with progress.progress_bars() as report:
            report("kindred", 5, 10)
            report("baseline", 10, 10)
        assert ("5/10" in stream.getvalue()) == stream.isatty()
        line = "gossamer: kindred 5 of 10 rounds, after 0 s\n"
        assert (stream.getvalue() == line) != stream.isatty()


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_lines_of_progress_come_by_tenths_or_minutes_and_never_fast() -> None:
    clock, lines = Clock(), list[str]()
    report = progress.ProgressLines("rounds", clock=clock, write=lines.append)
    report("a", 0, 1000)
    report("b", 0, 1000)
    assert lines == ["gossamer: a 0 of 1,000 rounds, a first run compiles"]
    progress.ProgressLines("tasks", beginning="begun", clock=clock, write=lines.append)("b", 0, 2)
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


def test_waiting_for_the_first_round_is_seen(monkeypatch: Patch) -> None:
    clock, lines = Clock(), list[str]()
    report = progress.ProgressLines("rounds", clock=clock, write=lines.append)
    for second in range(25):  # not even what is run is known
        clock.now = float(second)
        report.remind()
    compiling = "a first run compiles"
    assert lines == [f"gossamer: preparing, {compiling}, {s} s so far" for s in (10, 20)]
    report("a", 0, 40)
    for second in range(25, 600):
        clock.now = float(second)
        report.remind()
    waited = (30, 40, 50, 60, 120, 180, 240, 300, 360, 420, 480, 540)
    assert lines[2:] == [f"gossamer: a 0 of 40 rounds, {compiling}, {s} s so far" for s in waited]
    report("a", 3, 40)
    clock.now = 700.0
    report.remind()
    assert lines[-1] == "gossamer: a 3 of 40 rounds, after 700 s"

    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress.progress_bars() as show:
        show("a", 0, 40)
    assert re.search(f"preparing, {compiling}.* 0 s", terminal.getvalue())
    assert "0/40 rounds" in terminal.getvalue()


def test_reminders_come_until_the_end_of_the_block() -> None:
    calls: Queue[int] = Queue()
    with progress.reminded(lambda: calls.put(1), every_s=0.001):
        assert [calls.get(timeout=20) for _ in range(3)] == [1, 1, 1]
        assert "progress" in {thread.name for thread in threading.enumerate()}
    assert "progress" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.parametrize(("round_s", "rounds"), [(0.001, 5000), (1.0, 400), (30.0, 1000)])
def test_a_run_of_any_length_writes_few_lines(round_s: float, rounds: int) -> None:
    clock, times = Clock(), []
    report = progress.ProgressLines(
        "rounds", clock=clock, write=lambda _line: times.append(clock.now)
    )
    for done in range(rounds + 1):
        clock.now = done * round_s
        report("a", done, rounds)
    assert times[0] == 0.0
    assert all(later - sooner >= 5.0 for sooner, later in pairwise(times))
    assert min(10, clock.now // 6) <= len(times) <= 11 + clock.now / 60
