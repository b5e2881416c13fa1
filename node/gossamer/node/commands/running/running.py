"""`gossamer node run`: one peer and everything around it, until it is told to stop."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

import attrs
import trio

from gossamer.client.errors import unwrapped
from gossamer.node.commands.running.joining import open_join_server
from gossamer.node.commands.running.only_one import only_one
from gossamer.node.commands.running.process import NodeProcess
from gossamer.node.config.broker import BROKER
from gossamer.node.config.folder import load
from gossamer.node.config.node import NodeConfig
from gossamer.node.local.address import locked
from gossamer.node.local.groups.service import Groups
from gossamer.node.local.history import FILE_NAME, open_history
from gossamer.node.local.replies import Replies
from gossamer.node.local.services import Services
from gossamer.node.local.serving.server import open_local_server
from gossamer.node.monitoring.logs import log
from gossamer.node.monitoring.metrics import metrics_text
from gossamer.node.page.server import serve_page
from gossamer.node.peer.cluster_info import schema_fingerprint, with_schema
from gossamer.node.peer.peer import Peer, open_peer, open_state
from gossamer.node.security.cluster import open_membership
from gossamer.node.security.identity import key_text
from gossamer.node.transport.base.base import Address


def run_node(folder: Path | None, changes: Iterable[str] | None = None) -> int:
    """Run the peer in ``folder`` until a signal or a client stops it; return the exit code.

    Raises:
        NodeError, ConfigError: it cannot start.
    """
    given = tuple(changes or ())
    config = load(folder, given).config
    node = _node_of(config, lambda: load(folder, given).config)
    # What is loaded by now stays, and need not be searched for garbage again and again.
    gc.freeze()
    with locked(config.identity.folder), _alone(config), unwrapped():
        trio.run(node.run)
    return node.exit_code


def _alone(config: NodeConfig) -> AbstractContextManager[None]:
    """No second node of the same identity; one without certificates has none that it could copy."""
    if config.listen.plain_text:
        return nullcontext()
    member = open_membership(config.identity.folder)
    return only_one(key_text(member.identity.key), config.identity.folder)


def _node_of(config: NodeConfig, reread: Callable[[], NodeConfig]) -> NodeProcess:
    if config.node.role == BROKER:
        from gossamer.node.commands.running.broker import RunningBroker

        return RunningBroker(config, reread)
    return RunningNode(with_schema(config), lambda: with_schema(reread()))


class RunningNode(NodeProcess):
    """A peer, its page, its server for joins, and its local socket."""

    def __init__(self, config: NodeConfig, reread: Callable[[], NodeConfig]) -> None:
        assert config.schema is not None
        super().__init__(config, reread)
        self._peer: Peer | None = None
        self._schema = config.schema
        self._page = ""
        self._join_addresses: Sequence[Address] = ()
        self._is_ready = False
        self._groups: Groups | None = None
        self._replies: Replies | None = None

    async def _work(self, stack: AsyncExitStack, nursery: trio.Nursery) -> None:
        await self._tell_when_ready(await self._open(stack, nursery))

    async def _open(self, stack: AsyncExitStack, nursery: trio.Nursery) -> Peer:
        """Start everything; what was started last stops first."""
        config = self._config
        state = await stack.enter_async_context(open_state(config))
        peer = self._peer = await stack.enter_async_context(open_peer(config, state))
        where = ", ".join(map(str, peer.addresses))
        log.info("peer listens", peer=key_text(peer.key), name=self._name(peer), at=where)
        if config.page.enabled:
            await self._open_page(peer, nursery)
        join_server = open_join_server(config, peer.addresses, state)
        if join_server is not None:
            self._join_addresses = await stack.enter_async_context(join_server)
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
            cluster=peer.cluster,
        )
        self._page = f"http://{Address(host, port)}/"
        log.info("page", at=self._page)

    async def _open_socket(self, peer: Peer, stack: AsyncExitStack) -> None:
        config = self._config
        retention_s = config.delivery.retention_s
        path = config.identity.folder / FILE_NAME
        history = await stack.enter_async_context(open_history(path, retention_s))
        peer.standing.ask("disk", history.complaint)
        self._groups = groups = Groups(peer, history, retention_s)
        services = Services(
            peer=peer,
            history=history,
            groups=groups,
            limits=config.local,
            describe=lambda: self._describe(peer),
            snapshot=self._snapshot(peer),
            metrics_text=self._metrics(peer),
            list_members=peer.members,
            cluster=peer.fresh_cluster,
            stop=self.stop,
            reload=self.reloaded,
            counts=self._counts,
            standing=peer.standing,
        )
        await stack.enter_async_context(_running(groups))
        opened = open_local_server(self._address, services, retention_s)
        self._server = await stack.enter_async_context(opened)
        self._replies = services.replies
        log.info("clients", at=str(self._server.address))

    async def _tell_when_ready(self, peer: Peer) -> None:
        await peer.ready()
        self._is_ready = True
        log.info("ready", known_peers=peer.snapshot().known_peers)

    def _look_for_peers(self, config: NodeConfig) -> None:
        if self._peer is not None:
            self._peer.look_for(config.discovery.static_peers)

    # What it tells of itself

    def _name(self, peer: Peer) -> str:
        return self._config.identity.name or peer.snapshot().name

    def _snapshot(self, peer: Peer) -> Callable[[], dict[str, Any]]:
        return lambda: attrs.evolve(peer.snapshot(), clients=self._clients).to_json()

    def _metrics(self, peer: Peer) -> Callable[[], bytes]:
        def text() -> bytes:
            groups = [] if self._groups is None else self._groups.describe()
            gauges = attrs.evolve(
                peer.gauges(),
                clients=self._clients,
                groups=len(groups),
                group_workers=sum(one["workers"] for one in groups),
                group_events=sum(one["waiting"] for one in groups),
                last_values=len(peer.last.values),
                open_requests=0 if self._replies is None else self._replies.open_requests,
            )
            return metrics_text(peer.counters, gauges, peer.snapshot().version)

        return text

    def _describe(self, peer: Peer) -> Mapping[str, Any]:
        snapshot = peer.snapshot()
        return {
            "peer": key_text(peer.key),
            "name": self._name(peer),
            "cluster": snapshot.cluster,
            "cluster_name": snapshot.cluster_name,
            "version": snapshot.version,
            "folder": str(self._config.identity.folder.absolute()),
            "uptime_s": self._uptime_s,
            "ready": self._is_ready,
            "addresses": list(map(str, peer.addresses)),
            "join_addresses": list(map(str, self._join_addresses)),
            "page": self._page,
            "schema": {
                "fingerprint": schema_fingerprint(self._schema),
                "version": peer.version.number,
                "text": ", ".join(f"{one.name} ({one.type_name})" for one in peer.version.active),
            },
            "known_peers": snapshot.known_peers,
            "connections": sum(one.connected for one in snapshot.peers),
            "subscriptions": snapshot.subscriptions,
            "clients": self._clients,
            "troubles": list(peer.standing.troubles()),
            "last_values": len(peer.last.values),
            "groups": [] if self._groups is None else self._groups.describe(),
            "local": self._counts.to_json(),
        }


@asynccontextmanager
async def _running(groups: Groups) -> AsyncIterator[None]:
    """Groups that do their part while the context is open."""
    async with trio.open_nursery() as nursery:
        await nursery.start(groups.run)
        yield
        nursery.cancel_scope.cancel()
