"""The key that a peer signs its events by, and what proves to others whose it is.

Whoever publishes signs once, and every peer that hands the event to an application verifies. So
what counts is a quick verification: RSA with 2048 bits takes 20 us for it, P-256 66 and Ed25519
106 (docs/decisions/15-signed-events.md). Each peer that publishes makes an RSA key of its own, and
its identity, which the authority has certified, signs that the key is its. Both together are its
introduction, some 750 bytes, which anybody can verify who trusts the authority, whoever brings it,
and whether or not the publisher is still there.

The key lies in the peer's folder (`events.key`). It is worth as much as `peer.key`, and may be
removed while the peer does not run: another one is made then.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

from attrs import field, frozen
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import (
    RSAPrivateKey,
    RSAPublicKey,
    RSAPublicNumbers,
    generate_private_key,
)
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from gossamer.node.errors import CertificateError, ClusterFolderError
from gossamer.node.security.certificates import (
    CERTIFICATE_LIMIT,
    Authority,
    PeerCertificate,
    Revoked,
)
from gossamer.node.security.descriptors import DescriptorCache
from gossamer.node.security.identity import (
    PRIVATE,
    SIGNATURE_BYTES,
    Identity,
    decode,
    encode,
    in_context,
    key_text,
    read_file,
    verify,
    write_file,
)

MODULUS_BYTES: Final = 256
EVENT_SIGNATURE_BYTES: Final = MODULUS_BYTES
SIGNER_BYTES: Final = 8
# Certificate, modulus, signature of the identity, and what CBOR puts around them.
INTRODUCTION_LIMIT: Final = CERTIFICATE_LIMIT + MODULUS_BYTES + SIGNATURE_BYTES + 64
# Publishers whose keys are at hand, and keys of each: one that renews its key, now and then.
MOST_KEYS: Final = 4096
MOST_KEYS_OF_ONE: Final = 4

_FORMAT: Final = 1
_EXPONENT: Final = 65537
_KEY_FILE_LIMIT: Final = 8192
# Made once: each takes as long as a hash.
_PADDING: Final = PKCS1v15()
_DIGEST: Final = SHA256()


@frozen(eq=False)
class EventKey:
    """A key pair by which one peer signs its events.

    Attributes:
        private_key: never leaves this machine.
        modulus: all that there is to its public half, as the exponent is always the same.
        signer: what events name the key by: the beginning of the modulus' SHA-256.
    """

    private_key: RSAPrivateKey = field(repr=False)
    modulus: bytes = field(init=False)
    signer: bytes = field(init=False)

    @modulus.default
    def _modulus(self) -> bytes:
        numbers = self.private_key.public_key().public_numbers()
        return numbers.n.to_bytes(MODULUS_BYTES, "big")

    @signer.default
    def _signer(self) -> bytes:
        return signer_of(self.modulus)

    def sign(self, authority: Authority, statement: bytes) -> bytes:
        """The signature of ``statement`` about events of the authority's cluster."""
        return self.private_key.sign(about_events(authority) + statement, _PADDING, _DIGEST)


def signer_of(modulus: bytes) -> bytes:
    """What events name a key by."""
    return hashlib.sha256(modulus).digest()[:SIGNER_BYTES]


def make_event_key() -> EventKey:
    """A new key, kept nowhere yet; takes a tenth of a second of processor time."""
    return EventKey(generate_private_key(_EXPONENT, 8 * MODULUS_BYTES))


def save_event_key(key: EventKey, path: Path) -> None:
    """Write the key to ``path``, which only its owner can ever read.

    Raises:
        OSError: it could not be written.
    """
    pem = key.private_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    write_file(path, pem, PRIVATE)


def load_event_key(path: Path) -> EventKey | None:
    """The key that `save_event_key` wrote; None where there is none yet.

    Raises:
        ClusterFolderError: it is open to others, or no such key.
    """
    if not path.exists():
        return None
    pem = read_file(path, _KEY_FILE_LIMIT, private=True)
    try:
        # To look for the primes again would take as long as to make a key; that it signs is tried.
        found = load_pem_private_key(pem, None, unsafe_skip_rsa_key_validation=True)
    except (ValueError, TypeError) as error:
        raise ClusterFolderError(path, _remedy("is no private key in PEM")) from error
    if not isinstance(found, RSAPrivateKey) or not _is_usable(found):
        raise ClusterFolderError(
            path, _remedy("is a key of another kind or damaged, expected RSA-2048")
        )
    return EventKey(found)


def _remedy(fault: str) -> str:
    return f"{fault}; remove it, and the peer makes another one"


def _is_usable(key: RSAPrivateKey) -> bool:
    public = key.public_key()
    if key.key_size != 8 * MODULUS_BYTES or public.public_numbers().e != _EXPONENT:
        return False
    try:
        public.verify(key.sign(b"", _PADDING, _DIGEST), b"", _PADDING, _DIGEST)
    except (InvalidSignature, ValueError):
        return False
    return True


