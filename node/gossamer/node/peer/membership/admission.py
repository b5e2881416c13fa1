"""Who is let in, by their certificates, and how it is counted where one is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from gossamer.node.errors import (
    CertificateError,
    HandshakeFailed,
    NodeError,
    PeerRefused,
    RefusedByPeer,
    RevokedCertificateError,
)
from gossamer.node.monitoring.logs import log
from gossamer.node.monitoring.members import MemberTable
from gossamer.node.monitoring.metrics import Counters
from gossamer.node.security.certificates import read_certificate
from gossamer.node.security.descriptors import DescriptorCache
from gossamer.node.transport.base.base import (
    Address,
    Admitted,
    Cause,
    Farewell,
    Hello,
    PeerIdentity,
)


def admit(
    descriptors: DescriptorCache | None,
    counters: Counters,
    now: Callable[[], float],
    certificate: bytes | None,
    hello: Hello,
) -> PeerIdentity:
    """Who a peer is that showed ``certificate`` and says ``hello``.

    Args:
        descriptors: learn the certificate, know who belongs no more; None without certificates.
        counters: where those refused are counted.
        now: Unix seconds.
        certificate: the peer's, DER; None without certificates.
        hello: how it introduced itself.

    Raises:
        PeerRefused: it is no member.
    """
    if certificate is None or descriptors is None:
        return PeerIdentity(hello.key)
    try:
        peer = descriptors.learn(certificate, hello.key, now())
    except RevokedCertificateError as error:
        counters.refuse("revoked")
        proof = descriptors.revoked.proof_of(error.key)
        raise PeerRefused(str(error), Cause.REVOKED, proof) from error
    except CertificateError as error:
        counters.refuse("certificate")
        raise PeerRefused(str(error)) from error
    return PeerIdentity(peer.key, peer.fingerprint, peer.name)


# How it is counted and logged that a peer was not let in, or let go.
#
# A line about refusals names the address but does not tell one address from another, so that a
# flood from many of them is one line in `logging.repeat_s`, with a count.


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


# What connections tell the table of members.


_BROKEN = frozenset({Cause.LOST, Cause.SILENT, Cause.STALLED})


def note_connected(
    members: MemberTable, admitted: Admitted, descriptors: DescriptorCache | None
) -> None:
    """Note that a member is connected, and what it and its certificate say of it."""
    identity, hello = admitted.identity, admitted.hello
    der = None if descriptors is None else descriptors.find_certificate(identity.key)
    members.connected(
        identity.key,
        identity.name,
        tuple(map(str, hello.addresses)),
        hello.software.removeprefix("gossamer "),
        None if der is None else read_certificate(der).not_after,
    )


def note_disconnected(members: MemberTable, identity: PeerIdentity, farewell: Farewell) -> None:
    """Note that a member is connected no more."""
    left = farewell.cause is Cause.SHUTDOWN and not farewell.by_us
    broken = farewell.cause in _BROKEN
    members.disconnected(identity.key, left=left, broken=broken, cause=str(farewell))
