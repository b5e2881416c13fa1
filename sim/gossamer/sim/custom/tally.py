"""What an engine's observer counts of messages, the trace that it keeps, and the log of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.records import BODY, FROM, KIND, LENGTH, TO, Words
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.kernel.struct import Struct
from gossamer.sim.custom.language.context import LATER_WORDS, LOGGED, TICKS_A_SECOND, is_due
from gossamer.sim.custom.language.messages import (
    KINDS,
    MessageClass,
    refuse_logging,
    words_of,
)
from gossamer.sim.custom.language.places import declaration_error
from gossamer.sim.custom.protocol import Part
from gossamer.sim.engine.latency import Int64s, Sizes, bytes_of
from gossamer.sim.engine.link_conditions import LATER
from gossamer.sim.engine.windows.worker_pool import Collectors
from gossamer.sim.errors import SimulationError

_NO_MESSAGE: Final = -1
_LENGTH, _TICK, _KIND, _FROM, _TO, _BODY = range(6)
# What several threads would write: the bytes of a sender whoever takes them, and sums.
_SUMS: Final = ("count", "bytes_of", "sent")
# Records one behind another, each with how many words there are and how many found no room.
_TAPES: Final = (("log", "marks"), ("entries", "entry_marks"))
# Room for what nodes log until the host takes it, after every round at the latest.
_ENTRY_WORDS: Final = 1 << 22
_ENTRY_WORDS_A_NODE: Final = 16
# Columns of entries in the log of a run.
_ENTRY_TICK, _ENTRY_NODE, _ENTRY_FIELDS = 0, 1, 2
# Entries of plain nodes that are put in one array.
_AT_ONCE: Final = 1 << 16


class EventLog:
    """What nodes have logged, by message; it grows with the run, and nothing is taken from it.

    Its order is that of time, at one tick that of rows, and of one node that in which it logged.
    So it depends neither on an engine's order within a tick nor on threads.

    Args:
        kept: of another log, to go on from.
    """

    def __init__(self, kept: Mapping[MessageClass, Int64s] | None = None) -> None:
        self._ordered = dict(kept or {})
        self._added: dict[MessageClass, list[Int64s]] = {}
        self._written: dict[MessageClass, list[tuple[int, ...]]] = {}

    def add(self, message: MessageClass, rows: Int64s) -> None:
        """Add int64[m, 2 + fields]: tick, node and the words of fields, each node's in order."""
        self._added.setdefault(message, []).append(rows)

    def write(self, tick: int, node: int, entry: Any) -> None:
        """Add one entry, an object of a message; raises as `Simulation.log`."""
        message: Any = entry.__class__
        if message not in self._written:
            refuse_logging(message)
            for other in self.kept():
                if other.name == message.name and other is not message:
                    raise declaration_error(
                        message.place, message.__name__, None, "another name", "logged twice"
                    )
            self._written[message] = []
        written = self._written[message]
        written.append((tick, node, *words_of(entry)))
        if len(written) >= _AT_ONCE:
            self._take_written()

    def _take_written(self) -> None:
        for message, written in self._written.items():
            if written:
                self.add(message, np.array(written, np.int64))
                written.clear()

    def kept(self) -> dict[MessageClass, Int64s]:
        """By message that was logged, all entries in order; what a checkpoint keeps."""
        self._take_written()
        for message, added in self._added.items():
            new = np.concatenate(added)
            before = self._ordered.get(message, new[:0])
            # Only those of the last ticks can be out of order.
            first = int(np.searchsorted(before[:, _ENTRY_TICK], new[:, _ENTRY_TICK].min(), "left"))
            new = np.concatenate([before[first:], new])
            order = np.lexsort([new[:, _ENTRY_NODE], new[:, _ENTRY_TICK]])
            self._ordered[message] = np.concatenate([before[:first], new[order]])
        self._added.clear()
        return dict(self._ordered)

    def table(self, message: Any, round_ticks: int) -> dict[str, npt.NDArray[Any]]:
        """The entries of a message, a row each; see `Simulation.log`."""
        refuse_logging(message)
        none = np.empty((0, _ENTRY_FIELDS + len(message.fields)), np.int64)
        rows = self.kept().get(message, none)
        tick = rows[:, _ENTRY_TICK]
        columns: dict[str, npt.NDArray[Any]] = {
            "round": tick // round_ticks,
            "time_s": tick / TICKS_A_SECOND,
            "node": rows[:, _ENTRY_NODE].copy(),
        }
        for place, field in enumerate(message.fields, _ENTRY_FIELDS):
            words = rows[:, place].copy()
            is_float = field.kind is float
            columns[field.name] = words.view(np.float64) if is_float else words.astype(field.kind)
        return columns


