"""Certificates: made by the authority, shown by peers, read and verified by everybody.

A peer certificate names its owner's permanent key (common name, 16 hexadecimal digits) and the
name people call it by (pseudonym). It names no host: peers move between addresses, and are known
by their keys.
"""

from __future__ import annotations

import functools
import hashlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

from attrs import field, frozen
from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.utils import CryptographyDeprecationWarning
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from gossamer.node.errors import (
    CertificateError,
    ClusterFolderError,
    ForeignCertificateError,
    KeyMismatchError,
    RevokedCertificateError,
    UntimelyCertificateError,
)
from gossamer.node.security.identity import Identity, key_text, permanent_key
from gossamer.protocol.kernel.errors import ConfigError

CERTIFICATE_LIMIT: Final = 4096
NAME_LIMIT: Final = 64  # of an X.520 common name or pseudonym
_CLUSTER_DIGITS: Final = 32
# DER of a bit string of 64 bytes, all of whose bits count.
_SIGNATURE_HEAD: Final = b"\x03\x41\x00"
_PARSE_ERRORS: Final = (
    ValueError,
    TypeError,
    OverflowError,
    KeyError,  # of a type of text that some versions do not know
    CryptographyDeprecationWarning,
    UnsupportedAlgorithm,
    x509.InvalidVersion,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)


class Revoked(Protocol):
    """Who belongs to the cluster no more."""

    def forbids(self, key: int, serial: int) -> bool:
        """Whether that peer, or that certificate of it, is revoked."""
        ...


@frozen
class PeerCertificate:
    """What a peer certificate says.

    Attributes:
        key: permanent key of its owner.
        public_key: raw public key of its owner.
        name: what its owner is called.
        serial: its serial number.
        not_before, not_after: it is valid from the first until just before the second, Unix
            seconds.
        der: its bytes.
    """

    key: int
    public_key: bytes
    name: str
    serial: int
    not_before: float
    not_after: float
    der: bytes = field(repr=False)

    @property
    def fingerprint(self) -> bytes:
        """SHA-256 of the certificate."""
        return hashlib.sha256(self.der).digest()

    @property
    def pem(self) -> bytes:
        """The certificate as a text file."""
        return x509.load_der_x509_certificate(self.der).public_bytes(Encoding.PEM)


@frozen
class Authority:
    """The public half of a cluster's authority: enough to verify what it signed.

    Attributes:
        cluster: identifier of the cluster, 32 hexadecimal digits.
        name: what the cluster is called.
        public_key: raw public key.
        not_before, not_after: its own certificate is valid from the first until just before the
            second, Unix seconds.
        der: its certificate.
    """

    cluster: str
    name: str
    public_key: bytes
    not_before: float
    not_after: float
    der: bytes = field(repr=False)

    @property
    def fingerprint(self) -> bytes:
        """What a joining peer pins: SHA-256 of cluster and key, which outlive the certificate."""
        return hashlib.sha256(self.cluster.encode() + self.public_key).digest()

    @property
    def pem(self) -> bytes:
        """The authority's certificate as a text file."""
        return x509.load_der_x509_certificate(self.der).public_bytes(Encoding.PEM)


def read_authority(der: bytes) -> Authority:
    """Read an authority's certificate, from a file or a peer; whether to trust it is not said.

    Raises:
        CertificateError: it is none that `make_authority` makes.
    """
    with _malformed_on_error():
        certificate = _parse(der)
        cluster = _one(certificate.subject, NameOID.ORGANIZATION_NAME)
        name = _one(certificate.subject, NameOID.COMMON_NAME)
        if len(cluster) != _CLUSTER_DIGITS or not set(cluster) <= set("0123456789abcdef"):
            raise CertificateError(f"the authority names the cluster {cluster!r}")
        if not _is_authority(certificate) or not _signed_by(certificate, certificate):
            raise CertificateError("the certificate is not one of an authority")
        return Authority(
            cluster,
            name,
            _raw_key(certificate),
            certificate.not_valid_before_utc.timestamp(),
            certificate.not_valid_after_utc.timestamp(),
            der,
        )


def check_name(name: str) -> None:
    """Refuse a name that no peer or cluster can have.

    Raises:
        ConfigError: it is empty, too long or not printable.
    """
    if not 1 <= len(name) <= NAME_LIMIT or not name.isprintable() or name != name.strip():
        raise ConfigError("name", name[: 2 * NAME_LIMIT], f"1 to {NAME_LIMIT} printable characters")


