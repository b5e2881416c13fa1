"""Requests as payloads: where to reply to, and what the application put into the event.

An envelope is a payload of a content type of its own, so that events are what they are otherwise:
signed, kept and passed on as a whole, also by peers that know nothing of requests.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Final

from attrs import frozen

from gossamer.node.security.encoding import decode, encode
from gossamer.node.transport.base.base import Address
from gossamer.protocol.content.errors import ContentError
from gossamer.protocol.content.limits import MAX_PAYLOAD_BYTES
from gossamer.protocol.content.values import Payload
from gossamer.protocol.kernel.errors import ConfigError

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
