"""Questions that one peer asks another by its key, requests as payloads, and announcements.

A question names a service; whoever offers it answers at once, in one step. The asking peer connects
to the other one if it is not connected. Nothing is asked twice here, so that a question without an
answer may have been taken or not.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, Protocol

import trio
from attrs import define, field, frozen

from gossamer.node.errors import BadFrame, NoAnswerError, PeerUnreachable, TransportBroken
from gossamer.node.monitoring.metrics import Counters
from gossamer.node.peer.frames.address_book import AddressBook
from gossamer.node.peer.frames.frame_types import MESSAGE_FRAMES, FrameService
from gossamer.node.security.identity import decode, encode
from gossamer.node.transport.base import Address
from gossamer.node.transport.frames import encode_frame
from gossamer.node.transport.links import ConnectionPool
from gossamer.node.transport.schema import Frame
from gossamer.protocol.content.attributes import (
    Attribute,
    BooleanAttribute,
    EnumerationAttribute,
)
from gossamer.protocol.content.limits import MAX_PAYLOAD_BYTES
from gossamer.protocol.content.schema import SchemaVersion
from gossamer.protocol.content.values import Payload
from gossamer.protocol.kernel.errors import CapacityError, ConfigError, ContentError
from gossamer.protocol.peer.space.encoding import ABSENT, EncodedBox

# Takes the key of the peer that asks and the body of its question, and returns that of the answer.
# It raises ValueError for what no peer that keeps to the protocol asks.
Service = Callable[[int, bytes], bytes]


class Unicast(Protocol):
    """What applications of the node need of `Messages`."""

    @property
    def addresses(self) -> Sequence[Address]:
        """Where this peer listens."""
        ...

    @property
    def connected(self) -> Mapping[int, float]:
        """Keys of the peers that are connected, and since when."""
        ...

    def offer(self, name: str, service: Service) -> None:
        """Have ``service`` answer questions from now on."""
        ...

    async def ask(
        self, key: int, addresses: Sequence[Address], service: str, body: bytes, patience_s: float
    ) -> bytes:
        """Ask peer ``key``; return its answer.

        Raises:
            NoAnswerError: none came; the question may have been taken or not.
        """
        ...


@define(eq=False)
class _Asked:
    key: int
    over: trio.Event = field(factory=trio.Event)
    answer: Frame | None = None


class Messages(FrameService):
    """The questions of one peer and its answers.

    Attributes:
        addresses: where this peer listens.
    """

    frames = MESSAGE_FRAMES

    def __init__(
        self, key: int, pool: ConnectionPool, address_book: AddressBook, counters: Counters
    ) -> None:
        self.addresses: Sequence[Address] = ()
        self._key = key
        self._pool = pool
        self._address_book = address_book
        self._counters = counters
        self._services: dict[str, Service] = {}
        self._asked: dict[int, _Asked] = {}
        self._number = 0

    @property
    def connected(self) -> Mapping[int, float]:
        """Keys of the peers that are connected, and since when."""
        return {connection.identity.key: connection.opened_at for connection in self._pool}

    def offer(self, name: str, service: Service) -> None:
        """Have ``service`` answer questions from now on."""
        self._services[name] = service

    async def ask(
        self, key: int, addresses: Sequence[Address], service: str, body: bytes, patience_s: float
    ) -> bytes:
        """Ask peer ``key``; return its answer.

        Args:
            key: whom; this peer itself too.
            addresses: where it listens, in case that nothing is known of it.
            service: what is asked for.
            body: the question.
            patience_s: how long to wait for the answer, and for a connection.

        Raises:
            NoAnswerError: none came; the question may have been taken or not.
        """
        if key == self._key:
            await trio.lowlevel.checkpoint()
            return self._services[service](key, body)
        self._number += 1
        number = self._number
        asked = self._asked[number] = _Asked(key)
        frame = encode_frame("question", service=service, number=number, body=body)
        why = f"it did not answer within {patience_s:g} s"
        try:
            with trio.move_on_after(patience_s):
                self._learn(key, addresses)
                await self._pool.send(key, frame)
                await asked.over.wait()
                why = "the connection ended before its answer"
        except (PeerUnreachable, TransportBroken, CapacityError) as error:
            why = str(error)
        finally:
            del self._asked[number]
        if asked.answer is None:
            raise NoAnswerError(key, why)
        if "body" not in asked.answer:
            raise NoAnswerError(key, f"it does not offer {service!r}")
        answer: bytes = asked.answer["body"]
        return answer

    def receive(self, sender: int, frame: Frame) -> None:
        """Take a question or an answer.

        Raises:
            RemoteProtocolError: the question is none.
        """
        if frame["type"] == "answer":
            asked = self._asked.get(frame["number"])
            if asked is not None and asked.key == sender:
                asked.answer = frame
                asked.over.set()
            return
        service, fields = self._services.get(frame["service"]), {}
        if service is not None:
            try:
                fields = {"body": service(sender, frame["body"])}
            except ValueError as error:
                raise BadFrame("question", "body", str(error)[:80], frame["service"]) from None
        if not self._pool.try_send(
            sender, encode_frame("answer", number=frame["number"], **fields)
        ):
            self._counters.drop("queue full")

    def forget(self, key: int) -> None:
        """A peer is connected no more: what it was asked is not answered."""
        for asked in self._asked.values():
            if asked.key == key:
                asked.over.set()

    def _learn(self, key: int, addresses: Sequence[Address]) -> None:
        """Note where a peer listens, unless something is known already."""
        with suppress(CapacityError):
            if not self._address_book.addresses_of(key):
                self._address_book.learn(key, addresses)


# Requests as payloads: where to reply to, and what the application put into the event.
#
# An envelope is a payload of a content type of its own, so that events are what they are otherwise:
# signed, kept and passed on as a whole, also by peers that know nothing of requests.


REQUEST_TYPE: Final = "application/vnd.gossamer.request"
# What an envelope takes beside the application's payload.
ENVELOPE_BYTES: Final = 1 << 10
MOST_ADDRESSES: Final = 4
MAX_TOKEN: Final = 2048


@frozen
class ReplyTo:
    """Where the replies to a request go.

    Attributes:
        key: permanent key of the requester's peer.
        request: the request's number there.
        addresses: where that peer listens.
        patience_s: how long the requester waits.
    """

    key: int
    request: int
    addresses: tuple[Address, ...]
    patience_s: float

    def to_token(self) -> str:
        """As text that says nothing to applications."""
        return base64.urlsafe_b64encode(encode(self._plain())).decode()

    @classmethod
    def from_token(cls, token: str) -> ReplyTo:
        """What `to_token` made of it; raises ValueError for anything else."""
        try:
            return cls._of_plain(decode(base64.urlsafe_b64decode(token)))
        except (binascii.Error, ValueError) as error:
            raise ValueError(f"{token[:60]!r} is no token of a request") from error

    def _plain(self) -> list[object]:
        where = [str(one) for one in self.addresses[:MOST_ADDRESSES]]
        return [self.key, self.request, where, round(1000 * self.patience_s)]

    @classmethod
    def _of_plain(cls, plain: object) -> ReplyTo:
        if not isinstance(plain, list) or [type(one) for one in plain] != [int, int, list, int]:
            raise ValueError("no token of a request")
        key, request, where, milliseconds = plain
        try:
            addresses = tuple(Address.parse(one) for one in where[:MOST_ADDRESSES])
        except (ConfigError, AttributeError, TypeError) as error:
            raise ValueError(f"no token of a request ({error})") from None
        if not (0 <= key < 1 << 63 and 0 <= request < 1 << 64 and milliseconds > 0):
            raise ValueError("no token of a request")
        return cls(key, request, addresses, milliseconds / 1000)


def enclosed(payload: Payload | None, reply_to: ReplyTo) -> Payload:
    """The payload of a request.

    Raises:
        ContentError: beside its envelope the application's payload has no room.
    """
    most = MAX_PAYLOAD_BYTES - ENVELOPE_BYTES
    if payload is not None and len(payload.data) > most:
        size = len(payload.data)
        raise ContentError("", f"a payload of a request takes {most} bytes, not {size}")
    inner = [] if payload is None else [payload.content_type, payload.data]
    return Payload(encode([*reply_to._plain(), *inner]), REQUEST_TYPE)


def opened(payload: Payload | None) -> tuple[Payload | None, ReplyTo | None]:
    """What the application put into an event, and where to reply to if the event is a request.

    A payload that only says that it is a request is the application's own.
    """
    if payload is None or payload.content_type != REQUEST_TYPE:
        return payload, None
    try:
        plain = decode(payload.data)
        reply_to = ReplyTo._of_plain(plain[:4])
        return _inner(plain[4:]), reply_to
    except (ValueError, TypeError, ContentError):
        return payload, None


def _inner(parts: Sequence[object]) -> Payload | None:
    if not parts:
        return None
    content_type, data = parts
    return Payload(data, content_type)  # type: ignore[arg-type]  # it checks both


# Announcements: events to the peers that subscribe to an expression, not to applications.
#
# An announcement has the place in the hashed space of an event that would match, so that it finds
# the subscribers' peers as such an event does, and is held and replayed for them. Its values mean
# nothing; its payload says what it is.


ANNOUNCEMENT_TYPE: Final = "application/vnd.gossamer.announcement"


def corner_of(box: EncodedBox) -> tuple[int, ...]:
    """A point in the box: its least corner, without the attributes that it leaves open."""
    corner = [low if known else ABSENT for low, known in zip(box.low, box.constrained, strict=True)]
    if not any(box.constrained):
        corner[0] = box.low[0]
    return tuple(corner)


def some_event(version: SchemaVersion) -> dict[str, object]:
    """An event that may be published by this version of the schema."""
    attribute = next(iter(version.active))
    return {attribute.name: _some_value(attribute)}


def _some_value(attribute: Attribute) -> object:
    if isinstance(attribute, EnumerationAttribute):
        return attribute.values[0]
    return False if isinstance(attribute, BooleanAttribute) else attribute.minimum
