"""What the driver of plain nodes handles: timers, kinds of messages, and what waits for nodes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import attrs
import numpy as np

from gossamer.protocol.kernel.errors import CapacityError
from gossamer.protocol.kernel.records import (
    BODY,
    HEAD,
    KIND,
    LENGTH,
    REFUSED,
    TAIL,
    TO,
    UNREACHABLE,
    Words,
    make_outbox,
)
from gossamer.protocol.peer.record_table.records import SAMPLE_TIMER
from gossamer.protocol.peer.sampling.sampler import sample_step
from gossamer.sim.custom.language.members import Timer
from gossamer.sim.custom.language.messages import (
    WORD_BYTES,
    MessageClass,
    misused,
    size_of,
)
from gossamer.sim.custom.language.record_rules import Field
from gossamer.sim.custom.protocol import Part, arrays_of, sampler_state
from gossamer.sim.engine.cycle_engine import fill_random_views, join_via
from gossamer.sim.engine.windows.shard_entries import TO_ITSELF

# Words that one step of a sampler may write.
_ROOM: Final = 1 << 16


class SamplerMessage:
    """A message of a sampler: its whole record, and what traces call it."""

    __slots__ = ("name", "record")

    def __init__(self, record: Words, name: str) -> None:
        self.record = record
        self.name = name

    @property
    def size(self) -> int:
        """Its bytes."""
        return WORD_BYTES * (len(self.record) - BODY)


class PlainSampler:
    """A sampler of gossamer under plain nodes: its rules take and write records, one at a time.

    Attributes:
        state: its views.
    """

    def __init__(self, part: Part, nodes: int, settings: Mapping[str, Any], seed: int) -> None:
        assert part.sampler is not None
        self._names = part.sampler_names
        self._make = functools.partial(sampler_state, part.sampler, settings=settings, seed=seed)
        self.state = self._make(nodes=nodes)
        self._out = make_outbox(_ROOM)

    def begin(self, alive: Any) -> None:
        """Give everybody who is up a random view."""
        fill_random_views(self.state, alive, self.state.seed, self.state.view_size)

    def join(self, me: int, now: int, contact: int) -> None:
        """Let a node begin anew with one that it knows."""
        join_via.run(self.state, me, now, contact)

    def fire(self, me: int, now: int) -> Iterator[tuple[int, SamplerMessage]]:
        """What a node sends, and to whom, when its timer fires."""
        return self._step(me, now, np.array([BODY, SAMPLE_TIMER, me, me], np.int64))

    def take(self, me: int, now: int, message: SamplerMessage) -> Iterator[tuple[int, Any]]:
        """What a node sends when it takes a message."""
        return self._step(me, now, message.record)

    def come_back(self, me: int, now: int, to: int) -> Iterator[tuple[int, Any]]:
        """What a node sends when a message to a peer came back."""
        record = np.array([BODY, UNREACHABLE + 1, to, me], np.int64)
        return self._step(me, now, record)

    def arrays(self) -> dict[str, Any]:
        """Copies of its arrays."""
        return {name: array.copy() for name, array in arrays_of(self.state)}

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """Have the arrays that were copied."""
        for name, array in arrays_of(self.state):
            array[...] = arrays[name]

    def grow(self, nodes: int) -> None:
        """Have so many nodes, of which the first are as they were."""
        before, kept = len(self.state.views), self.arrays()
        self.state = self._make(nodes=nodes)
        for name, array in arrays_of(self.state):
            array[: len(kept[name]) if len(kept[name]) == before else None] = kept[name]

    def _step(self, me: int, now: int, record: Words) -> Iterator[tuple[int, SamplerMessage]]:
        out = self._out
        out.cursor[:] = 0
        # Rules may write into the record that they take.
        sample_step.run(self.state, me, now, record.copy(), 0, out)
        if out.cursor[REFUSED]:
            raise CapacityError("the outbox of a sampler", len(out.words))
        at, end = int(out.cursor[HEAD]), int(out.cursor[TAIL])
        written = []
        while at < end:
            length = int(out.words[at + LENGTH])
            written.append((int(out.words[at + TO]), out.words[at : at + length].copy()))
            at += length
        return ((to, SamplerMessage(x, self._names[int(x[KIND])])) for to, x in written)


class Returned:
    """A message that came back to its sender; one that was stopped never reached anybody."""

    __slots__ = ("message", "stopped", "to")

    def __init__(self, to: int, message: Any, stopped: bool = False) -> None:
        self.to = to
        self.message = message
        self.stopped = stopped


class Start:
    """What a node takes when it comes up."""

    __slots__ = ("contact",)

    def __init__(self, contact: int) -> None:
        self.contact = contact


class Leave:
    """What a node takes when it is about to leave."""

    __slots__ = ()


class Entered:
    """A message whose last byte has come in over its addressee's link."""

    __slots__ = ("message",)

    def __init__(self, message: Any) -> None:
        self.message = message


