"""Peers over TCP, with mutual TLS or, on loopback only, in plain text."""

from __future__ import annotations

import errno
import ssl
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import attrs
import trio

from gossamer.node.errors import (
    HandshakeFailed,
    ListenFailed,
    NodeError,
    PeerRefused,
    PeerUnreachable,
    RefusedByPeer,
    RequestError,
)
from gossamer.node.transport.base import Address, Admitted, Handler, LocalPeer, Verify
from gossamer.node.transport.byte_streams import (
    STAGGER_SECONDS,
    AllFailedError,
    NonBlockingStream,
    TcpStream,
    TlsStream,
    describe,
    drain,
    first_success,
    interleave,
)
from gossamer.node.transport.handshake import broken_handshake, introduce
from gossamer.node.transport.limits import Doors, Limits, address_group, warn_of_crowd

# Every interface; a machine without that version of IP is not an error.
WILDCARDS = ("0.0.0.0", "::")
_NO_SUCH_FAMILY = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)


@attrs.frozen(slots=True)
class Credentials:
    """TLS for both roles; both contexts require the peer's certificate.

    Attributes:
        server: context for connections that come in.
        client: context for those that we dial.
    """

    server: ssl.SSLContext
    client: ssl.SSLContext

    def __attrs_post_init__(self) -> None:
        for context in (self.server, self.client):
            if context.verify_mode is not ssl.CERT_REQUIRED:
                raise ValueError("a TLS context does not require the peer's certificate")


@attrs.define(eq=False, slots=False)
class TcpTransport:
    """A transport over TCP.

    Attributes:
        me: what is said of us on the next connections; may be replaced at any time.
        credentials: TLS for the next connections; may be replaced, but not by None.
        refusals: what came in and was not admitted, counted by cause.
        on_refusal: told of each such, as of `Transport`.
        on_refused_by: told of peers that do not admit us.

    Args:
        fair: lets little wait where no turns are taken, in the system.
    """

    me: LocalPeer
    _limits: Limits
    _verify: Verify
    credentials: Credentials | None
    _stagger_s: float = STAGGER_SECONDS
    _fair: bool = False

    def __attrs_post_init__(self) -> None:
        self.refusals: Counter[str] = Counter()
        self.on_refusal: Callable[[NodeError | None, Address], None] = lambda _error, _from: None
        self.on_refused_by: Callable[[RefusedByPeer], None] = lambda _: None
        self._inside = 0
        self._doors = Doors(self._limits.strangers, self._limits.per_address, warn_of_crowd)

    @property
    def strangers(self) -> int:
        """How many came in and have not shown yet who they are."""
        return len(self._doors)

    async def listen(self, addresses: Sequence[Address]) -> Sequence[TcpListener]:
        """Open all of ``addresses``, or none; port 0 lets the system choose.

        Raises:
            RequestError: one is not loopback, and there are no credentials.
            ListenFailed: one cannot be opened, or there is none.
        """
        for address in addresses:
            self._check_plain(address)
        opened: list[TcpListener] = []
        try:
            for address in addresses:
                opened += [TcpListener(self, socket) for socket in await _open(address)]
            if not opened:
                raise ListenFailed(", ".join(map(str, addresses)), "this machine has no such one")
        except BaseException:
            for listener in opened:
                listener.close()
            raise
        return opened

    async def dial(self, addresses: Sequence[Address], key: int | None = None) -> Admitted:
        """Connect to the peer behind ``addresses``, the first that answers winning.

        Raises:
            PeerUnreachable: none of them led to it, or to peer ``key`` where that is given.
        """

        async def attempt(address: Address) -> Admitted:
            return await self._dial_one(address, key)

        async def discard(admitted: Admitted) -> None:
            await trio.aclose_forcefully(admitted.stream)

        try:
            return await first_success(interleave(addresses), attempt, discard, self._stagger_s)
        except AllFailedError as error:
            attempts = [(str(address), why) for address, why in error.failures]
            raise PeerUnreachable(key, attempts) from None

    async def _dial_one(self, address: Address, key: int | None) -> Admitted:
        self._check_plain(address)
        with _deadline(self._limits.handshake_seconds):
            try:
                tcp = await trio.open_tcp_stream(address.host, address.port)
            except OSError as error:
                raise _what_happened(error) from None
            try:
                return await self._secure(tcp, address, dialled=True, expected=key)
            except RefusedByPeer as error:
                self.on_refused_by(error)
                raise

    async def _secure(
        self, tcp: trio.SocketStream, remote: Address, *, dialled: bool, expected: int | None = None
    ) -> Admitted:
        """Run TLS and the hello on ``tcp``, which is taken over; it is closed if that fails."""
        # Both may be replaced while this goes on, and have to fit each other.
        me, credentials = self.me, self.credentials
        plain = TcpStream(tcp)
        if self._fair:
            plain.hold_little()
        stream: NonBlockingStream = plain
        certificate: bytes | None = None
        try:
            if credentials is not None:
                context = credentials.client if dialled else credentials.server
                stream, certificate = await self._handshake_tls(stream, context, remote, dialled)
            return await introduce(
                stream,
                me,
                self._limits,
                self._verify,
                certificate=certificate,
                dialled=dialled,
                remote=remote,
                expected=expected,
            )
        except BaseException:
            await trio.aclose_forcefully(plain)
            raise

    async def _handshake_tls(
        self, tcp: NonBlockingStream, context: ssl.SSLContext, remote: Address, dialled: bool
    ) -> tuple[TlsStream, bytes]:
        hostname = remote.host if dialled and context.check_hostname else None
        tls = TlsStream(tcp, context, server_side=not dialled, server_hostname=hostname)
        try:
            await tls.do_handshake()
        except trio.BrokenResourceError as error:
            if not dialled:  # who comes in hears why it is refused, and hangs up
                with trio.move_on_after(self._limits.close_seconds):
                    await drain(tcp)
            raise broken_handshake(error) from error.__cause__
        certificate = tls.peer_certificate()
        if certificate is None:
            raise HandshakeFailed("it showed no certificate", "certificate")
        return tls, certificate

    def _check_plain(self, address: Address) -> None:
        if self.credentials is None and not address.is_loopback:
            expected = (
                "expected a loopback address such as 127.0.0.1 "
                "(make a cluster with 'gossamer node init' to use others)"
            )
            raise RequestError(f"{address} without certificates, {expected}")

    async def _take(self, tcp: trio.SocketStream, handler: Handler) -> None:
        """Admit whoever is behind ``tcp`` and run ``handler`` with it; refusals are counted."""
        try:
            remote = Address(*tcp.socket.getpeername()[:2])
        except OSError:
            await tcp.aclose()  # it has gone again already
            return
        async with tcp:
            admitted = await self._receive(tcp, remote)
            if admitted is not None:
                self._inside += 1
                try:
                    async with admitted.stream:
                        await handler(admitted)
                finally:
                    self._inside -= 1

    async def _receive(self, tcp: trio.SocketStream, remote: Address) -> Admitted | None:
        """Who is behind ``tcp``; None, and counted, where nobody is let in."""
        most = self._limits.connections + self._limits.strangers
        with self._doors.enter(address_group(remote.host)) as guest:
            if guest is not None and self._inside < most:
                try:
                    with guest.scope, _deadline(self._limits.handshake_seconds):
                        return await self._secure(tcp, remote, dialled=False)
                except NodeError as error:
                    self.refusals[_word_for(error)] += 1
                    self.on_refusal(error, remote)
                    if isinstance(error, RefusedByPeer):
                        self.on_refused_by(error)
                    return None
        self.refusals["busy"] += 1
        self.on_refusal(None, remote)
        return None


