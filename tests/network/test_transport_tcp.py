"""TCP and TLS: certificates of all kinds, floods of strangers, and both versions of IP."""

from __future__ import annotations

import datetime
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from hashlib import sha256

import pytest
import trio
import trustme

from gossamer.node.errors import ListenFailed, PeerUnreachable, RequestError
from gossamer.node.transport.base import Address, Admitted, Transport
from gossamer.node.transport.byte_streams import NonBlockingStream, TlsStream
from gossamer.node.transport.limits import Limits
from gossamer.node.transport.tcp import Credentials, TcpTransport
from support.transport_peers import (
    LOOPBACK,
    authority,
    certificate_of,
    credentials_of,
    der_of,
    identify,
    local_peer,
    plain_transport,
    tls_transport,
)
from support.waiting import PATIENCE_S, from_host, running, soon

LIMITS = Limits()
MEMBERS = 20


@asynccontextmanager
async def listening(
    transport: Transport, address: Address = LOOPBACK
) -> AsyncIterator[tuple[Address, list[Admitted]]]:
    came: list[Admitted] = []

    async def stay(admitted: Admitted) -> None:
        came.append(admitted)
        await trio.sleep_forever()

    (listener,) = await transport.listen([address])
    async with running(partial(listener.serve, stay)):
        with trio.fail_after(PATIENCE_S):
            yield listener.address, came
    await listener.aclose()


def fingerprint(certificate: trustme.LeafCert) -> bytes:
    return sha256(der_of(certificate)).digest()


def transport_with(certificate: trustme.LeafCert | None, trusted: str = "ours") -> TcpTransport:
    me = local_peer(1, fingerprint=None if certificate is None else fingerprint(certificate))
    return TcpTransport(me, LIMITS, identify, credentials_of(certificate, trusted))


def certified(issuer: str, trusted: str) -> TcpTransport:
    return transport_with(certificate_of(1, issuer), trusted)


@asynccontextmanager
async def dialled(transport: Transport, *addresses: Address) -> AsyncIterator[Admitted]:
    admitted = await transport.dial(addresses)
    yield admitted
    await trio.aclose_forcefully(admitted.stream)


async def test_the_certificate_is_asked_for_and_reaches_who_decides() -> None:
    async with (
        listening(tls_transport(2, LIMITS)) as (address, came),
        dialled(tls_transport(1, LIMITS), address) as admitted,
    ):
        assert admitted.identity.fingerprint == fingerprint(certificate_of(2))
        await soon(lambda: bool(came))
        assert came[0].identity.fingerprint == fingerprint(certificate_of(1))
    lax = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with pytest.raises(ValueError, match="does not require"):
        Credentials(lax, credentials_of(certificate_of(1)).client)


def expired() -> TcpTransport:
    yesterday = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
    return transport_with(authority("ours").issue_cert("127.0.0.1", not_after=yesterday))


def with_a_stolen_hello() -> TcpTransport:
    stolen = local_peer(1, fingerprint=fingerprint(certificate_of(1)))
    return TcpTransport(stolen, LIMITS, identify, credentials_of(certificate_of(3)))


def of_an_older_version_of_tls() -> TcpTransport:
    old = credentials_of(certificate_of(1))
    old.client.minimum_version = old.client.maximum_version = ssl.TLSVersion.TLSv1_2
    return TcpTransport(local_peer(1), LIMITS, identify, old)


TLS, PLAIN = partial(tls_transport, 2, LIMITS), partial(plain_transport, 2, LIMITS)
Make = Callable[[], TcpTransport]
REFUSED: dict[str, tuple[Make, Make, str]] = {
    "without certificate": (partial(transport_with, None), TLS, "we showed no certificate"),
    "foreign": (partial(certified, "theirs", "ours"), TLS, "another authority issued our"),
    "expired": (expired, TLS, "our certificate has expired"),
    "a stolen hello": (with_a_stolen_hello, TLS, "its hello was made for another certificate"),
    "old": (of_an_older_version_of_tls, TLS, "no version of TLS"),
    "distrusting": (partial(certified, "ours", "theirs"), TLS, "certificate is not one of ours"),
    # There is no alert that a dialler without TLS would understand: it waits for the end.
    "in plain text": (
        partial(plain_transport, 1, LIMITS),
        partial(tls_transport, 2, Limits(close_seconds=0.01)),
        "",
    ),
    "with TLS to plain text": (partial(tls_transport, 1, LIMITS), PLAIN, "handshake failed"),
}


