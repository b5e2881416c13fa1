"""Renewing certificates: what a peer asks, what the holder of the authority's key answers.

A renewed certificate is for the same key, so that a peer keeps its place, its state, and the names
of its applications. Whoever asks proves by a signature that it holds the key; that its certificate
has expired is no hindrance, that it is revoked is. Neither request nor answer is secret: they may
travel by whoever passes them on, and by hand.

The authority's own certificate is renewed with the same key and the same beginning, so that the old
one and the new one verify all certificates that were ever issued.
"""

from __future__ import annotations

import base64
import hashlib
import textwrap
from typing import Final

from attrs import evolve, frozen

from gossamer.node.errors import (
    ForeignCertificateError,
    JoinError,
)
from gossamer.node.security.certificates import (
    AUTHORITY_LIFETIME_S,
    CERTIFICATE_LIMIT,
    CLOCK_SLACK_S,
    Authority,
    PeerCertificate,
    Revoked,
    check_name,
    check_time,
    read_authority,
    verify_issued,
)
from gossamer.node.security.cluster import Membership
from gossamer.node.security.identity import SIGNATURE_BYTES, Identity, decode, encode, verify
from gossamer.protocol.kernel.errors import ConfigError

CONTEXT: Final = "renewal 2"
# A certificate may be renewed once this part of its time is over, and is to be from the second on.
RENEWABLE: Final = 1 / 2
DUE: Final = 2 / 3
# Bytes of a request or answer as text; both certificates take 1.5 KB of it.
TEXT_LIMIT: Final = 4 * CERTIFICATE_LIMIT
_LINE: Final = 76
_REQUEST, _ANSWER = "gossamer-renewal-request", "gossamer-renewal-answer"


@frozen
class RenewalRequest:
    """A peer asks for a certificate in place of the one that it has.

    Attributes:
        certificate: that one, DER.
        signature: by its key.
        name: that it wants from now on; "" for that of the certificate.
    """

    certificate: bytes
    signature: bytes
    name: str = ""

    def to_text(self) -> str:
        """As a file."""
        return _to_text(_REQUEST, self.certificate, self.signature, self.name.encode())

    @classmethod
    def from_text(cls, text: str) -> RenewalRequest:
        """What `to_text` made; raises `JoinError` for anything else."""
        origin = "'gossamer node renew --request' printed"
        certificate, signature, name = _from_text(_REQUEST, text, origin, 3)
        if len(signature) != SIGNATURE_BYTES or not is_name(name):
            raise JoinError(f"the text is not what {origin}")
        return cls(certificate, signature, name.decode())


@frozen
class Renewed:
    """What the holder of the authority's key answers.

    Attributes:
        certificate: the peer's new one, DER.
        authority: the authority's present certificate, DER.
    """

    certificate: bytes
    authority: bytes

    def to_text(self) -> str:
        """As a file."""
        return _to_text(_ANSWER, self.certificate, self.authority)

    @classmethod
    def from_text(cls, text: str) -> Renewed:
        """What `to_text` made; raises `JoinError` for anything else."""
        certificate, authority = _from_text(
            _ANSWER, text, "'gossamer node renew --grant' printed", 2
        )
        return cls(certificate, authority)


def ask(identity: Identity, certificate: PeerCertificate, name: str = "") -> RenewalRequest:
    """The request of the peer that is ``identity`` and has ``certificate``, and wants a name."""
    name = "" if name == certificate.name else name
    signature = identity.sign(CONTEXT, _signed(hashlib.sha256(certificate.der).digest(), name))
    return RenewalRequest(certificate.der, signature, name)


def check_request(
    authority: Authority, request: RenewalRequest, key: int, revoked: Revoked
) -> PeerCertificate:
    """The certificate that ``request``, said to be of the peer ``key``, is about; of any time.

    Raises:
        CertificateError: it is none of this cluster, another's, or revoked.
        JoinError: its owner did not sign the request.
    """
    peer = verify_issued(authority, request.certificate, key, revoked)
    signed = _signed(peer.fingerprint, request.name)
    if not verify(peer.public_key, CONTEXT, signed, request.signature):
        raise JoinError("the request is not signed by the owner of the certificate")
    return peer


def is_name(name: bytes) -> bool:
    """Whether a request may have these bytes for a name; "" is none."""
    try:
        if name:
            check_name(name.decode())
    except (ConfigError, UnicodeDecodeError):
        return False
    return True


def _signed(fingerprint: bytes, name: str) -> bytes:
    return fingerprint + name.encode()


def accept(member: Membership, renewed: Renewed, now: float) -> Membership:
    """``member`` with what was ``renewed``, all of it verified; nothing is written.

    Raises:
        CertificateError: the authority, or the certificate, is none for this peer, or it is not
            valid now.
        JoinError: it does not last longer than the one that there is.
    """
    authority = newer_authority(member.authority, renewed.authority)
    key = member.identity.key
    certificate = verify_issued(authority, renewed.certificate, key, member.revoked)
    check_time(certificate, now)
    known = member.certificate
    if (certificate.not_after, certificate.name) == (known.not_after, known.name) or (
        certificate.not_after < known.not_after
    ):
        raise JoinError("the certificate lasts no longer than the one that there is")
    return evolve(member, authority=authority, certificate=certificate)


def newer_authority(known: Authority, der: bytes) -> Authority:
    """That of ``known`` and the certificate ``der`` which lasts longer; both are of one key.

    Raises:
        CertificateError: ``der`` is no certificate of that authority.
    """
    if der == known.der:
        return known
    found = read_authority(der)
    if (found.cluster, found.public_key) != (known.cluster, known.public_key):
        raise ForeignCertificateError(
            f"the authority's certificate is of cluster {found.cluster}, or of another key,"
            f" expected {known.cluster}"
        )
    return found if found.not_after > known.not_after else known


def due_at(certificate: PeerCertificate, share: float = DUE) -> float:
    """When ``share`` of the time of a certificate is over, Unix seconds."""
    issued_at = certificate.not_before + CLOCK_SLACK_S
    return issued_at + share * (certificate.not_after - issued_at)


def authority_due_at(authority: Authority) -> float:
    """When the authority's own certificate is to be renewed, Unix seconds."""
    return authority.not_after - (1 - DUE) * AUTHORITY_LIFETIME_S


def _to_text(title: str, *parts: bytes) -> str:
    lines = textwrap.wrap(base64.b64encode(encode(list(parts))).decode(), _LINE)
    return "\n".join([f"{title} 1", *lines, ""])


def _from_text(title: str, text: str, origin: str, count: int) -> list[bytes]:
    head, _, body = text.strip().partition("\n")
    try:
        if head.strip() != f"{title} 1" or len(text) > TEXT_LIMIT:
            raise ValueError
        parts = decode(base64.b64decode("".join(body.split()), validate=True))
        if type(parts) is not list or [type(part) for part in parts] != [bytes] * count:
            raise ValueError
    except (ValueError, TypeError):
        raise JoinError(f"the text is not what {origin}") from None
    return parts
