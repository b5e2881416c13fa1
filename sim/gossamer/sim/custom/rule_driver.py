"""A protocol of rules under the cycle engine or one of the event engines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from gossamer.protocol.kernel.errors import RecordError, RuleError
from gossamer.protocol.kernel.records import BODY, UNREACHABLE
from gossamer.protocol.kernel.rules import Rule
from gossamer.sim.custom.conditions import FATES, Conditions, Traffic
from gossamer.sim.custom.faults import HandlerError, explained_faults
from gossamer.sim.custom.language.code import logged_by
from gossamer.sim.custom.language.context import LEAVE, START, TICKS_A_SECOND
from gossamer.sim.custom.language.declarations import Declarations, delays_in_cycles
from gossamer.sim.custom.language.messages import misused, words_of
from gossamer.sim.custom.protocol import Part, arrays_of, make_state, parts_of
from gossamer.sim.custom.step import cycle_timers, step_of
from gossamer.sim.custom.tally import (
    EventLog,
    Taken,
    Tally,
    TallyParts,
    make_tally,
    observe,
    record_names,
    take_entries,
    take_trace,
)
from gossamer.sim.engine.cycle_engine import CycleEngine, fill_random_views, make_network
from gossamer.sim.engine.event_engine import EventEngine
from gossamer.sim.engine.latency import Int64s
from gossamer.sim.engine.windows.window_engine import WindowEngine, suits_windows

TRACE_WORDS: Final = 1 << 22
_RESERVE: Final = 1 << 16


class RuleDriver:
    """A stack of protocols of rules in a run.

    Args:
        declared: by the protocol on top.
        settings: all of them.
        conditions: of the run.
        traced: whether to keep every record that is taken.
        debug: whether rules run interpreted and checked, see `CycleEngine`.
        observer: the rule that sees every record, and what it writes to, made of the tally; it
            counts messages by `tally.observe`. The tally alone if None.
        header_bytes: of every message, beside what its class declares.

    Raises:
        ScenarioError: the cycle engine is asked for, and a timer is not of one round.
    """

    def __init__(
        self,
        declared: Declarations,
        settings: Mapping[str, Any],
        conditions: Conditions,
        *,
        traced: bool = False,
        debug: bool | None = None,
        observer: tuple[Rule, Callable[[Tally], Any]] | None = None,
        header_bytes: int = 0,
    ) -> None:
        self.declared = declared
        self._observer = observer or (observe, lambda tally: tally)
        self._header_bytes = header_bytes
        self._settings = settings
        self._traced = traced
        self._debug = debug
        self._parts = list(parts_of(declared))
        self._names = record_names(self._parts)
        self._cores: Sequence[int | None] = (None,)
        self._log = EventLog()
        self._logged = logged_by(part.declared for part in self._parts)
        self._build(conditions)

    def _build(self, conditions: Conditions) -> None:
        """Make state and engine of a run that has not begun."""
        self.conditions = conditions
        declared, settings = self.declared, self._settings
        nodes, cycles = conditions.nodes, conditions.engine == "cycle"
        self.state: Any = make_state(
            declared,
            nodes,
            settings,
            conditions.seed,
            conditions.attributes,
            life=np.zeros(nodes, np.int64),
            rates=conditions.rates,
            refused=np.zeros(1, np.int64),
            handles=np.zeros((nodes, places_of(self._parts)), np.int64),
            drifting=conditions.drift > 0,
            in_cycles=cycles,
            ticks_a_now=conditions.round_ticks if cycles else 1,
            round_ticks=conditions.round_ticks,
            round_s=conditions.round_ticks / TICKS_A_SECOND,
        )
        self.nodes = self.state
        self._network = make_network(nodes, reports_unreachable=conditions.reports_unreachable)
        self.alive = self._network.alive
        self.alive[:] = conditions.alive
        self.tally = make_tally(
            self._parts,
            nodes,
            TRACE_WORDS if self._traced else 0,
            logs=bool(self._logged),
            header_bytes=self._header_bytes,
        )
        rule, collector_of = self._observer
        self._observed: dict[str, Any] = {
            "observe": rule,
            "collector": collector_of(self.tally),
            "debug": self._debug,
        }
        self._engine: Any = self._cycle_engine() if cycles else self._event_engine()

    def _cycle_engine(self) -> CycleEngine:
        declared, timers = self.declared, cycle_timers(self.declared)
        for part in self._parts:
            for timer in part.declared.timers.values():
                timer.check_cycle()
        step = step_of(declared)
        given, state, network = self._observed, self.state, self._network
        seed = self.conditions.seed
        # The same loops; only what a turn consists of differs.
        self._starter = CycleEngine(state, step, (START,), network, seed, **given)
        return CycleEngine(state, step, timers, network, seed, **given)

    def _event_engine(self) -> EventEngine | WindowEngine:
        """The engine of events; which of the two follows from the conditions only."""
        conditions, nodes = self.conditions, self.conditions.nodes
        by_sender, period = conditions.engine == "windows", conditions.round_ticks

        def start_once(cycle: int) -> Int64s:
            return np.zeros((nodes if cycle == 0 else 0, 1), np.int64)

        step, seed = step_of(self.declared), conditions.seed
        given = (self.state, step, (START,), self._network, seed)
        common: dict[str, Any] = {
            "period": period,
            "links": conditions.links(self.tally.sizes),
            "firing_ticks": start_once,
            "reserve": _RESERVE,
            "tells_ticks": True,
            **self._observed,
        }
        if by_sender and suits_windows(conditions.latency, period):
            common |= {"cores": self._cores, "window": conditions.window}
            return WindowEngine(*given, collectors=TallyParts(), **common)
        return EventEngine(*given, by_sender=by_sender, **common)

    def subject_of(self, declared: Declarations) -> Any:
        """What measures and controls of a part have as ``self``: its state."""
        for part in self._parts:
            if part.declared is declared:
                return part.state_in(self.state)
        return self.state

    @property
    def tick(self) -> int:
        """The present tick."""
        if isinstance(self._engine, CycleEngine):
            return self._engine.cycle * self.conditions.round_ticks
        tick: int = self._engine.tick
        return tick

    def begin(self) -> None:
        """Start all nodes that are up; called once, before anything else."""
        for part in self._parts:
            if part.sampler is not None:
                sampler = part.state_in(self.state)
                fill_random_views(sampler, self.alive, sampler.seed, sampler.view_size)
        if isinstance(self._engine, CycleEngine):
            with _explained(self):
                self._starter.take_turns(np.flatnonzero(self.alive))

    def start(self, row: int, contact: int) -> None:
        """Start a node that has come up; contact is a row, or -1."""
        body = [contact] if contact >= 0 else []
        record = np.array([BODY + len(body), START, row, row, *body], np.int64)
        with _explained(self):
            self._engine.inject(record)

    def leave(self, row: int) -> None:
        """Let a node that is about to go down say so; it is up until this returns."""
        with _explained(self):
            self._engine.inject(np.array([BODY, LEAVE, row, row], np.int64))

    def grow(self, conditions: Conditions) -> None:
        """Go on with more nodes; those that are new are down."""
        self.log()
        before, kept = self.conditions.nodes, self._arrays()
        self._build(conditions)
        fresh = self._arrays()
        self._set({name: _grown(kept[name], fresh[name], before) for name in fresh})

    def use_cores(self, cores: Sequence[int | None]) -> None:
        """Run with a thread for each of these cores from now on, where threads are of use."""
        self._cores = cores
        if isinstance(self._engine, WindowEngine):
            self._engine.use_cores(cores)

    def run_until(self, tick: int) -> None:
        """Let everything happen before a tick; in the cycle engine whole rounds only."""
        with _explained(self):
            if isinstance(self._engine, CycleEngine):
                while self.tick < tick:
                    self._engine.run_cycle()
            else:
                self._engine.run_until(tick)
        self.log()

    def run_part(self, part: int, parts: int) -> None:
        """Run part ``part`` of ``parts`` of a round; in cycles every parts-th node of its order."""
        engine, ticks = self._engine, self.conditions.round_ticks
        with _explained(self):
            if not isinstance(engine, CycleEngine):
                begun = self.tick - self.tick % ticks
                engine.run_until(begun + (part + 1) * ticks // parts)
                return
            if part == 0:
                engine.begin_cycle()
            engine.take_turns(np.ascontiguousarray(engine.visiting_order()[part::parts]))
            if part + 1 == parts:
                engine.end_cycle()

    def hand(self, row: int, given: Any) -> None:
        """Let a node take a message, an object of its class, as if it had sent it to itself."""
        body = words_of(given)
        record = np.array([BODY + len(body), type(given).kind, row, row, *body], np.int64)
        with _explained(self):
            self._engine.inject(record)

    def traffic(self) -> Traffic:
        """What has been sent so far."""
        kinds = [kind for kind in self._names if self.tally.sizes.base[kind] >= 0]
        return Traffic(
            {self._names[kind]: int(self.tally.count[kind]) for kind in kinds},
            {self._names[kind]: int(self.tally.bytes_of[kind]) for kind in kinds},
            self.tally.sent,
            self.tally.received,
        )

    def log(self) -> EventLog:
        """What nodes have logged so far."""
        take_entries(self.tally, self._log, self._logged)
        return self._log

    def views(self) -> dict[str, Int64s]:
        """The views of its samplers, int64[n, c] of descriptors, by where they stand in it."""
        return {
            part.path.removeprefix("."): part.state_in(self.state).views
            for part in self._parts
            if part.sampler is not None
        }

    def counts(self) -> dict[str, int]:
        """What has become of records so far."""
        if not isinstance(self._engine, CycleEngine):
            found = self._engine.counts()
            return {name: found[name] for name in FATES}
        return {**dict.fromkeys(FATES, 0), "to_dead_nodes": int(self._network.counts[1])}

    def trace(self) -> Iterator[Taken]:
        """The records that were taken since the last call."""
        return take_trace(self.tally, self._names)

    def dynamic_state(self) -> dict[str, Any]:
        """All that changes; may be pickled."""
        return {**self._arrays(), "log": self.log().kept()}

    def _changing(self) -> Iterator[tuple[str, Any]]:
        """The arrays of state and tally, but for what is logged, which the log of the run has."""
        yield from arrays_of(self.state, "state")
        for name, array in arrays_of(self.tally, "tally"):
            if name not in ("tally.entries", "tally.entry_marks"):
                yield name, array

    def _arrays(self) -> dict[str, Any]:
        """Copies of all arrays that change."""
        kept: dict[str, Any] = {name: array.copy() for name, array in self._changing()}
        if not isinstance(self._engine, CycleEngine):
            return kept | {
                f"engine {name}": array for name, array in self._engine.snapshot().items()
            }
        network = self._network
        return kept | {
            "engine cycle": np.array(self._engine.cycle),
            "engine alive": network.alive.copy(),
            "engine counts": network.counts.copy(),
        }

    def restore(self, dynamic: dict[str, Any]) -> None:
        """Go on from a `dynamic_state` of such a driver."""
        nodes = len(dynamic["state.draws"])
        if nodes != self.conditions.nodes and self.conditions.grown is not None:
            self._build(self.conditions.grown(nodes))
        self._log = EventLog(dynamic["log"])
        self._set(dynamic)

    def _set(self, dynamic: Mapping[str, Any]) -> None:
        for name, array in self._changing():
            array[...] = dynamic[name]
        engine = {
            name.removeprefix("engine "): value
            for name, value in dynamic.items()
            if name.startswith("engine ")
        }
        if not isinstance(self._engine, CycleEngine):
            self._engine.restore(engine)
        else:
            self._engine.cycle = int(engine["cycle"])
            self._network.alive[:], self._network.counts[:] = engine["alive"], engine["counts"]


def places_of(parts: Sequence[Part]) -> int:
    """Words that a node needs to know what it can cancel: one, and one for each that may be."""
    most = sum(each.cancellable for part in parts for each in part.declared.messages.values())
    return 1 + most if most else 0


def _grown(kept: Any, fresh: Any, rows: int) -> Any:
    """What there was, and behind it, where it has a row for each node, those that are new."""
    if kept.shape == fresh.shape or kept.shape[0] != rows or kept.shape[1:] != fresh.shape[1:]:
        return kept
    return np.concatenate([kept, fresh[rows:]])


@contextmanager
def _explained(driver: RuleDriver) -> Iterator[None]:
    """Say of errors of the engine which message of the user's file they are about."""
    try:
        with explained_faults(HandlerError):
            yield
    except RuleError as error:
        raise _in_words(driver, error) from error
    except RecordError as error:
        if error.kind < 0:
            raise _misused(driver, -error.kind) from error
        raise
    if driver.state.refused[0]:
        raise delays_in_cycles(driver.declared)


def _in_words(driver: RuleDriver, error: RuleError) -> RuleError:
    """An error of a checked run that calls the record in hand by its name."""
    when = error.when
    if error.record is not None:
        kind, sender, to = error.record
        if kind in driver._names and sender != to:
            when += f", taking {driver._names[kind]} of node {sender}"
        elif kind >= UNREACHABLE:
            when += ", taking a message that came back"
    fault = re.sub(
        r"record of kind (\d+)",
        lambda found: driver._names.get(int(found[1]), found[0]),
        error.fault,
    )
    return RuleError(error.rule, error.file, error.line, error.row, when, None, fault)


def _misused(driver: RuleDriver, kind: int) -> Exception:
    """The error about a record that its sender could not write; see `messages`."""
    for part in driver._parts:
        for message in part.declared.messages.values():
            if message.kind == kind:
                return misused(message)
        for timer in part.declared.timers.values():
            if timer.kind == kind:
                return part.declared.error(timer.name, None, "a period from 0 s", "a wrong timer")
    return driver.declared.error("messages", kind, "a message that is declared")
