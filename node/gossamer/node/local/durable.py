"""Clients with a name: their subscriptions go on while they are away, and over restarts.

unknown   -- first subscription --------------------->  present
present   -- its connection ends -------------------->  absent
absent    -- attaches again ------------------------->  present
absent    -- longer than the retention time --------->  unknown
present   -- `forget`, or its last `unsubscribe` ---->  unknown
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from typing import Final

import trio
from attrs import define, field, frozen

from gossamer.node.errors import RequestError
from gossamer.node.local.history import GROUP_MARK, History
from gossamer.node.local.peer_like import PeerLike
from gossamer.node.local.services import REFUSALS, check_refusal, feed
from gossamer.node.store.store import StoredSubscription
from gossamer.protocol.content.filters.expressions import Expression, parse_expression

# How often expired events and absent clients are looked for.
PRUNE_S: Final = 60.0
# How long a connection is waited for that a client has closed just before it connects again.
ENDING_S: Final = 1.0
# Events of the log that are known to need not come again, as many as a peer remembers by default.
KNOWN: Final = 1 << 15

_log = logging.getLogger(__name__)


@frozen
class Active:
    """A subscription that is in force; ``scope`` is cancelled to end it."""

    expression: str
    subscription: Expression
    scope: trio.CancelScope


@define(eq=False)
class DurableClient:
    """A client with a name.

    Attributes:
        name: the name.
        active: its subscriptions by id.
        present: whether it is connected.
        ended: set when its connection ends.
        absent_since: trio's time when its connection ended, or when the node started.
        known: set once it has a place in the history.
    """

    name: str
    absent_since: float
    active: dict[str, Active] = field(factory=dict)
    present: bool = False
    ended: trio.Event = field(factory=trio.Event)
    known: trio.Event = field(factory=trio.Event)

    def matching(self, values: Mapping[str, object]) -> list[str]:
        """Ids of the subscriptions that an event matches."""
        return [key for key, one in self.active.items() if one.subscription.matches(values)]


class DurableClients:
    """All clients with a name; `run` serves what they are owed."""

    def __init__(
        self,
        peer: PeerLike,
        history: History,
        retention_s: float,
        nursery: trio.Nursery,
    ) -> None:
        self._peer = peer
        self._history = history
        self._retention_s = retention_s
        self._nursery = nursery
        self._clients: dict[str, DurableClient] = {}

    def __len__(self) -> int:
        return len(self._clients)

    async def restore(self) -> None:
        """Take up the subscriptions that were kept; one that is none any more is dropped.

        What the log has need not come again.
        """
        self._peer.has_got(await self._history.newest(KNOWN))
        for kept in await self._history.subscriptions():
            if kept.client.startswith(GROUP_MARK):
                continue
            client = self._client(kept.client)
            try:
                past_s = self._history.past_s(kept)
                await self._activate(client, kept.id, kept.expression, past_s)
            except REFUSALS as error:
                check_refusal(error)
                _log.warning("subscription %s of client %s: %s", kept.id, kept.client, error)
            else:
                client.known.set()

    async def attach(self, name: str) -> DurableClient:
        """Let the client in, once an earlier connection of it that is about to end has ended.

        Raises:
            RequestError: it is in already.
        """
        with trio.move_on_after(ENDING_S):
            while (held := self._clients.get(name)) is not None and held.present:
                await held.ended.wait()
        client = self._client(name)
        if client.present:
            reason = f"client {name!r} is connected already, expected another name"
            raise RequestError(reason)
        client.present = True
        return client

    def detach(self, client: DurableClient) -> None:
        """Its connection ended; what it is owed is kept."""
        client.present = False
        client.ended.set()
        client.ended = trio.Event()
        client.absent_since = trio.current_time()
        if not client.active:
            del self._clients[client.name]

    async def subscribe(
        self, client: DurableClient, subscription_id: str, expression: str, *, from_start: bool
    ) -> None:
        """Put a subscription in force, in place of the earlier one of that id.

        Raises:
            ExpressionError: the expression does not fit the schema.
            CapacityError: there are as many subscriptions or clients as allowed.
            StoreError: it could not be written; nothing changed.
        """
        before = client.active.get(subscription_id)
        if before is not None and before.expression == expression:
            return
        await self._activate(client, subscription_id, expression)
        kept = StoredSubscription(client.name, subscription_id, expression)
        try:
            await self._history.subscribe(kept, from_start=from_start)
        except BaseException:
            client.active.pop(subscription_id).scope.cancel()
            if before is not None:
                client.active[subscription_id] = before
            raise
        if before is not None:
            before.scope.cancel()
        client.known.set()

    async def unsubscribe(self, client: DurableClient, subscription_id: str) -> None:
        """End a subscription; with its last one the client is forgotten.

        Raises:
            RequestError: there is none of that id.
        """
        if subscription_id not in client.active:
            raise RequestError(f"no subscription has the id {subscription_id!r}")
        if len(client.active) == 1:
            await self.forget(client)
            return
        await self._history.unsubscribe(client.name, subscription_id)
        client.active.pop(subscription_id).scope.cancel()

    async def forget(self, client: DurableClient) -> None:
        """End all its subscriptions, and keep nothing for it any more."""
        await self._history.forget(client.name, client.active)
        for active in client.active.values():
            active.scope.cancel()
        client.active.clear()
        client.known = trio.Event()
        if not client.present:
            self._clients.pop(client.name, None)

    async def run(self) -> None:
        """Drop what has expired, now and then, until cancelled."""
        while True:
            await trio.sleep(PRUNE_S)
            now = trio.current_time()
            try:
                await self._history.prune()
                for client in list(self._clients.values()):
                    if not client.present and now - client.absent_since > self._retention_s:
                        await self.forget(client)
            except REFUSALS as error:
                check_refusal(error)
                _log.warning("expired events cannot be dropped: %s", error)

    def _client(self, name: str) -> DurableClient:
        if name not in self._clients:
            self._clients[name] = DurableClient(name, trio.current_time())
        return self._clients[name]

    async def _activate(
        self, client: DurableClient, key: str, expression: str, past_s: float = 0.0
    ) -> None:
        parsed = parse_expression(self._peer.schema, expression)
        scope = await self._nursery.start(
            partial(feed, self._peer, expression, self._history.append, past_s=past_s)
        )
        client.active[key] = Active(expression, parsed, scope)
