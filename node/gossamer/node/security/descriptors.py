"""What peers say of themselves by gossip: signed by its owner, believed of nobody else.

A descriptor names its owner's key and the certificate that proves its membership. Receivers meet
that certificate once (in a TLS handshake, or by asking whoever passed the descriptor on) and the
descriptor many times; only a descriptor that is newer than the one known costs a verification.

Which of two descriptors is newer is told by the owner's sequence number alone. No clock has a say:
`issued_at` is there for people to read.
"""

from __future__ import annotations

import enum
from collections import OrderedDict
from collections.abc import Collection
from typing import Any, Final

from attrs import define, frozen
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from gossamer.node.errors import CertificateError
from gossamer.node.security.certificates import (
    Authority,
    PeerCertificate,
    check_time,
    verify_peer,
)
from gossamer.node.security.identity import (
    SIGNATURE_BYTES,
    Address,
    Identity,
    check_addresses,
    decode,
    encode,
    in_context,
    read_addresses,
)
from gossamer.node.security.revocation import RevocationList
from gossamer.protocol.kernel.errors import ConfigError

_FORMAT: Final = 1
_SERIAL_BYTES: Final = 20
_KEY_BITS: Final = 62

# Peers of which a descriptor or certificate is kept; the one heard of longest ago makes room.
MOST_PEERS: Final = 10_000
MOST_CONTENT_BYTES: Final = 4096
MOST_PROFILE_WORDS: Final = 256


@frozen
class Descriptor:
    """What a peer says of itself.

    Attributes:
        key: its permanent key.
        serial: serial number of its certificate.
        addresses: where it listens, best first; none where it cannot be reached.
        profile: the words of its profile.
        sequence: grows with every descriptor that it signs.
        issued_at: when it says it signed this, Unix seconds.
    """

    key: int
    serial: int
    addresses: tuple[Address, ...]
    profile: tuple[int, ...]
    sequence: int
    issued_at: int


@frozen
class SignedDescriptor:
    """A descriptor as it travels.

    Attributes:
        content: canonical CBOR of the descriptor.
        signature: its owner's.
    """

    content: bytes
    signature: bytes

    @property
    def packed(self) -> bytes:
        """Both in one, the signature first."""
        return self.signature + self.content

    @classmethod
    def unpack(cls, packed: bytes) -> SignedDescriptor:
        """What `packed` gave; of other bytes, something that nobody believes."""
        return cls(packed[SIGNATURE_BYTES:], packed[:SIGNATURE_BYTES])


class Verdict(enum.Enum):
    """What became of a descriptor."""

    NEW = "new"
    KNOWN = "known"
    STALE = "stale"
    # Another content under a sequence number that is taken: the owner's state went astray, or lies.
    CONFLICTING = "conflicting"
    # The certificate was never met: to be asked for, and the descriptor shown again.
    UNCERTIFIED = "uncertified"
    FORGED = "forged"
    REVOKED = "revoked"
    EXPIRED = "expired"
    MALFORMED = "malformed"

    @property
    def guilty(self) -> bool:
        """Whether no honest peer would have passed it on."""
        return self in (Verdict.FORGED, Verdict.MALFORMED)


def sign_descriptor(
    authority: Authority, identity: Identity, descriptor: Descriptor
) -> SignedDescriptor:
    """The owner's statement; ``descriptor`` is that of ``identity``.

    Raises:
        ConfigError: an address is impossible.
        ValueError: the descriptor is another peer's.
    """
    if descriptor.key != identity.key:
        raise ValueError(f"descriptor of {descriptor.key:016x} signed by {identity.key:016x}")
    check_addresses(descriptor.addresses, fewest=0)
    content = encode(
        [
            _FORMAT,
            descriptor.key,
            descriptor.serial.to_bytes(_SERIAL_BYTES, "big"),
            [list(address) for address in descriptor.addresses],
            list(descriptor.profile),
            descriptor.sequence,
            descriptor.issued_at,
        ]
    )
    return SignedDescriptor(content, identity.sign(_context(authority), content))


@define
class _Entry:
    """What is known of one peer: always its certificate, its descriptor once one was believed."""

    certificate: PeerCertificate
    verifier: Ed25519PublicKey
    packed: bytes = b""
    descriptor: Descriptor | None = None