class Taken(NamedTuple):
    """One record of a trace: what a node took, and when.

    Attributes:
        tick: when.
        name: of the message or timer.
        sender, to: rows.
        body: its words.
    """

    tick: int
    name: str
    sender: int
    to: int
    body: tuple[int, ...]


class Tally(Struct, shared=True):
    """What the observer writes.

    Attributes:
        count, bytes_of: int64[KINDS], messages taken, and their bytes.
        sizes: of messages, by kind.
        sent, received: int64[n], bytes.
        log: int64[m], the trace, one record after another; int64[0] for none.
        marks: int64[2], words of the log in use, and records that found no room.
        entries: int64[m], what nodes have logged, written as the trace; not kept by checkpoints.
        entry_marks: int64[2], as ``marks``.
    """

    count: Int64s
    bytes_of: Int64s
    sizes: Sizes
    sent: Int64s
    received: Int64s
    log: Int64s
    marks: Int64s
    entries: Int64s
    entry_marks: Int64s


def make_tally(
    parts: list[Part], nodes: int, log_words: int, *, logs: bool = False, header_bytes: int = 0
) -> Tally:
    """A tally of a stack that has counted nothing, with room for so many words of its trace.

    Each message is ``header_bytes`` longer than its class declares.
    """
    size = np.full(KINDS, _NO_MESSAGE, np.int64)
    fixed = np.zeros(KINDS, np.int64)
    for part in parts:
        size[list(part.sampler_names)] = header_bytes
        for message in part.declared.messages.values():
            size[message.kind] = header_bytes + message.size_bytes
            fixed[message.kind] = len(message.fields)
    return Tally(
        count=np.zeros(KINDS, np.int64),
        bytes_of=np.zeros(KINDS, np.int64),
        sizes=Sizes(size, fixed),
        sent=np.zeros(nodes, np.int64),
        received=np.zeros(nodes, np.int64),
        log=np.zeros(log_words, np.int64),
        marks=np.zeros(2, np.int64),
        entries=np.zeros(_ENTRY_WORDS + _ENTRY_WORDS_A_NODE * nodes if logs else 0, np.int64),
        entry_marks=np.zeros(2, np.int64),
    )


def record_names(parts: list[Part]) -> dict[int, str]:
    """The names of all messages and timers of a stack, by kind."""
    names: dict[int, str] = {}
    for part in parts:
        names |= part.sampler_names
        for declared in (part.declared.messages, part.declared.timers):
            names |= {each.kind: name for name, each in declared.items()}
    return names


@rule
def observe(c: Tally, s: Any, words: Words, at: int, now: int) -> None:
    """Count a message, and keep any record that a node takes where a trace is kept."""
    kind, source, to = words[at + KIND], words[at + FROM], words[at + TO]
    size = bytes_of(c.sizes, words, at)
    if source != to and size >= 0:
        c.count[kind] += 1
        c.bytes_of[kind] += size
        c.sent[source] += size
        c.received[to] += size
    tick = now * s.ticks_a_now
    if kind == LOGGED:
        length = words[at + LENGTH] - LATER_WORDS
        _keep(c.entries, c.entry_marks, tick, words, at, at + LATER_WORDS, length)
    elif len(c.log) > 0:
        if kind != LATER:
            _keep(c.log, c.marks, tick, words, at, at, words[at + LENGTH])
        elif is_due(s, to, words, at):
            length = max(words[at + LENGTH] - LATER_WORDS, BODY)
            _keep(c.log, c.marks, tick, words, at, at + LATER_WORDS, length)


