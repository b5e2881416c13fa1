"""`Store`: the parts of a peer's state over one open file."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Self

from attrs import field, frozen
from attrs.validators import ge

from gossamer.node.errors import StoreError
from gossamer.node.store.admissions import Admissions
from gossamer.node.store.broker import BrokerState
from gossamer.node.store.database import Database
from gossamer.node.store.deliveries import Deliveries
from gossamer.node.store.events import Events
from gossamer.node.store.peers import Peers
from gossamer.node.store.subscriptions import Subscriptions


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