@frozen(eq=False)
class Publisher:
    """A member whose introduction was verified.

    Attributes:
        key: its permanent key.
        serial: serial number of its certificate.
        not_before: from when on that is valid, Unix seconds.
        introduction: as it travels.
        signer: what events name its key by.
    """

    key: int
    serial: int
    not_before: float
    introduction: bytes = field(repr=False)
    signer: bytes
    _verifier: RSAPublicKey = field(repr=False)

    def signed(self, about: bytes, statement: bytes, signature: bytes) -> bool:
        """Whether it signed ``statement`` about events of the cluster `about_events` is of."""
        try:
            self._verifier.verify(signature, about + statement, _PADDING, _DIGEST)
        except InvalidSignature:
            return False
        return True


def introduce(
    authority: Authority, identity: Identity, certificate: PeerCertificate, key: EventKey
) -> Publisher:
    """What proves that events signed by ``key`` are those of ``identity``, for anybody."""
    signature = identity.sign(_context(authority), encode([_FORMAT, identity.key, key.modulus]))
    introduction = encode([_FORMAT, identity.key, certificate.der, key.modulus, signature])
    public = key.private_key.public_key()
    return Publisher(
        identity.key,
        certificate.serial,
        certificate.not_before,
        introduction,
        key.signer,
        public,
    )


class PublisherCache:
    """The publishers whose events can be verified here.

    Args:
        revoked: who belongs no more, by now.
    """

    def __init__(
        self, authority: Authority, descriptors: DescriptorCache, revoked: Callable[[], Revoked]
    ) -> None:
        self._authority = authority
        self._descriptors = descriptors
        self._revoked = revoked
        self._publishers: dict[bytes, Publisher] = {}
        self._introductions: dict[bytes, Publisher] = {}
        self._signers: dict[int, list[bytes]] = {}

    def __len__(self) -> int:
        return len(self._publishers)

    def find(self, signer: bytes) -> Publisher | None:
        """Whose key an event names, if that is known."""
        return self._publishers.get(signer)

    def recognise(self, introduction: bytes) -> Publisher | None:
        """The publisher of an introduction that was verified before, and counts still."""
        return self._introductions.get(introduction)

    def is_revoked(self, publisher: Publisher) -> bool:
        """Whether a publisher belongs to the cluster no more."""
        return self._revoked().forbids(publisher.key, publisher.serial)

    def learn(self, introduction: bytes, now: float) -> Publisher:
        """Verify an introduction, from whomever, and keep it.

        Of two for the same key the one with the newer certificate counts.

        Raises:
            CertificateError: it proves nothing; nothing changed. Malformed, foreign or mismatched
                ones no honest peer passes on.
        """
        known = self._introductions.get(introduction)
        if known is not None:
            return known
        key, certificate, modulus, signature = _read(introduction)
        signer = signer_of(modulus)
        peer = self._descriptors.learn(certificate, key, now)
        statement = encode([_FORMAT, key, modulus])
        if not verify(peer.public_key, _context(self._authority), statement, signature):
            raise CertificateError(
                f"the key for events of peer {key_text(key)} is not signed by it"
            )
        verifier = RSAPublicNumbers(_EXPONENT, int.from_bytes(modulus, "big")).public_key()
        before = self._publishers.get(signer)
        if before is not None and before.not_before > peer.not_before:
            return before
        publisher = Publisher(key, peer.serial, peer.not_before, introduction, signer, verifier)
        self._keep(publisher)
        return publisher

    def _keep(self, publisher: Publisher) -> None:
        before = self._publishers.get(publisher.signer)
        if before is not None:
            del self._introductions[before.introduction]
        self._publishers[publisher.signer] = publisher
        self._introductions[publisher.introduction] = publisher
        signers = self._signers.setdefault(publisher.key, [])
        if publisher.signer not in signers:
            signers.append(publisher.signer)
        if len(signers) > MOST_KEYS_OF_ONE:
            self._forget(signers[0])
        if len(self._publishers) > MOST_KEYS:
            # The one that was learned first.
            self._forget(next(iter(self._publishers)))

    def _forget(self, signer: bytes) -> None:
        gone = self._publishers.pop(signer)
        del self._introductions[gone.introduction]
        self._signers[gone.key].remove(signer)
        if not self._signers[gone.key]:
            del self._signers[gone.key]


def _read(introduction: bytes) -> tuple[int, bytes, bytes, bytes]:
    """Key, certificate, modulus and signature of an introduction."""
    try:
        content = decode(introduction)
    except ValueError as error:
        raise CertificateError("what introduces a publisher is not readable") from error
    shape = [int, int, bytes, bytes, bytes]
    if type(content) is not list or [type(part) for part in content] != shape:
        raise CertificateError("what introduces a publisher lacks its parts")
    version, key, certificate, modulus, signature = content
    sizes = (len(modulus), len(signature))
    if version != _FORMAT or sizes != (MODULUS_BYTES, SIGNATURE_BYTES):
        raise CertificateError("what introduces a publisher is of no known format")
    if modulus[0] < 0x80 or modulus[-1] % 2 == 0:
        raise CertificateError("the key for events is no modulus of 2048 bits")
    return key, certificate, modulus, signature


def _context(authority: Authority) -> str:
    return f"event key {_FORMAT} {authority.cluster}"


def about_events(authority: Authority) -> bytes:
    """What begins all that is signed about events of the authority's cluster."""
    return in_context(f"events {_FORMAT} {authority.cluster}", b"")