@pytest.mark.parametrize(("dialler", "listener", "words"), REFUSED.values(), ids=REFUSED)
async def test_a_refused_peer_gets_the_reason(dialler: Make, listener: Make, words: str) -> None:
    transport = listener()
    async with listening(transport) as (address, came):
        with pytest.raises(PeerUnreachable) as caught:
            await dialler().dial([address])
        assert came == []
        await soon(lambda: transport.refusals.total() == 1)
    ((_, why),) = caught.value.attempts
    assert words in why
    assert ("refused" in transport.refusals) is ("hello" in words)


async def test_plain_text_is_for_loopback_only() -> None:
    transport = plain_transport(1, LIMITS)
    for address in (Address("0.0.0.0", 0), Address("::", 0), Address("192.0.2.1", 0)):
        with pytest.raises(RequestError, match="expected a loopback address"):
            await transport.listen([LOOPBACK, address])
        with pytest.raises(PeerUnreachable, match="without certificates"):
            await transport.dial([address])


async def test_no_address_of_several_stays_open_when_one_fails() -> None:
    transport = plain_transport(1, LIMITS)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        busy = Address("127.0.0.1", taken.getsockname()[1])
        (probe,) = await transport.listen([LOOPBACK])
        free = probe.address
        await probe.aclose()
        sentence = rf"^cannot listen on 127.0.0.1:{busy.port}: .* in use; name another"
        with pytest.raises(ListenFailed, match=sentence):
            await transport.listen([free, busy])
        listeners = await transport.listen([free, LOOPBACK])
        assert len({0, *(listener.address.port for listener in listeners)}) == 3
        for listener in listeners:
            await listener.aclose()
    with pytest.raises(ListenFailed, match=r"cannot listen on 192\.0\.2\.1:0: cannot assign"):
        await tls_transport(1, LIMITS).listen([Address("192.0.2.1", 0)])


async def test_both_versions_of_ip_serve_one_peer() -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    four, six = await tls_transport(2, LIMITS).listen([LOOPBACK, Address("::1", 0)])
    dialler = tls_transport(1, LIMITS)

    async def nothing(_: Admitted) -> None:
        await trio.lowlevel.checkpoint()

    async with running(partial(four.serve, nothing), partial(six.serve, nothing)):
        for listener in (four, six):
            async with dialled(dialler, listener.address) as admitted:
                assert admitted.remote == listener.address
        async with dialled(dialler, four.address, six.address) as both:
            assert both.remote == six.address, "IPv6 goes first"
    for listener in (four, six):
        await listener.aclose()


async def test_a_mute_listener_is_given_up_and_does_not_hold_up_the_next() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:  # accepts, and never says a word
        silent = Address("127.0.0.1", mute.getsockname()[1])
        for make in (plain_transport, tls_transport):
            transport = make(1, Limits(handshake_seconds=0.02))
            with pytest.raises(PeerUnreachable, match=r"within 0\.02 s"):
                await transport.dial([silent])
        me = local_peer(1, fingerprint=fingerprint(certificate_of(1)))
        credentials, patient = credentials_of(certificate_of(1)), Limits(handshake_seconds=60)
        dialler = TcpTransport(me, patient, identify, credentials, stagger_s=0.01)
        async with (
            listening(tls_transport(2, LIMITS)) as (address, _),
            dialled(dialler, silent, address) as admitted,
        ):
            assert admitted.remote == address


async def stranger(address: Address) -> trio.SocketStream:
    return await trio.open_tcp_stream(address.host, address.port)


@pytest.mark.parametrize("limit", ["strangers", "per_address"])
async def test_the_oldest_stranger_makes_room_for_one_more(limit: str) -> None:
    transport = tls_transport(2, Limits(**{limit: 3}))
    async with listening(transport) as (address, _):
        waiting = []
        for _ in range(3):
            waiting.append(await stranger(address))
            await soon(lambda: transport.strangers == len(waiting))
        one_too_many = await stranger(address)
        assert await waiting[0].receive_some(1) == b"", "closed at once"
        await soon(lambda: transport.refusals["busy"] == 1)
        assert transport.strangers == 3
        for stream in [*waiting, one_too_many]:
            await stream.aclose()
        await soon(lambda: transport.refusals.total() == 4)
        async with dialled(tls_transport(1, LIMITS), address) as admitted:
            assert admitted.identity.key == 2


