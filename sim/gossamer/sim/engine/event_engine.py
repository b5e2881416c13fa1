"""The event engine: records arrive in order of time, over links that take time and fail.

It drives the same `step` as the cycle engine. Time is counted in ticks; a round, PeerSim's cycle,
is a number of them in which each timer of each node fires once. At zero latency, with the timers
in the cycle engine's visiting order, both engines do the same; `event_loop` says what happens at
one tick.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gossamer.protocol.kernel.errors import CapacityError
from gossamer.protocol.kernel.records import BODY, HEAD, REFUSED, Words, make_outbox
from gossamer.protocol.kernel.rules import Rule
from gossamer.sim.engine.cycle_engine import Network, checked_rules, give_no_hint, observe_nothing
from gossamer.sim.engine.event_loop import (
    FAULT,
    NEXT_TIMER,
    NO_ROOM,
    ROUND,
    Agenda,
    Transitions,
    World,
    make_run,
    make_settle,
)
from gossamer.sim.engine.event_queue import (
    HORIZON,
    NOW,
    PENDING,
    SLOT_WORDS_A_WORD,
    USED,
    enlarged,
    has_room,
    make_event_queue,
    push,
    put_back,
    set_aside,
)
from gossamer.sim.engine.latency import Int64s, least_ticks
from gossamer.sim.engine.link_conditions import (
    LinkConditions,
    check_command,
    fault_at,
    make_link_conditions,
)
from gossamer.sim.errors import ScenarioError

_NO_ROUND = _NO_TICK = -1


def draw_phases(nodes: int, timers: int, period: int, seed: int) -> Int64s:
    """Ticks of a round at which timers fire, int64[n, T].

    A node's timers fire in their order, one a tick, from a random tick on.
    """
    draws = np.random.Generator(np.random.Philox(key=seed))
    first = draws.integers(0, period - timers, nodes, endpoint=True)
    return first[:, None] + np.arange(timers)


def make_transitions(ticks: Any, rows: Any, up: Any) -> Transitions:
    """When nodes go up and down; those of one tick take effect in the order given."""
    order = np.argsort(np.asarray(ticks, np.int64), kind="stable")
    return Transitions(
        np.asarray(ticks, np.int64)[order],
        np.asarray(rows, np.int64)[order],
        np.asarray(up, np.bool_)[order],
    )


def check_rows(field: str, rows: Int64s, nodes: int) -> None:
    """Refuse rows that there are not, as values of a field."""
    wrong = rows[(rows < 0) | (rows >= nodes)]
    if wrong.size:
        raise ScenarioError(None, field, int(wrong[0]), f"a row from 0 to {nodes - 1}")


# What has happened to records, as networks and links count it.
_COUNTED = (
    *("passed", "to_dead_nodes", "beyond_capacity"),
    *("lost", "duplicated", "parted", "queue_overflowed", "up_overflowed", "down_overflowed"),
)


class TimedEngine(ABC):
    """What both event engines are: `EventEngine`, and `WindowEngine` on several threads."""

    state: Any
    network: Network
    links: LinkConditions
    period: int

    @property
    @abstractmethod
    def tick(self) -> int:
        """The present tick; its timers have not fired yet."""

    @property
    def cycle(self) -> int:
        """The present round."""
        return self.tick // self.period

    @abstractmethod
    def run_until(self, tick: int) -> None:
        """Let everything happen that happens before ``tick``.

        Raises:
            ValueError: the tick is past; nothing happened.
        """

    def run_cycle(self) -> None:
        """Let everything happen that happens in the rest of this round."""
        self.run_until((self.cycle + 1) * self.period)

    def counts(self) -> dict[str, int]:
        """What has happened to records so far, by name."""
        counts = (*self.network.counts.tolist(), *self.links.counts.tolist())
        return dict(zip(_COUNTED, counts, strict=True))

    def _dynamic_arrays(self) -> dict[str, Any]:
        return arrays_in(
            network=(self.network, ("alive", "taken", "counts")),
            links=(self.links, ("sent", "free_at", "waiting", "longest", "counts")),
            bandwidth=(self.links.bandwidth, ("up_free", "down_free")),
        )

    def _checked_arrays(self, snapshot: Mapping[str, Words], *others: str) -> dict[str, Any]:
        """The arrays that a snapshot is of beside ``others``; raises `ValueError` about others."""
        own = self._dynamic_arrays()
        if set(snapshot) != {*own, *others}:
            raise ValueError(f"snapshot of {sorted(snapshot)}, expected {sorted({*own, *others})}")
        for name, array in own.items():
            if snapshot[name].shape != array.shape or snapshot[name].dtype != array.dtype:
                raise ValueError(f"{name} is of shape {snapshot[name].shape}, not {array.shape}")
        return own

    def _check_time(self, tick: int) -> None:
        if not self.tick <= tick < HORIZON // 2:
            raise ValueError(f"tick is {tick}, expected {self.tick} to {HORIZON // 2 - 1}")


def arrays_in(**parts: tuple[Any, Sequence[str]]) -> dict[str, Any]:
    """Arrays of some owners by name, such as "links.sent"."""
    return {
        f"{part}.{name}": getattr(owner, name)
        for part, (owner, names) in parts.items()
        for name in names
    }


class EventEngine(TimedEngine):
    """Runs a protocol event by event.

    Args:
        state: the protocol's struct of arrays, one row a node.
        step: the protocol's one door, ``step(state, p, now, words, at, out)``; ``now`` is the
            number of the round, as in the cycle engine, or the tick if ``tells_ticks``.
        timers: kinds of the timers that fire once a round.
        network: who is up, and what nodes take in a round; the engine reads and changes it.
        seed: fixes when timers fire.
        period: ticks of a round.
        links: what messages go through; perfect links without latency by default.
        transitions: when nodes go up and down.
        firing_ticks: the ticks of a given round at which timers fire, int64[n, T] in
            [0, period); by default `draw_phases`, the same in every round. At one tick timers
            fire in order of node and timer.
        observe: rule called with every record before the protocol takes it,
            ``observe(collector, state, words, at, now)``; effects (deliveries) pass it too.
        collector: what ``observe`` writes to.
        hint: rule called at every timer with the rows of timers that fire soon,
            ``hint(state, timer, soon, later)``, to bring their memory near; changes nothing.
        reserve: words that one step may write at most.
        tells_ticks: whether rules are told the tick it is, and not the round.
        queue_words: room for waiting records to begin with; it grows as needed.
        queue_words_limit: room for waiting records at most.
        by_sender: take the records of a tick in the order of `sort_tick`, as the windows engine
            does, rather than of insertion; latency must be at least a tick.
        debug: run the rules interpreted and checked, see `protocol.kernel.debugging`; by default
            as the variable GOSSAMER_DEBUG of the environment says.

    Raises:
        ScenarioError: the period has fewer ticks than there are timers, or a transition or timer
            is of a row that there is not, or the links are of another number of nodes, or they
            take no time although records are to be taken by sender.
        CapacityError: from `run_cycle`, `run_until` and `inject`, when the queue reached its
            limit (state and queue are sound, what is due is still waiting), or when a step wrote
            more than ``reserve`` words (the state lacks what the refused records would have
            done).
        RecordError: from the same, when a rule wrote a record that cannot be passed on (to a row
            that there is not), or opened one and did not close it; the engine stopped there.
        RuleError: from the same, in a checked run, when a rule did what rules may not.
    """

    def __init__(
        self,
        state: Any,
        step: Rule,
        timers: tuple[int, ...],
        network: Network,
        seed: int,
        *,
        period: int = 1000,
        links: LinkConditions | None = None,
        transitions: Transitions | None = None,
        firing_ticks: Callable[[int], Int64s] | None = None,
        observe: Rule = observe_nothing,
        collector: Any = 0,
        hint: Rule = give_no_hint,
        reserve: int = 1 << 16,
        tells_ticks: bool = False,
        queue_words: int = 1 << 20,
        queue_words_limit: int = 1 << 31,
        by_sender: bool = False,
        debug: bool | None = None,
    ) -> None:
        nodes = len(network.alive)
        if period < max(len(timers), 1):
            raise ScenarioError(None, "period", period, f"at least {max(len(timers), 1)} ticks")
        transitions = transitions or make_transitions((), (), ())
        check_rows("transitions.rows", transitions.rows, nodes)
        self.state = state
        self.network = network
        self.links = links or make_link_conditions(nodes)
        if len(self.links.sent) != nodes:
            raise ScenarioError(None, "links", len(self.links.sent), f"those of {nodes} nodes")
        least = least_ticks(self.links.latency)
        if by_sender and least < 1:
            raise ScenarioError(None, "latency", least, "at least 1 tick, to take by sender")
        self.period = period
        self.collector = collector
        self._timers = np.array(timers, np.int64)
        self._firing_ticks = firing_ticks
        self._queue_words_limit = queue_words_limit
        phases = draw_phases(nodes, len(timers), period, seed)
        self._world = World(
            network=network,
            links=self.links,
            queue=make_event_queue(queue_words),
            by_sender=by_sender,
            out=make_outbox(reserve),
            agenda=self._agenda_of(phases if firing_ticks is None else phases[:0]),
            transitions=transitions,
            clock=np.array([_NO_ROUND, 0, 0, _NO_TICK]),
            period=period,
            room=2 * SLOT_WORDS_A_WORD * reserve,
            tells_ticks=tells_ticks,
        )
        self._checked, rules = checked_rules(
            *(debug, step, observe, hint),
            state=state,
            collector=collector,
            population=nodes,
            when=lambda: f"tick {self.tick} of cycle {self.cycle}",
        )
        self._run = make_run(*rules)
        self._settle = make_settle(*rules[:2])

    @property
    def tick(self) -> int:
        """The present tick; its timers have not fired yet."""
        return int(self._world.queue.marks[NOW])

    @property
    def pending(self) -> int:
        """Records on their way."""
        return int(self._world.queue.marks[PENDING])

    def run_until(self, tick: int) -> None:
        """Let everything happen that happens before ``tick``.

        Raises:
            ValueError: the tick is past; nothing happened.
        """
        self._check_time(tick)
        while self.tick < tick:
            self._begin_round()
            until = min(tick, (self.cycle + 1) * self.period)
            self._complete(self._run, until)

    def inject(self, record: Words, at: int | None = None) -> None:
        """Hand a record (a command) to the node it names.

        Args:
            record: int64[length].
            at: its tick. By default it is taken now, before the timers of the present tick and
                with all else that is due at it; where records are taken by sender, ahead of it.

        Raises:
            ValueError: the tick is past or its record's length contradicts; nothing happened.
            RecordError: it names a node that there is not; nothing happened.
        """
        check_command(record, len(self.network.alive))
        self._check_time(self.tick if at is None else at)
        if at is None:
            self._begin_round()
        room = SLOT_WORDS_A_WORD * len(record)
        if not has_room.interpreted(self._world.queue, room):
            self._enlarge(room)
        if at is not None:
            push.interpreted(self._world.queue, at, record, 0)
            return
        due = set_aside(self._world.queue) if self._world.by_sender else (-1, -1)
        try:
            push.interpreted(self._world.queue, self.tick, record, 0)
            self._complete(self._settle)
        finally:
            put_back(self._world.queue, due)

    def snapshot(self) -> dict[str, Words]:
        """Copies of all that changes while the engine runs, but for the protocol's state.

        With the state and the arguments that this engine was built with, `restore` continues
        from here as this engine would.
        """
        arrays = {name: array.copy() for name, array in self._dynamic_arrays().items()}
        queue = self._world.queue
        arrays["queue.words"] = queue.words[: queue.marks[USED]].copy()
        return arrays

    def restore(self, snapshot: Mapping[str, Words]) -> None:
        """Return to a `snapshot` of an engine that was built with the same arguments.

        Raises:
            ValueError: the arrays are not those of such an engine; nothing was changed.
        """
        own = self._checked_arrays(snapshot, "queue.words")
        words = snapshot["queue.words"]
        if len(words) > len(self._world.queue.words):
            self._enlarge(len(words))
        for name, array in own.items():
            array[:] = snapshot[name]
        self._world.queue.words[: len(words)] = words
        self._set_agenda()

    def _dynamic_arrays(self) -> dict[str, Any]:
        queue = arrays_in(queue=(self._world.queue, ("first", "last", "free", "marks")))
        return super()._dynamic_arrays() | queue | {"engine.clock": self._world.clock}

    def _agenda_of(self, firing_ticks: Int64s) -> Agenda:
        """Timers sorted by tick, those of one tick by node and place in the list of timers."""
        if firing_ticks.size and not 0 <= firing_ticks.min() <= firing_ticks.max() < self.period:
            wrong = (int(firing_ticks.min()), int(firing_ticks.max()))
            raise ScenarioError(None, "firing_ticks", wrong, f"0 to {self.period - 1}")
        order = np.argsort(firing_ticks, axis=None, kind="stable")
        rows, places = np.divmod(order, max(len(self._timers), 1))
        check_rows("firing_ticks", rows, len(self.network.alive))
        return Agenda(
            firing_ticks.ravel()[order], rows, self._timers[places], np.zeros(BODY, np.int64)
        )

    def _begin_round(self) -> None:
        clock = self._world.clock
        if clock[ROUND] != self.cycle:
            self.network.taken[:] = 0
            clock[ROUND] = self.cycle
            clock[NEXT_TIMER] = 0
            self._set_agenda()

    def _set_agenda(self) -> None:
        clock = self._world.clock
        if self._firing_ticks is not None and clock[ROUND] != _NO_ROUND:
            agenda = self._agenda_of(self._firing_ticks(int(clock[ROUND])))
            self._world = self._world._replace(agenda=agenda)

    def _complete(self, loop: Callable[..., int], *until: int) -> None:
        while (
            ended := loop(self._checked or self.state, self._world, *until, self.collector)
        ) == NO_ROOM:
            self._enlarge(self._world.room)
        out = self._world.out
        if out.cursor[REFUSED]:
            raise CapacityError("the engine's outbox", len(out.words), "raise reserve")
        if ended == FAULT:
            raise fault_at(out, int(out.cursor[HEAD]), len(self.network.alive))

    def _enlarge(self, room: int) -> None:
        queue = enlarged(self._world.queue, room, self._queue_words_limit)
        self._world = self._world._replace(queue=queue)
