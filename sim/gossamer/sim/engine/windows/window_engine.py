"""The windows engine: the event engine's work done row by row, on any number of threads.

A rule reads and writes one row, and a message takes at least the least latency. So in a window no
longer than that no row can affect another: each row takes all that is due in the window, one row
after another, and threads share the rows. The order in which a row takes what is due at one tick
(`event_loop`) depends on no other row. What comes out is the same to the bit with any number of
threads and shards and any length of windows, and equals `EventEngine(by_sender=True)`.

This is conservative parallel simulation with the lookahead of the links (Chandy, Misra, CACM 1981),
with one barrier a window (Nicol, JACM 1993) in place of null messages.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from gossamer.protocol.kernel.errors import CapacityError
from gossamer.protocol.kernel.records import FROM, HEAD, REFUSED, TO, Words
from gossamer.protocol.kernel.rules import Rule
from gossamer.protocol.kernel.struct import Struct
from gossamer.sim.engine.cycle_engine import (
    Network,
    approach_nobody,
    checked_rules,
    observe_nothing,
)
from gossamer.sim.engine.event_engine import (
    TimedEngine,
    check_rows,
    draw_phases,
    make_transitions,
)
from gossamer.sim.engine.event_loop import Transitions
from gossamer.sim.engine.latency import Int64s, Latency, least_ticks
from gossamer.sim.engine.link_conditions import LinkConditions, check, check_command, fault_at
from gossamer.sim.engine.windows.event_calendar import NOW
from gossamer.sim.engine.windows.row_loop import make_command_turn, make_shard_turn
from gossamer.sim.engine.windows.shard_entries import (
    DONE,
    FAULT,
    NO_ROOM,
    TO_ITSELF,
    can_keep,
    key_of,
)
from gossamer.sim.engine.windows.worker_pool import (
    COUNT,
    OWN_FIRST,
    OWN_HEAD,
    OWN_TAIL,
    ROUND,
    ROUND_BEGIN,
    TELLS_TICKS,
    TICK,
    TIMER,
    Collectors,
    WorkerPool,
    make_timers,
    shift_for,
    write_timers,
)
from gossamer.sim.engine.windows.worker_threads import WorkerThreads, pinned

# A run is worth windows where the least latency is at least one part in so many of a round: each
# window has a look at every row.
_MOST_WINDOWS = 50

_NO_ROUND = -1
# Places in the clock that is not the calendar's: the round, the next transition.
_ROUND, _NEXT_TRANSITION = 0, 1


def suits_windows(latency: Latency, period: int) -> bool:
    """Whether this engine is to run such links rather than `EventEngine`.

    The answer decides in which order a row takes what is due at one tick, so it follows from the
    scenario alone, never from how many threads there are.
    """
    return _MOST_WINDOWS * least_ticks(latency) >= period


class WindowEngine(TimedEngine):
    """Runs a protocol event by event, a window at a time, row by row.

    Args:
        state: as of `EventEngine`; its shared fields are scratch space, of which each thread gets
            its own.
        step: as of `EventEngine`, as are all that follow up to ``approach``.
        timers: kinds of the timers that fire once a round.
        network: who is up, and what nodes take in a round.
        seed: fixes when timers fire.
        period: ticks of a round.
        links: what messages go through.
        transitions: when nodes go up and down.
        firing_ticks: the ticks of a given round at which timers fire.
        collector: what the observer writes to.
        reserve: words that the largest step writes.
        tells_ticks: whether rules are told ticks in place of rounds.
        debug: whether the run is checked.
        observe: as of `EventEngine`. Within a window it sees all records of a row before those of
            the next; it may write rows of the taking node, and whatever else ``collectors``
            divides among threads.
        approach: rule called with a row that will be run soon, ``approach(state, row,
            SEVERAL_KINDS)``, to bring its memory near; changes nothing.
        collectors: how the collector is divided among threads.
        window: ticks of a window at most; the least latency by default.
        shard_rows: rows that a thread takes at a time, a power of two; chosen by default.
        cores: one for each thread, None where it may run anywhere; see `use_cores`.
        store_words: room for waiting records to begin with; it grows as needed.
        store_words_limit: room for waiting records at most.

    Raises:
        ScenarioError: as `EventEngine`; or messages take no time at all; or the window or
            ``shard_rows`` is impossible.
        CapacityError, RecordError, RuleError: as `EventEngine`, from the same methods; a run that
            ended so cannot be gone on with.
    """

    def __init__(
        self,
        state: Any,
        step: Rule,
        timers: tuple[int, ...],
        network: Network,
        seed: int,
        *,
        links: LinkConditions,
        period: int = 1000,
        transitions: Transitions | None = None,
        firing_ticks: Callable[[int], Int64s] | None = None,
        observe: Rule = observe_nothing,
        collector: Any = 0,
        approach: Rule = approach_nobody,
        collectors: Collectors | None = None,
        window: int | None = None,
        shard_rows: int | None = None,
        cores: Sequence[int | None] = (None,),
        reserve: int = 1 << 16,
        tells_ticks: bool = False,
        store_words: int = 1 << 18,
        store_words_limit: int = 1 << 31,
        debug: bool | None = None,
    ) -> None:
        nodes = len(network.alive)
        least = least_ticks(links.latency)
        check(period >= max(len(timers), 1), "period", period, f"{max(len(timers), 1)} or more")
        check(len(links.sent) == nodes, "links", len(links.sent), f"those of {nodes} nodes")
        check(least >= 1, "latency", least, "at least 1 tick: windows are no longer than that")
        window = least if window is None else window
        check(1 <= window <= least, "window", window, f"1 to {least}, the least latency")
        self._transitions = transitions or make_transitions((), (), ())
        check_rows("transitions.rows", self._transitions.rows, nodes)
        self.state = state
        self.network = network
        self.links = links
        self.period = period
        self.collector = collector
        self._timers = np.array(timers, np.int64)
        self._firing_ticks = firing_ticks
        self._collectors = collectors or Collectors()
        self._clock = np.array([_NO_ROUND, 0])
        phases = draw_phases(nodes, len(timers), period, seed)
        own_timers = make_timers(nodes, len(timers))
        write_timers(
            own_timers, self._timers, phases if firing_ticks is None else phases[:0], period
        )
        own_timers.round[TELLS_TICKS] = tells_ticks
        self._pool = WorkerPool(
            network,
            links,
            own_timers,
            shift=shift_for(nodes, shard_rows),
            span=window,
            reserve=reserve,
            words=store_words,
            limit=store_words_limit,
        )
        self._checked, rules = checked_rules(
            *(debug, step, observe, approach),
            state=state,
            collector=collector,
            population=nodes,
            when=lambda: f"tick {self.tick} of cycle {self.cycle}",
            side_by_side=True,
        )
        self._shard_turn = make_shard_turn(*rules)
        self._command_turn = make_command_turn(*rules[:2])
        self.use_cores(cores)

    @property
    def tick(self) -> int:
        """The present tick; its timers have not fired yet."""
        return int(self._pool.calendar.clock[NOW])

    @property
    def pending(self) -> int:
        """Records on their way."""
        return self._pool.pending

    @property
    def threads(self) -> int:
        """How many threads work on a window."""
        return self._threads.size

    def use_cores(self, cores: Sequence[int | None]) -> None:
        """Run with one thread for each of these cores from now on; changes no result.

        Args:
            cores: of the calling thread first; None for a thread that may run anywhere. A checked
                run takes the first only.
        """
        self._threads = WorkerThreads(cores if self._checked is None else cores[:1])
        self._pool.set_workers(self._threads.size)
        self._states = [self._checked or self.state]
        self._parts = [self.collector]
        for _ in range(1, self._threads.size):
            own = self.state.with_scratch_of_its_own() if isinstance(self.state, Struct) else None
            self._states.append(self.state if own is None else own)
        if self._threads.size > 1:
            self._parts = [self._collectors.part(self.collector) for _ in self._states]

    def run_until(self, tick: int) -> None:
        """Let everything happen that happens before ``tick``.

        Raises:
            ValueError: the tick is past; nothing happened.
        """
        self._check_time(tick)
        with pinned(self._threads.cores[0]):
            while self.tick < tick:
                self._begin_round()
                end = min(tick, (self.cycle + 1) * self.period, self._pool.end_of_cell())
                end = self._apply_transitions(end)
                self._run_window(self.tick, end)
        self._gather()

    def inject(self, record: Words, at: int | None = None) -> None:
        """Hand a record (a command) to the node it names.

        Args:
            record: int64[length].
            at: its tick. By default it is taken now, ahead of all else that is due.

        Raises:
            ValueError: the tick is past or its record's length contradicts; nothing happened.
            RecordError: it names a node that there is not; nothing happened.
        """
        nodes = len(self.network.alive)
        check_command(record, nodes)
        self._check_time(self.tick if at is None else at)
        row, source = int(record[TO]), int(record[FROM])
        if at is not None:
            key = key_of.interpreted(
                self._pool.workers[0], TO_ITSELF if source == row else source, source
            )
            self._pool.post(at, int(key), record)
            return
        self._begin_round()
        self._give_command(row, record)
        self._gather()

    def snapshot(self) -> dict[str, Words]:
        """Copies of all that changes while the engine runs, but for the protocol's state.

        With the state and the arguments that this engine was built with, `restore` continues from
        here as this engine would, with other threads, shards and windows if need be.
        """
        arrays = {name: array.copy() for name, array in self._dynamic_arrays().items()}
        return arrays | {
            "calendar.tick": np.array([self.tick]),
            "calendar.words": self._pool.entries(),
        }

    def restore(self, snapshot: Mapping[str, Words]) -> None:
        """Return to a `snapshot` of an engine that was built with the same arguments.

        Raises:
            ValueError: the arrays are not those of such an engine; nothing was changed.
        """
        own = self._checked_arrays(snapshot, "calendar.tick", "calendar.words")
        self._pool.start_over(int(snapshot["calendar.tick"][0]), snapshot["calendar.words"])
        for name, array in own.items():
            array[:] = snapshot[name]
        self._set_timers()

    def _dynamic_arrays(self) -> dict[str, Any]:
        own = {"engine.clock": self._clock, "engine.posted": self._pool.posted}
        return super()._dynamic_arrays() | own

    def _begin_round(self) -> None:
        if self._clock[_ROUND] != self.cycle:
            self.network.taken[:] = 0
            self._clock[_ROUND] = self.cycle
            self._set_timers()

    def _set_timers(self) -> None:
        number = int(self._clock[_ROUND])
        if number == _NO_ROUND:
            return
        self._pool.timers.round[[ROUND, ROUND_BEGIN]] = number, number * self.period
        if self._firing_ticks is not None:
            firing_ticks = self._firing_ticks(number)
            write_timers(self._pool.timers, self._timers, firing_ticks, self.period)

    def _apply_transitions(self, end: int) -> int:
        """Let nodes go up and down that do so by now; returns when the next do so, ``end`` at most.

        Who is up stays the same for all of a window.
        """
        schedule, i = self._transitions, int(self._clock[_NEXT_TRANSITION])
        while i < len(schedule.ticks) and schedule.ticks[i] <= self.tick:
            self.network.alive[schedule.rows[i]] = schedule.up[i]
            i += 1
        self._clock[_NEXT_TRANSITION] = i
        return min(end, int(schedule.ticks[i])) if i < len(schedule.ticks) else end

    def _run_window(self, begin: int, end: int) -> None:
        pool, size = self._pool, self._threads.size
        shards = itertools.count()
        unfinished: dict[int, int] = {}
        faults: dict[int, int] = {}

        def work(number: int) -> None:
            if number in faults:
                return
            shard = unfinished.pop(number, None)
            if shard is None:
                shard = next(shards)
            while shard < pool.calendar.shards:
                ended = self._shard_turn(
                    self._states[number],
                    pool.workers[number],
                    shard,
                    size,
                    begin,
                    end,
                    self._parts[number],
                )
                if ended != DONE:
                    (unfinished if ended == NO_ROOM else faults)[number] = shard
                    return
                shard = next(shards)

        self._run(work)
        while unfinished:
            for number in unfinished:
                pool.enlarge(number)
            self._run(work)
        self._check_outboxes(faults)
        self._collectors.end_window(self.collector, self._parts)
        pool.advance(end)

    def _run(self, work: Callable[[int], None]) -> None:
        if self._threads.size > 1 and self._pool.calendar.shards > 1:
            self._threads.run(work)
        else:
            work(0)

    def _give_command(self, row: int, record: Words) -> None:
        pool = self._pool
        while not can_keep.interpreted(pool.workers[0], len(record)):
            pool.enlarge(0)
        worker = pool.workers[0]
        worker.own[OWN_FIRST : OWN_FIRST + len(record)] = record
        worker.place[OWN_HEAD], worker.place[OWN_TAIL] = OWN_FIRST, OWN_FIRST + len(record)
        worker.place[COUNT], worker.place[TIMER] = 0, worker.timers.offsets.shape[1]
        worker.place[TICK] = self.tick
        give = partial(self._command_turn, self._states[0])
        while (ended := give(pool.workers[0], row, self._parts[0])) == NO_ROOM:
            pool.enlarge(0)
        self._check_outboxes({0: 0} if ended == FAULT else {})
        self._collectors.end_window(self.collector, self._parts)

    def _check_outboxes(self, faults: dict[int, int]) -> None:
        """Raise what is wrong with what steps have written, the same whoever ran which shard."""
        for worker in self._pool.workers:
            if worker.out.cursor[REFUSED]:
                raise CapacityError("the engine's outbox", len(worker.out.words), "raise reserve")
        if faults:
            out = self._pool.workers[min(faults, key=lambda number: faults[number])].out
            raise fault_at(out, int(out.cursor[HEAD]), len(self.network.alive))

    def _gather(self) -> None:
        """Add up what workers have counted."""
        self._pool.gather_counts(self.network, self.links)
        self._collectors.gather(self.collector, self._parts)
