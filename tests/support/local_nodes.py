"""Nodes as their clients see them: a real local socket before a peer without a network."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager as Opened
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from attrs import define, field

from gossamer.client.client import Subscription
from gossamer.client.link import LocalAddress
from gossamer.client.results import ReceivedEvent
from gossamer.node.commands.clients.subscribing import Wanted, taken
from gossamer.node.config.node import Local
from gossamer.node.local.address import local_address
from gossamer.node.local.client import LocalClient, open_client
from gossamer.node.local.groups.service import Groups
from gossamer.node.local.history import FILE_NAME, open_history
from gossamer.node.local.services import LocalCounts
from gossamer.node.local.serving.publishing import Services
from gossamer.node.local.serving.server import LocalServer, open_local_server
from gossamer.node.monitoring.members import cluster_view
from gossamer.node.store import StoreLimits
from support.loopback_peer import LoopbackPeer, quote
from support.waiting import PATIENCE_S, at_once

ALL = "price >= 0"


async def no_cluster() -> dict[str, Any]:
    await trio.lowlevel.checkpoint()
    return cluster_view([], {}, 0)


@define(eq=False)
class LocalNode:
    """A node that clients can reach; its peer outlives it."""

    folder: Path
    peer: LoopbackPeer = field(factory=LoopbackPeer)
    local: Local = field(factory=Local)
    retention_s: float = 600.0
    limits: StoreLimits | None = None
    now: Callable[[], float] = time.time
    counts: LocalCounts = field(factory=LocalCounts)
    stopped: trio.Event = field(factory=trio.Event)

    @property
    def address(self) -> LocalAddress:
        return local_address(self.folder, self.local, {})

    def client(self, name: str | None = None, **options: Any) -> Opened[LocalClient]:
        return open_client(self.address, name, **options)

    def follow(
        self, on_change: Callable[[str], None] = lambda _: None, **wanted: Any
    ) -> Opened[Subscription]:
        asked = {"expression": ALL, "name": "ada", "label": "one", **wanted}
        return taken(self.address, Wanted(**asked), on_change)

    async def publish(self, *prices: float) -> None:
        for price in prices:
            await self.peer.publish(quote(price))

    def lose_history(self) -> None:
        for path in self.folder.glob(f"{FILE_NAME}*"):
            path.unlink()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[LocalServer]:
        """The node from its start to its end; may be used again, as a restart."""
        path = self.folder / FILE_NAME
        self.counts = LocalCounts()
        async with (
            open_history(path, self.retention_s, self.limits, self.now, aside=at_once) as history,
            trio.open_nursery() as nursery,
        ):
            groups = Groups(self.peer, history, self.retention_s)
            await nursery.start(groups.run)
            services = Services(
                peer=self.peer,
                history=history,
                groups=groups,
                limits=self.local,
                describe=lambda: {"cluster": "desk"},
                snapshot=lambda: self.peer.snapshot().to_json(),
                metrics_text=lambda: b"gossamer_up 1\n",
                list_members=lambda: {"members": [], "changes": []},
                cluster=no_cluster,
                stop=self.stopped.set,
                counts=self.counts,
            )
            async with open_local_server(self.address, services, self.retention_s) as server:
                yield server
            nursery.cancel_scope.cancel()

    @asynccontextmanager
    async def restartable(self) -> AsyncIterator[RunningNode]:
        """The node, to be stopped and started while clients stay; stopped at the end."""
        async with trio.open_nursery() as nursery:
            node = RunningNode(self, nursery)
            await node.start()
            yield node
            await node.stop()


@define(eq=False)
class RunningNode:
    node: LocalNode
    nursery: trio.Nursery
    scope: trio.CancelScope = field(factory=trio.CancelScope)
    over: trio.Event = field(factory=trio.Event)
    finished: trio.Event = field(factory=trio.Event)

    async def start(self) -> None:
        self.scope, self.over, self.finished = trio.CancelScope(), trio.Event(), trio.Event()
        await self.nursery.start(self._run)

    async def stop(self) -> None:
        self.scope.cancel()
        await self.over.wait()

    async def finish(self) -> None:
        self.finished.set()
        await self.over.wait()

    async def _run(self, *, task_status: trio.TaskStatus[None]) -> None:
        with self.scope:
            async with self.node.running():
                task_status.started()
                await self.finished.wait()
        self.over.set()


async def take(client: LocalClient, count: int) -> list[ReceivedEvent]:
    with trio.fail_after(PATIENCE_S):
        return [await client.events.receive() for _ in range(count)]


async def prices(client: LocalClient, count: int) -> list[object]:
    return [event.values["price"] for event in await take(client, count)]


async def take_from(follower: Subscription, count: int) -> list[object]:
    found = []
    with trio.fail_after(PATIENCE_S):
        for _ in range(count):
            event = await anext(follower)
            await follower.acknowledge(event)
            found.append(event.values["price"])
    return found
