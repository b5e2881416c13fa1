"""Known peers: where they were last reached."""

from __future__ import annotations

import json
from typing import Any

from attrs import frozen

from gossamer.node.store.database import Database

Address = tuple[str, int]


@frozen
class KnownPeer:
    """A peer that was met or told of.

    Attributes:
        key: its permanent key.
        addresses: where it listens, hosts and ports, best first.
        fingerprint: SHA-256 of its certificate, or empty.
        last_seen: when it was last connected, Unix seconds.
        failures: attempts to reach it that failed since.
    """

    key: int
    addresses: tuple[Address, ...]
    fingerprint: bytes
    last_seen: float
    failures: int = 0


class Peers:
    """The known peers, at most ``limit``."""

    def __init__(self, database: Database, limit: int) -> None:
        self._database = database
        self._limit = limit

    def remember(self, peer: KnownPeer) -> None:
        """Keep ``peer`` in place of what was known; those not seen for longest make room."""
        addresses = json.dumps(peer.addresses)
        row = (peer.key, addresses, peer.fingerprint, peer.last_seen, peer.failures)
        with self._database.transaction():
            self._database.execute("INSERT OR REPLACE INTO peers VALUES (?, ?, ?, ?, ?)", row)
            self._database.execute(
                "DELETE FROM peers WHERE key IN (SELECT key FROM peers WHERE key != ?"
                " ORDER BY last_seen LIMIT max(0, (SELECT count(*) FROM peers) - ?))",
                (peer.key, self._limit),
            )

    def count_failure(self, key: int) -> None:
        """Note that the peer could not be reached; nothing happens where it is not known."""
        with self._database.transaction():
            self._database.execute("UPDATE peers SET failures = failures + 1 WHERE key = ?", (key,))

    def forget(self, key: int) -> None:
        """Drop the peer, if it is known."""
        with self._database.transaction():
            self._database.execute("DELETE FROM peers WHERE key = ?", (key,))

    def find(self, key: int) -> KnownPeer | None:
        """The peer ``key``, if it is known."""
        found = self._database.row("SELECT * FROM peers WHERE key = ?", (key,))
        return None if found is None else _known_peer(*found)

    def all(self) -> list[KnownPeer]:
        """Every known peer, the one seen last first."""
        rows = self._database.rows("SELECT * FROM peers ORDER BY last_seen DESC, key")
        return [_known_peer(*row) for row in rows]


def _known_peer(
    key: int, addresses: str, fingerprint: bytes, last_seen: float, failures: int
) -> KnownPeer:
    pairs: list[list[Any]] = json.loads(addresses)
    known = tuple((str(host), int(port)) for host, port in pairs)
    return KnownPeer(key, known, fingerprint, last_seen, failures)
