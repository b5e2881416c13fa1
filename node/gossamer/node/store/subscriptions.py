"""Own subscriptions: what clients asked for, so that a restarted node still asks for it."""

from __future__ import annotations

import math
from typing import Final

from attrs import astuple, frozen

from gossamer.node.store.database import Database
from gossamer.protocol.kernel.errors import CapacityError

_ADD: Final = """INSERT INTO subscriptions VALUES (?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET expression = excluded.expression,
    since = iif(expression = excluded.expression, since, excluded.since)"""


@frozen
class StoredSubscription:
    """A subscription of a client of this peer.

    Attributes:
        client: name of the client.
        id: the client's name for the subscription.
        expression: its text.
        since: Unix seconds since when it is wanted; 0 where that is not known.
    """

    client: str
    id: str
    expression: str
    since: float = 0.0

    def past_s(self, now: float) -> float:
        """For how long it is wanted by Unix time ``now``; infinite where the clock was set back."""
        return now - self.since if now >= self.since else math.inf


class Subscriptions:
    """The subscriptions of all clients, at most ``limit``."""

    def __init__(self, database: Database, limit: int) -> None:
        self._database = database
        self._limit = limit

    def add(self, subscription: StoredSubscription) -> None:
        """Keep ``subscription`` in place of the client's earlier one of that id.

        One that does not change is wanted since it was first.

        Raises:
            CapacityError: there are as many as allowed; nothing changed.
        """
        row = astuple(subscription)
        with self._database.transaction():
            self._database.execute(_ADD, row)
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
