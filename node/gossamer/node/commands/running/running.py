"""`gossamer node run`: one peer and everything around it, until it is told to stop."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import attrs
import trio

from gossamer.node.commands.folder import load
from gossamer.node.commands.running.joining import open_join_server
from gossamer.node.commands.running.process import NodeProcess
from gossamer.node.config.broker import BROKER
from gossamer.node.config.node import NodeConfig
from gossamer.node.errors.exception_groups import unwrapped
from gossamer.node.local.address import locked
from gossamer.node.local.history import FILE_NAME, open_history
from gossamer.node.local.server import open_local_server
from gossamer.node.local.services import Services
from gossamer.node.monitoring.logs import configure_logs, log
from gossamer.node.monitoring.metrics import metrics_text
from gossamer.node.page.server import serve_page
from gossamer.node.peer.cluster_info import cluster_schema, schema_fingerprint
from gossamer.node.peer.peer import Peer, open_peer, open_state
from gossamer.node.security.identity import key_text
from gossamer.node.transport.base.base import Address


def run_node(folder: Path | None, changes: Iterable[str] | None = None) -> int:
    """Run the peer in ``folder`` until a signal or a client stops it; return the exit code.

    Raises:
        NodeError, ConfigError: it cannot start.
    """
    config = load(folder, changes).config
    node = _node_of(config)
    logging = config.logging
    repetitions = configure_logs(logging.level, logging.format, logging.repeat_s)
    # What is loaded by now stays, and need not be searched for garbage again and again.
    gc.freeze()
    with locked(config.identity.folder), unwrapped():
        trio.run(node.run, repetitions)
    return node.exit_code


def _node_of(config: NodeConfig) -> NodeProcess:
    if config.node.role == BROKER:
        from gossamer.node.commands.running.broker import RunningBroker

        return RunningBroker(config)
    return RunningNode(attrs.evolve(config, schema=cluster_schema(config)))


class RunningNode(NodeProcess):
    """A peer, its page, its desk for joins, and its local socket."""

    def __init__(self, config: NodeConfig) -> None:
        assert config.schema is not None
        super().__init__(config)
        self._schema = config.schema
        self._page = ""
        self._join_addresses: Sequence[Address] = ()
        self._is_ready = False

    async def _work(self, stack: AsyncExitStack, nursery: trio.Nursery) -> None:
        await self._tell_when_ready(await self._open(stack, nursery))

    async def _open(self, stack: AsyncExitStack, nursery: trio.Nursery) -> Peer:
        """Start everything; what was started last stops first."""
        config = self._config
        state = await stack.enter_async_context(open_state(config))
        peer = await stack.enter_async_context(open_peer(config, state))
        where = ", ".join(map(str, peer.addresses))
        log.info("peer listens", peer=key_text(peer.key), name=self._name(peer), at=where)
        if config.page.enabled:
            await self._open_page(peer, nursery)
        desk = open_join_server(config, peer.addresses, state)
        if desk is not None:
            self._join_addresses = await stack.enter_async_context(desk)
            log.info(
                "others may join", by=f"gossamer node invite --folder {config.identity.folder}"
            )
        await self._open_socket(peer, stack)
        return peer

    async def _open_page(self, peer: Peer, nursery: trio.Nursery) -> None:
        page = self._config.page
        host, port = await serve_page(
            nursery,
            page.endpoint,
            self._snapshot(peer),
            self._metrics(peer),
            hosts=page.hosts,
            counts=peer.counters,
        )
        self._page = f"http://{Address(host, port)}/"
        log.info("page", at=self._page)

    async def _open_socket(self, peer: Peer, stack: AsyncExitStack) -> None:
        config = self._config
        retention_s = config.delivery.retention_s
        path = config.identity.folder / FILE_NAME
        history = await stack.enter_async_context(open_history(path, retention_s))
        services = Services(
            peer=peer,
            schema=self._schema,
            history=history,
            limits=config.local,
            describe=lambda: self._describe(peer),
            snapshot=self._snapshot(peer),
            metrics_text=self._metrics(peer),
            stop=self.stop,
            counts=self._counts,
            standing=peer.standing,
        )
        opened = open_local_server(self._address, services, retention_s)
        self._server = await stack.enter_async_context(opened)
        log.info("clients", at=str(self._server.address))

    async def _tell_when_ready(self, peer: Peer) -> None:
        await peer.ready()
        self._is_ready = True
        log.info("ready", known_peers=peer.snapshot().known_peers)

    # What it tells of itself

    def _name(self, peer: Peer) -> str:
        return self._config.identity.name or peer.snapshot().name

    def _snapshot(self, peer: Peer) -> Callable[[], dict[str, Any]]:
        return lambda: attrs.evolve(peer.snapshot(), clients=self._clients).to_json()

    def _metrics(self, peer: Peer) -> Callable[[], bytes]:
        def text() -> bytes:
            gauges = attrs.evolve(peer.gauges(), clients=self._clients)
            return metrics_text(peer.counters, gauges, peer.snapshot().version)

        return text

    def _describe(self, peer: Peer) -> Mapping[str, Any]:
        snapshot = peer.snapshot()
        return {
            "peer": key_text(peer.key),
            "name": self._name(peer),
            "cluster": snapshot.cluster,
            "version": snapshot.version,
            "folder": str(self._config.identity.folder.absolute()),
            "uptime_s": self._uptime_s,
            "ready": self._is_ready,
            "addresses": list(map(str, peer.addresses)),
            "join_addresses": list(map(str, self._join_addresses)),
            "page": self._page,
            "schema": {"fingerprint": schema_fingerprint(self._schema), "text": self._attributes()},
            "known_peers": snapshot.known_peers,
            "connections": sum(one.connected for one in snapshot.peers),
            "subscriptions": snapshot.subscriptions,
            "clients": self._clients,
            "troubles": list(peer.standing.troubles()),
            "local": self._counts.to_json(),
        }

    def _attributes(self) -> str:
        return ", ".join(f"{one.name} ({one.type_name})" for one in self._schema)
