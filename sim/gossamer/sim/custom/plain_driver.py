"""A protocol of plain classes in a run: what nodes do with what comes to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from gossamer.protocol.kernel.records import BODY
from gossamer.sim.custom.conditions import Conditions, Traffic
from gossamer.sim.custom.faults import HandlerError
from gossamer.sim.custom.language.context import LIVES, delay_ticks
from gossamer.sim.custom.language.declarations import Declarations, delays_in_cycles
from gossamer.sim.custom.language.messages import MessageClass, words_of
from gossamer.sim.custom.language.places import place_of
from gossamer.sim.custom.plain_engine import Entry, PlainEngine
from gossamer.sim.custom.plain_entries import (
    Fires,
    Kind,
    Later,
    Leave,
    PlainSampler,
    Returned,
    SamplerMessage,
    Start,
    kind_in,
    wrong_sending,
)
from gossamer.sim.custom.plain_stack import NodeClass, Stack
from gossamer.sim.custom.tally import EventLog, Taken
from gossamer.sim.engine.latency import Int64s


class PlainDriver(PlainEngine):
    """A stack of plain protocols in a run. Arguments and methods as of `RuleDriver`."""

    def __init__(
        self,
        declared: Declarations,
        settings: Mapping[str, Any],
        conditions: Conditions,
        *,
        traced: bool = False,
    ) -> None:
        super().__init__(conditions)
        self.declared = declared
        self._sent = [0] * conditions.nodes
        self._received = [0] * conditions.nodes
        self._to_dead = 0
        self._known: dict[Any, Kind] = {}
        self._sampled: dict[str, int] = {}
        self._trace: list[Taken] | None = [] if traced else None
        self._log = EventLog()
        self._stack = Stack(declared, settings, conditions, self)
        self._parts, self._fires = self._stack.parts, self._stack.fires
        self._objects, self._samplers = self._stack.objects, self._stack.samplers
        for part in self._parts:
            self._sampled |= dict.fromkeys(part.sampler_names.values(), 0)
        self._sampled_bytes = dict(self._sampled)
        self.nodes = self._objects[""]

    # What nodes ask for.

    def starts_of(self, me: int) -> int:
        """How often a node has come up."""
        return self._life[me]

    def send_later(self, me: int, delay_s: float, message: object) -> Later:
        """Let a node have a message after a delay; see `Node.after`."""
        if self._in_cycles:
            raise delays_in_cycles(self.declared)
        if message.__class__ is MessageClass:
            raise wrong_sending(me, message, len(self._life))
        later = Later(message, self._life[me])
        self._arm(me, delay_s, later, 0)
        return later

    def write(self, me: int, message: object) -> None:
        """Write a message to the log; see `Node.log`."""
        self._log.write(self.tick, me, message)

    # The run.

    def subject_of(self, declared: Declarations) -> NodeClass:
        """The class of the nodes of a part, with its settings."""
        return self._stack.class_of(declared)

    def begin(self) -> None:
        for sampler in self._samplers.values():
            sampler.begin(self.alive)
        for row in np.flatnonzero(self.alive).tolist():
            self._start(row, -1)
            self._drain()

    def start(self, row: int, contact: int) -> None:
        if self._in_cycles:
            self._start(row, contact)
            self._drain()
        else:
            self._command(row, Start(contact))

    def leave(self, row: int) -> None:
        if self._in_cycles:
            self._leave(row)
            self._drain()
        else:
            self._command(row, Leave())

    def use_cores(self, cores: Sequence[int | None]) -> None:
        """Nothing: Python runs one node at a time."""

    def grow(self, conditions: Conditions) -> None:
        for counts in (self._sent, self._received):
            counts.extend([0] * (conditions.nodes - self.conditions.nodes))
        self._grow(conditions)
        self._stack.grow(conditions)

    def _endless(self, entry: Entry) -> HandlerError:
        """The error about an entry that is one too many at its tick."""
        to, sender, message = entry
        kind = (message.message if isinstance(message, Later) else message).__class__
        known = self._known.get(kind)
        file, line = self.declared.place if known is None else place_of(known.handler)
        return HandlerError(
            f"{file}, line {line}: node {to} is to take {getattr(kind, 'name', kind.__name__)} of "
            f"node {to if sender < 0 else sender} as one of more than {self._most:,} records of "
            f"tick {self.tick:,}, expected no message without delay that is answered for ever"
        )

    def _take(self, to: int, sender: int, message: Any) -> None:
        kind = message.__class__
        if sender < 0:
            if -1 - sender != self._life[to]:
                return
            if kind is Fires:
                self._fire(to, message)
                self._rearm(to, message)
                return
            sender, message = to, message.take()
            if message is None:
                return
            kind = message.__class__
        known = self._known.get(kind)
        if known is None:
            if self._takes_special(kind, to, sender, message):
                return
            known = self._learn(kind)
        if self._trace is not None:
            words = words_of(message) if isinstance(kind, MessageClass) else ()
            self._trace.append(Taken(self.tick, known.name, sender, to, tuple(words)))
        if sender != to:
            size = known.measure(message) if known.size is None else known.size
            known.count += 1
            known.size_bytes += size
            self._sent[sender] += size
            self._received[to] += size
        known.handler(known.nodes[to], sender, message)

    def _takes_special(self, kind: Any, to: int, sender: int, message: Any) -> bool:
        """Let a node take what no handler of a message takes, if it is such."""
        if kind is Returned:
            self._come_back(to, message)
        elif kind is Start:
            self._start(to, message.contact)
        elif kind is Leave:
            self._leave(to)
        elif kind is SamplerMessage:
            self._take_sampled(to, sender, message)
        else:
            return False
        return True

    def _learn(self, kind: Any) -> Kind:
        """Find who takes messages of a class, at the first of them."""
        for part in self._parts:
            found = kind_in(part, kind, self._objects.get(part.path, []))
            if found is not None:
                self._known[kind] = found
                return found
        raise self.declared.error(
            f"on_{getattr(kind, 'name', kind.__name__)}",
            None,
            "such a method, or on_message",
            found="missing, although nodes are sent such messages",
        )

    def _take_sampled(self, to: int, sender: int, message: SamplerMessage) -> None:
        if self._trace is not None:
            body = tuple(message.record[BODY:].tolist())
            self._trace.append(Taken(self.tick, message.name, sender, to, body))
        if sender != to:
            self._sampled[message.name] += 1
            self._sampled_bytes[message.name] += message.size
            self._sent[sender] += message.size
            self._received[to] += message.size
        for sampler in self._samplers.values():
            self._send_all(to, sampler.take(to, self._round, message))

    def _start(self, me: int, contact: int) -> None:
        self._life[me] = (self._life[me] + 1) % LIVES
        fires = iter(self._fires)
        for part in self._parts:
            if part.sampler is not None and contact >= 0:
                self._samplers[part.path].join(me, self._round, contact)
            for _ in part.declared.timers:
                self._arm_first(me, next(fires))
            if "start" in part.declared.handlers:
                part.declared.handlers["start"](self._objects[part.path][me], contact)

    def _leave(self, me: int) -> None:
        for part in reversed(self._parts):
            if "leave" in part.declared.handlers:
                part.declared.handlers["leave"](self._objects[part.path][me])

    @property
    def _round(self) -> int:
        return self.tick // self.conditions.round_ticks

    def _arm_first(self, me: int, fires: Fires) -> None:
        if not self._in_cycles:
            phase = fires.timer.phase
            share = fires.nodes[me].draw_float() if phase is None else float(phase)
            self._arm(me, fires.seconds * share, fires, 0)

    def _rearm(self, me: int, fires: Fires) -> None:
        if fires.ticks is not None:
            self._push(self.tick + fires.ticks, (me, -1 - self._life[me], fires))
            return
        seconds, jitter = fires.seconds, fires.timer.jitter
        if jitter == 0 and self._rates is None and seconds >= 0:
            # The same delay again and again.
            fires.ticks = max(delay_ticks.interpreted(seconds, 1.0), 1)
        elif jitter > 0:
            seconds *= 1.0 + jitter * (2.0 * fires.nodes[me].draw_float() - 1.0)
        self._arm(me, seconds, fires, 1)

    def _turns(self, row: int) -> Iterator[None]:
        for fires in self._fires:
            if self.alive[row]:
                self._fire(row, fires)
                yield

    def _fire(self, me: int, fires: Fires) -> None:
        if self._trace is not None:
            self._trace.append(Taken(self.tick, fires.timer.name, me, me, ()))
        fires.handler(fires.nodes[me])

    def sample(self, sampler: PlainSampler, node: Any) -> None:
        """Let a sampler's timer fire at a node."""
        self._send_all(node.me, sampler.fire(node.me, self._round))

    def _miss(self, to: int, sender: int, message: Any) -> None:
        """What becomes of a message to a node that is down."""
        if message.__class__ is Returned:
            return
        self._to_dead += 1
        if sender < 0 or not self.conditions.reports_unreachable or not self.alive[sender]:
            return
        delay = 0 if self._in_cycles else self._links.return_delay(sender, to)
        if delay == 0:
            self._come_back(sender, Returned(to, message))
        else:
            self._push(self.tick + delay, (sender, sender, Returned(to, message)))

    def _come_back(self, me: int, returned: Returned) -> None:
        for part in self._parts:
            if part.sampler is not None:
                sampler = self._samplers[part.path]
                self._send_all(me, sampler.come_back(me, self._round, returned.to))
            elif "unreachable" in part.declared.handlers:
                handler = part.declared.handlers["unreachable"]
                handler(self._objects[part.path][me], returned.to, returned.message)

    def _send_all(self, me: int, written: Iterator[tuple[int, SamplerMessage]]) -> None:
        for to, message in written:
            self.send(me, to, message)

    # What came of it.

    def traffic(self) -> Traffic:
        count: dict[str, int] = {}
        for part in self._parts:
            count |= dict.fromkeys((*part.sampler_names.values(), *part.declared.messages), 0)
        size = dict(count)
        for kind in sorted(self._known.values(), key=lambda kind: kind.name):
            count[kind.name] = count.get(kind.name, 0) + kind.count
            size[kind.name] = size.get(kind.name, 0) + kind.size_bytes
        count |= self._sampled
        size |= self._sampled_bytes
        sent, received = np.array(self._sent, np.int64), np.array(self._received, np.int64)
        return Traffic(count, size, sent, received)

    def log(self) -> EventLog:
        return self._log

    def views(self) -> dict[str, Int64s]:
        return {path.removeprefix("."): one.state.views for path, one in self._samplers.items()}

    def counts(self) -> dict[str, int]:
        return {"to_dead_nodes": self._to_dead, **self._links.fates}

    def trace(self) -> Iterator[Taken]:
        """The records that were taken since the last call."""
        kept = self._trace or []
        self._trace = [] if self._trace is not None else None
        return iter(kept)

    def dynamic_state(self) -> dict[str, Any]:
        numbers = {id(fires): i for i, fires in enumerate(self._fires)}

        def kept(to: int, sender: int, message: Any) -> tuple[int, int, int | None, Any]:
            number = numbers.get(id(message))
            return to, sender, number, message if number is None else None

        return {
            "objects": self._objects,
            "waiting": {due: [kept(*x) for x in bucket] for due, bucket in self._buckets.items()},
            "samplers": {path: one.arrays() for path, one in self._samplers.items()},
            "kinds": {kind: (one.count, one.size_bytes) for kind, one in self._known.items()},
            "alive": self.alive.copy(),
            **{name: getattr(self, name) for name in _DYNAMIC},
            "links": self._links.dynamic_state(),
            "log": self._log.kept(),
        }

    def restore(self, dynamic: dict[str, Any]) -> None:
        nodes = len(dynamic["alive"])
        if nodes != self.conditions.nodes and self.conditions.grown is not None:
            self.grow(self.conditions.grown(nodes))
        self._stack.restore(dynamic["objects"])
        self._buckets = {
            due: [(to, sender, x if i is None else self._fires[i]) for to, sender, i, x in bucket]
            for due, bucket in dynamic["waiting"].items()
        }
        self._due, self._ahead = sorted(self._buckets), None
        for path, arrays in dynamic["samplers"].items():
            self._samplers[path].restore(arrays)
        for kind, (count, size) in dynamic["kinds"].items():
            known = self._learn(kind)
            known.count, known.size_bytes = count, size
        self.alive[:] = dynamic["alive"]
        for name in _DYNAMIC:
            setattr(self, name, dynamic[name])
        self._links.restore(dynamic["links"])
        self._log = EventLog(dynamic["log"])


_DYNAMIC: Final = (
    *("tick", "_life", "_sent", "_received", "_to_dead", "_sampled", "_sampled_bytes"),
)
