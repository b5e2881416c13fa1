"""Joining over loopback: what a token gets, and what whoever misbehaves gets."""

from __future__ import annotations

import socket
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from unittest.mock import AsyncMock

import pytest
import trio
import trio.testing
from attrs import evolve

from gossamer.node.errors import ClusterFolderError, JoinError, StoreError
from gossamer.node.security.cluster import Membership, join_client_context, open_membership
from gossamer.node.security.joining import join_protocol
from gossamer.node.security.joining.client import JoinLimits, join, receive_message, send_message
from gossamer.node.security.joining.join_protocol import Answer, Token
from gossamer.node.security.joining.server import (
    Attempts,
    JoinServer,
    admit_with,
    known_to,
    serve_joins,
)
from gossamer.node.store.writer import writing_to
from gossamer.protocol.kernel.errors import ConfigError
from support.clusters import MadeCluster, made_cluster
from support.transport_peers import on_jumping_clock
from support.waiting import at_once, eventually, from_host, running, soon

LOOPBACK = "127.0.0.1"


@asynccontextmanager
async def open_desk(
    cluster: MadeCluster, *, limits: JoinLimits | None = None, host: str = LOOPBACK
) -> AsyncIterator[tuple[JoinServer, int]]:
    # No clock that jumps does so while a thread works.
    async with writing_to(cluster.store, aside=at_once) as writer:
        admit = admit_with(cluster.registrar, writer)
        desk = JoinServer(cluster.first, admit, limits, known_to(cluster.registrar, writer))
        async with serving(desk, host) as port:
            yield desk, port


@asynccontextmanager
async def serving(desk: JoinServer, host: str = LOOPBACK) -> AsyncIterator[int]:
    listeners = await trio.open_tcp_listeners(0, host=host)
    async with running(partial(serve_joins, desk, listeners)):
        yield listeners[0].socket.getsockname()[1]


def invitation(cluster: MadeCluster, *ports: int, host: str = LOOPBACK) -> Token:
    addresses = tuple((host, port) for port in ports)
    return cluster.registrar.invite(cluster.store, addresses, time.time(), 60.0)


async def enter(cluster: MadeCluster, port: int, folder: Path, name: str = "new") -> Membership:
    """Join by this name, in a folder of it, by a new token of the desk at this port."""
    return await join(invitation(cluster, port).to_text(), folder / name, name)


async def test_names_are_taken_until_revoked(cluster: MadeCluster, tmp_path: Path) -> None:
    """The token is good for another name; the desk's own name is taken, too."""
    async with open_desk(cluster) as (desk, port):
        await enter(cluster, port, tmp_path, "kitchen")
        text = invitation(cluster, port).to_text()
        for name in ("kitchen", cluster.first.certificate.name):
            with pytest.raises(JoinError, match="has a member of this name already"):
                await join(text, tmp_path / "second", name)
        assert (await join(text, tmp_path / "second", "bath")).certificate.name == "bath"
        cluster.registrar.revoke(cluster.store, "kitchen", time.time())
        assert await enter(cluster, port, tmp_path / "anew", "kitchen")
        assert desk.counts == {"admitted": 3, "name taken": 2}


def closed_port() -> int:
    with socket.socket() as unused:
        unused.bind((LOOPBACK, 0))
        port: int = unused.getsockname()[1]
        return port


@asynccontextmanager
async def call(port: int) -> AsyncIterator[trio.SSLStream[trio.SocketStream]]:
    async with await trio.open_tcp_stream(LOOPBACK, port) as connection:
        tls = trio.SSLStream(connection, join_client_context(), https_compatible=True)
        await tls.do_handshake()
        yield tls


FAMILIES = {LOOPBACK: socket.AF_INET, "::1": socket.AF_INET6}


