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


async def close_stream(stream: trio.abc.Stream, orderly: bool, patience_s: float) -> None:
    """Close ``stream`` whatever happens; one that was cut is not asked to say its goodbye."""
    with trio.CancelScope(shield=True):
        if orderly:
            with trio.move_on_after(patience_s):
                await stream.aclose()
        else:
            await trio.aclose_forcefully(stream)