def read_certificate(der: bytes) -> PeerCertificate:
    """Read a peer's certificate; whether it proves anything is not said.

    Raises:
        CertificateError: it is none that `issue_certificate` makes.
    """
    return _read_peer(der)[0]


def verify_peer(
    authority: Authority, der: bytes, claimed_key: int, revoked: Revoked, now: float
) -> PeerCertificate:
    """Read the certificate of a peer that claims to be ``claimed_key``, and verify all of it.

    Raises:
        CertificateError: it is no peer certificate.
        ForeignCertificateError: another authority issued it.
        KeyMismatchError: it is somebody else's.
        RevokedCertificateError: it, or its owner, belongs no more.
        UntimelyCertificateError: it is not valid yet, or no longer.
    """
    peer = verify_issued(authority, der, claimed_key, revoked)
    check_time(peer, now)
    return peer


def verify_issued(
    authority: Authority, der: bytes, claimed_key: int, revoked: Revoked
) -> PeerCertificate:
    """As `verify_peer`, for a certificate of any time."""
    peer, certificate = _read_peer(der)
    if not _signed_by(certificate, parse_authority(authority.der)):
        raise ForeignCertificateError(
            f"the certificate of peer {key_text(peer.key)} was not issued by the authority of"
            f" cluster {authority.name!r} ({authority.cluster})"
        )
    if peer.key != claimed_key:
        raise KeyMismatchError(
            f"the certificate is for peer {peer.key:016x}, expected one for {claimed_key:016x}"
        )
    if revoked.forbids(peer.key, peer.serial):
        raise RevokedCertificateError(peer.key)
    return peer


def check_time(peer: PeerCertificate, now: float) -> None:
    """Refuse a certificate that is not valid at ``now``.

    Raises:
        UntimelyCertificateError: it is not valid yet, or no longer.
    """
    if peer.not_before <= now < peer.not_after:
        return
    owner = f"the certificate of peer {key_text(peer.key)}"
    clock = f"this machine's clock says {date_text(now)}"
    if now < peer.not_before:
        begin = date_text(peer.not_before)
        raise UntimelyCertificateError(f"{owner} is not valid before {begin}, and {clock}")
    end = date_text(peer.not_after)
    raise UntimelyCertificateError(f"{owner} expired at {end}, and {clock}")


def der_of_pem(pem: bytes, path: object) -> bytes:
    """The one certificate in the text file ``path`` with content ``pem``.

    Raises:
        ClusterFolderError: there is none.
    """
    try:
        return x509.load_pem_x509_certificate(pem).public_bytes(Encoding.DER)
    except ValueError as error:
        raise ClusterFolderError(path, "holds no certificate, expected one in PEM") from error


@functools.lru_cache(maxsize=8)
def parse_authority(der: bytes) -> x509.Certificate:
    """The authority's certificate, which every verification of a process needs."""
    return x509.load_der_x509_certificate(der)


def _read_peer(der: bytes) -> tuple[PeerCertificate, x509.Certificate]:
    with _malformed_on_error():
        certificate = _parse(der)
        # The parser takes a signature with "unused bits" too, so one certificate could be shown
        # in two forms with different fingerprints.
        if not der.endswith(_SIGNATURE_HEAD + certificate.signature):
            raise CertificateError("the certificate is not in its one canonical form")
        public_key = _raw_key(certificate)
        key = permanent_key(public_key)
        if _one(certificate.subject, NameOID.COMMON_NAME) != key_text(key):
            raise CertificateError("the certificate is not named after its own key")
        if _is_authority(certificate):
            raise CertificateError("the certificate is an authority's, expected a peer's")
        peer = PeerCertificate(
            key=key,
            public_key=public_key,
            name=_one(certificate.subject, NameOID.PSEUDONYM),
            serial=certificate.serial_number,
            not_before=certificate.not_valid_before_utc.timestamp(),
            not_after=certificate.not_valid_after_utc.timestamp(),
            der=der,
        )
        return peer, certificate


def _parse(der: bytes) -> x509.Certificate:
    if len(der) > CERTIFICATE_LIMIT:
        raise CertificateError(
            f"the certificate has {len(der)} bytes, expected at most {CERTIFICATE_LIMIT}"
        )
    with warnings.catch_warnings():
        # What the library merely frowns at, such as negative serial numbers, is not ours.
        warnings.simplefilter("error", CryptographyDeprecationWarning)
        return x509.load_der_x509_certificate(der)


