"""The result folder appears whole or not at all, and is worked on by one process at a time."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer.command.signals import Stopped, ending_first, exit_code_of, stopped_by_signals
from gossamer.sim.errors import ResultsError
from gossamer.sim.results import results
from gossamer.sim.results.held import held
from gossamer.sim.results.results import remove_folder, summarise, whole_folder
from gossamer.sim.results.tables import compare, compare_folders
from gossamer.sim.study.plot import FORMATS, PlotOptions, plots_as
from support.draws import larger
from support.made_up_results import another_at_work, contents
from support.made_up_runs import made_up_run


@contextmanager
def file_size_limit(size_bytes: int) -> Iterator[None]:
    """Let the kernel refuse to make any file larger than ``size_bytes``, like a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def write(folder: Path, seed: int = 1, resumed: bool = False, **how: Any) -> dict[str, Any]:
    """Write a run without pictures; its summary."""
    return results.write_results(made_up_run(seed, **how), folder, resumed=resumed, pictures=False)


def test_what_is_written_reads_back_equal(tmp_path: Path) -> None:
    summary = write(tmp_path / "run", seed=3)
    found = results.read_results(tmp_path / "run")
    assert json.loads((tmp_path / "run" / "summary.json").read_text()) == summary == found.summary
    assert found.systems == ("kindred", "baseline")
    for name, system in made_up_run(seed=3).systems.items():
        for table_name, table in system.tables():
            read = found.table(name, table_name)
            assert list(read) == list(table)
            for column, values in table.items():
                assert read[column].dtype == values.dtype
                np.testing.assert_array_equal(read[column], values)


def test_folder_holds_everything(tmp_path: Path) -> None:
    with plots_as(PlotOptions(larger(("svg", "png"), FORMATS))):
        results.write_results(made_up_run(), tmp_path / "deep" / "run")
    assert contents(tmp_path / "deep" / "run").keys() >= {
        *("summary.json", "scenario.toml", "report.html"),
        *("kindred/deliveries.parquet", "baseline/overlay_links.parquet"),
        *("plots/overlay.svg", "plots/hit_ratio.png"),
    }
    assert os.listdir(tmp_path / "deep") == ["run"]


def test_an_empty_folder_is_used_and_a_second_run_refused_and_nothing_lost(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    write(folder)
    assert results.read_results(folder).systems
    before = contents(tmp_path)
    with pytest.raises(ResultsError, match="already holds results") as caught:
        write(folder, seed=2)
    assert (caught.value.place, contents(tmp_path)) == (folder, before)


def test_folder_taken_while_writing_is_left_alone_and_an_interrupt_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    def too_late(*_: object, **__: object) -> None:
        folder.mkdir()
        (folder / "theirs").write_text("first come")

    monkeypatch.setattr("gossamer.sim.results.results._write_pictures", interrupted)
    with pytest.raises(KeyboardInterrupt):
        results.write_results(made_up_run(), folder)
    assert os.listdir(tmp_path) == []
    monkeypatch.setattr("gossamer.sim.results.results._write_pictures", too_late)
    with pytest.raises(ResultsError, match="taken by another run"):
        results.write_results(made_up_run(), folder)
    assert contents(tmp_path) == {"run/theirs": b"first come"}


def test_a_file_in_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ResultsError, match="is a file"):
        results.check_destination(tmp_path / "file", resumed=True)
    with pytest.raises(ResultsError, match="file is a file, expected a folder"):
        results.check_destination(tmp_path / "file" / "sub" / "run")
    assert (tmp_path / "file").read_text() == "mine"


def test_resumed_run_replaces_results_and_keeps_what_it_does_not_write(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    write(folder)
    (folder / "checkpoint.npz").write_bytes(b"state")
    assert write(folder, seed=2, resumed=True) == results.read_results(folder).summary
    assert ((folder / "checkpoint.npz").read_bytes(), os.listdir(tmp_path)) == (b"state", ["run"])


@pytest.mark.parametrize("resumed", [False, True])
def test_full_disk_leaves_no_half_folder(tmp_path: Path, resumed: bool) -> None:
    folder = tmp_path / "run"
    if resumed:
        write(folder)
    before = contents(tmp_path)
    with file_size_limit(4096), pytest.raises(OSError, match="large"):
        write(folder, seed=2, resumed=resumed)
    assert (contents(tmp_path), os.listdir(tmp_path)) == (before, ["run"] if resumed else [])


def test_failing_swap_restores_old_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "run")
    before = contents(tmp_path)
    rename = Path.rename

    def fails_for_new(self: Path, target: Path) -> Path:
        if self.suffix == ".tmp":
            raise OSError("refused")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fails_for_new)
    with pytest.raises(OSError, match="refused"):
        write(tmp_path / "run", seed=2, resumed=True)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"systems": 3}'])