@rule
def _keep(
    tape: Int64s, marks: Int64s, tick: int, words: Words, at: int, inside: int, length: int
) -> None:
    """Append the record of ``length`` words whose header is at ``inside`` to a tape."""
    end = marks[0]
    if end + _BODY + length - BODY > len(tape):
        marks[1] += 1
        return
    tape[end + _LENGTH] = _BODY + length - BODY
    tape[end + _TICK] = tick
    tape[end + _KIND] = words[inside + KIND]
    tape[end + _FROM] = words[at + FROM]
    tape[end + _TO] = words[at + TO]
    for i in range(length - BODY):
        tape[end + _BODY + i] = words[inside + BODY + i]
    marks[0] = end + _BODY + length - BODY


def take_trace(tally: Tally, names: Mapping[int, str]) -> Iterator[Taken]:
    """The records of the trace, which is emptied.

    Raises:
        SimulationError: there was no room for all of them.
    """
    if tally.marks[1]:
        raise SimulationError(
            f"the trace of a round is longer than {len(tally.log)} words, "
            "expected fewer nodes or a shorter round"
        )
    log, at = tally.log[: tally.marks[0]].tolist(), 0
    tally.marks[0] = 0
    while at < len(log):
        length = log[at]
        tick, kind, sender, to = log[at + 1 : at + _BODY]
        if kind in names:
            yield Taken(tick, names[kind], sender, to, tuple(log[at + _BODY : at + length]))
        at += length


def take_entries(tally: Tally, log: EventLog, messages: Mapping[int, MessageClass]) -> None:
    """Move what nodes have logged, by kind these messages, to the log of the run.

    Raises:
        SimulationError: there was no room for all of it.
    """
    if tally.entry_marks[1]:
        raise SimulationError(
            f"nodes log more than {len(tally.entries)} words in a round, where an entry has "
            f"{_BODY} and one for each field, expected fewer entries or a shorter round"
        )
    end = int(tally.entry_marks[0])
    if end == 0:
        return
    tally.entry_marks[0] = 0
    words, at = tally.entries[:end], 0
    lengths, places = words.tolist(), dict[int, list[int]]()
    while at < end:
        places.setdefault(lengths[at + _KIND], []).append(at)
        at += lengths[at]
    for kind, begins in places.items():
        first = np.array(begins)[:, None]
        columns = (_TICK, _TO, *range(_BODY, lengths[begins[0]]))
        log.add(messages[kind], words[first + np.array(columns)])


class TallyParts(Collectors):
    """Divides a `Tally` among threads; of a tape only what one node takes is in order."""

    def __init__(self) -> None:
        self._taken: dict[str, list[Int64s]] = {name: [] for name, _ in _TAPES}

    def part(self, whole: Tally) -> Tally:
        """A tally for one thread; rows of the taking node are the whole one's."""
        fields = {name: getattr(whole, name) for name in Tally.__annotations__}
        # Unlike zeros_like this takes no memory before something is written.
        own = {
            name: np.zeros(fields[name].shape, np.int64)
            for name in (*_SUMS, *(name for tape in _TAPES for name in tape))
        }
        return Tally(**(fields | own))

    def end_window(self, whole: Tally, parts: list[Tally]) -> None:
        """Keep what is on the tapes of threads, window by window."""
        for name, used in _TAPES:
            for part in parts:
                marks = getattr(part, used)
                if part is not whole and marks[0]:
                    self._taken[name].append(getattr(part, name)[: marks[0]].copy())
                    marks[0] = 0

    def gather(self, whole: Tally, parts: list[Tally]) -> None:
        """Add up what threads have counted, and put what is on their tapes behind each other."""
        for part in parts:
            # Where no message was counted nothing else was.
            if part is whole or not part.count.any():
                continue
            for name in _SUMS:
                own = getattr(part, name)
                getattr(whole, name)[...] += own
                own[...] = 0
        for name, used in _TAPES:
            tape, marks = getattr(whole, name), getattr(whole, used)
            for part in parts:
                if part is not whole:
                    marks[1] += getattr(part, used)[1]
                    getattr(part, used)[1] = 0
            for words in self._taken[name]:
                end = int(marks[0])
                if end + len(words) > len(tape):
                    marks[1] += 1
                    continue
                tape[end : end + len(words)] = words
                marks[0] = end + len(words)
            self._taken[name].clear()
