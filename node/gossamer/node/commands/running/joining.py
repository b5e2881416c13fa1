"""The server that answers those with a token, where this peer holds the authority's key."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

import trio

from gossamer.node.commands.cluster.membership import join_material, reachable
from gossamer.node.config.node import NodeConfig
from gossamer.node.errors import ListenFailed
from gossamer.node.security.cluster import ClusterFolder, open_membership
from gossamer.node.security.joining.admission import open_registrar
from gossamer.node.security.joining.server import JoinServer, admit_with, known_to, serve_joins
from gossamer.node.store.writer import StoreWriter
from gossamer.node.transport.base.base import Address

# What the system says of the address of an IP version that it lacks.
_ABSENT: Final = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)
_BACKLOG: Final = 16


def open_join_server(
    config: NodeConfig, peers: Sequence[Address], writer: StoreWriter
) -> AbstractAsyncContextManager[Sequence[Address]] | None:
    """The server as a context that gives its addresses; None where this peer cannot admit anybody.

    Args:
        config: of the peer.
        peers: where it can be reached as a peer, told to those who join.
        writer: of its state file, where tokens and certificates are noted.
    """
    holds_authority = ClusterFolder(config.identity.folder).authority_key.exists()
    if config.listen.plain_text or not holds_authority or not config.listen.join_addresses:
        return None
    return _opened(config, peers, writer)


@asynccontextmanager
async def _opened(
    config: NodeConfig, peers: Sequence[Address], writer: StoreWriter
) -> AsyncIterator[Sequence[Address]]:
    """Answer those who want to join while the context is open.

    Raises:
        ListenFailed: an address cannot be listened on.
        ClusterFolderError: the authority's key cannot be used.
    """
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
