"""Own subscriptions: what clients asked for, so that a restarted node still asks for it."""

from __future__ import annotations

from attrs import frozen

from gossamer.node.store.database import Database
from gossamer.protocol.kernel.errors import CapacityError


@frozen
class StoredSubscription:
    """A subscription of a client of this peer.

    Attributes:
        client: name of the client.
        id: the client's name for the subscription.
        expression: its text.
    """

    client: str
    id: str
    expression: str


class Subscriptions:
    """The subscriptions of all clients, at most ``limit``."""

    def __init__(self, database: Database, limit: int) -> None:
        self._database = database
        self._limit = limit

    def add(self, subscription: StoredSubscription) -> None:
        """Keep ``subscription`` in place of the client's earlier one of that id.

        Raises:
            CapacityError: there are as many as allowed; nothing changed.
        """
        row = (subscription.client, subscription.id, subscription.expression)
        with self._database.transaction():
            self._database.execute("INSERT OR REPLACE INTO subscriptions VALUES (?, ?, ?)", row)
            ((count,),) = self._database.rows("SELECT count(*) FROM subscriptions")
            if count > self._limit:
                raise CapacityError("subscriptions", self._limit)

    def remove(self, client: str, subscription_id: str) -> bool:
        """Drop a subscription; return whether there was one."""
        with self._database.transaction():
            changed = self._database.execute(
                "DELETE FROM subscriptions WHERE client = ? AND id = ?", (client, subscription_id)
            )
        return changed > 0

    def all(self) -> list[StoredSubscription]:
        """Every subscription, by client and id."""
        rows = self._database.rows("SELECT * FROM subscriptions ORDER BY client, id")
        return [StoredSubscription(*row) for row in rows]
