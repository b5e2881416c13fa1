"""A burst of unsubscriptions over broker processes: every due delivery is made once."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from bench.bench_unsubscriptions import rows
from support.burst_runs import SMALL, measure
from support.checkout import ROOT
from support.node_processes import PATIENCE_S

pytestmark = pytest.mark.slow

BENCH = [sys.executable, str(ROOT / "tests/bench/bench_unsubscriptions.py")]


@pytest.mark.parametrize("covering", ["active", "incremental"])
def test_every_due_delivery_is_made_once_during_a_burst(covering: str, tmp_path: Path) -> None:
    outcome = measure(SMALL, covering, 1, tmp_path)
    assert outcome.wrong == {}
    assert outcome.due > SMALL.history
    assert outcome.over_s is not None
    assert 0 < outcome.asked_s <= outcome.over_s
    told = dict(rows([outcome]))
    assert told["during: longest, ms"] == [outcome.longest_ms]
    assert outcome.longest_ms >= outcome.delays["during"]["median"] > 0
    assert outcome.examined > 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--small", "--taken-back", "26"), "expected at most the 25 that are broad"),
        (("--runs", "0"), "--runs is 0, expected at least 1"),
        (("--rate", "0"), "--rate is 0, expected more than 0 and at most 1000"),
        (("--continue",), "--continue needs --out"),
    ],
)
def test_what_cannot_be_run_is_said(arguments: tuple[str, ...], words: str) -> None:
    done = subprocess.run([*BENCH, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_of_other_runs_is_not_continued(tmp_path: Path) -> None:
    out = tmp_path / "runs.json"
    for text in ("{}", json.dumps({"plan": {}, "runs": []})):
        out.write_text(text)
        command = [*BENCH, "--small", "--continue", "--out", str(out)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert f"--out {out} has " in done.stderr
        assert out.read_text() == text


def test_no_broker_survives_a_bench_that_is_stopped(tmp_path: Path) -> None:
    bench = subprocess.Popen(
        [*BENCH, "--small"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        brokers = _wait_for_children(bench.pid)
        bench.send_signal(signal.SIGTERM)
        bench.communicate(timeout=PATIENCE_S)
    finally:
        bench.kill()
    assert bench.returncode == 1
    assert not any(one.is_running() for one in brokers)


def _wait_for_children(pid: int) -> list[psutil.Process]:
    parent = psutil.Process(pid)
    while parent.is_running():
        found = [one for one in parent.children() if "run" in one.cmdline()]
        if len(found) == len(SMALL.overlay.brokers):
            return found
    raise AssertionError("it ended without brokers")
