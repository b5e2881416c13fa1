"""Keys and certificates: who can read them, what they hold, and when they prove nothing."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import ExtendedKeyUsageOID

from gossamer.node import errors
from gossamer.node.errors import KeyFileError
from gossamer.node.security.certificates import (
    PeerCertificate,
    check_name,
    read_authority,
    read_certificate,
    verify_peer,
)
from gossamer.node.security.files import PRIVATE, write_file
from gossamer.node.security.identity import (
    load_identity,
    make_identity,
    permanent_key,
    save_identity,
    verify,
)
from gossamer.node.security.issuing import CLOCK_SLACK_S, issue_certificate, make_authority
from gossamer.node.security.revocation import Revocation, RevocationList
from gossamer.protocol.kernel.errors import ConfigError


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_permanent_key_is_the_first_62_bits_of_the_hash_of_the_public_key() -> None:
    public_key = bytes(range(32))
    bits = "".join(f"{byte:08b}" for byte in hashlib.sha256(public_key).digest())
    assert permanent_key(public_key) == int(bits[:62], 2)


def test_an_identity_comes_back_from_its_file_which_is_never_overwritten(tmp_path: Path) -> None:
    path, identity = tmp_path / "peer.key", make_identity()
    with pytest.raises(KeyFileError, match=r"peer\.key cannot be read: No such file"):
        load_identity(path)
    before = os.umask(0)
    try:
        save_identity(identity, path)
    finally:
        os.umask(before)
    assert mode_of(path) == 0o600, "whatever the umask"
    with pytest.raises(KeyFileError, match="exists"):
        save_identity(make_identity(), path)
    loaded = load_identity(path)
    assert (loaded.public_key, loaded.key) == (identity.public_key, identity.key)
    assert verify(identity.public_key, "test", b"message", loaded.sign("test", b"message"))
    assert "private" not in repr(loaded)


def test_files_are_private_from_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is looked at when it is synced, before it gets its name."""
    modes = []
    monkeypatch.setattr(os, "fsync", lambda file: modes.append(os.fstat(file).st_mode))
    write_file(tmp_path / "peer.key", b"secret", PRIVATE)
    assert stat.S_IMODE(modes[0]) == 0o600


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    write_file(tmp_path / "ca.pem", b"old")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        write_file(tmp_path / "ca.pem", b"new")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"ca.pem": b"old"}


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o601])
def test_a_key_that_others_can_use_is_refused_with_the_remedy(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "peer.key"
    save_identity(make_identity(), path)
    path.chmod(mode)
    with pytest.raises(KeyFileError, match=f"chmod 600 {path}"):
        load_identity(path)


PEM = Encoding.PEM, PrivateFormat.PKCS8
OTHER_KIND = X25519PrivateKey.generate().private_bytes(*PEM, NoEncryption())
LOCKED = make_identity().private_key.private_bytes(*PEM, BestAvailableEncryption(b"pass"))


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        pytest.param(b"", "no private key", id="empty"),
        pytest.param(b"no key at all", "no private key", id="text"),
        pytest.param(LOCKED, "without a password", id="password"),
        pytest.param(OTHER_KIND, "expected Ed25519", id="kind"),
        pytest.param(b"x" * 5000, "too large", id="large"),
    ],
)
def test_a_file_that_is_no_key_is_refused(tmp_path: Path, content: bytes, complaint: str) -> None:
    write_file(tmp_path / "peer.key", content, PRIVATE)
    with pytest.raises(KeyFileError, match=complaint):
        load_identity(tmp_path / "peer.key")


def test_a_signature_holds_for_its_signer_message_and_context_only() -> None:
    identity = make_identity()
    public_key, signature = identity.public_key, identity.sign("join", b"message")
    assert verify(public_key, "join", b"message", signature)
    for key, context, text in (
        (public_key, "descriptor", b"message"),
        (public_key, "join", b"massage"),
        (make_identity().public_key, "join", b"message"),
        (b"short", "join", b"message"),
    ):
        assert not verify(key, context, text, signature)


# Certificates

NOW = 1_800_000_000.0
CLUSTER = "00112233445566778899aabbccddeeff"
SIGNER = make_identity()
AUTHORITY = make_authority(SIGNER, CLUSTER, "desk", NOW)
NOBODY = RevocationList(CLUSTER)
OWNER = make_identity()


def issued(name: str = "kitchen", lifetime_s: float = 1000.0) -> PeerCertificate:
    return issue_certificate(AUTHORITY, SIGNER, OWNER.public_key, name, NOW, lifetime_s)


CERTIFICATE = issued()


def verified(der: bytes = CERTIFICATE.der, now: float = NOW) -> PeerCertificate:
    return verify_peer(AUTHORITY, der, OWNER.key, NOBODY, now)


