"""Keys, certificates, lists of revoked peers, and the folder of a membership."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.x509.oid import ExtendedKeyUsageOID

from gossamer.node import errors
from gossamer.node.errors import ClusterFolderError, SignedDataError
from gossamer.node.security import certificates, revocation
from gossamer.node.security.certificates import CLOCK_SLACK_S, issue_certificate, make_authority
from gossamer.node.security.cluster import (
    ClusterFolder,
    client_context,
    load_signer,
    make_cluster,
    open_membership,
)
from gossamer.node.security.identity import (
    PRIVATE,
    load_identity,
    make_identity,
    permanent_key,
    save_identity,
    verify,
    write_file,
)
from gossamer.node.security.revocation import Revocation
from gossamer.protocol.kernel.errors import CapacityError, ConfigError
from support.clusters import made_cluster


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("no_umask")
def test_an_identity_comes_back_from_its_file_which_is_never_overwritten(tmp_path: Path) -> None:
    path, identity = tmp_path / "peer.key", make_identity()
    with pytest.raises(ClusterFolderError, match=r"peer\.key cannot be read: No such file"):
        load_identity(path)
    save_identity(identity, path)
    assert mode_of(path) == 0o600
    with pytest.raises(ClusterFolderError, match="exists"):
        save_identity(make_identity(), path)
    loaded = load_identity(path)
    assert (loaded.public_key, loaded.key) == (identity.public_key, identity.key)
    assert verify(identity.public_key, "test", b"message", loaded.sign("test", b"message"))
    assert "private" not in repr(loaded)
    for mode in (0o640, 0o604, 0o660, 0o601):
        path.chmod(mode)
        with pytest.raises(ClusterFolderError, match=f"chmod 600 {path}"):
            load_identity(path)
    # Its permanent key is the first 62 bits of the hash of the public key.
    bits = "".join(f"{byte:08b}" for byte in hashlib.sha256(bytes(range(32))).digest())
    assert permanent_key(bytes(range(32))) == int(bits[:62], 2)


def test_files_are_private_from_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is looked at when it is synced, before it gets its name."""
    modes = []

    def fail(file: int) -> None:
        modes.append(stat.S_IMODE(os.fstat(file).st_mode))
        raise OSError(28, "No space left on device")

    path = tmp_path / "ca.pem"
    write_file(path, b"old")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        write_file(path, b"new", PRIVATE)
    assert modes == [0o600]
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"ca.pem": b"old"}


PEM = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
OTHER_KIND = X25519PrivateKey.generate().private_bytes(*PEM, serialization.NoEncryption())
LOCKED = make_identity().private_key.private_bytes(
    *PEM, serialization.BestAvailableEncryption(b"pass")
)


def test_a_file_that_is_no_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "peer.key"
    for content, complaint in (
        (b"", "no private key"),
        (b"no key at all", "no private key"),
        (LOCKED, "without a password"),
        (OTHER_KIND, "expected Ed25519"),
        (b"x" * 5000, "too large"),
    ):
        write_file(path, content, PRIVATE)
        with pytest.raises(ClusterFolderError, match=complaint):
            load_identity(path)


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
NOBODY = revocation.RevocationList(CLUSTER)
OWNER = make_identity()


def issued(name: str = "kitchen", lifetime_s: float = 1000.0) -> certificates.PeerCertificate:
    return issue_certificate(AUTHORITY, SIGNER, OWNER.public_key, name, NOW, lifetime_s)


CERTIFICATE = issued()


def verified(der: bytes = CERTIFICATE.der, now: float = NOW) -> certificates.PeerCertificate:
    return certificates.verify_peer(AUTHORITY, der, OWNER.key, NOBODY, now)


def test_a_certificate_says_whose_it_is_and_passes_until_its_last_moment() -> None:
    peer = verified()
    assert (peer.key, peer.public_key, peer.name) == (OWNER.key, OWNER.public_key, "kitchen")
    for when in (NOW - CLOCK_SLACK_S, NOW, NOW + 999.9):
        assert verified(now=when) == CERTIFICATE
    assert issued().serial != CERTIFICATE.serial
    assert issued(lifetime_s=1e9).not_after == AUTHORITY.not_after, "none outlives the authority"


def test_certificates_are_for_both_sides_of_tls_and_no_host_and_authorities_sign_peers() -> None:
    certificate = x509.load_der_x509_certificate(CERTIFICATE.der)
    purposes = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert set(purposes) == {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH}
    assert certificate.subject.rfc4514_string().count(f"CN={OWNER.key:016x}") == 1
    with pytest.raises(x509.ExtensionNotFound):
        certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    certificate = x509.load_der_x509_certificate(AUTHORITY.der)
    constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
    assert (constraints.ca, constraints.path_length) == (True, 0)
    assert certificates.read_authority(AUTHORITY.der).cluster == CLUSTER
    with pytest.raises(errors.CertificateError, match="not one of"):
        certificates.read_authority(CERTIFICATE.der)
    with pytest.raises(errors.CertificateError):
        certificates.verify_peer(AUTHORITY, AUTHORITY.der, SIGNER.key, NOBODY, NOW)


