"""What each client has been handed: what makes "exactly once" hold over restarts."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer.node.store.database import Database
from gossamer.protocol.kernel.errors import CapacityError


class Deliveries:
    """The last ``limit`` deliveries of each of at most ``clients`` clients.

    An event that was delivered longer ago than that is not recognised if it comes again, so the
    limit is to cover what can arrive within the retention time.
    """

    def __init__(self, database: Database, clients: int, limit: int) -> None:
        self._database = database
        self._clients = clients
        self._limit = limit

    def mark(self, client: str, event_id: bytes) -> bool:
        """Note that ``client`` gets the event; return False where it has got it before.

        Raises:
            CapacityError: the client is new and there are as many as allowed; nothing changed.
        """
        return bool(self.mark_all(client, [event_id]))

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
