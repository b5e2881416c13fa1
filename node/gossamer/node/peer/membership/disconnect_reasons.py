"""How it is counted and logged that a peer was not let in, or let go.

A line about refusals names the address but does not tell one address from another, so that a flood
from many of them is one line in `logging.repeat_s`, with a count.
"""

from __future__ import annotations

from typing import Final

from gossamer.node.errors import (
    CertificateError,
    HandshakeFailed,
    NodeError,
    PeerRefused,
    RefusedByPeer,
)
from gossamer.node.monitoring.logs import log
from gossamer.node.monitoring.metrics import Counters
from gossamer.node.transport.base.base import Address, Cause, Farewell, PeerIdentity

# All other ends are goodbyes.
_CLOSED: Final = {
    Cause.LOST: "broken",
    Cause.SILENT: "silent",
    Cause.STALLED: "stalled",
    Cause.BAD_FRAME: "bad frame",
    Cause.FLOOD: "flood",
    Cause.UNUSED: "unused",
}


# Ends that say that something is wrong with one of both.
_CUT: Final = frozenset(
    {
        *(Cause.BAD_FRAME, Cause.FLOOD, Cause.STALLED, Cause.SILENT),
        *(Cause.REFUSED, Cause.REVOKED, Cause.VERSION, Cause.CLUSTER, Cause.BUSY),
    }
)


def count_end(counters: Counters, identity: PeerIdentity, farewell: Farewell) -> None:
    """Count the end of a connection; log one that was not in order."""
    counters.close(_CLOSED.get(farewell.cause, "goodbye"))
    if farewell.cause in _CUT:
        event = "a peer was cut" if farewell.by_us else "cut by a peer"
        more = {"why": farewell.detail} if farewell.detail else {}
        log.warning(event, peer=str(identity), cause=str(farewell.cause), **more)


def count_refusal(
    counters: Counters, error: NodeError | None = None, remote: Address | None = None
) -> None:
    """Count and log somebody who came in and was not let in.

    Certificates that prove no membership are counted where they are read, of those who come in
    and of those who are dialled.

    Args:
        counters: where to.
        error: what became of the handshake; None where there was no room for one.
        remote: where it came from, as far as that is known.
    """
    where = {} if remote is None else {"address": str(remote)}
    if isinstance(error, RefusedByPeer):
        log.warning("refused by a peer", cause=str(error), **where)
    else:
        why = {} if error is None else {"why": str(error)}
        log.warning("a peer was refused", cause=_refusal(error), **where, **why)
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
