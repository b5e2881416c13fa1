"""Churn replayed on real peers: processes, TLS and sockets as people run them."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil
import pytest

from gossamer.replay.command import SIMULATED
from gossamer.replay.controller import REAL, Played, play
from gossamer.replay.plan import Plan
from gossamer.sim.results.results import read_results
from gossamer.sim.studies.peers.inputs.publications import matching
from support.checkout import ROOT
from support.installed_command import install, refused
from support.node_processes import PATIENCE_S, Shell, end, wait_for_line
from support.replays import short_plan

TRACE = ROOT / "traces" / "flash_crowd.avt.gz"
SPEED = 300.0
# The simulation compiles where nothing has before, which takes minutes on a busy machine.
COMPILING_S = 600
# Six peers for forty rounds of a fifth of a second.
SMALL = ("--peers", "6", "--speed", "300", "--round-s", "60", "--events-per-hour", "120")
CUT = ("--set", "churn.end_s=2400", "--set", "events.warm_up_rounds=25")


def workers(of: int) -> list[psutil.Process]:
    found = []
    for child in psutil.Process(of).children(recursive=True):
        # Others end meanwhile, or wait for their parent to look.
        with suppress(psutil.NoSuchProcess):
            if "gossamer.replay.worker" in child.cmdline():
                found.append(child)
    return found


def wait_for_end(processes: list[psutil.Process]) -> None:
    _, left = psutil.wait_procs(processes, timeout=PATIENCE_S)
    assert not left


@pytest.mark.campaign
def test_peers_and_simulation_are_measured_side_by_side(shell: Shell) -> None:
    command = ("node", "replay", str(TRACE), *SMALL, *CUT, "--out", "results", "--no-plots")
    done = shell.run(*command, patience_s=COMPILING_S)
    assert done.returncode == 0, done.stderr
    for word in (SIMULATED, REAL, "hit ratio", "traffic overhead", "path length", "Latency"):
        assert word in done.stdout
    results = read_results(shell.folder / "results")
    assert results.systems == (SIMULATED, REAL)
    ideal, real = (results.summary["systems"][name] for name in results.systems)
    assert real["events"] == ideal["events"] > 25
    assert real["duplicates"] == 0
    assert real["totals"]["unpublished_events"] == real["totals"]["failed_starts"] == 0
    assert real["delivered"] > 0.5 * ideal["expected"]
    for name in ("events", "deliveries", "nodes", "cycles", "overlay_nodes", "overlay_links"):
        assert results.table(REAL, name).keys() == results.table(SIMULATED, name).keys()
    assert not (shell.folder / "results.unfinished").exists()


def play_and(plan: Plan, at_round: int, do: Callable[[], None]) -> Played:
    def progress(_: str, done: int, _total: int) -> None:
        if done == at_round:
            do()

    return play(plan, SPEED, 2, progress)


@pytest.mark.parametrize("rounds", [13, pytest.param(20, marks=pytest.mark.campaign)])
def test_only_what_was_asked_for_is_delivered_and_once(tmp_path: Path, rounds: int) -> None:
    plan = short_plan(tmp_path, rounds)
    seen = play_and(plan, -1, lambda: None).recorder
    wanted = {
        event: set(np.flatnonzero(matching(plan.state, plan.values[made.number])).tolist())
        for event, made in seen.publications.items()
    }
    assert seen.arrivals
    assert all(node in wanted[event] for event, node in seen.arrivals)
    assert seen.duplicates.total() == 0
    assert [len(seen.sessions[node]) for node in range(6)] == [1, 1, 1, 1, 1, 2]
    if rounds == 20:  # a busy machine may start peers too late for the first events
        assert len(seen.publications) == len([step for step in plan.steps if step.event >= 0])
        assert {node for _, node in seen.arrivals} == set(range(6))


@pytest.mark.campaign
def test_ctrl_c_stops_all_peers_and_keeps_what_was_seen(tmp_path: Path) -> None:
    played = play_and(short_plan(tmp_path), 8, lambda: signal.raise_signal(signal.SIGINT))
    assert played.interrupted
    assert 8 <= played.cycles < 20
    assert played.recorder.arrivals
    assert not played.recorder.addresses, "peers that did not say that they stopped"
    assert not workers(os.getpid())


@pytest.mark.campaign
def test_a_process_of_peers_that_dies_is_replaced(tmp_path: Path) -> None:
    killed: list[int] = []

    def kill_one() -> None:
        victim = workers(os.getpid())[0]
        killed.append(victim.pid)
        victim.kill()

    played = play_and(short_plan(tmp_path), 3, kill_one)
    assert killed
    assert played.deaths == 1
    assert not played.interrupted
    sessions = played.recorder.sessions
    again = {node for node in (0, 1, 2, 3) if len(sessions[node]) == 2}
    assert again in ({0, 2}, {1, 3}), "its peers, and no others, began anew"


@pytest.mark.campaign
def test_peers_end_when_whoever_runs_them_is_killed(shell: Shell) -> None:
    process = shell.start("node", "replay", str(TRACE), *SMALL, "--no-plots", "--out", "results")
    try:
        wait_for_line(process, "real peers start")
        running: list[psutil.Process] = []
        while len(running) < 2:
            assert process.poll() is None
            running = workers(process.pid)
    finally:
        process.kill()
        end(process)
    wait_for_end(running)
    assert not (shell.folder / "results").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("no.avt",), "no.avt"),
        ((str(TRACE), "--peers", "1"), "--peers is 1, expected 2 to 64"),
        ((str(TRACE), "--speed", "0"), "--speed is 0.0, expected a number above 0"),
        ((str(TRACE), "--speed", "nan"), "--speed is 'nan', expected a number"),
        (
            (str(TRACE), "--speed", "3000", "--round-s", "60"),
            "expected at most 1200, as rounds of 60 s would be shorter than 0.05 s",
        ),
        ((str(TRACE), "--preset", "best"), "preset"),
        ((str(TRACE), "--set", "churn.end_s=-1"), "churn.end_s"),
        (("six.avt", "--peers", "7"), "at most 6, the nodes of the trace"),
    ],
)
def test_bad_input_is_answered_in_one_sentence(
    arguments: tuple[str, ...],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    install(tmp_path / "installed", monkeypatch)
    monkeypatch.chdir(tmp_path)
    short_plan(tmp_path)
    Path("short.avt").rename("six.avt")
    assert sentence in refused(capsys, "node", "replay", *arguments)
    assert not Path("results").exists()