async def test_silent_strangers_keep_no_member_out() -> None:
    transport = tls_transport(999, Limits())
    async with listening(transport) as (address, came), AsyncExitStack() as stack:
        for host in ("127.0.0.1", *(f"127.0.0.{number}" for number in range(2, 100))):
            for _ in range(200 if host in ("127.0.0.1", "127.0.0.2") else 2):
                await stack.enter_async_context(await from_host(host, address.port))
        for key in range(1, MEMBERS + 1):
            await stack.enter_async_context(dialled(tls_transport(key, LIMITS), address))
        await soon(lambda: len(came) == MEMBERS)
        assert transport.strangers <= Limits().strangers


async def test_who_knocks_all_the_time_keeps_no_member_out() -> None:
    transport = tls_transport(999, Limits(strangers=16, per_address=8))
    async with listening(transport) as (address, came), running() as nursery:

        async def knock(host: str) -> None:
            while True:
                async with await from_host(host, address.port) as stream:
                    with suppress(trio.BrokenResourceError):
                        await stream.receive_some(1)

        for number in range(40):
            nursery.start_soon(knock, f"127.0.0.{1 + number % 4}")
        await soon(lambda: transport.refusals["busy"] > 100)
        for key in range(1, 6):
            async with dialled(tls_transport(key, LIMITS), address):
                pass
        await soon(lambda: len(came) == 5)


async def test_admitted_peers_are_no_strangers() -> None:
    transport = tls_transport(9, Limits(strangers=1, per_address=1))
    async with listening(transport) as (address, came), AsyncExitStack() as stack:
        for key in (1, 2, 3):
            await stack.enter_async_context(dialled(tls_transport(key, LIMITS), address))
            await soon(lambda key=key: len(came) == key)  # type: ignore[misc]
        assert transport.refusals.total() == 0


@pytest.mark.parametrize("rubbish", [b"GET / HTTP/1.1\r\n", bytes(5000), b"\x16\x03\x01\xff\xff"])
async def test_rubbish_from_strangers_does_no_harm(rubbish: bytes) -> None:
    transport = tls_transport(2, LIMITS)
    async with listening(transport) as (address, came):
        stream = await stranger(address)
        with suppress(trio.BrokenResourceError):
            await stream.send_all(rubbish)
            await stream.send_eof()
            while await stream.receive_some(4096):
                pass
        await stream.aclose()
        async with dialled(tls_transport(1, LIMITS), address):
            await soon(lambda: transport.refusals["handshake"] == 1)
        assert len(came) <= 1


async def test_credentials_may_be_renewed_while_listening() -> None:
    listener = tls_transport(2, LIMITS)
    async with listening(listener) as (address, _):
        fresh = authority("ours").issue_cert("127.0.0.1", "renewed.test")
        listener.credentials = credentials_of(fresh)
        listener.me = local_peer(2, fingerprint=fingerprint(fresh))
        async with dialled(tls_transport(1, LIMITS), address) as admitted:
            assert admitted.identity.fingerprint == fingerprint(fresh)


class Morsels(NonBlockingStream):
    """A stream that takes nothing at once, and delivers a few bytes at a time."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.stream = stream
        self.left = b""

    def send_now(self, data: bytes) -> bool:
        self.left += data
        return not self.left

    async def flush(self) -> None:
        left, self.left = self.left, b""
        await self.stream.send_all(left)

    async def wait_send_all_might_not_block(self) -> None:
        await self.stream.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        return await self.stream.receive_some(min(max_bytes or 1000, 1000))

    async def aclose(self) -> None:
        await self.stream.aclose()


async def secured_pair(left: Morsels, right: Morsels) -> tuple[TlsStream, TlsStream]:
    credentials = credentials_of(certificate_of(1))
    near = TlsStream(left, credentials.client, server_side=False)
    far = TlsStream(right, credentials.server, server_side=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(near.do_handshake)
        nursery.start_soon(far.do_handshake)
    return near, far


async def test_tls_records_of_any_cut_are_read_and_a_stream_cut_off_below_is_broken() -> None:
    near, far = await secured_pair(*map(Morsels, trio.testing.memory_stream_pair()))
    data = bytes(range(256)) * 1000
    received = bytearray()

    async def receive() -> None:
        while piece := await far.receive_some(777):
            assert len(piece) <= 777
            received.extend(piece)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(receive)
        await near.send_all(data)
        await near.aclose()
    assert received == data
    await far.aclose()
    left, right = map(Morsels, trio.testing.memory_stream_pair())
    _, far = await secured_pair(left, right)
    await left.aclose()
    with pytest.raises(trio.BrokenResourceError, match="without TLS saying so"):
        await far.receive_some()
    await right.aclose()
