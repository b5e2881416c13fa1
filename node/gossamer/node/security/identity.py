"""A peer's identity: an Ed25519 key pair, and the permanent key that the overlay knows it by."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from attrs import field, frozen
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from gossamer.node.errors import KeyFileError
from gossamer.node.security.files import PRIVATE, read_private, write_file

PUBLIC_KEY_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64
_PERMANENT_KEY_BITS: Final = 62
_KEY_FILE_LIMIT: Final = 4096


def permanent_key(public_key: bytes) -> int:
    """The number in [0, 2^62) that a peer with this raw public key is known by."""
    first = int.from_bytes(hashlib.sha256(public_key).digest()[:8], "big")
    return first >> (64 - _PERMANENT_KEY_BITS)


def key_text(key: int) -> str:
    """How a permanent key is written: 16 hexadecimal digits."""
    return f"{key:016x}"


@frozen
class Identity:
    """A key pair.

    Attributes:
        private_key: never leaves this machine.
        public_key: the raw 32 bytes.
        key: the permanent key.
    """

    private_key: Ed25519PrivateKey = field(repr=False, eq=False)
    public_key: bytes = field(init=False)
    key: int = field(init=False)

    @public_key.default
    def _public_key(self) -> bytes:
        return self.private_key.public_key().public_bytes_raw()

    @key.default
    def _key(self) -> int:
        return permanent_key(self.public_key)

    def sign(self, context: str, message: bytes) -> bytes:
        """The signature of ``message``, valid for this ``context`` only."""
        return self.private_key.sign(in_context(context, message))


def make_identity() -> Identity:
    """A new identity, kept nowhere yet."""
    return Identity(Ed25519PrivateKey.generate())


def save_identity(identity: Identity, path: Path) -> None:
    """Write the key pair to the new file ``path``, which only its owner can ever read.

    Raises:
        KeyFileError: there is a file already; keys are never overwritten.
    """
    if path.exists():
        raise KeyFileError(path, "exists; a key is never overwritten, expected a new file")
    pem = identity.private_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    write_file(path, pem, PRIVATE)


def load_identity(path: Path) -> Identity:
    """Read the key pair that `save_identity` wrote.

    Raises:
        KeyFileError: it is missing, open to others, or no Ed25519 key.
    """
    pem = read_private(path, _KEY_FILE_LIMIT)
    try:
        private_key = load_pem_private_key(pem, password=None)
    except (ValueError, TypeError) as error:
        raise KeyFileError(path, "is no private key in PEM without a password") from error
    if not isinstance(private_key, Ed25519PrivateKey):
        raise KeyFileError(path, "is a key of another kind, expected Ed25519")
    return Identity(private_key)


def verify(public_key: bytes, context: str, message: bytes, signature: bytes) -> bool:
    """Whether the holder of ``public_key`` signed ``message`` in this ``context``."""
    try:
        loaded = Ed25519PublicKey.from_public_bytes(public_key)
        loaded.verify(signature, in_context(context, message))
    except (InvalidSignature, ValueError):
        return False
    return True


def in_context(context: str, message: bytes) -> bytes:
    """What is signed: prefixed, so that a signature for one purpose is worthless for another."""
    return b"gossamer " + context.encode() + b"\0" + message
