"""Connections that come from other addresses of this machine, as if from other machines."""

from __future__ import annotations

import trio


async def from_host(host: str, port: int) -> trio.SocketStream:
    """A connection to ``port`` of 127.0.0.1 from ``host``, which is 127.0.0.2 or the like."""
    plain = trio.socket.socket()
    try:
        await plain.bind((host, 0))
        await plain.connect(("127.0.0.1", port))
    except BaseException:
        plain.close()
        raise
    return trio.SocketStream(plain)
