"""Result folders are worked on by one process at a time, and signals leave nothing half-written."""

from __future__ import annotations

import os
import re
import signal
import threading
from pathlib import Path

import pytest

from gossamer.command.signals import Stopped, ending_first, exit_code_of, stopped_by_signals
from gossamer.sim.results.held import held
from gossamer.sim.results.results import ResultsError, remove_folder, whole_folder
from support.other_processes import another_at_work


def test_a_folder_that_another_process_works_on_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "w"
    with another_at_work(out) as process:
        sentence = f"^{out} is being worked on by process {process.pid}, expected to be alone"
        for _ in range(2):
            with pytest.raises(ResultsError, match=sentence), held(out):
                pass
        assert len(list(tmp_path.iterdir())) == 2  # its lock and what it writes
        with held(tmp_path / "x"):
            pass


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path) -> None:
    out = tmp_path / "w"
    with another_at_work(out) as process:
        process.kill()
        process.wait()
    mine = {".w.backup.tmp", ".w.0123456789ab.old", ".v.0123456789ab.tmp"}
    for name in mine:
        (tmp_path / name).mkdir()
    left = {path.name for path in tmp_path.iterdir()} - mine
    assert ".w.lock" in left
    assert re.fullmatch(r"\.w\.[0-9a-f]{12}\.tmp", min(left - {".w.lock"}))
    with held(out), whole_folder(out, replace=False) as folder:
        (folder / "whole").write_text("written")
    assert {path.name for path in tmp_path.iterdir()} == {"w", *mine}


def test_a_folder_is_not_held_twice_by_one_process(tmp_path: Path) -> None:
    out = tmp_path / "w"
    with held(out):
        with pytest.raises(ResultsError, match=f"worked on by process {os.getpid()}"), held(out):
            pass
        with pytest.raises(ResultsError, match="worked on by process"), held(out):
            pass
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_already_is_refused_before_and_after_waiting(tmp_path: Path) -> None:
    out = tmp_path / "w"
    out.mkdir()
    (out / "kept").write_text("mine")
    with pytest.raises(ResultsError, match="already holds results"), held(out):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["w"]


def test_a_folder_that_is_still_written_to_is_removed_all_the_same(tmp_path: Path) -> None:
    over = threading.Event()
    folder = tmp_path / ".w.0123456789ab.tmp"
    folder.mkdir()
    writing = threading.Event()

    def write() -> None:
        number = 0
        while not over.is_set():
            try:
                (folder / f"{number}").write_text("x")
            except FileNotFoundError:
                return
            number += 1
            writing.set()

    writer = threading.Thread(target=write)
    writer.start()
    assert writing.wait(60)
    remove_folder(folder)
    over.set()
    writer.join()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_signals_that_end_unwind_once(number: signal.Signals, code: int) -> None:
    before = signal.getsignal(number)
    cleared = []

    def work() -> None:
        try:
            signal.raise_signal(number)
        finally:
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGHUP)
            cleared.append(True)

    with pytest.raises(Stopped) as stopped, stopped_by_signals():
        work()
    assert cleared == [True]
    assert exit_code_of(stopped.value) == code
    assert signal.getsignal(number) is before


def test_what_fails_after_a_signal_is_the_signals_doing() -> None:
    def work(*, asked: bool) -> None:
        with ending_first():
            try:
                if asked:
                    signal.raise_signal(signal.SIGTERM)
            finally:
                raise OSError("the other end is gone")

    with pytest.raises(Stopped, match="SIGTERM"), stopped_by_signals():
        work(asked=True)
    with pytest.raises(OSError, match="gone"), stopped_by_signals():
        work(asked=False)


def test_what_fails_in_clearing_up_after_an_interrupt_does_not_hide_it() -> None:
    interrupt = KeyboardInterrupt()

    def work(hidden: BaseException) -> None:
        with ending_first():
            try:
                try:
                    raise hidden
                finally:
                    raise OSError("the other end is gone")
            except OSError as error:
                raise ValueError("a worker was lost") from error

    with pytest.raises(KeyboardInterrupt) as raised:
        work(interrupt)
    assert raised.value is interrupt
    with pytest.raises(ValueError, match="lost"):
        work(RuntimeError("no interrupt"))


def test_a_signal_that_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as `nohup` has it
    try:
        with stopped_by_signals():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_ctrl_c_has_the_code_that_shells_give_it() -> None:
    assert exit_code_of(KeyboardInterrupt()) == 130


def test_signals_are_left_alone_by_other_threads() -> None:
    before = signal.getsignal(signal.SIGTERM)
    seen = []

    def look() -> None:
        with stopped_by_signals():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [before]
