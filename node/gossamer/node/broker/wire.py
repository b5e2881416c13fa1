"""Frames between brokers: a message of the protocol as CBOR, in parts where it is long.

What came is put together again up to a bound, and then read as the codec of the family says: a
sender that breaks a rule is found out before its broker hears of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import cbor2

from gossamer.node.errors import BadFrame
from gossamer.node.peer.frames.frame_types import RENEWAL_FRAMES, REVOCATION_FRAMES
from gossamer.node.transport.frames import (
    CONTROL_FRAMES,
    count_items,
    encode_frame,
    plain_decoder,
)
from gossamer.node.transport.schema import (
    Bytes,
    Flag,
    Frame,
    FrameTypes,
    Integer,
    ListOf,
    Text,
)
from gossamer.protocol.content.limits import MAX_NAME

PART_BYTES: Final = 256 << 10
# A broker's whole tables have to fit: a million subscriptions of a hundred bytes.
MESSAGE_BYTES: Final = 128 << 20
# Values that any message may consist of, and one more for so many bytes: a critical distance has
# seven in 30, a subscription seven in 45.
_ITEMS: Final = 16_384
_BYTES_PER_ITEM: Final = 4
_DEPTH: Final = 8

# How far a question about a message's route travels, and hops that are told at most.
MAX_HOPS: Final = 64
MAX_ROUTE: Final = 1024
# Fields of a hop: the broker, its name, from whom it came, and to whom it went.
MAX_WAYS: Final = 64

_WHO: Final = Text(MAX_NAME + 16)
OVERLAY_FRAMES: Final[FrameTypes] = CONTROL_FRAMES.extended(
    {**REVOCATION_FRAMES, **RENEWAL_FRAMES}
).extended(
    {
        "broker": {"session": Integer(0), "part": Bytes(PART_BYTES), "last": Flag()},
        "route wanted": {
            "question": Integer(0),
            "broker": Text(MAX_NAME),
            "number": Integer(0),
            "hops": Integer(0, MAX_HOPS),
        },
        "route": {
            "question": Integer(0),
            "hops": ListOf(ListOf(_WHO, MAX_WAYS), MAX_ROUTE),
        },
    }
)
"""What brokers send each other once they are connected."""


def encode_parts(session: int, plain: list[object]) -> Iterator[bytes]:
    """The frames that carry a message of a session, in order."""
    data = cbor2.dumps(plain)
    for first in range(0, len(data), PART_BYTES):
        part = data[first : first + PART_BYTES]
        last = first + PART_BYTES >= len(data)
        yield encode_frame("broker", session=session, part=part, last=last)


class BrokerFrames:
    """Puts together the parts that came from one neighbour.

    While one connection takes another's place, both bring frames: those of the earlier session,
    which the broker would not take any more, are left out.
    """

    def __init__(self, read: Callable[[Any], Any]) -> None:
        self._read = read
        self._session = 0
        self._parts = bytearray()

    def take(self, frame: Frame) -> Any:
        """The frame of the protocol that ends with this part, None while there is more to come.

        Raises:
            RemoteProtocolError: it breaks a rule.
        """
        if frame["session"] < self._session:
            return None
        if frame["session"] > self._session:
            self._session = frame["session"]
            self._parts.clear()
        if len(self._parts) + len(frame["part"]) > MESSAGE_BYTES:
            raise BadFrame("broker", "length", "more", f"at most {MESSAGE_BYTES} bytes in all")
        self._parts += frame["part"]
        if not frame["last"]:
            return None
        data, self._parts = self._parts, bytearray()
        return self._read(_plain_data(data))


def _plain_data(data: bytearray) -> Any:
    items = _ITEMS + len(data) // _BYTES_PER_ITEM
    if count_items(data, items) > items:
        raise BadFrame("broker", "content", "more values", f"at most {items} in {len(data)} bytes")
    decoder = plain_decoder(data, _DEPTH)
    try:
        found = decoder.decode()
    except (cbor2.CBORDecodeError, ValueError, RecursionError) as error:
        raise BadFrame("broker", "content", f"unreadable ({error})"[:200], "plain CBOR") from None
    if decoder.fp.tell() != len(data):
        raise BadFrame("broker", "length", "bytes too many", "nothing after the message")
    return found
