"""Retained events, what each client was handed, and admissions that were given out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import frozen

from gossamer.node.errors import StoreError
from gossamer.node.store.database import Database
from gossamer.protocol.kernel.errors import CapacityError

# Evicting by this many at a time finds the room for any event in few statements.
_EVICTED_AT_ONCE = 64


@frozen
class RetainedEvent:
    """An event that this peer keeps.

    Attributes:
        event_id: identifier, unique in the overlay.
        publisher: permanent key of who published it.
        body: its values, encoded.
        received_at: when it came, Unix seconds.
        expires_at: when it need not be kept any longer, Unix seconds.
        position: its place in the order of arrival, given when it is kept.
    """

    event_id: bytes
    publisher: int
    body: bytes
    received_at: float
    expires_at: float
    position: int = 0


class Events:
    """The retained events, at most ``limit`` with bodies of ``limit_bytes`` together."""

    def __init__(self, database: Database, limit: int, limit_bytes: int) -> None:
        self._database = database
        self._limit = limit
        self._limit_bytes = limit_bytes

    def retain_all(self, events: Sequence[RetainedEvent]) -> list[RetainedEvent]:
        """Keep ``events``, the oldest making room; return those that are new.

        Raises:
            CapacityError: one alone is larger than all may be together; nothing changed.
        """
        if any(len(event.body) > self._limit_bytes for event in events):
            raise CapacityError("retained events", self._limit_bytes, "an event is larger")
        with self._database.transaction():
            new = [event for event in events if self._insert(event)]
            if new:
                self._make_room()
        return new

    def after(self, position: int, now: float, limit: int) -> list[RetainedEvent]:
        """At most ``limit`` events that came after ``position`` and last beyond ``now``."""
        rows = self._database.rows(
            "SELECT event_id, publisher, body, received_at, expires_at, position FROM events"
            " WHERE position > ? AND expires_at > ? ORDER BY position LIMIT ?",
            (position, now, limit),
        )
        return [RetainedEvent(*row) for row in rows]

    def newest(self, limit: int) -> list[bytes]:
        """The identifiers of the newest events, the newest last."""
        query = "SELECT event_id FROM events ORDER BY position DESC LIMIT ?"
        return [bytes(one) for (one,) in reversed(list(self._database.rows(query, (limit,))))]

    def last_position(self) -> int:
        """The greatest position that was ever given; 0 before the first."""
        found = self._database.row("SELECT seq FROM sqlite_sequence WHERE name = 'events'")
        return 0 if found is None else int(found[0])

    def prune(self, now: float) -> int:
        """Drop what has expired; return how many that were."""
        with self._database.transaction():
            return self._database.execute("DELETE FROM events WHERE expires_at <= ?", (now,))

    def totals(self) -> tuple[int, int]:
        """How many events are retained, and the bytes of their bodies."""
        ((events, size),) = self._database.rows("SELECT events, bytes FROM event_totals")
        return events, size

    def _insert(self, event: RetainedEvent) -> bool:
        added = self._database.execute(
            "INSERT OR IGNORE INTO events"
            " (event_id, publisher, body, received_at, expires_at) VALUES (?, ?, ?, ?, ?)",
            (event.event_id, event.publisher, event.body, event.received_at, event.expires_at),
        )
        return added > 0

    def _make_room(self) -> None:
        events, size = self.totals()
        while events > self._limit or size > self._limit_bytes:
            over = events - self._limit
            # Bytes alone are over the bound: the oldest goes, which may be enough.
            count = min(over, _EVICTED_AT_ONCE) if over > 0 else 1
            evicted = self._database.execute(
                "DELETE FROM events WHERE position IN"
                " (SELECT position FROM events ORDER BY position LIMIT ?)",
                (count,),
            )
            if not evicted:
                raise StoreError(self._database.path, "counts events that it does not hold")
            events, size = self.totals()


# What each client has been handed: what makes "exactly once" hold over restarts.


class Deliveries:
    """The last ``limit`` deliveries of each of at most ``clients`` clients.

    An event that was delivered longer ago than that is not recognised if it comes again, so the
    limit is to cover what can arrive within the retention time.
    """

    def __init__(self, database: Database, clients: int, limit: int) -> None:
        self._database = database
        self._clients = clients
        self._limit = limit

    def mark_all(self, client: str, event_ids: Sequence[bytes]) -> list[bytes]:
        """Note that ``client`` gets these events; return those that it has not got before.

        Raises:
            CapacityError: the client is new and there are as many as allowed; nothing changed.
        """
        new: list[bytes] = []
        with self._database.transaction():
            number, ordinal = self._client(client)
            for event_id in event_ids:
                row = (number, ordinal + len(new), event_id)
                if self._database.execute("INSERT OR IGNORE INTO delivered VALUES (?, ?, ?)", row):
                    new.append(event_id)
            if new:
                ordinal += len(new)
                self._database.execute(
                    "UPDATE clients SET next_ordinal = ? WHERE number = ?", (ordinal, number)
                )
                self._database.execute(
                    "DELETE FROM delivered WHERE client = ? AND ordinal < ?",
                    (number, ordinal - self._limit),
                )
        return new

    def has(self, client: str, event_id: bytes) -> bool:
        """Whether ``client`` is known to have got the event."""
        found = self._database.row(
            "SELECT 1 FROM delivered JOIN clients ON number = client"
            " WHERE name = ? AND event_id = ?",
            (client, event_id),
        )
        return found is not None

    def of(self, client: str) -> list[bytes]:
        """The events that ``client`` is known to have got, oldest first."""
        rows = self._database.rows(
            "SELECT event_id FROM delivered JOIN clients ON number = client"
            " WHERE name = ? ORDER BY ordinal",
            (client,),
        )
        return [bytes(event_id) for (event_id,) in rows]

    def forget(self, client: str) -> None:
        """Forget the client and all that it got."""
        with self._database.transaction():
            self._database.execute("DELETE FROM clients WHERE name = ?", (client,))

    def clients(self) -> dict[str, int]:
        """Names of the known clients, with how many deliveries of each are remembered."""
        rows = self._database.rows(
            "SELECT name, count(ordinal) FROM clients LEFT JOIN delivered ON client = number"
            " GROUP BY number ORDER BY name"
        )
        return {str(name): int(count) for name, count in rows}

    def _client(self, name: str) -> tuple[int, int]:
        """Number of the client, made known if need be, and ordinal of its next delivery."""
        query = "SELECT number, next_ordinal FROM clients WHERE name = ?"
        found = self._database.row(query, (name,))
        if found is None:
            ((count,),) = self._database.rows("SELECT count(*) FROM clients")
            if count >= self._clients:
                raise CapacityError("clients", self._clients, "forget one that is gone")
            self._database.execute(
                "INSERT INTO clients (name, next_ordinal) VALUES (?, 0)", (name,)
            )
            ((number, ordinal),) = self._database.rows(query, (name,))
            return int(number), int(ordinal)
        return int(found[0]), int(found[1])


# Tokens and certificates that the holder of the cluster's authority gave out.
#
# Of a token only a hash is kept: who reads the file cannot join with it.


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
