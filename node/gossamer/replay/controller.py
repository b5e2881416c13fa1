"""Plays a plan on a crew, in step with the trace."""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import attrs
import trio

from gossamer.client.errors import unwrapped
from gossamer.node.security.joining import commands as security
from gossamer.replay.lines import Setup
from gossamer.replay.plan import PUBLISH, START, Plan, Step
from gossamer.replay.processes import ReplayProcesses
from gossamer.replay.recorder import Recorder
from gossamer.sim.commands.progress import Callback

# Addresses that a peer is given to join by; one of them may just be stopping.
BOOTSTRAP_PEERS = 3
# Longer than any peer takes to start, or to tell what it looks like.
PATIENCE_S = 60.0
LOOK_S = 5.0
# After the last round, what is still under way may arrive: this many rounds.
GRACE_ROUNDS = 1

Progress = Callable[[int, int], None]


@attrs.frozen
class Played:
    """What came of it.

    Attributes:
        notebook: what was seen.
        cycles: rounds played to their end.
        interrupted: whether somebody stopped it before all were.
        deaths: processes that died and were replaced.
    """

    recorder: Recorder
    cycles: int
    interrupted: bool
    deaths: int


@contextmanager
def interrupts_noted() -> Iterator[Sequence[int]]:
    """Write Ctrl-C down instead of raising it, which gets lost in a finaliser or a callback."""
    noted: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: noted.append(number))
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, before)


class Controller:
    """One replay.

    Args:
        plan: what is to happen.
        crew: on whom.
        speed: seconds of the trace that pass in a second.
        progress: told the rounds done and the rounds in all.
        noted: signals that came before this could watch for them, of `interrupts_noted`.
    """

    def __init__(
        self,
        plan: Plan,
        workers: ReplayProcesses,
        speed: float,
        progress: Progress,
        noted: Sequence[int] = (),
    ) -> None:
        self._plan = plan
        self._noted = noted
        self._workers = workers
        self._speed = speed
        self._progress = progress
        self._draws = random.Random(plan.scenario.seed)
        self._began: float | None = None
        self._scope = trio.CancelScope()
        self._interrupts = 0
        self._wanted: set[int] = set()
        self._news = trio.Event()
        self._recorder = Recorder(self._time_s, plan.scenario.round_s)
        self._recorder.on_change = self._tell_news
        workers.on_report = self._recorder.take
        workers.on_loss = self._replace

    async def play(self) -> Played:
        """Play all of it, or as much as there is time for until Ctrl-C.

        Raises:
            CommandError: a process of peers does not keep running.
            KeyboardInterrupt: a second Ctrl-C; all peers are stopped.
        """
        cycles = 0
        async with trio.open_nursery() as nursery:
            await nursery.start(self._workers.run)
            async with trio.open_nursery() as watching:
                await watching.start(self._watch_signals, nursery.cancel_scope)
                with self._scope:
                    await self._gather()
                    await self._play_steps()
                cycles = self._cycle()
                await self._look(self._plan.rounds)
                self._workers.dismiss()
                await self._workers.ended.wait()
                watching.cancel_scope.cancel()
        if self._interrupts > 1:
            raise KeyboardInterrupt
        return Played(self._recorder, cycles, self._interrupts > 0, self._workers.deaths)

    async def _watch_signals(
        self, everything: trio.CancelScope, task_status: trio.TaskStatus[None]
    ) -> None:
        """The first Ctrl-C ends the replay, a second one everything."""

        def interrupt() -> None:
            self._interrupts += 1
            (everything if self._interrupts > 1 else self._scope).cancel()

        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            for _ in self._noted:
                interrupt()
            task_status.started()
            async for _ in signals:
                interrupt()

    # Time

    def _time_s(self, at: float) -> float:
        return 0.0 if self._began is None else max(0.0, (at - self._began) * self._speed)

    def _cycle(self) -> int:
        """Rounds that are over."""
        passed = int(self._time_s(time.monotonic()) // self._plan.scenario.round_s)
        return min(passed, self._plan.rounds)

    async def _until(self, time_s: float) -> None:
        assert self._began is not None
        await trio.sleep(max(0.0, self._began + time_s / self._speed - time.monotonic()))

    # What is to be done

    async def _gather(self) -> None:
        """Start those who are there at the beginning; each wave joins through the ones before."""
        first = list(self._plan.first)
        size = 1
        while first:
            wave, first = first[:size], first[size:]
            for node in wave:
                self._start(node)
            with trio.move_on_after(PATIENCE_S):
                while not all(map(self._recorder.has_answered, wave)):
                    await self._next_news()
            size *= 2
        self._began = time.monotonic()

    async def _play_steps(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._look_now_and_then)
            nursery.start_soon(self._show_progress)
            for step in self._plan.steps:
                await self._until(step.time_s)
                self._do(step)
            rounds = self._plan.rounds + GRACE_ROUNDS
            await self._until(rounds * self._plan.scenario.round_s)
            nursery.cancel_scope.cancel()

    def _do(self, step: Step) -> None:
        if step.do == START:
            self._start(step.node)
        elif step.do == PUBLISH:
            values = self._plan.event(step.event)
            self._workers.tell(step.node, do="publish", event=step.event, values=values)
        else:
            self._wanted.discard(step.node)
            self._workers.tell(step.node, do="stop")

    def _start(self, node: int) -> None:
        self._wanted.add(node)
        known = [address for other, address in self._recorder.addresses.items() if other != node]
        bootstrap = self._draws.sample(known, min(BOOTSTRAP_PEERS, len(known)))
        self._workers.tell(node, do="start", bootstrap=bootstrap)

    def _replace(self, worker: int) -> None:
        """Start the peers of a process that died again, in the one that took its place."""
        now = time.monotonic()
        lost = [one for one in range(self._plan.nodes) if self._workers.worker_of(one) == worker]
        for node in lost:
            self._recorder.lose(node, now)
        for node in lost:
            if node in self._wanted:
                self._start(node)

    # What is to be seen

    async def _look_now_and_then(self) -> None:
        scenario = self._plan.scenario
        for cycle in range(0, self._plan.rounds, scenario.measure_every):
            await self._until((cycle + 1) * scenario.round_s)
            self._workers.tell_all(do="look", number=cycle)

    async def _look(self, number: int) -> None:
        expected = set(self._recorder.addresses)
        self._workers.tell_all(do="look", number=number)
        with trio.move_on_after(LOOK_S):
            while not expected <= set(self._recorder.looks[number]):
                await self._next_news()

    async def _show_progress(self) -> None:
        for cycle in range(self._plan.rounds):
            self._progress(cycle, self._plan.rounds)
            await self._until((cycle + 1) * self._plan.scenario.round_s)
        self._progress(self._plan.rounds, self._plan.rounds)

    def _tell_news(self) -> None:
        self._news.set()
        self._news = trio.Event()

    async def _next_news(self) -> None:
        """Wait until a report has come in; a moment where none does."""
        news = self._news
        with trio.move_on_after(0.05):
            await news.wait()


# Plays a plan on real peers of this machine, at a speed at which it keeps up.

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
