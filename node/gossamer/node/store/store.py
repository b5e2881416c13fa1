"""`Store`: the parts of a peer's state over one open file."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from attrs import astuple, field, frozen
from attrs.validators import ge

from gossamer.node.errors import StoreError
from gossamer.node.store.broker import BrokerState
from gossamer.node.store.database import BUSY_S, Database, only_reading, translated
from gossamer.node.store.events import Admissions, Deliveries, Events
from gossamer.protocol.kernel.errors import CapacityError

# Known peers: where they were last reached.


Address = tuple[str, int]


@frozen
class KnownPeer:
    """A peer that was met or told of.

    Attributes:
        key: its permanent key.
        addresses: where it listens, hosts and ports, best first.
        fingerprint: SHA-256 of its certificate, or empty.
        last_seen: when it was last connected, Unix seconds.
    """

    key: int
    addresses: tuple[Address, ...]
    fingerprint: bytes
    last_seen: float


class Peers:
    """The known peers, at most ``limit``."""

    def __init__(self, database: Database, limit: int) -> None:
        self._database = database
        self._limit = limit

    def remember(self, peer: KnownPeer) -> None:
        """Keep ``peer`` in place of what was known; those not seen for longest make room."""
        addresses = json.dumps(peer.addresses)
        row = (peer.key, addresses, peer.fingerprint, peer.last_seen)
        with self._database.transaction():
            self._database.execute("INSERT OR REPLACE INTO peers VALUES (?, ?, ?, ?, 0)", row)
            self._database.execute(
                "DELETE FROM peers WHERE key IN (SELECT key FROM peers WHERE key != ?"
                " ORDER BY last_seen LIMIT max(0, (SELECT count(*) FROM peers) - ?))",
                (peer.key, self._limit),
            )

    def all(self) -> list[KnownPeer]:
        """Every known peer, the one seen last first."""
        rows = self._database.rows(
            "SELECT key, addresses, fingerprint, last_seen FROM peers ORDER BY last_seen DESC, key"
        )
        return [
            KnownPeer(key, tuple((host, port) for host, port in json.loads(addresses)), *rest)
            for key, addresses, *rest in rows
        ]


# Sequence numbers of a peer's own descriptors.


class SequenceNumbers:
    """Numbers that only grow, over restarts too, with one write for many numbers."""

    def __init__(self, lease: Callable[[int], int], count: int = 1000) -> None:
        """Take numbers from ``lease``, such as `Store.lease_sequence`, ``count`` at a time."""
        self._lease = lease
        self._count = count
        self._next = self._end = 0

    def next(self) -> int:
        """A number greater than all before.

        Raises:
            StoreError: a lease was needed and could not be had; no number was spent.
        """
        if self._next == self._end:
            self._next = self._lease(self._count)
            self._end = self._next + self._count
        self._next += 1
        return self._next - 1


# Own subscriptions: what clients asked for, so that a restarted node still asks for it.


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


@frozen
class StoreLimits:
    """How large the parts of the state may grow; all guesses, sized for a small machine.

    Attributes:
        peers: known peers; the one not seen for longest makes room.
        subscriptions: own subscriptions of all clients together; more are refused.
        events: retained events; the oldest makes room.
        event_bytes: bodies of retained events together; the oldest make room.
        clients: clients whose deliveries are remembered; more are refused.
        delivered: deliveries remembered per client; the oldest makes room.
        tokens: join tokens that are remembered; more are refused.
    """

    peers: int = field(default=10_000, validator=ge(1))
    subscriptions: int = field(default=10_000, validator=ge(1))
    events: int = field(default=100_000, validator=ge(1))
    event_bytes: int = field(default=256 << 20, validator=ge(1))
    clients: int = field(default=1_000, validator=ge(1))
    delivered: int = field(default=100_000, validator=ge(1))
    tokens: int = field(default=10_000, validator=ge(1))


class Store:
    """The state of one peer; used by one thread at a time.

    Attributes:
        peers: whom this peer knows.
        subscriptions: what its clients subscribed to.
        events: what is retained for those who were away.
        deliveries: what each client has been handed.
        admissions: tokens and certificates that this peer gave out.
        broker: what a broker remembers, and what it keeps for its clients.
    """

    def __init__(
        self, path: Path, limits: StoreLimits | None = None, *, max_pages: int | None = None
    ) -> None:
        """Open the state file ``path``, made where it is missing.

        Raises:
            StoreError: it cannot be used; a subclass says why. It is untouched.
        """
        limits = limits or StoreLimits()
        self.path = path
        self._database = Database(path, max_pages=max_pages)
        self.peers = Peers(self._database, limits.peers)
        self.subscriptions = Subscriptions(self._database, limits.subscriptions)
        self.events = Events(self._database, limits.events, limits.event_bytes)
        self.deliveries = Deliveries(self._database, limits.clients, limits.delivered)
        self.admissions = Admissions(self._database, limits.tokens)
        self.broker = BrokerState(self._database)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    @property
    def database(self) -> Database:
        """The connection below, for those who group transactions."""
        return self._database

    def transaction(self) -> AbstractContextManager[None]:
        """All writes inside happen together, or none of them."""
        return self._database.transaction()

    def get_meta(self, name: str) -> bytes | None:
        """The value that `set_meta` last kept under ``name``."""
        found = self._database.row("SELECT value FROM meta WHERE name = ?", (name,))
        return None if found is None else bytes(found[0])

    def set_meta(self, name: str, value: bytes) -> None:
        """Keep a small value of the caller's own."""
        with self.transaction():
            self._database.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    def bind(self, key: int, now: float) -> None:
        """Make this the state of the peer ``key``, or check that it is.

        The first sequence number of a new file follows the clock in milliseconds, so that a peer
        that lost its state, but not its key, is believed again.

        Raises:
            StoreError: the file belongs to another peer; nothing changed.
        """
        with self.transaction():
            found = self._database.row("SELECT key FROM identity")
            if found is not None and found[0] != key:
                reason = f"is the state of peer {found[0]:016x}, expected that of {key:016x}"
                raise StoreError(self.path, reason)
            first = max(0, int(now * 1000))
            self._database.execute("INSERT OR IGNORE INTO identity VALUES (1, ?, ?)", (key, first))

    def go_on_from(self, now: float, forgotten: Sequence[str]) -> None:
        """Make this old copy of a peer's state one to go on from; see `snapshot.go_on_from`."""
        with self.transaction():
            self._database.execute(
                "UPDATE identity SET next_sequence = max(next_sequence, ?)", (int(now * 1000),)
            )
            self._database.execute("DELETE FROM tokens WHERE public_key IS NULL")
            self.broker.begin_anew()
            for name in forgotten:
                self._database.execute("DELETE FROM meta WHERE name = ?", (name,))

    def lease_sequence(self, count: int) -> int:
        """Take ``count`` sequence numbers that were never leased before; return the first.

        They are spent even if the process ends before it uses them: a restart never goes back.

        Raises:
            StoreError: the file was not bound to a peer, or cannot be written; nothing changed.
        """
        with self.transaction():
            found = self._database.row(
                "UPDATE identity SET next_sequence = next_sequence + ? RETURNING next_sequence",
                (count,),
            )
            if found is None:
                raise StoreError(self.path, "belongs to no peer yet, expected one bound to it")
            return int(found[0]) - count


