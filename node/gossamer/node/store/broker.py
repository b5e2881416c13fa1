"""What a broker remembers: a dump, the messages since, and what its clients have not got yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from attrs import frozen

from gossamer.node.store.database import Database

# Rows of the log read at a time.
_ROWS = 1000


@frozen
class QueuedDelivery:
    """A publication for a client.

    Attributes:
        client: name of the client.
        body: what it gets.
        position: among all deliveries; grows, and is never given twice. 0 before it is kept.
    """

    client: str
    body: bytes
    position: int = 0


class BrokerState:
    """The state of the one broker whose state file this is."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def dump(self) -> bytes | None:
        """What `replace_dump` last kept, or None."""
        found = self._database.row("SELECT data FROM broker_dump")
        return None if found is None else bytes(found[0])

    def replace_dump(self, data: bytes) -> None:
        """Keep a dump in place of the last one and of the log, which it takes in."""
        with self._database.transaction():
            self._database.execute("INSERT OR REPLACE INTO broker_dump VALUES (1, ?)", (data,))
            self._database.execute("DELETE FROM broker_log")

    def begin_anew(self) -> None:
        """Forget everything, as if the file were new."""
        with self._database.transaction():
            for table in ("broker_dump", "broker_log", "broker_mail"):
                self._database.execute(f"DELETE FROM {table}")

    def log(self) -> Iterator[bytes]:
        """The entries since the dump, in order."""
        last = 0
        while True:
            rows = self._database.rows(
                "SELECT position, entry FROM broker_log WHERE position > ?"
                " ORDER BY position LIMIT ?",
                (last, _ROWS),
            )
            if not rows:
                return
            yield from (bytes(entry) for _, entry in rows)
            last = rows[-1][0]

    def append(self, entries: Iterable[bytes]) -> None:
        """Add to the log."""
        with self._database.transaction():
            for entry in entries:
                self._database.execute("INSERT INTO broker_log (entry) VALUES (?)", (entry,))

    def enqueue(self, deliveries: Sequence[QueuedDelivery]) -> None:
        """Keep deliveries until their clients have them."""
        with self._database.transaction():
            for delivery in deliveries:
                row = (delivery.client, delivery.body)
                self._database.execute("INSERT INTO broker_mail (client, body) VALUES (?, ?)", row)

    def drop_oldest(self, client: str, number: int) -> int:
        """Drop so many of a client's deliveries; returns how many there were."""
        with self._database.transaction():
            return self._database.execute(
                "DELETE FROM broker_mail WHERE position IN (SELECT position FROM broker_mail"
                " WHERE client = ? ORDER BY position LIMIT ?)",
                (client, number),
            )

    def queued(self, client: str, after: int, most: int) -> list[QueuedDelivery]:
        """The next deliveries for a client after a position."""
        rows = self._database.rows(
            "SELECT client, body, position FROM broker_mail WHERE client = ? AND position > ?"
            " ORDER BY position LIMIT ?",
            (client, after, most),
        )
        return [
            QueuedDelivery(str(name), bytes(body), int(position)) for name, body, position in rows
        ]

    def queued_until(self, client: str, position: int) -> list[QueuedDelivery]:
        """The deliveries for a client up to a position."""
        rows = self._database.rows(
            "SELECT client, body, position FROM broker_mail WHERE client = ? AND position <= ?"
            " ORDER BY position",
            (client, position),
        )
        return [QueuedDelivery(str(name), bytes(body), int(at)) for name, body, at in rows]

    def acknowledge(self, client: str, position: int) -> int:
        """Drop a client's deliveries up to a position; returns how many."""
        with self._database.transaction():
            return self._database.execute(
                "DELETE FROM broker_mail WHERE client = ? AND position <= ?", (client, position)
            )

    def discard(self, positions: Iterable[int]) -> int:
        """Drop deliveries by their positions; returns how many there were."""
        with self._database.transaction():
            return sum(
                self._database.execute("DELETE FROM broker_mail WHERE position = ?", (position,))
                for position in list(positions)
            )

    def waiting(self) -> dict[str, int]:
        """How many deliveries wait, by client."""
        rows = self._database.rows("SELECT client, count(*) FROM broker_mail GROUP BY client")
        return {str(name): int(number) for name, number in rows}
