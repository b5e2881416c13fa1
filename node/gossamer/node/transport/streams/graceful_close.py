"""Closing so that the last word is heard."""

from __future__ import annotations

import trio

from gossamer.node.transport.base.base import CHUNK_BYTES

# What is read and dropped after a goodbye to a peer that breaks rules, so that it gets to read it.
DRAINED_BYTES = 1 << 20


async def drain(stream: trio.abc.ReceiveStream) -> None:
    """Read and drop what still comes, within bounds of bytes; the caller bounds the time.

    A socket that is closed with bytes unread resets the connection, and the peer may then lose
    the goodbye or alert that it was just sent.
    """
    dropped = 0
    try:
        while dropped < DRAINED_BYTES:
            data = await stream.receive_some(CHUNK_BYTES)
            if not data:
                return
            dropped += len(data)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        return