def test_outside_its_time_a_certificate_is_refused_and_the_clock_named() -> None:
    for when in (NOW - CLOCK_SLACK_S - 0.1, -1e12, NOW + 1000.0, 1e15):
        with pytest.raises(errors.UntimelyCertificateError, match="this machine's clock says"):
            verified(now=when)


def test_certificates_of_another_cluster_or_peer_are_refused() -> None:
    other_signer = make_identity()
    other = make_authority(other_signer, CLUSTER, "desk", NOW)
    foreign = issue_certificate(other, other_signer, OWNER.public_key, "kitchen", NOW)
    with pytest.raises(errors.ForeignCertificateError, match=CLUSTER):
        verified(foreign.der)
    claimed = make_identity().key
    words = f"is for peer {OWNER.key:016x}, expected one for {claimed:016x}"
    with pytest.raises(errors.KeyMismatchError, match=words):
        certificates.verify_peer(AUTHORITY, CERTIFICATE.der, claimed, NOBODY, NOW)


def test_a_revoked_certificate_is_refused_even_when_expired() -> None:
    for key, serials in ((OWNER.key, ()), (1, (CERTIFICATE.serial,))):
        revoked = NOBODY.with_entry(Revocation(key, serials, int(NOW)), SIGNER, NOW - 1)
        with pytest.raises(errors.RevokedCertificateError, match=f"{OWNER.key:016x} is revoked"):
            certificates.verify_peer(AUTHORITY, CERTIFICATE.der, OWNER.key, revoked, NOW + 2000)


