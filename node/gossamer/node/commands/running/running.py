"""`gossamer node run`: one peer and everything around it, until it is told to stop."""

from __future__ import annotations

import errno
import fcntl
import gc
import os
import stat
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import (
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from pathlib import Path
from typing import Any, Final

import attrs
import trio

from gossamer.client.errors import unwrapped
from gossamer.node.commands.cluster.membership import join_material, reachable
from gossamer.node.commands.running.process import NodeProcess
from gossamer.node.config.broker import BROKER
from gossamer.node.config.file import load
from gossamer.node.config.node import NodeConfig
from gossamer.node.errors import CommandError, ListenFailed
from gossamer.node.local.address import is_held, locked
from gossamer.node.local.groups.service import Groups
from gossamer.node.local.history import FILE_NAME, open_history
from gossamer.node.local.replies import Replies
from gossamer.node.local.serving.publishing import Services
from gossamer.node.local.serving.server import open_local_server
from gossamer.node.monitoring.logs import log
from gossamer.node.monitoring.metrics import metrics_text
from gossamer.node.peer.cluster_info import schema_fingerprint, with_schema
from gossamer.node.peer.peer import Peer, open_peer, open_state
from gossamer.node.security.cluster import ClusterFolder, open_membership
from gossamer.node.security.identity import PRIVATE, key_text
from gossamer.node.security.joining.admission import open_registrar
from gossamer.node.security.joining.server import JoinServer, admit_with, known_to, serve_joins
from gossamer.node.store.writer import StoreWriter
from gossamer.node.transport.base import Address

# That a user runs a peer once only on a machine, from whatever folders.
#
# The folder's own lock keeps a second node out of it. Of a copy of the folder it knows nothing: two
# nodes of one identity would take each other's connections for their own, and sign descriptors that
# others take for lies. Another machine, or user, is out of reach of this; so is a system without a
# folder for what runs, where nothing is checked.


@contextmanager
def only_one(key: str, folder: Path) -> Iterator[None]:
    """Keep any other node of this user from running as the peer ``key``, for as long as this does.

    Raises:
        CommandError: one does already.
    """
    path = _file_of(key)
    if path is None:
        yield
        return
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            reason = f"is of peer {key}, which runs in {_holder(path)} already"
            raise CommandError(folder, f"{reason}, expected one at a time") from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, os.fsencode(folder.absolute()))
        yield
        path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def runs_here(key: str) -> str | None:
    """The folder from which a node of this user runs as the peer ``key``, None if none does."""
    path = _file_of(key)
    return _holder(path) if path is not None and is_held(path) else None


def _file_of(key: str, environment: Mapping[str, str] = os.environ) -> Path | None:
    """Where it is noted that a peer runs; None where there is no folder that is ours alone."""
    base = environment.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    folder = Path(base) / f"gossamer-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    return folder / f"{key}.lock" if ours and not found.st_mode & 0o077 else None


def _holder(path: Path) -> str:
    try:
        return os.fsdecode(path.read_bytes()) or "another folder"
    except OSError:
        return "another folder"


# The server that answers those with a token, where this peer holds the authority's key.


# What the system says of the address of an IP version that it lacks.
_ABSENT: Final = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)
_BACKLOG: Final = 16


@asynccontextmanager
async def open_join_server(
    config: NodeConfig, peers: Sequence[Address], writer: StoreWriter
) -> AsyncIterator[Sequence[Address]]:
    """Answer those who want to join while the context is open; give the addresses, if any.

    Args:
        config: of the peer, which cannot admit anybody without the authority's key.
        peers: where it can be reached as a peer, told to those who join.
        writer: of its state file, where tokens and certificates are noted.

    Raises:
        ListenFailed: an address cannot be listened on.
        ClusterFolderError: the authority's key cannot be used.
    """
    holds_authority = ClusterFolder(config.identity.folder).authority_key.exists()
    if config.listen.plain_text or not holds_authority or not config.listen.join_addresses:
        yield ()
        return
    registrar = open_registrar(open_membership(config.identity.folder))
    cluster_info = join_material(config, peers)
    server = JoinServer(
        registrar.member,
        admit_with(registrar, writer, cluster_info),
        knows=known_to(registrar, writer),
    )
    async with trio.open_nursery() as nursery:
        listeners = await _listen(config.listen.join_endpoints)
        nursery.start_soon(serve_joins, server, listeners)
        bound = [one.socket.getsockname()[:2] for one in listeners]
        yield [Address(*one) for one in reachable(bound, config)]
        nursery.cancel_scope.cancel()


async def _listen(endpoints: Sequence[tuple[str, int]]) -> list[trio.SocketListener]:
    """Listen at all ``endpoints``, those of an IP version that the machine lacks left out."""
    opened: list[trio.SocketListener] = []
    for host, port in endpoints:
        try:
            opened += await trio.open_tcp_listeners(port, host=host, backlog=_BACKLOG)
        except OSError as error:
            if host == "::" and error.errno in _ABSENT and opened:
                continue
            for listener in opened:
                listener.socket.close()
            raise ListenFailed(str(Address(host, port)), error.strerror or str(error)) from None
    return opened


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
        await self._open_page(
            nursery, self._snapshot(peer), self._metrics(peer), peer.counters, peer.cluster
        )
        join_server = open_join_server(config, peer.addresses, state)
        self._join_addresses = await stack.enter_async_context(join_server)
        if self._join_addresses:
            log.info(
                "others may join", by=f"gossamer node invite --folder {config.identity.folder}"
            )
        await self._open_socket(peer, stack)
        return peer

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
    async with trio.open_nursery() as nursery:
        await nursery.start(groups.run)
        yield
        nursery.cancel_scope.cancel()
