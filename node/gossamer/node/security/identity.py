"""A peer's identity and addresses, and what these are written in: canonical CBOR, whole files."""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from pathlib import Path
from typing import Any, Final

import cbor2
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

from gossamer.node.errors import ClusterFolderError
from gossamer.node.transport.frames import plain_value
from gossamer.protocol.kernel.errors import ConfigError

# Addresses as tokens and descriptors carry them: hosts and ports, few and short.


Address = tuple[str, int]

ADDRESSES: Final = 8
_HOST_CHARACTERS: Final = 255  # of a domain name


def check_addresses(addresses: tuple[Address, ...], fewest: int = 1) -> None:
    """Refuse what cannot be dialled.

    Raises:
        ConfigError: there are too few or too many, or one is no host and port.
    """
    if not fewest <= len(addresses) <= ADDRESSES:
        raise ConfigError("number of addresses", len(addresses), f"{fewest} to {ADDRESSES}")
    for host, port in addresses:
        if not 1 <= len(host) <= _HOST_CHARACTERS or not host.isprintable() or " " in host:
            raise ConfigError("host", host[:80], "a name or an IP address")
        if not 1 <= port <= 65_535:
            raise ConfigError("port", port, "1 to 65535")


def read_addresses(value: object, fewest: int = 1) -> tuple[Address, ...]:
    """The addresses that ``value``, a decoded list of pairs, stands for.

    Raises:
        ValueError: it is no such list.
        ConfigError: as of `check_addresses`.
    """
    if type(value) is not list or len(value) > ADDRESSES:
        raise ValueError(f"it has no list of at most {ADDRESSES} addresses")
    for pair in value:
        if type(pair) is not list or [type(part) for part in pair] != [str, int]:
            raise ValueError("an address is no pair of host and port")
    addresses = tuple((host, port) for host, port in value)
    check_addresses(addresses, fewest)
    return addresses


# CBOR in its one canonical form: what was signed can only be written one way.


# Nothing signed or exchanged here is a list of more than pairs.
_DEPTH: Final = 4


def encode(value: object) -> bytes:
    """The canonical CBOR of ``value``."""
    return cbor2.dumps(value, canonical=True)


def decode(data: bytes) -> Any:
    """What ``encode`` made ``data`` of.

    Raises:
        ValueError: ``data`` is not canonical CBOR of plain, shallow values.
    """
    try:
        value = plain_value(data, _DEPTH)
        canonical = encode(value) == data
    except (cbor2.CBORError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"not CBOR: {error}") from error
    if not canonical:
        raise ValueError("not canonical CBOR")
    return value


# Files that are either there as a whole or not at all, and private keys that nobody else reads.


PRIVATE: Final = 0o600
PUBLIC: Final = 0o644


def write_file(path: Path, content: bytes, mode: int = PUBLIC) -> None:
    """Put ``content`` at ``path``, in place of what was there, with at most the rights ``mode``.

    Written aside, synced and renamed: a crash leaves the old file or the new one.

    Raises:
        OSError: it could not be written; the old file stays.
    """
    aside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        aside.rename(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def read_file(path: Path, limit: int, *, private: bool = False) -> bytes:
    """The content of a file of at most ``limit`` bytes; only its owner may read a ``private`` one.

    Raises:
        ClusterFolderError: it is missing, unreadable or too large, or others can read it.
    """
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            content = file.read(limit + 1)
    except OSError as error:
        raise ClusterFolderError(path, f"cannot be read: {error.strerror}") from error
    if private and mode & 0o077:
        raise ClusterFolderError(
            path, f"can be used by others (mode {mode:o}), expected mode 600; run: chmod 600 {path}"
        )
    if len(content) > limit:
        what = "too large for a key" if private else "too large"
        raise ClusterFolderError(path, f"is {what}, expected at most {limit} bytes")
    return content


def file_stamp(path: Path) -> tuple[int, ...]:
    """What changes whenever a file is replaced or written to."""
    try:
        status = path.stat()
    except OSError:
        return (-1,)
    return status.st_ino, status.st_size, status.st_mtime_ns


def make_folder(path: Path) -> None:
    """Make ``path`` and its parents where missing, with mode 700.

    Raises:
        ClusterFolderError: it cannot be made.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ClusterFolderError(path, f"cannot be made: {error.strerror}") from error


def _sync_folder(folder: Path) -> None:
    """Make a rename in ``folder`` last."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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
        ClusterFolderError: there is a file already; keys are never overwritten.
    """
    if path.exists():
        raise ClusterFolderError(path, "exists; a key is never overwritten, expected a new file")
    pem = identity.private_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    write_file(path, pem, PRIVATE)


def load_identity(path: Path) -> Identity:
    """Read the key pair that `save_identity` wrote.

    Raises:
        ClusterFolderError: it is missing, open to others, or no Ed25519 key.
    """
    pem = read_file(path, _KEY_FILE_LIMIT, private=True)
    try:
        private_key = load_pem_private_key(pem, password=None)
    except (ValueError, TypeError) as error:
        raise ClusterFolderError(path, "is no private key in PEM without a password") from error
    if not isinstance(private_key, Ed25519PrivateKey):
        raise ClusterFolderError(path, "is a key of another kind, expected Ed25519")
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
