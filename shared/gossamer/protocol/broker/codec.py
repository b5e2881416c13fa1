"""Messages as plain data and back: what hosts send over links and write to their logs.

A message is a list: its kind, then its fields in the order in which its class names them (`SHAPES`;
`plain` says what fields are made of). A frame begins with session and number. Who reads a frame
that came from another broker gets a frame or a `MalformedMessageError`, whatever was sent: no shape
holds another without a bound, and nothing is made that the data does not pay for.

    >>> from gossamer.protocol.broker import codec, messages
    >>> from gossamer.protocol.broker.identifiers import Id
    >>> data = codec.plain_frame(messages.Frame(1, 7, messages.Unadvertisement(Id("B1", 3))))
    >>> data
    [1, 7, 'unadvertisement', ['B1', 3]]
    >>> codec.read_frame(data)
    Frame(session=1, number=7, message=Unadvertisement(id=Id(broker='B1', number=3)))
    >>> codec.read_frame([1, 7, 'unadvertisement', ['B1', -3]])
    Traceback (most recent call last):
    ...
    gossamer.protocol.broker.errors.MalformedMessageError: unadvertisement: id is -3, expected \
a whole number from 0 to 9223372036854775807
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from attrs import fields, frozen

from gossamer.protocol.broker import messages as m
from gossamer.protocol.broker.errors import MalformedMessageError
from gossamer.protocol.broker.messages import CriticalDistance, Frame, Message
from gossamer.protocol.broker.plain import (
    UNNAMED,
    WHOLE,
    Read,
    malformed,
    plain_filter,
    plain_values,
    read_filter,
    read_flag,
    read_id,
    read_list,
    read_name,
    read_values,
    read_whole,
    shown,
)

MAX_STANDING: Final = 1_000_000
"""Most advertisements or subscriptions that one `Synchronise` tells, or one `Packed` packs."""
MAX_TUPLES: Final = 100_000
"""Most critical distances of an unsubscription."""
MAX_ASKED: Final = 10_000
"""Most filters with which a client attaches."""
MAX_HOPS: Final = 1 << 31
"""Larger counts of hops are read as this one, so that adding to them makes no frame malformed."""


@frozen
class Part:
    """A field of a message: how it becomes plain data, and how it is read."""

    plain: Callable[[Any], object]
    read: Read


@frozen
class Shape:
    """A kind of message and its parts, in the order of its class."""

    kind: type
    parts: Mapping[str, Part]

    def plain(self, message: object) -> list[object]:
        """The fields of a message."""
        return [part.plain(getattr(message, name)) for name, part in self.parts.items()]

    def read(self, name: str, data: list[object]) -> Any:
        """The message with these fields; raises `MalformedMessageError`."""
        if len(data) != len(self.parts):
            expected = f"{len(self.parts)} fields"
            raise MalformedMessageError(name, "length", f"{len(data)} fields", expected)
        found = zip(self.parts.items(), data, strict=True)
        try:
            return self.kind(*[part.read(one, field) for (field, part), one in found])
        except MalformedMessageError as error:
            if error.message != UNNAMED:
                raise
            raise MalformedMessageError(name, error.field, error.value, error.expected) from None


def _same(value: object) -> object:
    return value


def _maybe(part: Part) -> Part:
    return Part(
        lambda value: None if value is None else part.plain(value),
        lambda data, field: None if data is None else part.read(data, field),
    )


def _many(part: Part, most: int) -> Part:
    return Part(lambda value: [part.plain(one) for one in value], read_list(part.read, most))


def _read_critical(data: object, field: str) -> CriticalDistance:
    if type(data) is not list or len(data) != 2 or type(data[1]) is not list or not data[1]:
        raise malformed(field, data, "an advertisement and its distances")
    return CriticalDistance(read_id(data[0], field), _distances(data[1], field))


def _read_hops(data: object, field: str) -> int:
    return max(-MAX_HOPS, min(int(_any_hops(data, field)), MAX_HOPS))


_any_hops: Final = read_whole(-WHOLE, WHOLE - 1)
_distances: Final = read_list(_read_hops, 2)


def _read_asked(data: object, field: str) -> tuple[str, object]:
    if type(data) is not list or len(data) != 2:
        raise malformed(field, data, "a label and a filter")
    return read_name(data[0], field), read_filter(data[1], field)


_ID: Final = Part(list, read_id)
_NAME: Final = Part(_same, read_name)
_FLAG: Final = Part(_same, read_flag)
_COUNT: Final = Part(_same, read_whole())
_PASSED: Final = Part(_same, lambda data, field: _read_hops(_COUNT.read(data, field), field))
_FILTER: Final = Part(plain_filter, read_filter)
_VALUES: Final = Part(plain_values, read_values)
_ASKED: Final = _many(Part(lambda one: [one[0], plain_filter(one[1])], _read_asked), MAX_ASKED)
_TUPLES: Final = _maybe(
    _many(Part(lambda one: [list(one[0]), list(one[1])], _read_critical), MAX_TUPLES)
)


def _shape(kind: type, *parts: Part) -> Shape:
    names = [field.name for field in fields(kind)]
    return Shape(kind, dict(zip(names, parts, strict=True)))


_INNER: Final = {
    "subscription": _shape(m.Subscription, _ID, _FILTER, _FLAG),
    "unsubscription": _shape(m.Unsubscription, _ID, _TUPLES, _FLAG),
}
_ADVERTISEMENT: Final = _shape(m.Advertisement, _ID, _FILTER)


def _part_of(shapes: Mapping[str, Shape]) -> Part:
    return Part(lambda one: _plain(shapes, one), lambda data, field: _read(shapes, data, field))


BETWEEN_BROKERS: Final[Mapping[str, Shape]] = {
    **_INNER,
    "advertisement": _ADVERTISEMENT,
    "unadvertisement": _shape(m.Unadvertisement, _ID),
    "publication": _shape(m.Publication, _ID, _ID, _VALUES, _PASSED, _PASSED),
    "packed": _shape(m.Packed, _many(_part_of(_INNER), MAX_STANDING)),
    "synchronise": _shape(
        m.Synchronise,
        _many(_part_of({"advertisement": _ADVERTISEMENT}), MAX_STANDING),
        _many(_part_of({"subscription": _INNER["subscription"]}), MAX_STANDING),
    ),
    "synchronise request": _shape(m.SynchroniseRequest),
    "acknowledge": _shape(m.Acknowledge, _COUNT, _COUNT),
}
"""Shapes of what brokers send each other."""

SHAPES: Final[Mapping[str, Shape]] = {
    **BETWEEN_BROKERS,
    "frame": _shape(m.Frame, _COUNT, _COUNT, _part_of(BETWEEN_BROKERS)),
    "attach": _shape(m.Attach, _ASKED, _ASKED),
    "detach": _shape(m.Detach),
    "move": _shape(m.Move),
    "advertise": _shape(m.Advertise, _NAME, _FILTER),
    "unadvertise": _shape(m.Unadvertise, _NAME),
    "subscribe": _shape(m.Subscribe, _NAME, _FILTER),
    "unsubscribe": _shape(m.Unsubscribe, _NAME),
    "publish": _shape(m.Publish, _VALUES),
    "neighbour up": _shape(m.NeighbourUp, _NAME),
    "neighbour down": _shape(m.NeighbourDown, _NAME),
    "neighbour gone": _shape(m.NeighbourGone, _NAME),
    "congestion": _shape(m.Congestion, _COUNT),
    "timer fired": _shape(m.TimerFired, _NAME, _COUNT),
    "restarted": _shape(m.Restarted),
}
"""Shapes of everything that `Broker.handle` takes."""

_KIND_NAMES: Final = {shape.kind: name for name, shape in SHAPES.items()}


def plain_frame(frame: Frame) -> list[object]:
    """A frame as plain data; raises `ContentError` for content that nobody would read."""
    return [frame.session, frame.number, *_plain(BETWEEN_BROKERS, frame.message)]


def read_frame(data: object) -> Frame:
    """The frame that came as plain data; raises `MalformedMessageError`."""
    if type(data) is not list or len(data) < 3:
        expected = "a session, a number and a message"
        raise MalformedMessageError(UNNAMED, "content", shown(data), expected)
    session, number = _COUNT.read(data[0], "session"), _COUNT.read(data[1], "number")
    return Frame(session, number, _read(BETWEEN_BROKERS, data[2:], "message"))


def plain_message(message: Message) -> list[object]:
    """Whatever `Broker.handle` takes, as plain data; raises as `plain_frame` does."""
    return _plain(SHAPES, message)


def read_message(data: object) -> Message:
    """What `plain_message` made plain data of; raises `MalformedMessageError`."""
    found: Message = _read(SHAPES, data, "message")
    return found


def _plain(shapes: Mapping[str, Shape], message: object) -> list[object]:
    name = _KIND_NAMES[type(message)]
    return [name, *shapes[name].plain(message)]


def _read(shapes: Mapping[str, Shape], data: object, field: str) -> Any:
    if type(data) is not list or not data or type(data[0]) is not str:
        raise malformed(field, data, "a list that begins with the kind of a message")
    shape = shapes.get(data[0])
    if shape is None:
        raise malformed(field, data[0], "one of " + ", ".join(shapes))
    return shape.read(data[0], data[1:])
