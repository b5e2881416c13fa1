"""What the driver of plain nodes handles: timers, kinds of messages, and what waits for nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs

from gossamer.sim.custom.faults import HandlerError
from gossamer.sim.custom.language.members import Timer
from gossamer.sim.custom.language.messages import MessageClass, misused, size_of, words_of
from gossamer.sim.custom.language.places import Place
from gossamer.sim.custom.language.record_rules import Field
from gossamer.sim.custom.plain.sampler import PlainSampler, SamplerMessage
from gossamer.sim.custom.protocol import Part
from gossamer.sim.custom.tally import Taken, sampler_names
from gossamer.sim.engine.windows.posting import TO_ITSELF


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
        sampler: whose timer it is; None of one with a handler.
        handler: takes a node.
        ticks: of its period, once it is known, where all are alike.
    """

    timer: Timer
    seconds: float
    nodes: list[Any]
    sampler: PlainSampler | None
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

    As `engine.tick_order` has it: by taker; then what has come in, then what others have sent or
    returned, by row, then the taker's own.
    """
    to, sender, message = entry
    if message.__class__ is Entered:
        return to, -1
    if message.__class__ is Returned and not message.stopped:
        return to, message.to
    return to, TO_ITSELF if sender < 0 or sender == to else sender


def endless_chain(entry: tuple[int, int, Any], place: Place, most: int, tick: int) -> HandlerError:
    """The error about a handler that answers without delay for ever.

    Args:
        entry: that is one too many.
        place: of whoever takes it.
        most: records that may be taken at a tick.
        tick: at which it is.
    """
    to, sender, message = entry
    kind = (message.message if isinstance(message, Later) else message).__class__
    file, line = place
    return HandlerError(
        f"{file}, line {line}: node {to} is to take {getattr(kind, 'name', kind.__name__)} of node "
        f"{to if sender < 0 else sender} as one of more than {most:,} records of tick {tick:,}, "
        "expected no message without delay that is answered for ever"
    )


def wrong_sending(to: object, message: object, nodes: int) -> ValueError:
    """The error about a message to what is no row of ``nodes``, or of what is no object."""
    if isinstance(message, MessageClass):
        name = message.__name__
        return ValueError(f"the class {name} is sent, expected an object of it, {name}(...)")
    return ValueError(f"a message to node {to!r}, expected a row from 0 to {nodes - 1}")


def do_nothing(_node: Any) -> None:
    """The handler of timers that samplers have."""


def timer_handler(part: Part, name: str) -> Callable[[Any], None]:
    """What takes a node when a timer of a part of the stack fires."""
    assert part.declared is not None
    handlers = part.declared.handlers
    if name in handlers:
        return handlers[name]
    general = handlers["timer"]

    def handle(node: Any) -> None:
        general(node, name)

    return handle


def kind_in(part: Part, kind: Any, nodes: list[Any]) -> Kind | None:
    """What a part of the stack has for messages of a class, None for nothing."""
    if part.declared is None:
        return None
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


def names_in(part: Part) -> Iterator[str]:
    """The names of the messages of a part of the stack."""
    if part.sampler is not None:
        yield from sampler_names(part).values()
    if part.declared is not None:
        yield from part.declared.messages


def bytes_of_message(message: Any) -> int:
    """Bytes of a message, whatever it is."""
    if isinstance(message, SamplerMessage):
        return message.size
    if isinstance(type(message), MessageClass):
        return size_of(message)
    return int(getattr(message, "size_bytes", 0))


def taken_of(tick: int, name: str, sender: int, to: int, message: Any) -> Taken:
    """The record of a trace that a message is."""
    words = words_of(message) if isinstance(type(message), MessageClass) else ()
    return Taken(tick, name, sender, to, tuple(words))
