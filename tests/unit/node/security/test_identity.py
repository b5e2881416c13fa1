"""Keys: what they are derived from, who can read them, and what their signatures are worth."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from gossamer.node.errors import KeyFileError
from gossamer.node.security.files import PRIVATE, write_file
from gossamer.node.security.identity import (
    load_identity,
    make_identity,
    permanent_key,
    save_identity,
    verify,
)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_permanent_key_is_the_first_62_bits_of_the_hash_of_the_public_key() -> None:
    public_key = bytes(range(32))
    bits = "".join(f"{byte:08b}" for byte in hashlib.sha256(public_key).digest())
    assert permanent_key(public_key) == int(bits[:62], 2)


def test_an_identity_comes_back_from_its_file(tmp_path: Path) -> None:
    identity = make_identity()
    save_identity(identity, tmp_path / "peer.key")
    loaded = load_identity(tmp_path / "peer.key")
    assert (loaded.public_key, loaded.key) == (identity.public_key, identity.key)
    assert verify(identity.public_key, "test", b"message", loaded.sign("test", b"message"))


def test_only_the_owner_can_read_a_key_file_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        save_identity(make_identity(), tmp_path / "peer.key")
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "peer.key") == 0o600


def test_a_private_file_is_private_before_its_first_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is looked at when it is synced, before it gets its name."""
    modes = []
    monkeypatch.setattr(os, "fsync", lambda file: modes.append(os.fstat(file).st_mode))
    write_file(tmp_path / "peer.key", b"secret", PRIVATE)
    assert stat.S_IMODE(modes[0]) == 0o600


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
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


def test_a_key_is_never_overwritten(tmp_path: Path) -> None:
    identity = make_identity()
    save_identity(identity, tmp_path / "peer.key")
    with pytest.raises(KeyFileError, match="exists"):
        save_identity(make_identity(), tmp_path / "peer.key")
    assert load_identity(tmp_path / "peer.key").key == identity.key


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


def test_a_missing_key_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(KeyFileError, match=r"peer\.key cannot be read: No such file"):
        load_identity(tmp_path / "peer.key")


def test_a_signature_holds_for_its_signer_message_and_context_only() -> None:
    identity = make_identity()
    signature = identity.sign("join", b"message")
    assert verify(identity.public_key, "join", b"message", signature)
    assert not verify(identity.public_key, "descriptor", b"message", signature)
    assert not verify(identity.public_key, "join", b"massage", signature)
    assert not verify(make_identity().public_key, "join", b"message", signature)
    assert not verify(b"short", "join", b"message", signature)


def test_an_identity_does_not_show_its_private_key() -> None:
    assert "private" not in repr(make_identity())
