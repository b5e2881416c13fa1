"""How a token becomes a certificate: tokens, and three messages, without a network.

    inviter  -> joiner   challenge   a nonce, and the authority's certificate
    joiner   -> inviter  request     the token's secret, the joiner's public key and name, and a
                                     signature that proves it holds the private key
    inviter  -> joiner   answer      the certificate and the revocation list

Instead of a challenge or an answer the inviter may send a refusal. They travel in TLS, in which the
inviter shows its peer certificate. The joiner trusts nobody yet: it takes the authority's
certificate from the challenge if its fingerprint is the one in the token, verifies the certificate
that TLS has shown by it, and sends the secret only to the peer that the token names.

Whose certificate has expired asks in the same way for a new one, and shows the old one in place of
a token; it knows the authority already.

What the joiner signs covers the nonce, the token, its public key and the certificate of the
inviter: a signature is of no use in another exchange.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from typing import Any, Final, TypeVar

from attrs import Attribute, asdict, field, fields, frozen

from gossamer.node.errors import ForeignCertificateError, JoinError, NodeError, SignedDataError
from gossamer.node.security.certificates import (
    CERTIFICATE_LIMIT,
    NAME_LIMIT,
    Authority,
    PeerCertificate,
    read_authority,
    read_certificate,
    verify_peer,
)
from gossamer.node.security.identity import (
    PUBLIC_KEY_BYTES,
    SIGNATURE_BYTES,
    Address,
    Identity,
    decode,
    encode,
    permanent_key,
    read_addresses,
    verify,
)
from gossamer.node.security.renewal import RenewalRequest
from gossamer.node.security.revocation import LIST_LIMIT, RevocationList, read_list
from gossamer.protocol.kernel.errors import ConfigError

# Join tokens: what an invitation says, as a text that can be copied and read over the phone.
#
#     gossamer1-<base32 of the content and its CRC-32, lower case, without padding>
#
# The content names the cluster and pins its authority's certificate and the inviting peer, so that
# a joining peer hands the secret to nobody else. A CRC finds every change of up to 32 bits in a
# row, hence of any single character, and a text that is not in its one canonical form is no token.


PREFIX: Final = "gossamer1-"
_FAMILY: Final = "gossamer"
SECRET_BYTES: Final = 16
_TEXT_LIMIT: Final = 4096
_CRC_BYTES: Final = 4


@frozen
class Token:
    """An invitation.

    Attributes:
        cluster: identifier of the cluster, 32 hexadecimal digits.
        fingerprint: tells the authority, see `Authority.fingerprint`.
        inviter: permanent key of the peer that invites.
        addresses: where it takes join requests, 1 to 8 hosts and ports.
        secret: 16 random bytes, worth a certificate once.
    """

    cluster: str
    fingerprint: bytes
    inviter: int
    addresses: tuple[Address, ...]
    secret: bytes = field(repr=False)

    def to_text(self) -> str:
        """The token to hand over."""
        content = encode(
            [
                bytes.fromhex(self.cluster),
                self.fingerprint,
                self.inviter,
                [list(address) for address in self.addresses],
                self.secret,
            ]
        )
        checked = content + zlib.crc32(content).to_bytes(_CRC_BYTES, "big")
        return PREFIX + _base32(checked)


def token_id(secret: bytes) -> bytes:
    """What a token is known by where its secret must not be: a hash of it."""
    return hashlib.sha256(b"gossamer token\0" + secret).digest()


def read_token(text: str) -> Token:
    """The token in ``text``; space around it does not matter.

    Raises:
        JoinError: it is none, was changed on its way, or is of a newer version.
    """
    text = text.strip()
    if not text.startswith(PREFIX):
        raise JoinError(_wrong_beginning(text))
    try:
        token = _from_content(_checked_content(text.removeprefix(PREFIX)))
    except (ValueError, ConfigError) as error:
        raise JoinError(f"the join token cannot be right: {error}; copy it again") from error
    return token


def _wrong_beginning(text: str) -> str:
    head, _, rest = text.partition("-")
    version = head.removeprefix(_FAMILY)
    if rest and head.startswith(_FAMILY) and version.isdecimal():
        return f"the join token is of version {version[:9]}, expected 1; upgrade gossamer"
    return f"{text[:20]!r} is no join token, expected a text that begins with {PREFIX}"


def _base32(data: bytes) -> str:
    return base64.b32encode(data).decode().rstrip("=").lower()


def _checked_content(body: str) -> bytes:
    if len(body) > _TEXT_LIMIT:
        raise ValueError("it is too long")
    if body != body.lower():
        raise ValueError("it has capital letters")
    try:
        data = base64.b32decode(body.upper() + "=" * (-len(body) % 8))
    except ValueError as error:
        raise ValueError("a character is missing, or one does not belong there") from error
    if _base32(data) != body:
        # The last character has bits that stand for nothing.
        raise ValueError("its last character is wrong")
    content, crc = data[:-_CRC_BYTES], data[-_CRC_BYTES:]
    if zlib.crc32(content).to_bytes(_CRC_BYTES, "big") != crc:
        raise ValueError("a character is wrong or missing")
    return content


def _from_content(content: bytes) -> Token:
    """What `Token.to_text` encoded; raises ValueError or ConfigError for anything else."""
    fields = decode(content)
    if not isinstance(fields, list) or len(fields) != 5:
        raise ValueError("it does not hold what a token holds")
    cluster, fingerprint, inviter, addresses, secret = fields
    sizes = ((cluster, 16), (fingerprint, 32), (secret, SECRET_BYTES))
    if any(type(value) is not bytes or len(value) != size for value, size in sizes):
        raise ValueError("it does not hold what a token holds")
    if type(inviter) is not int or not 0 <= inviter < 1 << 62:
        raise ValueError("it does not hold what a token holds")
    return Token(cluster.hex(), fingerprint, inviter, read_addresses(addresses), secret)


VERSION: Final = 1
NONCE_BYTES: Final = 32
CHALLENGE_LIMIT: Final = 8192
REQUEST_LIMIT: Final = 2048
CLUSTER_INFO_LIMIT: Final = 1 << 16
ANSWER_LIMIT: Final = LIST_LIMIT + CLUSTER_INFO_LIMIT + 8192
_CONTEXT: Final = "join 1"
_RENEWAL_CONTEXT: Final = "late renewal 1"

# Why the inviter refuses; the words travel.
UNKNOWN, EXPIRED, USED, NAME_TAKEN = "unknown", "expired", "used", "name taken"
NO_AUTHORITY, THROTTLED, BAD_REQUEST, REVOKED = (
    "no authority",
    "throttled",
    "bad request",
    "revoked",
)
FAILED: Final = "failed"
TOO_EARLY, NOT_ON_RECORD = "too early", "not on record"

_SENTENCES: Final = {
    UNKNOWN: "the inviter does not know this token; ask for a new invitation",
    EXPIRED: "the token has expired; ask for a new invitation",
    USED: "the token was used by another peer; ask for a new invitation",
    NAME_TAKEN: "the cluster has a member of this name already: choose another one with --name, or "
    "revoke that member first",
    NO_AUTHORITY: "the inviter holds no ca.key; ask for an invitation where the cluster was made",
    THROTTLED: "too many requests from this address wait to be heard; try again in a minute",
    BAD_REQUEST: "the inviter takes the request for malformed; is this the same gossamer version?",
    REVOKED: "this peer's key is revoked; remove its peer.key to join as a new peer",
    TOO_EARLY: "the certificate need not be renewed yet; a running node does so in time",
    NOT_ON_RECORD: "the certificate has expired and is not on record where the cluster was made;"
    " it needs a new invitation",
    FAILED: "the inviter could not issue a certificate; its log says why",
}

M = TypeVar("M", "Challenge", "Request", "Renewal", "Answer")


def _bytes(low: int, high: int) -> Any:
    return field(metadata={"type": bytes, "low": low, "high": high}, repr=False)


@frozen(kw_only=True)
class Challenge:
    """What the inviter begins with."""

    nonce: bytes = _bytes(NONCE_BYTES, NONCE_BYTES)
    authority: bytes = _bytes(1, CERTIFICATE_LIMIT)


@frozen(kw_only=True)
class Request:
    """What the joiner asks."""

    secret: bytes = _bytes(SECRET_BYTES, SECRET_BYTES)
    public_key: bytes = _bytes(PUBLIC_KEY_BYTES, PUBLIC_KEY_BYTES)
    name: str = field(metadata={"type": str, "low": 1, "high": NAME_LIMIT})
    proof: bytes = _bytes(SIGNATURE_BYTES, SIGNATURE_BYTES)


@frozen(kw_only=True)
class Renewal:
    """What a member asks whose certificate has expired, or is about to; see `renewal`."""

    certificate: bytes = _bytes(1, CERTIFICATE_LIMIT)
    signature: bytes = _bytes(SIGNATURE_BYTES, SIGNATURE_BYTES)
    proof: bytes = _bytes(SIGNATURE_BYTES, SIGNATURE_BYTES)


@frozen(kw_only=True)
class Answer:
    """What the joiner gets; `cluster_info` is what members have to know beside who they are."""

    certificate: bytes = _bytes(1, CERTIFICATE_LIMIT)
    revoked: bytes = _bytes(1, LIST_LIMIT)
    cluster_info: bytes = field(
        default=b"", metadata={"type": bytes, "low": 0, "high": CLUSTER_INFO_LIMIT}, repr=False
    )


@frozen
class Inviter:
    """Whom the joiner has found to be on the other side."""

    authority: Authority
    certificate: PeerCertificate


def pack(message: Challenge | Request | Renewal | Answer) -> bytes:
    """A message as it travels."""
    return encode({"version": VERSION, **asdict(message)})


def pack_refusal(cause: str) -> bytes:
    """A refusal as it travels."""
    return encode({"version": VERSION, "refused": cause})


def unpack(kind: type[M], data: bytes) -> M:
    """A message of that kind.

    Raises:
        JoinError: it is a refusal.
        SignedDataError: it is neither.
    """
    try:
        content = decode(data)
    except ValueError as error:
        raise SignedDataError(f"the {kind.__name__.lower()} of a join is {error}") from error
    if not isinstance(content, dict) or content.pop("version", None) != VERSION:
        raise SignedDataError(
            f"the {kind.__name__.lower()} of a join is not of version {VERSION}; upgrade gossamer"
        )
    if "refused" in content:
        raise _refusal(content["refused"])
    expected = fields(kind)
    if set(content) != {one.name for one in expected}:
        raise SignedDataError(f"the {kind.__name__.lower()} of a join has other fields")
    for one in expected:
        _check_field(kind, one, content[one.name])
    return kind(**content)


def recognise(token: Token, challenge: Challenge, shown_certificate: bytes, now: float) -> Inviter:
    """Find out who sent ``challenge`` over a connection that shows ``shown_certificate``.

    Raises:
        ForeignCertificateError: it is no member of the token's cluster.
        CertificateError: its certificate is no good, or it is another member than the inviter.
    """
    authority = read_authority(challenge.authority)
    if authority.fingerprint != token.fingerprint:
        raise ForeignCertificateError(
            f"the peer at this address is not of cluster {token.cluster}, which the token names"
        )
    nobody = RevocationList(authority.cluster)
    certificate = verify_peer(authority, shown_certificate, token.inviter, nobody, now)
    return Inviter(authority, certificate)


def unpack_asked(data: bytes) -> Request | Renewal:
    """What somebody asks; raises as `unpack`."""
    try:
        content = decode(data)
    except ValueError as error:
        raise SignedDataError(f"the request of a join is {error}") from error
    renewal = isinstance(content, dict) and "certificate" in content
    return unpack(Renewal, data) if renewal else unpack(Request, data)


def make_renewal(
    identity: Identity, request: RenewalRequest, challenge: Challenge, shown_certificate: bytes
) -> Renewal:
    """Ask for a certificate in place of an old one, here and now."""
    signed = _renewal_bytes(challenge.nonce, request.certificate, shown_certificate)
    return Renewal(
        certificate=request.certificate,
        signature=request.signature,
        proof=identity.sign(_RENEWAL_CONTEXT, signed),
    )


def check_renewal(renewal: Renewal, nonce: bytes, own_certificate: bytes) -> RenewalRequest:
    """Check that whoever asks holds the key of the certificate, and asks here and now.

    Raises:
        SignedDataError: that is not so.
        CertificateError: what it shows is no certificate.
    """
    signed = _renewal_bytes(nonce, renewal.certificate, own_certificate)
    public_key = read_certificate(renewal.certificate).public_key
    if not verify(public_key, _RENEWAL_CONTEXT, signed, renewal.proof):
        raise SignedDataError("the request of a renewal does not prove that its key is its own")
    return RenewalRequest(renewal.certificate, renewal.signature)


def make_request(
    token: Token, identity: Identity, name: str, challenge: Challenge, shown_certificate: bytes
) -> Request:
    """Ask for a certificate; only for an inviter that `recognise` has found."""
    signed = _signed_bytes(challenge.nonce, token.secret, identity.public_key, shown_certificate)
    return Request(
        secret=token.secret,
        public_key=identity.public_key,
        name=name,
        proof=identity.sign(_CONTEXT, signed),
    )


def check_request(request: Request, nonce: bytes, own_certificate: bytes) -> None:
    """Check that whoever asks holds the private key, and asks here and now.

    Raises:
        SignedDataError: that is not so.
    """
    signed = _signed_bytes(nonce, request.secret, request.public_key, own_certificate)
    if not verify(request.public_key, _CONTEXT, signed, request.proof):
        raise SignedDataError("the request of a join does not prove that its key is its own")


def read_answer(
    answer: Answer, inviter: Inviter, identity: Identity, now: float
) -> tuple[PeerCertificate, RevocationList]:
    """The certificate and the revocation list, both verified.

    Raises:
        CertificateError: the certificate does not make this peer a member.
        SignedDataError: the list is not the authority's.
    """
    revoked = read_list(answer.revoked, inviter.authority)
    key = permanent_key(identity.public_key)
    return verify_peer(inviter.authority, answer.certificate, key, revoked, now), revoked


def _signed_bytes(nonce: bytes, secret: bytes, public_key: bytes, certificate: bytes) -> bytes:
    return encode([nonce, token_id(secret), public_key, hashlib.sha256(certificate).digest()])


def _renewal_bytes(nonce: bytes, certificate: bytes, shown_certificate: bytes) -> bytes:
    parts = (certificate, shown_certificate)
    return encode([nonce, *(hashlib.sha256(part).digest() for part in parts)])


def refusal(cause: str) -> JoinError:
    """The error of a request that is refused for a cause of the exchange."""
    return JoinError(_SENTENCES[cause], cause)


def _refusal(cause: object) -> NodeError:
    if isinstance(cause, str) and cause in _SENTENCES:
        return refusal(cause)
    return SignedDataError("the inviter refused without a reason that is known here")


def _check_field(kind: type[Any], one: Attribute[Any], value: object) -> None:
    wanted = one.metadata
    if type(value) is wanted["type"] and wanted["low"] <= len(value) <= wanted["high"]:  # type: ignore[arg-type]
        return
    raise SignedDataError(
        f"the {kind.__name__.lower()} of a join has a bad {one.name}, expected"
        f" {wanted['type'].__name__} of length {wanted['low']} to {wanted['high']}"
    )
