"""Plays a plan on real peers of this machine, at a speed at which it keeps up."""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Final

import attrs
import trio

from gossamer.node.errors.exception_groups import unwrapped
from gossamer.node.security.joining import commands as security
from gossamer.replay.controller import Controller, Played, interrupts_noted
from gossamer.replay.lines import Setup
from gossamer.replay.plan import Plan
from gossamer.replay.processes import ReplayProcesses
from gossamer.sim.commands.progress import Callback

REAL: Final = "peers"
REHEARSAL: Final = "rehearsal"
# Rounds of a rehearsal. In the first half of them peers still join.
REHEARSED: Final = 24
# Where more of the rounds than this begin late, the peers are not what the trace asks for.
TOO_LATE: Final = 0.05
# How often a speed that is too high is halved.
HALVINGS: Final = 5


def choose_speed(plan: Plan, fastest: float, processes: int, bars: Callback) -> float | None:
    """The highest speed of ``fastest``, its half and so on at which this machine keeps up.

    Returns:
        It, or the lowest that was tried; None if somebody interrupted a rehearsal.
    """
    speed = fastest
    for _ in range(HALVINGS):
        late = rehearse(plan, speed, processes, bars)
        if late is None:
            return None
        if late <= TOO_LATE:
            break
        print(f"gossamer: speed {speed:g}: {_how_late(late)}", file=sys.stderr)
        speed /= 2
    print(f"gossamer: speed {speed:g}", file=sys.stderr)
    return speed


def warn_of_speed(plan: Plan, speed: float, processes: int, bars: Callback) -> bool:
    """Tell people before it begins if this machine will not keep up; False if interrupted."""
    late = rehearse(plan, speed, processes, bars)
    if late is not None and late > TOO_LATE:
        advice = "without --speed the highest is found at which it is not"
        told = f"this machine is too slow for so many peers at speed {speed:g}: {_how_late(late)}"
        print(f"gossamer: {told}; {advice}", file=sys.stderr)
    return late is not None


def _how_late(late: float) -> str:
    return f"{late:.0%} of the rounds of a rehearsal began late"


def rehearse(plan: Plan, speed: float, processes: int, bars: Callback) -> float | None:
    """Play the first rounds of a plan; the share of them that began late, None if interrupted.

    Of a plan that takes no longer than its rehearsal there is none, and nothing is said to be late.
    """
    if plan.rounds <= REHEARSED:
        return 0.0
    end_s = REHEARSED * plan.scenario.round_s
    steps = tuple(step for step in plan.steps if step.time_s < end_s)
    played = play(
        attrs.evolve(plan, rounds=REHEARSED, steps=steps), speed, processes, bars, REHEARSAL
    )
    if played.interrupted:
        return None
    later = (played.recorder.tallies[cycle] for cycle in range(REHEARSED // 2, REHEARSED))
    counts = sum(later, start=Counter[str]())
    return counts["rounds_late"] / max(counts["rounds"], 1)


def play(plan: Plan, speed: float, processes: int, bars: Callback, shown: str = REAL) -> Played:
    """Run the peers in folders that are gone afterwards.

    Args:
        plan: what is to happen.
        speed: seconds of the trace that pass in a second.
        processes: that hold the peers.
        bars: told of every round.
        shown: what the progress bar calls it.
    """

    def progress(done: int, total: int) -> None:
        bars(shown, done, total)

    with (
        interrupts_noted() as noted,
        tempfile.TemporaryDirectory(prefix="gossamer-replay-") as name,
        unwrapped(),
    ):
        folder = Path(name)
        _make_cluster(folder, plan.nodes)
        workers = ReplayProcesses(setup_of(plan, folder, speed), processes)
        return trio.run(Controller(plan, workers, speed, progress, noted).play)


def processes_for(peers: int, asked: int | None) -> int:
    """How many processes hold so many peers: as many as processors, if nobody asked for others."""
    return min(peers, asked or max(2, os.cpu_count() or 1))


def _make_cluster(folder: Path, peers: int) -> None:
    """A membership for every peer, in a folder named by its number."""
    security.init_cluster(folder / "0", "replay", "0")
    security.admit_here(folder / "0", [(folder / str(peer), str(peer)) for peer in range(1, peers)])


def setup_of(plan: Plan, folder: Path, speed: float) -> Setup:
    """What the workers have to know: real peers get the settings of the simulated ones."""
    return Setup(
        folder=str(folder),
        settings=attrs.asdict(plan.settings),
        round_s=plan.scenario.round_s / speed,
        attributes=plan.attributes,
        subscriptions={str(node): plan.expressions(node) for node in range(plan.nodes)},
    )