def test_a_certificate_has_one_form_and_no_changed_bit_of_it_passes() -> None:
    for der in (b"", b"\x30\x00", b"x" * 5000, CERTIFICATE.der[:-1], CERTIFICATE.der + b"\0"):
        with pytest.raises(errors.CertificateError):
            verified(der)
    for at in range(8 * len(CERTIFICATE.der)):
        changed = bytearray(CERTIFICATE.der)
        changed[at // 8] ^= 1 << at % 8
        with pytest.raises(errors.CertificateError):
            verified(bytes(changed))
    # Where a signature ends in a 0 bit, saying that this bit does not count changes nothing.
    der = b"\1"
    while der[-1] & 1:
        der = issued().der
    assert verified(der)
    with pytest.raises(errors.CertificateError, match="canonical form"):
        verified(der[:-65] + b"\1" + der[-64:])


def test_a_name_may_be_in_any_script_and_one_that_cannot_be_shown_is_refused() -> None:
    assert certificates.read_certificate(issued("Küche 厨房").der).name == "Küche 厨房"
    for name in ("", " x", "x" * 65, "a\nb", "\x1b[31m"):
        with pytest.raises(ConfigError, match="name is"):
            certificates.check_name(name)
        with pytest.raises(ConfigError):
            issued(name)


LATER = int(NOW) + 1000
ONE = NOBODY.with_entry(Revocation(1, (11, 1 << 158), LATER), SIGNER, NOW)
TWO = ONE.with_entry(Revocation(2, (22,), LATER), SIGNER, NOW)


def list_with(**fields: Any) -> bytes:
    return json.dumps(json.loads(TWO.to_bytes()) | fields).encode()


def test_a_list_comes_back_unless_it_was_changed(tmp_path: Path) -> None:
    path = tmp_path / "revoked.json"
    assert revocation.read_list(TWO.to_bytes(), AUTHORITY) == TWO
    revocation.save_list(path, TWO)
    assert revocation.load_list(path, AUTHORITY) == TWO
    path.write_bytes(list_with(revoked=[]))
    with pytest.raises(ClusterFolderError, match=r"revoked\.json cannot be used: .*not signed"):
        revocation.load_list(path, AUTHORITY)


UNSIGNED = [
    list_with(sequence=9),
    list_with(revoked=[]),
    list_with(revoked=json.loads(TWO.to_bytes())["revoked"][:1]),
    list_with(signature="00" * 64),
    list_with(signature=""),
    NOBODY.with_entry(Revocation(3, (), LATER), make_identity(), NOW).to_bytes(),
    revocation.RevocationList(CLUSTER, 5).to_bytes(),
]
MALFORMED = [
    *[b"", b"[]", b"{}", b"null", b"7", b"\xff\xfe", b"[" * 100_000, b"9" * 10_000],
    list_with(more=1),
    list_with(cluster=7),
    *(list_with(sequence=number) for number in (-1, True, 1.5, 1 << 70)),
    list_with(revoked=7),
    list_with(revoked=[7]),
    list_with(revoked=[{"key": "1", "serials": ["x"], "not_after": 1}]),
    list_with(revoked=[{"key": "-1", "serials": [], "not_after": 1}]),
    list_with(revoked=[{"key": "1", "serials": ["f" * 41], "not_after": 1}]),
    list_with(revoked=[{"key": 1, "serials": [], "not_after": 1}]),
    list_with(revoked=[{"key": "1"}]),
    *(list_with(signature=text) for text in (7, "zz")),
]


def test_a_list_that_the_authority_did_not_make_is_refused() -> None:
    for data, words in (
        *((data, "not signed") for data in UNSIGNED),
        *((data, "malformed") for data in MALFORMED),
        (revocation.RevocationList("f" * 32).to_bytes(), "is of cluster"),
        (b"[" * (revocation.LIST_LIMIT + 1), f"at most {revocation.LIST_LIMIT}"),
    ):
        with pytest.raises(SignedDataError, match=words):
            revocation.read_list(data, AUTHORITY)


def test_a_list_has_a_limit_and_forgets_what_has_expired_or_is_replaced() -> None:
    entries = tuple(Revocation(key, (1 << 158,), LATER) for key in range(revocation.ENTRIES - 1))
    full = revocation.RevocationList(CLUSTER, 1, entries).with_entry(
        Revocation((1 << 62) - 1, (1 << 158,), LATER), SIGNER, NOW
    )
    assert revocation.read_list(full.to_bytes(), AUTHORITY) == full
    with pytest.raises(CapacityError, match=f"full at {revocation.ENTRIES}"):
        full.with_entry(Revocation(1 << 61, (), LATER), SIGNER, NOW)
    later = TWO.with_entry(Revocation(3, (), LATER + 5000), SIGNER, LATER + 1)
    assert ([entry.key for entry in later.entries], later.sequence) == ([3], TWO.sequence + 1)
    again = TWO.with_entry(Revocation(1, (11, 12), LATER), SIGNER, NOW)
    assert [entry.key for entry in again.entries] == [1, 2]
    assert again.forbids(99, 12)


def test_a_new_cluster_has_an_authority_and_a_first_peer(tmp_path: Path) -> None:
    member = make_cluster(tmp_path / "new" / "desk", "desk", "first", NOW)
    modes = {path.name: mode_of(path) for path in member.folder.path.iterdir()}
    assert set(modes) == {"ca.key", "ca.pem", "peer.key", "peer.pem", "revoked.json"}
    assert (modes["ca.key"], modes["peer.key"]) == (0o600, 0o600)
    assert mode_of(member.folder.path) == 0o700
    assert open_membership(member.folder.path) == member
    assert member.certificate.key == member.identity.key
    assert load_signer(member.folder, member.authority).public_key == member.authority.public_key
    assert client_context(member).minimum_version.name == "TLSv1_3"
    other = make_cluster(tmp_path / "other", "desk", "first", NOW)
    assert other.authority.cluster != member.authority.cluster, "though the name is the same"


def test_no_cluster_is_made_in_a_folder_in_use_or_with_a_bad_name(tmp_path: Path) -> None:
    used = tmp_path / "used"
    used.mkdir()
    for present in ("ca.key", "ca.pem", "peer.key"):
        (used / present).write_bytes(b"precious")
        with pytest.raises(ClusterFolderError, match=f"{present} exists"):
            make_cluster(used, "desk", "first", NOW)
        assert {path.name: path.read_bytes() for path in used.iterdir()} == {present: b"precious"}
        (used / present).unlink()
    with pytest.raises(ConfigError):
        make_cluster(tmp_path / "desk", "desk", "", NOW)
    assert not (tmp_path / "desk").exists()
    with pytest.raises(ClusterFolderError, match="gossamer node init"):
        open_membership(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(ClusterFolderError, match="cannot be made"):
        make_cluster(tmp_path / "file" / "desk", "desk", "first", NOW)


def test_keys_of_others_and_those_open_to_others_or_not_there_are_not_used(tmp_path: Path) -> None:
    member = make_cluster(tmp_path / "desk", "desk", "first", NOW)
    for path in (member.folder.peer_key, member.folder.authority_key):
        path.unlink()
        save_identity(make_identity(), path)
    with pytest.raises(ClusterFolderError, match=r"another key than peer\.key"):
        open_membership(tmp_path / "desk")
    with pytest.raises(ClusterFolderError, match=r"does not fit ca\.pem"):
        load_signer(member.folder, member.authority)
    with made_cluster(tmp_path / "a") as cluster:
        other = cluster.admit("other")
    with pytest.raises(ClusterFolderError, match=r"holds no ca\.key"):
        load_signer(ClusterFolder(other.folder.path), other.authority)
    other.folder.peer_key.chmod(0o644)
    with pytest.raises(ClusterFolderError, match="chmod 600"):
        open_membership(other.folder.path)


def test_broken_files_are_named(tmp_path: Path) -> None:
    for number, (name, data, words) in enumerate(
        (
            ("ca.pem", b"", "holds no certificate"),
            ("ca.pem", b"x" * 10_000, "too large"),
            ("peer.pem", b"nonsense", "holds no certificate"),
            ("revoked.json", b"{}", "malformed"),
            ("ca.pem", None, "cannot be read"),
        )
    ):
        folder = make_cluster(tmp_path / str(number), "desk", "first", NOW).folder.path
        (folder / name).unlink()
        if data is not None:
            (folder / name).write_bytes(data)
        with pytest.raises(ClusterFolderError, match=f"{name} .*{words}"):
            open_membership(folder)
