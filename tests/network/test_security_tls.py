"""TLS between members, and between members and those who are none, over real sockets."""

from __future__ import annotations

import socket
import ssl
import time
from pathlib import Path

import trio

from gossamer.node.security.certificates import verify_peer
from gossamer.node.security.cluster import (
    Membership,
    client_context,
    join_client_context,
    server_context,
)
from support.clusters import DAY_S, MadeCluster, made_cluster
from support.waiting import PATIENCE_S

Tls = trio.SSLStream[trio.SocketStream]
Outcome = bytes | None


async def meet(client: ssl.SSLContext, server: ssl.SSLContext) -> tuple[Outcome, Outcome]:
    """Let two ends meet over loopback; the certificate each has seen, None where it refused."""
    left, right = (trio.SocketStream(end) for end in tcp_pair())
    seen: dict[str, Outcome] = {"client": None, "server": None}

    async def take_part(name: str, tls: Tls) -> None:
        try:
            await tls.do_handshake()
            # Under TLS 1.3 a client learns that it is refused when it first reads.
            await tls.send_all(b"?")
            if await tls.receive_some(1) == b"?":
                seen[name] = tls.getpeercert(binary_form=True)
        except trio.BrokenResourceError:
            pass
        finally:
            await trio.aclose_forcefully(tls)

    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(take_part, "client", trio.SSLStream(left, client))
            nursery.start_soon(take_part, "server", trio.SSLStream(right, server, server_side=True))
    return seen["client"], seen["server"]


def tcp_pair() -> tuple[trio.socket.SocketType, trio.socket.SocketType]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        server, _ = listener.accept()
    client.setblocking(False)
    server.setblocking(False)
    return trio.socket.from_stdlib_socket(client), trio.socket.from_stdlib_socket(server)


async def test_members_see_each_others_certificates(cluster: MadeCluster) -> None:
    first, other = cluster.first, cluster.admit("other")
    by_client, by_server = await meet(client_context(other), server_context(first))
    assert by_client == first.certificate.der
    assert by_server == other.certificate.der
    assert by_server is not None
    verified = verify_peer(
        first.authority, by_server, other.identity.key, first.revoked, cluster.now
    )
    assert verified.name == "other"


async def test_who_shows_no_certificate_gets_nothing(cluster: MadeCluster) -> None:
    assert await meet(join_client_context(), server_context(cluster.first)) == (None, None)


async def test_clusters_do_not_mix(cluster: MadeCluster, tmp_path: Path) -> None:
    with made_cluster(tmp_path / "foreign") as foreign:
        stranger = foreign.first
    for client, server in ((stranger, cluster.first), (cluster.first, stranger)):
        assert await meet(client_context(client), server_context(server)) == (None, None)


def expired_member(tmp_path: Path) -> tuple[MadeCluster, Membership]:
    """A member whose certificate has expired, in a cluster that was made some days ago."""
    old = MadeCluster(tmp_path / "old", time.time() - 10 * DAY_S)
    return old, old.admit("late", lifetime_s=DAY_S)


async def test_an_expired_member_gets_nothing(tmp_path: Path) -> None:
    old, late = expired_member(tmp_path)
    with old.store:
        assert await meet(client_context(late), server_context(old.first)) == (None, None)
        assert await meet(client_context(old.first), server_context(late)) == (None, None)


async def test_older_tls_is_refused(cluster: MadeCluster) -> None:
    client = client_context(cluster.first)
    client.minimum_version = client.maximum_version = ssl.TLSVersion.TLSv1_2
    assert await meet(client, server_context(cluster.first)) == (None, None)


def test_no_session_survives_to_skip_the_certificate(cluster: MadeCluster) -> None:
    assert server_context(cluster.first).num_tickets == 0
