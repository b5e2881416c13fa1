"""Messages of a join on a byte stream, the bounds on them, and the words for what breaks."""

from __future__ import annotations

import ssl
from typing import Final

import trio
from attrs import field, frozen

from gossamer.node.errors import (
    JoinRequestError,
)

_LENGTH_BYTES: Final = 4
BROKEN: Final = (OSError, ssl.SSLError, trio.BrokenResourceError, trio.ClosedResourceError)


@frozen
class JoinLimits:
    """What the join server puts up with.

    Attributes:
        connections: at a time; the oldest makes room for one more.
        per_address: of those, from one address.
        asking: of those, with a request that waits to be heard; who is known waits beside them.
        exchange_s: seconds for a whole exchange, beside the wait for being heard.
        refusals: refused attempts of an address after which it has to wait.
        refusal_s: seconds after which one of them is forgotten.
        first_wait_s, longest_wait_s: how long the next request of that address waits to be heard:
            twice as long with each more that was refused. Shorter than an exchange, for which the
            other side waits.
        addresses: addresses whose refused attempts are remembered.
    """

    connections: int = field(default=32)
    per_address: int = field(default=16)
    asking: int = field(default=8)
    exchange_s: float = field(default=10.0)
    refusals: int = field(default=10)
    refusal_s: float = field(default=6.0)
    first_wait_s: float = field(default=0.5)
    longest_wait_s: float = field(default=4.0)
    addresses: int = field(default=1024)


async def send_message(stream: trio.abc.SendStream, message: bytes) -> None:
    """Send one message, its length before it."""
    await stream.send_all(len(message).to_bytes(_LENGTH_BYTES, "big") + message)


async def receive_message(stream: trio.abc.ReceiveStream, limit: int) -> bytes:
    """The next message, of at most ``limit`` bytes.

    Raises:
        JoinRequestError: it is longer.
        trio.BrokenResourceError: the stream ends before the message does.
    """
    length = int.from_bytes(await _receive_exactly(stream, _LENGTH_BYTES), "big")
    if length > limit:
        raise JoinRequestError(f"a join message has {length} bytes, expected at most {limit}")
    return await _receive_exactly(stream, length)


async def _receive_exactly(stream: trio.abc.ReceiveStream, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        piece = await stream.receive_some(count - len(data))
        if not piece:
            raise trio.BrokenResourceError("the connection was closed")
        data += piece
    return bytes(data)


def address_text(host: str, port: int) -> str:
    """An address for people."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def why(error: BaseException) -> str:
    """What went wrong at one address, in words."""
    if isinstance(error, trio.TooSlowError):
        return "no answer in time"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or "the connection was closed"
