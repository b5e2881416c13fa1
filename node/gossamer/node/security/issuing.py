"""Making certificates: the authority's own, and those that it gives to peers."""

from __future__ import annotations

from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from gossamer.node.security.certificates import (
    Authority,
    PeerCertificate,
    check_name,
    parse_authority,
    read_authority,
    read_certificate,
    to_date,
)
from gossamer.node.security.identity import Identity, key_text, permanent_key

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
