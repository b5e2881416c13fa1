"""Messages as plain data and back: what hosts send over links and write to their logs.

A message is a list: its kind, then its fields in the order in which its class names them (`SHAPES`;
`shapes` and `plain` say what fields are made of). A frame begins with session and number. Who reads
a frame that came from another broker gets a frame or a `MalformedMessageError`, whatever was sent:
no shape holds another without a bound, and nothing is made that the data does not pay for.

    >>> from gossamer.protocol.brokers.tree.memory import messages
    >>> from gossamer.protocol.brokers.tree import codec
    >>> from gossamer.protocol.brokers.core.identifiers import Id
    >>> data = codec.plain_frame(messages.Frame(1, 7, messages.Unadvertisement(Id("B1", 3))))
    >>> data
    [1, 7, 'unadvertisement', ['B1', 3]]
    >>> codec.read_frame(data)
    Frame(session=1, number=7, message=Unadvertisement(id=Id(broker='B1', number=3)))
    >>> codec.read_frame([1, 7, 'unadvertisement', ['B1', -3]])
    Traceback (most recent call last):
    ...
    gossamer.protocol.brokers.core.errors.MalformedMessageError: unadvertisement: id is -3, \
expected a whole number from 0 to 9223372036854775807
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gossamer.protocol.brokers.core.codec import MAX_STANDING, Codec
from gossamer.protocol.brokers.core.errors import MalformedMessageError
from gossamer.protocol.brokers.core.plain import (
    UNNAMED,
    WHOLE,
    malformed,
    read_id,
    read_list,
    read_whole,
    shown,
)
from gossamer.protocol.brokers.core.shapes import (
    COUNT,
    FILTER,
    FLAG,
    ID,
    VALUES,
    Kinds,
    Part,
    Shape,
    many,
    maybe,
    same,
    shape,
)
from gossamer.protocol.brokers.tree.memory import messages as m
from gossamer.protocol.brokers.tree.memory.messages import CriticalDistance, Frame

MAX_TUPLES: Final = 100_000
"""Most critical distances of an unsubscription."""
MAX_HOPS: Final = 1 << 31
"""Larger counts of hops are read as this one, so that adding to them makes no frame malformed."""


def _read_critical(data: object, field: str) -> CriticalDistance:
    if type(data) is not list or len(data) != 2 or type(data[1]) is not list or not data[1]:
        raise malformed(field, data, "an advertisement and its distances")
    return CriticalDistance(read_id(data[0], field), _distances(data[1], field))


def _read_hops(data: object, field: str) -> int:
    return max(-MAX_HOPS, min(int(_any_hops(data, field)), MAX_HOPS))


_any_hops: Final = read_whole(-WHOLE, WHOLE - 1)
_distances: Final = read_list(_read_hops, 2)


_PASSED: Final = Part(same, lambda data, field: _read_hops(COUNT.read(data, field), field))
_TUPLES: Final = maybe(
    many(Part(lambda one: [list(one[0]), list(one[1])], _read_critical), MAX_TUPLES)
)


_INNER: Final = {
    "subscription": shape(m.Subscription, ID, FILTER, FLAG),
    "unsubscription": shape(m.Unsubscription, ID, _TUPLES, FLAG),
}
_ADVERTISEMENT: Final = shape(m.Advertisement, ID, FILTER)


BETWEEN_BROKERS: Final[Mapping[str, Shape]] = {
    **_INNER,
    "advertisement": _ADVERTISEMENT,
    "unadvertisement": shape(m.Unadvertisement, ID),
    "settled": shape(m.Settled, ID),
    "publication": shape(m.Publication, ID, ID, VALUES, _PASSED, _PASSED),
    "packed": shape(m.Packed, many(Kinds(_INNER).part, MAX_STANDING)),
    "synchronise": shape(
        m.Synchronise,
        many(Kinds({"advertisement": _ADVERTISEMENT}).part, MAX_STANDING),
        many(Kinds({"subscription": _INNER["subscription"]}).part, MAX_STANDING),
    ),
    "synchronise request": shape(m.SynchroniseRequest),
    "acknowledge": shape(m.Acknowledge, COUNT, COUNT),
}
"""Shapes of what brokers send each other."""

_BETWEEN_BROKERS: Final = Kinds(BETWEEN_BROKERS)
check_content: Final = _BETWEEN_BROKERS.check
"""`Codec.check_between` of what is in a frame."""


class _FrameCodec(Codec):
    """Messages of tree brokers, which come over links in frames: session, number, message."""

    def plain_between(self, frame: Frame) -> list[object]:
        return plain_frame(frame)

    def read_between(self, data: object) -> Frame:
        return read_frame(data)


CODEC: Final = _FrameCodec(
    {"frame": shape(m.Frame, COUNT, COUNT, _BETWEEN_BROKERS.part)}, inside=BETWEEN_BROKERS
)
"""What tree brokers take."""


def plain_frame(frame: Frame) -> list[object]:
    """A frame as plain data; raises `ContentError` for content that nobody would read."""
    return [frame.session, frame.number, *_BETWEEN_BROKERS.plain(frame.message)]


def read_frame(data: object) -> Frame:
    """The frame that came as plain data; raises `MalformedMessageError`."""
    if type(data) is not list or len(data) < 3:
        expected = "a session, a number and a message"
        raise MalformedMessageError(UNNAMED, "content", shown(data), expected)
    session, number = COUNT.read(data[0], "session"), COUNT.read(data[1], "number")
    return Frame(session, number, _BETWEEN_BROKERS.read(data[2:], "message"))