class Later:
    """A message that a node has set for later, and the handle by which it can be cancelled."""

    __slots__ = ("life", "message")

    def __init__(self, message: Any, life: int) -> None:
        self.message = message
        self.life = life

    def take(self) -> Any:
        """The message, which is not pending any more; None if it was cancelled."""
        message, self.message = self.message, None
        return message

    def cancel(self, life: int) -> bool:
        """Cancel it in a life of its node; returns whether it was pending."""
        return self.life == life and self.take() is not None


@attrs.define(eq=False)
class Fires:
    """A timer of one part of the stack.

    Attributes:
        timer: as declared.
        seconds: its period.
        nodes: of the part, who draw for it.
        handler: takes a node.
        ticks: of its period, once it is known, where all are alike.
    """

    timer: Timer
    seconds: float
    nodes: list[Any]
    handler: Callable[[Any], None]
    ticks: int | None = None


@attrs.define(eq=False)
class Kind:
    """A class of messages: who takes it, and what was taken of it.

    Attributes:
        name: of its records.
        nodes: of the part that takes it.
        handler: takes a node, the sender and a message.
        size: bytes of each; None where they differ.
        measure: of one message, where they differ.
    """

    name: str
    nodes: list[Any]
    handler: Callable[[Any, int, Any], None]
    size: int | None
    measure: Callable[[Any], int]
    count: int = 0
    size_bytes: int = 0


def rank_of(entry: tuple[int, int, Any]) -> tuple[int, int]:
    """By what entries of one tick are sorted where the order of insertion is not to matter.

    As `engine.event_loop` has it: by taker; then what has come in, then what others have sent or
    returned, by row, then the taker's own.
    """
    to, sender, message = entry
    if message.__class__ is Entered:
        return to, -1
    if message.__class__ is Returned and not message.stopped:
        return to, message.to
    return to, TO_ITSELF if sender < 0 or sender == to else sender


def wrong_sending(to: object, message: object, nodes: int) -> ValueError:
    """The error about a message to what is no row of ``nodes``, or of what is no object."""
    if isinstance(message, MessageClass):
        name = message.__name__
        return ValueError(f"the class {name} is sent, expected an object of it, {name}(...)")
    return ValueError(f"a message to node {to!r}, expected a row from 0 to {nodes - 1}")


def timer_handler(part: Part, name: str) -> Callable[[Any], None]:
    """What takes a node when a timer of a part of the stack fires."""
    handlers = part.declared.handlers
    if name in handlers:
        return handlers[name]
    general = handlers["timer"]

    def handle(node: Any) -> None:
        general(node, name)

    return handle


def kind_in(part: Part, kind: Any, nodes: list[Any]) -> Kind | None:
    """What a part of the stack has for messages of a class, None for nothing."""
    handlers = part.declared.handlers
    name = getattr(kind, "name", kind.__name__) if isinstance(kind, MessageClass) else kind.__name__
    handler = handlers.get(name, handlers.get("message"))
    if handler is None or (name in handlers and part.declared.messages.get(name) is not kind):
        return None
    if not isinstance(kind, MessageClass):
        return Kind(name, nodes, handler, None, lambda message: getattr(message, "size_bytes", 0))
    fixed = all(not hasattr(field.kind, "most") for field in kind.fields)
    bounds = [field for field in kind.fields if isinstance(getattr(field.kind, "most", 0), str)]
    take = _within(bounds, kind, handler) if bounds else handler
    return Kind(name, nodes, take, kind.size_bytes if fixed else None, size_of)


def _within(
    bounds: list[Field], kind: MessageClass, handler: Callable[[Any, int, Any], None]
) -> Callable[[Any, int, Any], None]:
    """A handler that takes no more items than settings of its node allow."""

    def take(node: Any, sender: int, message: Any) -> None:
        for field in bounds:
            if len(getattr(message, field.name)) > getattr(node, field.kind.most):
                raise misused(kind)
        handler(node, sender, message)

    return take


def bytes_of_message(message: Any) -> int:
    """Bytes of a message, whatever it is."""
    if isinstance(message, SamplerMessage):
        return message.size
    if isinstance(type(message), MessageClass):
        return size_of(message)
    return int(getattr(message, "size_bytes", 0))