@pytest.mark.parametrize("host", FAMILIES)
async def test_a_token_makes_a_member(cluster: MadeCluster, tmp_path: Path, host: str) -> None:
    try:
        socket.create_server((host, 0), family=FAMILIES[host]).close()
    except OSError:
        pytest.skip(f"this machine has no loopback {host}")
    gone = cluster.admit("gone")
    async with open_desk(cluster, host=host) as (desk, port):
        token = invitation(cluster, port, host=host)
        cluster.registrar.revoke(cluster.store, "gone", cluster.now)
        member = await join(token.to_text(), tmp_path / "new", "kitchen")
    assert (desk.counts, member) == ({"admitted": 1}, open_membership(tmp_path / "new"))
    assert (member.authority, member.certificate.name) == (cluster.first.authority, "kitchen")
    assert member.revoked.forbids(gone.identity.key, 0)
    names = {path.name for path in (tmp_path / "new").iterdir()}
    assert names == {"peer.key", "peer.pem", "ca.pem", "revoked.json"}


async def test_a_lost_answer_to_a_join_is_made_good(cluster: MadeCluster, tmp_path: Path) -> None:
    """The folder is as a joiner leaves it that loses the connection after its request."""
    async with open_desk(cluster) as (desk, port):
        text = invitation(cluster, port).to_text()
        lost = await join(text, tmp_path / "new", "kitchen")
        for name in ("peer.pem", "ca.pem", "revoked.json"):
            (tmp_path / "new" / name).unlink()
        found = await join(text, tmp_path / "new", "kitchen")
    assert (found.certificate, desk.counts) == (lost.certificate, {"admitted": 2})


async def test_each_kind_of_bad_token_has_its_own_error(
    cluster: MadeCluster, tmp_path: Path
) -> None:
    async with open_desk(cluster) as (desk, port):
        good, used = (invitation(cluster, port) for _ in range(2))
        await join(used.to_text(), tmp_path / "hall", "hall")
        expired = cluster.registrar.invite(cluster.store, good.addresses, time.time() - 100, 60)
        for token, cause in (
            (evolve(good, secret=b"?" * 16), join_protocol.UNKNOWN),
            (expired, join_protocol.EXPIRED),
            (used, join_protocol.USED),
        ):
            with pytest.raises(JoinError) as caught:
                await join(token.to_text(), tmp_path / "new", "kitchen")
            assert caught.value.cause == cause
    assert desk.counts == {"admitted": 1, "unknown": 1, "expired": 1, "used": 1}
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["peer.key"]


async def test_a_member_without_the_authority_refuses(cluster: MadeCluster, tmp_path: Path) -> None:
    async with serving(JoinServer(cluster.admit("other"), None)) as port:
        with pytest.raises(JoinError, match=r"holds no ca\.key") as caught:
            await enter(cluster, port, tmp_path)
    assert caught.value.cause == join_protocol.NO_AUTHORITY


async def test_the_secret_goes_to_the_inviter_alone(cluster: MadeCluster, tmp_path: Path) -> None:
    """Neither to another member nor to another cluster, whoever answers at the address."""
    listen = AsyncMock(side_effect=join_protocol.refusal(join_protocol.UNKNOWN))
    with made_cluster(tmp_path / "other") as other:
        for impostor in (cluster.admit("nosy"), other.first):
            async with serving(JoinServer(impostor, listen)) as port:
                with pytest.raises(JoinError, match=r"expected one for|not of cluster"):
                    await enter(cluster, port, tmp_path)
    listen.assert_not_called()


async def test_addresses_are_tried_in_order(cluster: MadeCluster, tmp_path: Path) -> None:
    one, two = closed_port(), closed_port()
    with pytest.raises(JoinError) as caught:
        await join(invitation(cluster, one, two).to_text(), tmp_path / "new", "kitchen")
    tried = [attempt.split(": ")[0] for attempt in caught.value.attempts]
    assert tried == [f"{LOOPBACK}:{one}", f"{LOOPBACK}:{two}"]
    async with open_desk(cluster) as (_, port):
        assert await join(invitation(cluster, one, port).to_text(), tmp_path / "new", "kitchen")


