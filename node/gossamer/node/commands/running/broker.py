"""`gossamer node run --role broker`: one broker and everything around it."""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any, Final

import trio

from gossamer.node.broker.assembly import BrokerNode
from gossamer.node.broker.composites import Content
from gossamer.node.broker.node import open_broker
from gossamer.node.broker.numbers import (
    broker_cluster,
    broker_gauges,
    broker_metrics_text,
    broker_snapshot,
)
from gossamer.node.broker.session import BrokerServices, open_broker_server
from gossamer.node.commands.running.process import NodeProcess
from gossamer.node.commands.running.running import open_join_server
from gossamer.node.config.broker import BROKER, CLUSTER
from gossamer.node.config.node import NodeConfig
from gossamer.node.monitoring.logs import log
from gossamer.node.peer.cluster_info import cluster_schema
from gossamer.node.peer.peer import open_state
from gossamer.node.security.identity import key_text

# Sizes of tables that a broker tells in short.
_TOLD: Final = ("subscriptions", "advertisements", "owed", "kept")


class RunningBroker(NodeProcess):
    """A broker, its page, its server for those who join, and its local socket."""

    def __init__(self, config: NodeConfig, reread: Callable[[], NodeConfig]) -> None:
        super().__init__(config, reread)
        free = config.broker.content != CLUSTER
        self._content = Content(None if free else cluster_schema(config))

    async def _work(self, stack: AsyncExitStack, nursery: trio.Nursery) -> None:
        config = self._config
        state = await stack.enter_async_context(open_state(config))
        node = await stack.enter_async_context(open_broker(config, state))
        # What it remembered stays, and searching it for garbage holds the loop for long.
        gc.freeze()
        where = ", ".join(map(str, node.addresses))
        log.info("broker listens", broker=key_text(node.key), name=node.name, at=where)
        await self._open_page(
            nursery,
            lambda: self._snapshot(node),
            lambda: self._metrics(node),
            node.counters,
            lambda: broker_cluster(node),
        )
        joining = open_join_server(config, node.addresses, state)
        self._join_addresses = await stack.enter_async_context(joining)
        await self._open_socket(node, stack)
        log.info("ready", neighbours=len(config.broker.neighbours))

    async def _open_socket(self, node: BrokerNode, stack: AsyncExitStack) -> None:
        services = BrokerServices(
            members=node.members,
            composites=node.composites,
            content=self._content,
            tables=node.tables,
            trace=node.trace,
            filters=self._config.broker.filters,
            limits=self._config.local,
            describe=lambda: self._describe(node),
            snapshot=lambda: self._snapshot(node),
            metrics_text=lambda: self._metrics(node),
            list_members=node.cluster_members.to_json,
            cluster=self._cluster(node),
            stop=self.stop,
            reload=self.reloaded,
            counts=self._counts,
            standing=node.standing,
        )
        opened = open_broker_server(self._address, services, key_text(node.key), node.queue_id)
        self._server = await stack.enter_async_context(opened)
        log.info("clients", at=str(self._server.address))

    # What it tells of itself

    def _cluster(self, node: BrokerNode) -> Callable[[], Awaitable[Mapping[str, Any]]]:
        async def view() -> Mapping[str, Any]:
            await trio.lowlevel.checkpoint()
            return broker_cluster(node)

        return view

    def _snapshot(self, node: BrokerNode) -> dict[str, Any]:
        return broker_snapshot(node, self._clients).to_json()

    def _metrics(self, node: BrokerNode) -> bytes:
        return broker_metrics_text(node, broker_gauges(node, self._clients))

    def _describe(self, node: BrokerNode) -> Mapping[str, Any]:
        sizes = node.family.sizes(node.engine.broker)
        return {
            "peer": key_text(node.key),
            "role": BROKER,
            "name": node.name,
            "cluster": node.cluster,
            "cluster_name": node.cluster_name,
            "version": node.version,
            "folder": str(self._config.identity.folder.absolute()),
            "uptime_s": self._uptime_s,
            "ready": True,
            "addresses": list(map(str, node.addresses)),
            "join_addresses": list(map(str, self._join_addresses)),
            "page": self._page,
            **node.family.described(),
            "neighbours": node.neighbours.described(),
            "connections": len(node.pool),
            **{name: size for name, (size, _) in sizes.items() if name in _TOLD},
            "clients": self._clients,
            "composites": len(node.composites),
            "deliveries": node.members.deliveries,
            "troubles": list(node.standing.troubles()),
            "local": self._counts.to_json(),
        }