class TcpListener:
    """One open address of a `TcpTransport`."""

    def __init__(self, transport: TcpTransport, listener: trio.SocketListener) -> None:
        self._transport = transport
        self._listener = listener
        self.address = Address(*listener.socket.getsockname()[:2])

    async def serve(self, handler: Handler) -> None:
        """Run ``handler`` for every peer that comes in and is admitted, until cancelled."""

        async def take(tcp: trio.SocketStream) -> None:
            await self._transport._take(tcp, handler)

        await trio.serve_listeners(take, [self._listener])

    def close(self) -> None:
        """Listen no more; who serves gets `trio.ClosedResourceError`."""
        self._listener.socket.close()

    async def aclose(self) -> None:
        """Listen no more."""
        await self._listener.aclose()


async def _open(address: Address) -> list[trio.SocketListener]:
    try:
        return await trio.open_tcp_listeners(address.port, host=address.host)
    except OSError as error:
        if address.host in WILDCARDS and error.errno in _NO_SUCH_FAMILY:
            return []
        raise ListenFailed(str(address), describe(error)) from error


@contextmanager
def _deadline(seconds: float) -> Iterator[None]:
    try:
        with trio.fail_after(seconds):
            yield
    except trio.TooSlowError:
        raise HandshakeFailed(f"no answer within {seconds} s", "timeout") from None


def _what_happened(error: OSError) -> OSError:
    """The system's own error: trio says that all attempts failed, and keeps it as the cause."""
    cause = error.__cause__
    while isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]
    return cause if isinstance(cause, OSError) else error


def _word_for(error: NodeError) -> str:
    if isinstance(error, PeerRefused):
        return error.cause
    if isinstance(error, RefusedByPeer):
        return "refused by peer"
    return "handshake" if isinstance(error, HandshakeFailed) else "bad frame"
