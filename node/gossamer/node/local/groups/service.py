"""All groups of one node: which there are, who asks about them, and which are forgotten."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import trio
from attrs import frozen

from gossamer.client.errors import unwrapped
from gossamer.node.errors import RequestError
from gossamer.node.local.durable import ENDING_S
from gossamer.node.local.groups import wire
from gossamer.node.local.groups.group import Group, Worker
from gossamer.node.local.groups.log import client_of, group_of
from gossamer.node.local.history import History
from gossamer.node.local.peer_like import EventLike, PeerLike
from gossamer.node.local.services import REFUSALS, check_refusal
from gossamer.node.monitoring.logs import log
from gossamer.protocol.content.filters.expressions import parse_expression
from gossamer.protocol.kernel.errors import CapacityError

# Groups of one node: each has a subscription, and takes part whether or not there is a worker.
MOST_GROUPS: Final = 64
# How often groups without a worker are looked for.
PRUNE_S: Final = 60.0


@frozen(eq=False)
class Joined:
    """An application that is a worker of a group."""

    _group: Group
    _worker: Worker

    def finish(self, event: int) -> None:
        """It has dealt with an event, which nobody gets any more once that is on the disk."""
        self._group.finish(self._worker, event)

    def leave(self) -> None:
        """It takes no more; what it has not dealt with goes to others."""
        self._group.leave(self._worker)


class Groups:
    """The groups of one node; `run` has to run."""

    def __init__(self, peer: PeerLike, history: History, retention_s: float) -> None:
        self._peer = peer
        self._history = history
        self._retention_s = retention_s
        self._groups: dict[bytes, Group] = {}
        self._nursery: trio.Nursery | None = None
        peer.messages.offer(wire.SERVICE, self._answer)
        peer.hear_announcements(self._hear)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Take up the groups that were kept, and do their part until cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            for kept in await self._history.subscriptions():
                named = group_of(kept.client)
                if named is not None:
                    await self._restore(*named)
            task_status.started()
            try:
                await self._prune()
            finally:
                # This node stops: what a leader gives it from now on goes to others at once.
                self._groups.clear()

    async def join(
        self,
        name: str,
        expression: str,
        window: int,
        send: Callable[[EventLike], Awaitable[None]],
    ) -> Joined:
        """Let an application be a worker of a group, which begins to exist here if need be.

        Raises:
            RequestError: the name is none.
            ExpressionError: the expression does not fit the schema.
            CapacityError: there are as many groups, or subscriptions, as may be.
            StoreError: it could not be written.
        """
        if not name.isprintable() or not name:
            raise RequestError("the name of the group is not printable, or empty")
        group = self._groups.get(wire.digest_of(name, expression))
        if group is None:
            group = await self._open(name, expression)
        worker = Worker(window, send)
        group.join(worker)
        return Joined(group, worker)

    async def forget(self, name: str, expression: str) -> None:
        """Let this node be of a group no more, once workers that are about to end have ended.

        Raises:
            RequestError: it is not, or has workers of it.
        """
        group = self._groups.get(wire.digest_of(name, expression))
        if group is None:
            raise RequestError(f"this node is of no group {name!r} with that expression")
        with trio.move_on_after(ENDING_S):
            while group.workers:
                await group.workers.left.wait()
        if group.workers:
            raise RequestError(f"group {name!r} has workers at this node, expected none")
        await self._close(group)

    def describe(self) -> list[Mapping[str, Any]]:
        """The groups, as plain values."""
        return [group.describe() for group in self._groups.values()]

    async def _restore(self, name: str, expression: str) -> None:
        try:
            await self._open(name, expression)
        except REFUSALS as error:
            check_refusal(error)
            log.warning("a kept group is of no use", group=name, cause=str(error))

    async def _open(self, name: str, expression: str) -> Group:
        if len(self._groups) >= MOST_GROUPS:
            raise CapacityError("groups of a node", MOST_GROUPS, "forget one (--forget)")
        parse_expression(self._peer.schema, expression)
        digest = wire.digest_of(name, expression)
        done = await self._history.settled(client_of(name, expression))
        if digest in self._groups:  # another application was faster
            return self._groups[digest]
        assert self._nursery is not None
        group = self._groups[digest] = Group(self._peer, self._history, name, expression, done)
        try:
            with unwrapped():
                await self._nursery.start(group.run)
        except BaseException:
            self._groups.pop(digest, None)
            raise
        return group

    async def _close(self, group: Group) -> None:
        self._groups.pop(group.digest, None)
        group.scope.cancel()
        await self._history.forget(group.client, [group.name])

    async def _prune(self) -> None:
        while True:
            await trio.sleep(PRUNE_S)
            limit = trio.current_time() - self._retention_s
            for group in list(self._groups.values()):
                if not group.workers and group.workers.idle_since < limit:
                    await self._close(group)

    # What other peers ask

    def _answer(self, sender: int, body: bytes) -> bytes:
        kind, digest, parts = wire.read_question(body)
        group = self._groups.get(digest)
        if group is None:
            return wire.NOTHING
        if kind == wire.HELLO and len(parts) == 1:
            return group.take_hello(sender, wire.read_addresses(parts[0]))
        if kind == wire.ROUND:
            told, addresses = wire.read_round(parts)
            if told.epoch[1] != sender:
                raise ValueError("a round in another's name")
            return group.take_round(told, addresses)
        if kind == wire.NUDGE and not parts:
            return group.take_nudge(sender)
        if kind == wire.FETCH and len(parts) == 1 and type(parts[0]) is int:
            return group.take_fetch(parts[0])
        raise ValueError("no question about a group")

    def _hear(self, event: EventLike) -> None:
        """A peer has announced itself to all who subscribe."""
        if event.payload is None or event.publisher == self._peer.key:
            return
        try:
            digest, addresses = wire.read_announcement(event.payload.data)
        except ValueError:
            return
        group = self._groups.get(digest)
        if group is not None:
            group.take_hello(event.publisher, addresses)