@on_jumping_clock
async def test_a_silent_inviter_is_not_waited_for(cluster: MadeCluster, tmp_path: Path) -> None:
    failed = pytest.raises(JoinError, match="no answer in time")
    with socket.create_server((LOOPBACK, 0)) as silent, failed:
        await enter(cluster, silent.getsockname()[1], tmp_path)


async def test_a_join_that_cannot_succeed_asks_nobody(cluster: MadeCluster, tmp_path: Path) -> None:
    text = invitation(cluster, closed_port()).to_text()
    before = (cluster.folder / "peer.pem").read_bytes()
    with pytest.raises(ClusterFolderError, match="is a membership already"):
        await join(text, cluster.folder, "kitchen")
    assert (cluster.folder / "peer.pem").read_bytes() == before
    with pytest.raises(ConfigError, match="name is ''"):
        await join(text, tmp_path / "new", "")
    with pytest.raises(JoinError, match="copy it again"):
        await join(text[:-1], tmp_path / "new", "kitchen")
    assert not (tmp_path / "new").exists()


@on_jumping_clock
async def test_a_right_token_among_wrong_is_heard(cluster: MadeCluster, tmp_path: Path) -> None:
    """However many were wrong, it waits; after a while of peace it does not even wait."""
    async with open_desk(cluster) as (desk, port):
        bad = evolve(invitation(cluster, port), secret=b"?" * 16).to_text()
        for _ in range(25):
            with pytest.raises(JoinError, match="does not know this token"):
                await join(bad, tmp_path / "bad", "kitchen")
        begun = trio.current_time()
        assert await enter(cluster, port, tmp_path, "good")
        assert 4.0 <= trio.current_time() - begun < 5.0
        await trio.sleep(120.0)
        begun = trio.current_time()
        assert await enter(cluster, port, tmp_path, "late")
        assert trio.current_time() - begun < 0.5
    assert desk.counts == {"unknown": 25, "admitted": 2}


async def test_who_guesses_keeps_nobody_else_out(cluster: MadeCluster, tmp_path: Path) -> None:
    """From the same address, as fast as it is answered, and more at a time than are heard."""
    limits = JoinLimits(refusals=2, first_wait_s=0.02, longest_wait_s=0.1, asking=2)
    async with open_desk(cluster, limits=limits) as (desk, port), running() as nursery:
        bad = evolve(invitation(cluster, port), secret=b"?" * 16).to_text()

        async def guess(folder: Path) -> None:
            while True:
                with pytest.raises(JoinError):
                    await join(bad, folder, "kitchen")

        for number in range(6):
            nursery.start_soon(guess, tmp_path / f"bad {number}")
        await eventually(lambda: desk.counts["unknown"] >= 20)
        assert await enter(cluster, port, tmp_path, "good")


@on_jumping_clock
async def test_a_right_token_waits_for_no_guesses(cluster: MadeCluster, tmp_path: Path) -> None:
    async with open_desk(cluster, limits=JoinLimits(asking=0)) as (desk, port):
        right = invitation(cluster, port)
        assert await join(right.to_text(), tmp_path / "good", "kitchen")
        for secret in (b"?" * 16, right.secret):
            wrong = evolve(right, secret=secret).to_text()
            with pytest.raises(JoinError, match="wait to be heard"):
                await join(wrong, tmp_path / "bad", "kitchen")
    assert desk.counts["admitted"] == 1


async def test_silent_connections_keep_nobody_out(cluster: MadeCluster, tmp_path: Path) -> None:
    """From one address and from many, that of the one who joins among them."""
    async with open_desk(cluster) as (desk, port), AsyncExitStack() as stack:
        for host in (LOOPBACK, *(f"127.0.0.{number}" for number in range(2, 50))):
            for _ in range(40 if host in (LOOPBACK, "127.0.0.2") else 1):
                await stack.enter_async_context(await from_host(host, port))
        for name in ("kitchen", "bath"):
            assert await enter(cluster, port, tmp_path, name)
        assert desk.connections <= JoinLimits().connections
        assert desk.counts["admitted"] == 2
        assert desk.counts["busy"] >= 40


