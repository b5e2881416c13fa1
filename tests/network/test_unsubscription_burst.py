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

from bench.bench_unsubscriptions import main, rows
from support.broker_processes import Overlay
from support.burst_clients import CONNECTIONS
from support.burst_runs import SMALL, Plan, measure
from support.checkout import ROOT
from support.node_processes import PATIENCE_S
from support.overlapping_interests import Interests

# More than there are before the last of those connects who take deliveries.
CLIENTS = len(SMALL.overlay.subscribers) * CONNECTIONS
BROKERS = len(SMALL.overlay.brokers)
BENCH = [sys.executable, str(ROOT / "tests/bench/bench_unsubscriptions.py")]


TINY = evolve(
    SMALL,
    overlay=Overlay(core=2, subscriber_hosts=1, publisher_hosts=1),
    interests=Interests(roots=8, degree=4, overlap=2),
    taken_back=4,
    history=40,
    before_s=0.3,
    after_s=0.3,
)


@pytest.mark.parametrize(
    ("plan", "covering", "first"),
    [
        (TINY, "active", False),
        *(
            pytest.param(SMALL, covering, first, marks=pytest.mark.campaign)
            for covering, first in (("active", False), ("incremental", False), ("active", True))
        ),
    ],
    ids=lambda one: f"{len(one.overlay.brokers)} brokers" if isinstance(one, Plan) else str(one),
)
def test_every_due_delivery_is_made_once_during_a_burst(
    plan: Plan, covering: str, first: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if plan is TINY:
        monkeypatch.setattr("support.burst_clients.LOOK_S", 0.05)
    plan = evolve(plan, publications_first=first)
    outcome = measure(plan, covering, 1, tmp_path, forks=True)
    assert outcome.wrong == {}
    assert outcome.due > plan.history
    assert outcome.over_s is not None
    assert 0 < outcome.asked_s <= outcome.over_s
    told = dict(rows([outcome]))
    assert told["during: longest, ms"] == [outcome.longest_ms]
    assert outcome.longest_ms >= outcome.delays["during"]["median"] > 0
    assert outcome.examined > 0


def test_what_cannot_be_run_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refusal(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["bench", *arguments])
        with pytest.raises(SystemExit, match="2"):
            main()
        return capsys.readouterr().err

    for arguments, words in (
        ("--small --taken-back 26", "expected at most the 25 that are broad"),
        ("--runs 0", "--runs is 0, expected at least 1"),
        ("--rate 0", "--rate is 0, expected more than 0 and at most 1000"),
        ("--continue", "--continue needs --out"),
    ):
        assert words in refusal(*arguments.split())
    # Files of other runs are not continued.
    out = tmp_path / "runs.json"
    for text in ("{}", json.dumps({"plan": {}, "runs": []})):
        out.write_text(text)
        assert f"--out {out} has " in refusal("--small", "--continue", "--out", str(out))
        assert out.read_text() == text


@pytest.mark.campaign
@pytest.mark.parametrize("whole_group", [False, True])
def test_a_bench_that_is_stopped_leaves_no_broker(whole_group: bool, tmp_path: Path) -> None:
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
    parent = psutil.Process(bench.pid)
    while _runs_on(bench):
        found = [one for one in parent.children() if _is_broker(one)]
        if len(found) == BROKERS and len(parent.net_connections("unix")) > CLIENTS:
            return found
    raise AssertionError("it ended without brokers")


def _is_broker(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):  # a command that has ended, or is about to
        return "run" in process.cmdline()
    return False


def _runs_on(bench: subprocess.Popen[str]) -> bool:
    """Whether it runs, after leaving it and its brokers the processor for a moment."""
    with suppress(subprocess.TimeoutExpired):
        bench.wait(0.1)
    return bench.returncode is None