class DescriptorCache:
    """The newest believed descriptor of each peer."""

    def __init__(self, authority: Authority, revoked: RevocationList) -> None:
        self._authority = authority
        self.revoked = revoked
        self._context = _context(authority)
        self._entries: OrderedDict[int, _Entry] = OrderedDict()
        # The believed descriptors as they travel, so that one met again is not even decoded.
        self._accepted: dict[bytes, Descriptor] = {}

    def take(self, signed: SignedDescriptor, now: float) -> Verdict:
        """Believe ``signed``, from whomever, if it is its owner's newest; say what became of it.

        ``now``, Unix seconds, is for the owner's certificate.
        """
        if self.recognise(signed.packed) is not None:
            return Verdict.KNOWN
        descriptor = self._read(signed)
        if descriptor is None:
            return Verdict.MALFORMED
        known = self.find(descriptor.key)
        if known is not None and descriptor.sequence <= known.sequence:
            older = descriptor.sequence < known.sequence
            return Verdict.STALE if older else Verdict.CONFLICTING
        return self._verify(signed, descriptor, now)

    def recognise(self, packed: bytes) -> Descriptor | None:
        """A descriptor that is believed, by what it is packed as; it counts as met again."""
        descriptor = self._accepted.get(packed)
        if descriptor is not None:
            self._entries.move_to_end(descriptor.key)
        return descriptor

    def learn(self, certificate: bytes, key: int, now: float) -> PeerCertificate:
        """Verify the certificate of the peer ``key`` and keep it.

        Raises:
            CertificateError: it proves no membership; nothing changed.
        """
        entry = self._entries.get(key)
        if entry is not None and entry.certificate.der == certificate:
            check_time(entry.certificate, now)
            return entry.certificate
        peer = verify_peer(self._authority, certificate, key, self.revoked, now)
        verifier = Ed25519PublicKey.from_public_bytes(peer.public_key)
        if entry is None:
            self._entries[key] = _Entry(peer, verifier)
            self._make_room()
        elif peer.not_before >= entry.certificate.not_before or not _is_timely(
            entry.certificate, now
        ):
            entry.certificate, entry.verifier = peer, verifier
        return peer

    def find(self, key: int) -> Descriptor | None:
        """The newest descriptor of the peer ``key``, if one is known."""
        entry = self._entries.get(key)
        return None if entry is None else entry.descriptor

    def find_packed(self, key: int) -> bytes:
        """The same as it travels; nothing where none is known."""
        entry = self._entries.get(key)
        return b"" if entry is None else entry.packed

    def find_certificate(self, key: int) -> bytes | None:
        """The certificate of the peer ``key``, DER, for whoever asks for it."""
        entry = self._entries.get(key)
        return None if entry is None else entry.certificate.der

    def revoked_keys(self) -> Collection[int]:
        """The keys of those revoked."""
        return self.revoked.keys

    def revoke(self, revoked: RevocationList) -> list[int]:
        """Go by the list ``revoked`` from now on; return the keys of those forgotten by it."""
        self.revoked = revoked
        gone = [
            key
            for key, entry in self._entries.items()
            if revoked.forbids(key, entry.certificate.serial)
        ]
        for key in gone:
            self._forget(key)
        return gone

    def __len__(self) -> int:
        return len(self._entries)

    def _verify(self, signed: SignedDescriptor, descriptor: Descriptor, now: float) -> Verdict:
        """Verify a descriptor that would be news, and keep it."""
        if self.revoked.forbids(descriptor.key, descriptor.serial):
            return Verdict.REVOKED
        entry = self._entries.get(descriptor.key)
        if entry is None or entry.certificate.serial != descriptor.serial:
            return Verdict.UNCERTIFIED
        try:
            entry.verifier.verify(signed.signature, in_context(self._context, signed.content))
        except InvalidSignature:
            return Verdict.FORGED
        try:
            check_time(entry.certificate, now)
        except CertificateError:
            return Verdict.EXPIRED
        self._accepted.pop(entry.packed, None)
        entry.packed, entry.descriptor = signed.packed, descriptor
        self._accepted[entry.packed] = descriptor
        self._entries.move_to_end(descriptor.key)
        return Verdict.NEW

    def _read(self, signed: SignedDescriptor) -> Descriptor | None:
        if len(signed.content) > MOST_CONTENT_BYTES:
            return None
        if len(signed.signature) != SIGNATURE_BYTES:
            return None
        try:
            return _from_fields(decode(signed.content))
        except (ValueError, ConfigError):
            return None

    def _make_room(self) -> None:
        while len(self._entries) > MOST_PEERS:
            self._forget(next(iter(self._entries)))

    def _forget(self, key: int) -> None:
        entry = self._entries.pop(key)
        self._accepted.pop(entry.packed, None)


def _is_timely(certificate: PeerCertificate, now: float) -> bool:
    return certificate.not_before <= now < certificate.not_after


def _context(authority: Authority) -> str:
    """Signatures of one cluster are worth nothing in another."""
    return f"descriptor {_FORMAT} {authority.cluster}"


def _from_fields(content: Any) -> Descriptor:
    """What `sign_descriptor` encoded; raises ValueError or ConfigError for anything else."""
    if type(content) is not list or len(content) != 7 or content[0] != _FORMAT:
        raise ValueError("not the fields of a descriptor")
    _, key, serial, addresses, profile, sequence, issued_at = content
    if not all(_is_whole(value, _KEY_BITS) for value in (key, sequence, issued_at)):
        raise ValueError("a number is out of its range")
    if type(serial) is not bytes or len(serial) != _SERIAL_BYTES:
        raise ValueError("no serial number")
    if type(profile) is not list or len(profile) > MOST_PROFILE_WORDS:
        raise ValueError("the profile is too long")
    if not all(type(word) is int and -(1 << 63) <= word < 1 << 63 for word in profile):
        raise ValueError("the profile is not one of words")
    return Descriptor(
        key,
        int.from_bytes(serial, "big"),
        read_addresses(addresses, fewest=0),
        tuple(profile),
        sequence,
        issued_at,
    )


def _is_whole(value: object, bits: int) -> bool:
    return type(value) is int and 0 <= value < 1 << bits
