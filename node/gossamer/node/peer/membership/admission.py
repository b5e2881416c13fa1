"""Who is let in: members of the cluster, by their certificates."""

from __future__ import annotations

from gossamer.node.errors import CertificateError, PeerRefused, RevokedCertificateError
from gossamer.node.monitoring.metrics import Counters
from gossamer.node.security.descriptors import DescriptorCache
from gossamer.node.security.revocation import RevocationList
from gossamer.node.transport.base.base import Cause, Hello, PeerIdentity


def admit(
    certificate: bytes,
    hello: Hello,
    descriptors: DescriptorCache,
    revoked: RevocationList,
    counters: Counters,
    now: float,
) -> PeerIdentity:
    """Who a peer is that showed ``certificate`` and says ``hello``.

    Args:
        certificate: the peer's, DER.
        hello: how it introduced itself.
        descriptors: learns the certificate.
        revoked: gives the proof for one that belongs no more.
        counters: where those refused are counted.
        now: Unix seconds.

    Raises:
        PeerRefused: it is no member.
    """
    try:
        peer = descriptors.learn(certificate, hello.key, now)
    except RevokedCertificateError as error:
        counters.refuse("revoked")
        proof = revoked.proof_of(error.key)
        raise PeerRefused(str(error), Cause.REVOKED, proof) from error
    except CertificateError as error:
        counters.refuse("certificate")
        raise PeerRefused(str(error)) from error
    return PeerIdentity(peer.key, peer.fingerprint, peer.name)