@pytest.mark.parametrize(
    "message",
    [(join_protocol.REQUEST_LIMIT + 1).to_bytes(4, "big"), bytes(4), b"\0\0\0\x01\xff"],
    ids=["too long", "empty", "junk"],
)
async def test_a_bad_request_is_refused(cluster: MadeCluster, message: bytes) -> None:
    async with open_desk(cluster) as (desk, port), call(port) as tls:
        assert await receive_message(tls, join_protocol.CHALLENGE_LIMIT)
        await tls.send_all(message)
        with pytest.raises(JoinError) as caught:
            join_protocol.unpack(Answer, await receive_message(tls, 1000))
        assert caught.value.cause == join_protocol.BAD_REQUEST
    assert desk.counts == {"bad request": 1}


async def test_a_replayed_request_is_refused(cluster: MadeCluster, tmp_path: Path) -> None:
    async with writing_to(cluster.store) as writer:
        admit = AsyncMock(side_effect=admit_with(cluster.registrar, writer))
        desk = JoinServer(cluster.first, admit)
        async with serving(desk) as port:
            await enter(cluster, port, tmp_path)
            async with call(port) as tls:
                await receive_message(tls, join_protocol.CHALLENGE_LIMIT)
                (request,) = admit.call_args.args
                await send_message(tls, join_protocol.pack(request))
                with pytest.raises(JoinError, match="malformed"):
                    join_protocol.unpack(Answer, await receive_message(tls, 1000))
    assert desk.counts == {"admitted": 1, "bad request": 1}


async def test_whoever_dawdles_is_cut_off_and_others_are_served(
    cluster: MadeCluster, tmp_path: Path, mock_clock: trio.testing.MockClock
) -> None:
    async with open_desk(cluster, limits=JoinLimits(exchange_s=10)) as (desk, port):
        async with await trio.open_tcp_stream(LOOPBACK, port) as silent:
            await soon(lambda: desk.connections > 0)
            mock_clock.jump(11)
            assert await silent.receive_some(1) == b""
        assert (desk.counts, desk.connections) == ({"slow": 1}, 0)
        assert await enter(cluster, port, tmp_path)


async def test_whoever_hangs_up_or_speaks_no_tls_is_counted(cluster: MadeCluster) -> None:
    async with open_desk(cluster) as (desk, port):
        async with await trio.open_tcp_stream(LOOPBACK, port) as rude:
            await rude.send_all(b"GET / HTTP/1.0\r\n\r\n")
            while await rude.receive_some():
                pass
        async with call(port):
            pass
        await soon(lambda: desk.counts["broken"] >= 2)
    assert desk.counts == {"broken": 2}


async def test_a_full_disk_refuses_and_keeps_the_token(
    cluster: MadeCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fail = AsyncMock(side_effect=StoreError("state.db", "cannot grow because the disk is full"))
    async with serving(JoinServer(cluster.first, fail)) as port:
        with pytest.raises(JoinError, match="its log says why"):
            await enter(cluster, port, tmp_path)
    assert "disk is full" in caplog.text


def test_waits_grow_are_bounded_and_end_and_so_are_addresses() -> None:
    attempts = Attempts(
        JoinLimits(refusals=2, refusal_s=10.0, first_wait_s=1.0, longest_wait_s=4.0, addresses=2)
    )
    waits = []
    for _ in range(100):
        waits.append(attempts.wait_s("a", 0.0))
        attempts.spend("a", 0.0)
    assert waits == [0.0, 0.0, 1.0, 2.0, *[4.0] * 96]
    assert [attempts.wait_s("a", at) for at in (10.0, 20.0, 30.0)] == [2.0, 1.0, 0.0]
    assert attempts.wait_s("b", 0.0) == 0.0
    attempts.spend("b", 0.0)
    attempts.spend("c", 0.0)
    assert attempts.wait_s("a", 0.0) == 0.0
