"""Tokens and certificates that the holder of the cluster's authority gave out.

Of a token only a hash is kept: who reads the file cannot join with it.
"""

from __future__ import annotations

from typing import Final

from attrs import frozen

from gossamer.node.store.database import Database
from gossamer.protocol.kernel.errors import CapacityError

# How long a token is remembered after it expired, so that its bearer is told so.
REMEMBERED_S: Final = 7 * 86_400.0


@frozen
class StoredToken:
    """What is known of a join token.

    Attributes:
        hash: of its secret.
        expires_at: Unix seconds.
        public_key: of the peer that used it, or None while nobody has.
        certificate: the one issued for it, DER, or None while nobody has.
    """

    hash: bytes
    expires_at: float
    public_key: bytes | None = None
    certificate: bytes | None = None


@frozen
class IssuedCertificate:
    """A certificate that was given to a peer.

    Attributes:
        serial: its serial number, positive.
        key: permanent key of the peer.
        name: name of the peer.
        not_after: when it expires, Unix seconds.
    """

    serial: int
    key: int
    name: str
    not_after: float


class Admissions:
    """Tokens, at most ``limit``, and issued certificates, one a token."""

    def __init__(self, database: Database, limit: int) -> None:
        self._database = database
        self._limit = limit

    def add_token(self, token: StoredToken, now: float) -> None:
        """Keep a new token; those long expired are dropped.

        Raises:
            CapacityError: there are as many as allowed; nothing changed.
        """
        with self._database.transaction():
            self._database.execute("DELETE FROM tokens WHERE expires_at < ?", (now - REMEMBERED_S,))
            ((count,),) = self._database.rows("SELECT count(*) FROM tokens")
            if count >= self._limit:
                raise CapacityError("tokens", self._limit, "wait until old ones are forgotten")
            row = (token.hash, token.expires_at, token.public_key, token.certificate)
            self._database.execute("INSERT INTO tokens VALUES (?, ?, ?, ?)", row)

    def find_token(self, token_hash: bytes) -> StoredToken | None:
        """The token with that hash, if there is one."""
        found = self._database.row("SELECT * FROM tokens WHERE hash = ?", (token_hash,))
        return None if found is None else StoredToken(*found)

    def use_token(self, token_hash: bytes, public_key: bytes, certificate: bytes) -> None:
        """Note who used the token and what was issued for it."""
        with self._database.transaction():
            self._database.execute(
                "UPDATE tokens SET public_key = ?, certificate = ? WHERE hash = ?",
                (public_key, certificate, token_hash),
            )

    def add_certificate(self, issued: IssuedCertificate) -> None:
        """Note a certificate that was issued."""
        row = (_serial_bytes(issued.serial), issued.key, issued.name, issued.not_after)
        with self._database.transaction():
            self._database.execute("INSERT INTO certificates VALUES (?, ?, ?, ?)", row)

    def certificates(self) -> list[IssuedCertificate]:
        """Every certificate that was issued, by name and expiry."""
        return self._select("")

    def certificates_of_key(self, key: int) -> list[IssuedCertificate]:
        """Those issued to the peer with that permanent key."""
        return self._select("WHERE key = ?", key)

    def certificates_of_name(self, name: str) -> list[IssuedCertificate]:
        """Those issued to peers of that name."""
        return self._select("WHERE name = ?", name)

    def _select(self, condition: str, *parameters: object) -> list[IssuedCertificate]:
        rows = self._database.rows(
            f"SELECT * FROM certificates {condition} ORDER BY name, not_after, serial", parameters
        )
        return [
            IssuedCertificate(int.from_bytes(serial, "big"), key, name, not_after)
            for serial, key, name, not_after in rows
        ]


def _serial_bytes(serial: int) -> bytes:
    return serial.to_bytes((serial.bit_length() + 7) // 8, "big")
