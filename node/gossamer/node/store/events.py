"""Retained events: kept for subscribers that were away, within bounds of time, number and bytes."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from gossamer.node.errors import StoreDamagedError
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

    def retain(self, event: RetainedEvent) -> bool:
        """Keep ``event``, the oldest making room; return whether it is new.

        Raises:
            CapacityError: it alone is larger than all may be together; nothing changed.
        """
        return bool(self.retain_all([event]))

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

    def holds(self, event_id: bytes) -> bool:
        """Whether the event is retained."""
        found = self._database.row("SELECT 1 FROM events WHERE event_id = ?", (event_id,))
        return found is not None

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
                raise StoreDamagedError(self._database.path, "counts events that it does not hold")
            events, size = self.totals()