# Copies of state files, and what has to change in one that goes back in time.


def copy_database(source: Path, target: Path) -> None:
    """Copy a state file as it is at one instant, whether a node writes to it or not.

    Not to be called in a process that has the file open.

    Args:
        source: the state file.
        target: an empty file, whose rights stay as they are.

    Raises:
        StoreError: it is no database or cannot be read, or the copy is not whole or cannot be
            written.
    """
    with only_reading(source) as connection, translated(target):
        copy = sqlite3.connect(target, timeout=BUSY_S)
        try:
            connection.backup(copy)
            # A copy is one file: whoever opens it decides anew how it is written.
            copy.execute("PRAGMA journal_mode = DELETE")
            ((found,),) = copy.execute("PRAGMA quick_check(1)").fetchall()
        finally:
            copy.close()
    if found != "ok":
        raise StoreError(source, f"is damaged ({found}), expected a state file")


def go_on_from(path: Path, now: float, forgotten: Sequence[str]) -> None:
    """Let a peer go on from an old copy of its state file, which is at ``path``.

    Descriptors are signed by numbers above those that were used since, which follow the clock in
    milliseconds where a file is new and grow more slowly; tokens that were not used when the copy
    was made may have been, and are void. A broker begins anew, as one that lost its disk: its
    neighbours have gone on, and would take what it was for what it is.

    Args:
        path: the state file; no node has it open.
        now: Unix seconds.
        forgotten: names under which it keeps ids of queues, whose positions are given out again.

    Raises:
        StoreError: it cannot be used.
    """
    store = Store(path)
    try:
        store.go_on_from(now, forgotten)
    finally:
        store.close()