@contextmanager
def _malformed_on_error() -> Iterator[None]:
    """For everything that reads a certificate: its parts are parsed when first looked at."""
    try:
        yield
    except _PARSE_ERRORS as error:
        raise CertificateError("what was shown is no certificate") from error


def _raw_key(certificate: x509.Certificate) -> bytes:
    key = certificate.public_key()
    if not isinstance(key, Ed25519PublicKey):
        raise CertificateError("the certificate's key is not an Ed25519 key")
    return key.public_bytes_raw()


def _one(name: x509.Name, oid: x509.ObjectIdentifier) -> str:
    values = name.get_attributes_for_oid(oid)
    if len(values) != 1 or not isinstance(values[0].value, str):
        raise CertificateError("the certificate's subject is not one of this software's")
    return values[0].value


def _is_authority(certificate: x509.Certificate) -> bool:
    try:
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    except x509.ExtensionNotFound:
        return False
    return constraints.value.ca


def _signed_by(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def to_date(when: float) -> datetime:
    """The moment ``when``, Unix seconds, to the second; raises OverflowError beyond year 9999."""
    return datetime.fromtimestamp(0, UTC) + timedelta(seconds=int(when))


def date_text(when: float) -> str:
    """The moment ``when``, Unix seconds, for people."""
    try:
        return f"{to_date(when):%Y-%m-%d %H:%M} UTC"
    except OverflowError:
        return "a date out of any calendar"


# Making certificates: the authority's own, and those that it gives to peers.


DAY_S: Final = 86_400.0
PEER_LIFETIME_S: Final = 2 * 365 * DAY_S
AUTHORITY_LIFETIME_S: Final = 20 * 365 * DAY_S
# Certificates are valid from before they are made, for peers whose clocks are behind.
CLOCK_SLACK_S: Final = DAY_S


def make_authority(
    signer: Identity, cluster: str, name: str, now: float, not_before: float | None = None
) -> Authority:
    """A self-signed authority certificate for the key pair ``signer``.

    It is valid from shortly before ``now``, or from ``not_before`` where one is renewed.
    """
    begin = now if not_before is None else not_before + CLOCK_SLACK_S
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, cluster),
            x509.NameAttribute(NameOID.COMMON_NAME, name),
        ]
    )
    builder = (
        _builder(subject, subject, signer.public_key, begin, now + AUTHORITY_LIFETIME_S)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(authority=True), critical=True)
    )
    certificate = builder.sign(signer.private_key, None)
    return read_authority(certificate.public_bytes(Encoding.DER))


def issue_certificate(
    authority: Authority,
    signer: Identity,
    public_key: bytes,
    name: str,
    now: float,
    lifetime_s: float = PEER_LIFETIME_S,
) -> PeerCertificate:
    """A certificate for the peer with ``public_key``, signed by the authority's key ``signer``.

    It lasts ``lifetime_s`` from ``now``, and never longer than the authority.

    Raises:
        ConfigError: the name is empty, too long or not printable.
    """
    check_name(name)
    end = min(now + lifetime_s, authority.not_after)
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.COMMON_NAME, key_text(permanent_key(public_key))),
            x509.NameAttribute(NameOID.PSEUDONYM, name),
        ]
    )
    issuer = parse_authority(authority.der).subject
    purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    builder = (
        _builder(subject, issuer, public_key, now, end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(authority=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        .add_extension(_authority_key_identifier(authority), critical=False)
    )
    certificate = builder.sign(signer.private_key, None)
    return read_certificate(certificate.public_bytes(Encoding.DER))


def _builder(
    subject: x509.Name, issuer: x509.Name, public_key: bytes, begin: float, end: float
) -> x509.CertificateBuilder:
    key = Ed25519PublicKey.from_public_bytes(public_key)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(to_date(begin - CLOCK_SLACK_S))
        .not_valid_after(to_date(end))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _key_usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not authority,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _authority_key_identifier(authority: Authority) -> x509.AuthorityKeyIdentifier:
    key = Ed25519PublicKey.from_public_bytes(authority.public_key)
    return x509.AuthorityKeyIdentifier.from_issuer_public_key(key)