def test_damaged_summary_is_one_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "summary.json").write_text(text)
    with pytest.raises(ResultsError, match="is not the summary of a run"):
        results.read_results(tmp_path)


def test_missing_results_and_missing_and_damaged_tables_are_named(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="expected a folder with results"):
        results.read_results(tmp_path / "nowhere")
    write(tmp_path / "run")
    found = results.read_results(tmp_path / "run")
    with pytest.raises(ResultsError, match="expected a table"):
        found.table("kindred", "nonsense")
    (tmp_path / "run" / "kindred" / "events.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(ResultsError, match="not a readable Parquet table"):
        found.table("kindred", "events")


def test_runs_that_differ_by_their_seeds_are_of_the_same_scenario() -> None:
    first = summarise(made_up_run())
    other = first | {"scenario": first["scenario"] | {"seed": 2}, "seed": 2}
    assert compare([("a", first), ("b", other)]).same_scenario
    other["scenario"]["nodes"] = 7
    assert not compare([("a", first), ("b", other)]).same_scenario


def test_comparison_is_relative_to_the_first_run_and_copes_with_gaps(tmp_path: Path) -> None:
    systems = [write(tmp_path / f"{seed}", seed)["systems"] for seed in (1, 9)]
    old, new = (one["baseline"]["traffic_overhead"] for one in systems)
    comparison = compare_folders([tmp_path / "1", tmp_path / "9"])
    assert comparison.same_scenario
    assert comparison.seeds == (1, 9)
    rows = {(row.system, row.measure): row for row in comparison.rows}
    row = rows["baseline", "traffic_overhead"]
    assert (row.values, row.changes[0]) == ((old, new), 0)
    assert row.changes[1] == pytest.approx((new - old) / old)
    write(tmp_path / "a", names=("kindred",))
    write(tmp_path / "b", nodes=30)
    comparison = compare_folders([tmp_path / "a", tmp_path / "b"])
    assert not comparison.same_scenario
    baseline = [row for row in comparison.rows if row.system == "baseline"]
    assert baseline
    assert all(row.values[0] is None and row.changes == (None, None) for row in baseline)


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


def test_a_folder_is_not_held_twice_by_one_process_or_where_results_are(tmp_path: Path) -> None:
    out = tmp_path / "w"
    with held(out):
        sentence = f"worked on by process {os.getpid()}"
        for _ in range(2):
            with pytest.raises(ResultsError, match=sentence), held(out):
                pass
    assert list(tmp_path.iterdir()) == []
    out.mkdir()
    (out / "kept").write_text("mine")
    with pytest.raises(ResultsError, match="already holds results"), held(out):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["w"]


def test_a_folder_that_is_still_written_to_is_removed_all_the_same(tmp_path: Path) -> None:
    over, writing = threading.Event(), threading.Event()
    folder = tmp_path / ".w.0123456789ab.tmp"
    folder.mkdir()

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
    assert (cleared, exit_code_of(stopped.value)) == ([True], code)
    assert exit_code_of(KeyboardInterrupt()) == 130
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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_that_comes_where_exceptions_are_dropped_is_raised_after_it(number: int) -> None:
    class Collected:
        def __del__(self) -> None:
            signal.raise_signal(number)

    def work() -> None:
        Collected()
        threading.Event().wait(60)

    before, hook = signal.getsignal(number), sys.unraisablehook
    with pytest.raises(KeyboardInterrupt) as stopped, stopped_by_signals():
        work()
    assert exit_code_of(stopped.value) == 128 + number
    assert signal.getsignal(number) is before
    assert sys.unraisablehook is hook


def test_signals_that_are_ignored_or_of_other_threads_are_left_alone() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as `nohup` has it
    try:
        with stopped_by_signals():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
    seen = []

    def look() -> None:
        with stopped_by_signals():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGTERM)]
