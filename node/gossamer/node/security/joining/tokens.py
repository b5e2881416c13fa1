"""Join tokens: what an invitation says, as a text that can be copied and read over the phone.

    gossamer1-<base32 of the content and its CRC-32, lower case, without padding>

The content names the cluster and pins its authority's certificate and the inviting peer, so that a
joining peer hands the secret to nobody else. A CRC finds every change of up to 32 bits in a row,
hence of any single character, and a text that is not in its one canonical form is no token.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from typing import Final

from attrs import field, frozen

from gossamer.node.errors import TokenTextError
from gossamer.node.security.addresses import Address, read_addresses
from gossamer.node.security.encoding import decode, encode
from gossamer.protocol.kernel.errors import ConfigError

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
        TokenTextError: it is none, was changed on its way, or is of a newer version.
    """
    text = text.strip()
    if not text.startswith(PREFIX):
        raise TokenTextError(_wrong_beginning(text))
    try:
        token = _from_content(_checked_content(text.removeprefix(PREFIX)))
    except (ValueError, ConfigError) as error:
        raise TokenTextError(f"the join token cannot be right: {error}; copy it again") from error
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
