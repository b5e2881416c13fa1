"""What a broker remembers: a dump, the messages since, and what its clients have not got yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from attrs import frozen

from gossamer.node.store.database import Database

# Rows of the log read at a time.
_ROWS: Final = 1000
# What is given up at a time: rows of the log, and portions of dumps, which are many rows long.
_GIVEN_UP: Final = 500
_PORTIONS_GIVEN_UP: Final = 4
_TABLES: Final = (
    *("broker_dumps", "broker_dump_portions", "broker_log", "broker_mail"),
    "broker_composites",
)
# The dump in force.
_NEWEST: Final = "(SELECT max(number) FROM broker_dumps WHERE whole)"
_TAKEN_IN: Final = f"(SELECT log_position FROM broker_dumps WHERE number = {_NEWEST})"


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


@frozen
class StoredComposite:
    """A composite subscription of a client.

    Attributes:
        client: name of the client.
        label: what the client calls it.
        mark: tells its parts from those of others.
        text: as the client wrote it.
        within_s: seconds in which publications have to come to match together.
    """

    client: str
    label: str
    mark: str
    text: str
    within_s: float


class BrokerState:
    """The state of the one broker whose state file this is."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def dump(self) -> bytes | None:
        """The newest dump that is whole, or None."""
        rows = self._database.rows(
            f"SELECT data FROM broker_dump_portions WHERE dump = {_NEWEST} ORDER BY position"
        )
        return b"".join(data for (data,) in rows) if rows else None

    def begin_dump(self) -> int:
        """Begin a dump of what the log led to until now; returns its number."""
        with self._database.transaction():
            self._database.execute(
                "INSERT INTO broker_dumps (log_position, whole) SELECT coalesce("
                "(SELECT seq FROM sqlite_sequence WHERE name = 'broker_log'), 0), 0"
            )
            found = self._database.row("SELECT max(number) FROM broker_dumps")
        assert found is not None
        return int(found[0])

    def add_to_dump(self, number: int, portion: bytes) -> None:
        """Add the next part of a dump; it is in force once it is finished."""
        self._database.execute(
            "INSERT INTO broker_dump_portions (dump, data) VALUES (?, ?)", (number, portion)
        )

    def finish_dump(self, number: int) -> None:
        """Let a dump take the place of the last one and of the log until it was begun."""
        self._database.execute("UPDATE broker_dumps SET whole = 1 WHERE number = ?", (number,))

    def give_up(self) -> bool:
        """Forget some of what no dump needs any more; returns whether there may be more.

        Not while a dump is written, of which it would forget the beginning.
        """
        with self._database.transaction():
            entries = self._database.execute(
                "DELETE FROM broker_log WHERE position IN (SELECT position FROM broker_log"
                f" WHERE position <= {_TAKEN_IN} ORDER BY position LIMIT ?)",
                (_GIVEN_UP,),
            )
            portions = self._database.execute(
                "DELETE FROM broker_dump_portions WHERE position IN (SELECT position"
                f" FROM broker_dump_portions WHERE dump <> {_NEWEST} LIMIT ?)",
                (_PORTIONS_GIVEN_UP,),
            )
            self._database.execute(f"DELETE FROM broker_dumps WHERE number <> {_NEWEST}")
        return entries == _GIVEN_UP or portions == _PORTIONS_GIVEN_UP

    def begin_anew(self) -> None:
        """Forget everything, as if the file were new."""
        with self._database.transaction():
            for table in _TABLES:
                self._database.execute(f"DELETE FROM {table}")

    def log(self) -> Iterator[bytes]:
        """The entries since the dump was begun, in order."""
        found = self._database.row(f"SELECT {_TAKEN_IN}")
        last = 0 if found is None or found[0] is None else int(found[0])
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
            self._database.execute_many(
                "INSERT INTO broker_log (entry) VALUES (?)", ((entry,) for entry in entries)
            )

    def enqueue(self, deliveries: Sequence[QueuedDelivery]) -> None:
        """Keep deliveries until their clients have them."""
        with self._database.transaction():
            self._database.execute_many(
                "INSERT INTO broker_mail (client, body) VALUES (?, ?)",
                ((one.client, one.body) for one in deliveries),
            )

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
        return self._deliveries("position > ? ORDER BY position LIMIT ?", client, after, most)

    def queued_until(self, client: str, position: int) -> list[QueuedDelivery]:
        """The deliveries for a client up to a position."""
        return self._deliveries("position <= ? ORDER BY position", client, position)

    def _deliveries(self, condition: str, *parameters: object) -> list[QueuedDelivery]:
        query = f"SELECT client, body, position FROM broker_mail WHERE client = ? AND {condition}"
        return [QueuedDelivery(*row) for row in self._database.rows(query, parameters)]

    def acknowledge(self, client: str, position: int) -> int:
        """Drop a client's deliveries up to a position; returns how many."""
        with self._database.transaction():
            return self._database.execute(
                "DELETE FROM broker_mail WHERE client = ? AND position <= ?", (client, position)
            )

    def forget(self, client: str) -> None:
        """Keep nothing of a client any more, neither deliveries nor composite subscriptions."""
        with self._database.transaction():
            for table in ("broker_mail", "broker_composites"):
                self._database.execute(f"DELETE FROM {table} WHERE client = ?", (client,))

    def keep_composite(self, one: StoredComposite) -> None:
        """Keep a composite subscription in place of an earlier one of that label."""
        self._database.execute(
            "INSERT OR REPLACE INTO broker_composites VALUES (?, ?, ?, ?, ?)",
            (one.client, one.label, one.mark, one.text, one.within_s),
        )

    def drop_composite(self, client: str, label: str) -> None:
        """Keep a composite subscription no longer."""
        self._database.execute(
            "DELETE FROM broker_composites WHERE client = ? AND label = ?", (client, label)
        )

    def composites(self) -> list[StoredComposite]:
        """All composite subscriptions, by client and label."""
        rows = self._database.rows(
            "SELECT client, label, mark, text, within_s FROM broker_composites"
            " ORDER BY client, label"
        )
        return [StoredComposite(*row) for row in rows]

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
