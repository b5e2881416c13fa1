"""A run of a stack: peers are started and connected, subscribe, and take two streams of events."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from attrs import define, field

from bench.stacks.catalogue import Stack
from bench.stacks.peer_processes import PATIENCE_S, Programs, programs_of
from bench.stacks.results import Phase, Run, phase_of
from bench.stacks.workload import Workload

JOINING_S = 240.0  # for all peers to connect to all others
SETTLING_S = 90.0  # until subscriptions are known everywhere
ROUND_S = 3.0  # without any delivery while they may not be
ARRIVAL_S = 10.0  # without any delivery, after which no more are waited for
STREAM_S = 300.0  # beyond its length, after which a stream is at its end whatever comes
QUIET_S = 1.0  # after the last delivery, in which nothing more should come
LEAD_S = 0.5  # from saying when a steady stream begins to its beginning
POLL_S = 0.2
EXACT_ROUNDS = 2  # in a row, after which subscriptions are taken to be known


@define(eq=False)
class PeersAtWork:
    """The peers of a stack, which have subscribed."""

    workload: Workload
    programs: Programs
    _numbers: Iterator[int] = field(factory=itertools.count)

    def settle(self) -> float | None:
        """Publish until all goes where it should; return how long that took, None if it never did.

        Every peer publishes an event in each round, and every topic has some.
        """
        count = max(self.workload.peers, self.workload.topics)
        begin, exact = time.monotonic(), 0
        while time.monotonic() - begin < SETTLING_S:
            phase = self._stream([0.0] * count, ROUND_S, 0.0)
            exact = 0 if phase.lost else exact + 1
            if exact == EXACT_ROUNDS:
                return time.monotonic() - begin
        return None

    def steady(self) -> Phase:
        workload = self.workload
        begin = time.time() + LEAD_S
        due_at = [begin + i / workload.rate for i in range(workload.events)]
        return self._stream(due_at, ARRIVAL_S, QUIET_S)

    def burst(self) -> Phase:
        return self._stream([0.0] * self.workload.events, ARRIVAL_S, QUIET_S)

    def resting_cpu(self) -> float:
        before, begin = self.programs.cpu_s(), time.monotonic()
        time.sleep(self.workload.rest)
        return (self.programs.cpu_s() - before) / (time.monotonic() - begin)

    def _stream(self, due_at: Sequence[float], patience_s: float, quiet_s: float) -> Phase:
        """Publish an event at each of these times, and see where they come."""
        workload = self.workload
        numbers = [next(self._numbers) for _ in due_at]
        publications = [
            (number, number % workload.peers, workload.topic_of(number), at)
            for number, at in zip(numbers, due_at, strict=True)
        ]
        due = {
            (peer, number)
            for number, _, topic, _ in publications
            for peer in workload.subscribers[topic]
        }
        asked = [
            {
                "publications": [one for one in publications if one[1] in share],
                "first": numbers[0],
                "size": workload.bytes_each,
                "window": workload.window,
            }
            for share in map(set, workload.shares())
        ]
        before = self.programs.cpu_s()
        self.programs.call_each("publish", asked, PATIENCE_S)
        if due_at[0]:
            time.sleep(max(0.0, due_at[0] - time.time()))
            before = self.programs.cpu_s()
        used = self._wait(len(publications), len(due), patience_s, max(due_at))
        time.sleep(quiet_s)
        parts = self.programs.call("take", PATIENCE_S)
        taken = (tuple(one) for part in parts for one in part["receipts"])
        receipts = [one for one in taken if one[1] >= numbers[0]]  # not of an earlier stream
        refused = sum((Counter(part["refused"]) for part in parts), Counter[str]())
        return phase_of(due, receipts, dict(refused), used - before)

    def _wait(self, published: int, due: int, patience_s: float, last_at: float) -> float:
        """Wait until all came, or nothing more does; return the processor seconds until then."""
        seen: tuple[int, ...] = ()
        used = 0.0
        changed = time.monotonic()
        end = changed + STREAM_S + max(0.0, last_at - time.time())
        while time.monotonic() < end and time.monotonic() - changed < patience_s:
            told = self.programs.call("progress", PATIENCE_S)
            found = tuple(map(sum, zip(*told, strict=True)))
            if found != seen:
                seen, changed, used = found, time.monotonic(), self.programs.cpu_s()
            if found[0] >= published and found[1] >= due:
                break
            time.sleep(POLL_S)
        return used


def measure(stack: Stack, workload: Workload, folder: Path) -> Run:
    """A run of a stack, in a folder of its own; raises `ProcessFailed` if it cannot be done."""
    processes, shares = workload.processes, workload.shares()
    with (
        stack.settings(workload, folder) as (settings, servers),
        programs_of(stack.python, stack.module, stack.paths, processes, folder) as programs,
    ):
        peers = PeersAtWork(workload, Programs(programs, servers))
        begin = time.monotonic()
        asked = [{"peers": share, "settings": settings} for share in shares]
        opened = peers.programs.call_each("open", asked, PATIENCE_S)
        addresses = [address for part in opened for address in part]
        peers.programs.call("join", JOINING_S, addresses=addresses)
        joined_s = time.monotonic() - begin
        topics = [{"topics": [(peer, workload.wanted(peer)) for peer in one]} for one in shares]
        peers.programs.call_each("subscribe", topics, PATIENCE_S)
        settled_s = peers.settle()
        resting_cpu = peers.resting_cpu()
        resident, proportional = peers.programs.memory()
        return Run(
            joined_s=joined_s,
            settled_s=settled_s,
            resting_cpu=resting_cpu,
            resident_mb=resident / 1e6,
            proportional_mb=proportional / 1e6,
            steady=peers.steady(),
            burst=peers.burst(),
        )
