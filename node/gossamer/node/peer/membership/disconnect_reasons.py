"""Under which causes of the metrics it counts that a peer was not let in, or let go."""

from __future__ import annotations

from typing import Final

from gossamer.node.errors import (
    CertificateError,
    HandshakeFailed,
    NodeError,
    PeerRefused,
    RefusedByPeer,
)
from gossamer.node.monitoring.metrics import Counters
from gossamer.node.transport.base.base import Cause

# All other ends are goodbyes.
_CLOSED: Final = {
    Cause.LOST: "broken",
    Cause.SILENT: "silent",
    Cause.STALLED: "stalled",
    Cause.BAD_FRAME: "bad frame",
    Cause.FLOOD: "flood",
    Cause.UNUSED: "unused",
}


def count_end(counters: Counters, cause: Cause) -> None:
    """Count the end of a connection."""
    counters.close(_CLOSED.get(cause, "goodbye"))


def count_refusal(counters: Counters, error: NodeError | None = None) -> None:
    """Count somebody who came in and was not let in.

    Certificates that prove no membership are counted where they are read, of those who come in
    and of those who are dialled.

    Args:
        counters: where to.
        error: what became of the handshake; None where there was no room for one.
    """
    ours = not isinstance(error, RefusedByPeer)
    if ours and not (error is not None and isinstance(error.__cause__, CertificateError)):
        counters.refuse(_refusal(error))


def _refusal(error: NodeError | None) -> str:
    if error is None:
        return "too many"
    if isinstance(error, HandshakeFailed):
        return error.cause
    if isinstance(error, PeerRefused) and error.cause in (Cause.VERSION, Cause.CLUSTER):
        return str(error.cause)
    return "bad hello"