def test_a_certificate_says_whose_it_is_and_passes_until_its_last_moment() -> None:
    peer = verified()
    assert (peer.key, peer.public_key, peer.name) == (OWNER.key, OWNER.public_key, "kitchen")
    for when in (NOW - CLOCK_SLACK_S, NOW, NOW + 999.9):
        assert verified(now=when) == CERTIFICATE
    assert issued().serial != CERTIFICATE.serial
    assert issued(lifetime_s=1e9).not_after == AUTHORITY.not_after, "none outlives the authority"


def test_a_certificate_is_for_both_sides_of_tls_and_for_no_host() -> None:
    certificate = x509.load_der_x509_certificate(CERTIFICATE.der)
    purposes = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert set(purposes) == {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH}
    assert certificate.subject.rfc4514_string().count(f"CN={OWNER.key:016x}") == 1
    with pytest.raises(x509.ExtensionNotFound):
        certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)


def test_an_authority_names_its_cluster_and_signs_peers_only() -> None:
    """A peer's own certificate is refused where an authority is expected, and the reverse."""
    certificate = x509.load_der_x509_certificate(AUTHORITY.der)
    constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
    assert (constraints.ca, constraints.path_length) == (True, 0)
    assert read_authority(AUTHORITY.der).cluster == CLUSTER
    with pytest.raises(errors.MalformedCertificateError, match="not one of"):
        read_authority(CERTIFICATE.der)
    with pytest.raises(errors.MalformedCertificateError):
        verify_peer(AUTHORITY, AUTHORITY.der, SIGNER.key, NOBODY, NOW)


@pytest.mark.parametrize(
    ("when", "error"),
    [
        (NOW - CLOCK_SLACK_S - 0.1, errors.EarlyCertificateError),
        (-1e12, errors.EarlyCertificateError),
        (NOW + 1000.0, errors.ExpiredCertificateError),
        (1e15, errors.ExpiredCertificateError),
    ],
)
def test_outside_its_time_a_certificate_is_refused_and_the_clock_named(
    when: float, error: type[errors.CertificateError]
) -> None:
    with pytest.raises(error, match="this machine's clock says"):
        verified(now=when)


def test_certificates_of_another_cluster_or_peer_are_refused() -> None:
    other_signer = make_identity()
    other = make_authority(other_signer, CLUSTER, "desk", NOW)
    foreign = issue_certificate(other, other_signer, OWNER.public_key, "kitchen", NOW)
    with pytest.raises(errors.ForeignCertificateError, match=CLUSTER):
        verified(foreign.der)
    claimed = make_identity().key
    with pytest.raises(errors.KeyMismatchError, match=f"expected one for {claimed:016x}") as caught:
        verify_peer(AUTHORITY, CERTIFICATE.der, claimed, NOBODY, NOW)
    assert (caught.value.claimed, caught.value.certified) == (claimed, OWNER.key)


def test_a_revoked_certificate_is_refused_even_when_expired() -> None:
    for key, serials in ((OWNER.key, ()), (1, (CERTIFICATE.serial,))):
        revoked = NOBODY.with_entry(Revocation(key, serials, int(NOW)), SIGNER, NOW - 1)
        with pytest.raises(errors.RevokedCertificateError, match=f"{OWNER.key:016x} is revoked"):
            verify_peer(AUTHORITY, CERTIFICATE.der, OWNER.key, revoked, NOW + 2000)


@pytest.mark.parametrize(
    "der", [b"", b"\x30\x00", b"x" * 5000, CERTIFICATE.der[:-1], CERTIFICATE.der + b"\0"]
)
def test_what_is_no_certificate_is_malformed(der: bytes) -> None:
    with pytest.raises(errors.MalformedCertificateError):
        verified(der)


def test_no_changed_bit_of_a_certificate_passes() -> None:
    for at in range(8 * len(CERTIFICATE.der)):
        changed = bytearray(CERTIFICATE.der)
        changed[at // 8] ^= 1 << at % 8
        with pytest.raises(errors.CertificateError):
            verified(bytes(changed))


def test_a_certificate_has_one_form_only() -> None:
    """Where a signature ends in a 0 bit, saying that this bit does not count changes nothing."""
    der = b"\1"
    while der[-1] & 1:
        der = issued().der
    assert verified(der)
    with pytest.raises(errors.MalformedCertificateError, match="canonical form"):
        verified(der[:-65] + b"\1" + der[-64:])


@pytest.mark.parametrize("name", ["", " x", "x" * 65, "a\nb", "\x1b[31m"])
def test_a_name_that_cannot_be_shown_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="name is"):
        check_name(name)
    with pytest.raises(ConfigError):
        issued(name)


def test_a_name_may_be_in_any_script() -> None:
    assert read_certificate(issued("Küche 厨房").der).name == "Küche 厨房"
