"""A burst of unsubscriptions over broker processes: every due delivery is made once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from attrs import evolve

from bench.bench_unsubscriptions import rows
from support.burst_clients import CONNECTIONS
from support.burst_runs import SMALL, measure
from support.checkout import ROOT
from support.node_processes import PATIENCE_S

pytestmark = pytest.mark.slow

# More than there are before the last of those connects who take deliveries.
CLIENTS = len(SMALL.overlay.subscribers) * CONNECTIONS
BROKERS = len(SMALL.overlay.brokers)
BENCH = [sys.executable, str(ROOT / "tests/bench/bench_unsubscriptions.py")]


@pytest.mark.parametrize(
    ("covering", "first"), [("active", False), ("incremental", False), ("active", True)]
)
def test_every_due_delivery_is_made_once_during_a_burst(
    covering: str, first: bool, tmp_path: Path
) -> None:
    outcome = measure(evolve(SMALL, publications_first=first), covering, 1, tmp_path)
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


@pytest.mark.parametrize("whole_group", [False, True])
def test_a_bench_that_is_stopped_says_so_and_leaves_no_broker(
    whole_group: bool, tmp_path: Path
) -> None:
    bench = subprocess.Popen(
        [*BENCH, "--small"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        brokers = _wait_for_brokers_with_clients(bench)
        bench.send_signal(signal.SIGTERM)
        if whole_group:  # as `timeout` does: brokers leave their clients, and the bench hears twice
            os.killpg(bench.pid, signal.SIGTERM)
        _, said = bench.communicate(timeout=PATIENCE_S)
    finally:
        bench.kill()
        bench.wait()
    assert said == "stopped before it was done\n"
    assert bench.returncode == 1
    assert not any(one.is_running() for one in brokers)


def _wait_for_brokers_with_clients(bench: subprocess.Popen[str]) -> list[psutil.Process]:
    """The brokers, once the bench has a connection to each."""
    parent = psutil.Process(bench.pid)
    while _runs_on(bench):
        found = [one for one in parent.children() if "run" in one.cmdline()]
        if len(found) == BROKERS and len(parent.net_connections("unix")) > CLIENTS:
            return found
    raise AssertionError("it ended without brokers")


def _runs_on(bench: subprocess.Popen[str]) -> bool:
    """Whether it runs, after leaving it and its brokers the processor for a moment."""
    with suppress(subprocess.TimeoutExpired):
        bench.wait(0.1)
    return bench.returncode is None
