"""Joining over the network: the server of the inviter, which answers those with a token.

It has a port of its own. The peer port never sees anybody without a certificate.
"""

from __future__ import annotations

import logging
import math
import secrets
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Sequence

import trio

from gossamer.node.errors import (
    CertificateError,
    JoinError,
    NodeError,
    RevokedCertificateError,
    SignedDataError,
)
from gossamer.node.security.certificates import (
    PeerCertificate,
    check_name,
    read_certificate,
)
from gossamer.node.security.cluster import (
    Membership,
    join_server_context,
    open_membership,
    stamp_of,
)
from gossamer.node.security.joining import join_protocol
from gossamer.node.security.joining.admission import Registrar, renew_peer
from gossamer.node.security.joining.client import (
    BROKEN,
    JoinLimits,
    receive_message,
    send_message,
)
from gossamer.node.security.joining.join_protocol import Answer, Challenge, Renewal, Request
from gossamer.node.security.renewal import (
    RenewalRequest,
    Renewed,
)
from gossamer.node.store import Store
from gossamer.node.store.writer import StoreWriter
from gossamer.node.transport.limits import Doors, Guest, address_group, warn_of_crowd
from gossamer.protocol.kernel.errors import ConfigError, ProtocolError

Admit = Callable[[Request | RenewalRequest], Awaitable[Answer]]
Knows = Callable[[Request | RenewalRequest], Awaitable[bool]]

_log = logging.getLogger(__name__)


class Attempts:
    """How many attempts of each address were refused; at most so many addresses are known."""

    def __init__(self, limits: JoinLimits) -> None:
        self._limits = limits
        self._longest_s = limits.longest_wait_s
        doublings = math.ceil(math.log2(limits.longest_wait_s / limits.first_wait_s))
        self._most = limits.refusals + max(0, doublings)
        # When, in the clock's seconds, all attempts of an address will be forgotten.
        self._whole_at: OrderedDict[str, float] = OrderedDict()

    def wait_s(self, address: str, now: float) -> float:
        """For how long a request from ``address`` has to wait."""
        limits = self._limits
        refused = math.ceil((self._whole_at.get(address, now) - now) / limits.refusal_s)
        if refused < limits.refusals:
            return 0.0
        return float(min(limits.first_wait_s * 2 ** (refused - limits.refusals), self._longest_s))

    def spend(self, address: str, now: float) -> None:
        """Note a refused attempt; the address heard of longest ago is forgotten.

        More than make it wait for the longest are not remembered: they would only make that last.
        """
        limits = self._limits
        whole_at = max(now, self._whole_at.pop(address, now)) + limits.refusal_s
        self._whole_at[address] = min(whole_at, now + self._most * limits.refusal_s)
        if len(self._whole_at) > self._limits.addresses:
            self._whole_at.popitem(last=False)


class JoinServer:
    """Answers those who want to join.

    Attributes:
        counts: outcomes: "admitted", "busy", "broken", "slow", and refusals by cause.
    """

    def __init__(
        self,
        member: Membership,
        admit: Admit | None,
        limits: JoinLimits | None = None,
        knows: Knows | None = None,
    ) -> None:
        """A server of ``member``; without ``admit`` it refuses everybody, for want of ca.key.

        ``admit`` answers a request whose proof has been checked, or raises a reason to refuse.
        ``knows`` is true of a request that will hardly be refused: however many of its address
        wait to be heard, it waits as well, and makes room for none of them.
        """
        self.counts: Counter[str] = Counter()
        self._member = member
        self._stamp = stamp_of(member.folder)
        self._admit = admit
        self._knows = knows
        self._limits = limits or JoinLimits()
        self._context = join_server_context(member)
        self._attempts = Attempts(self._limits)
        self._doors = Doors(self._limits.connections, self._limits.per_address, warn_of_crowd)

    @property
    def connections(self) -> int:
        """How many are open."""
        return len(self._doors)

    async def serve(self, connection: trio.SocketStream) -> None:
        """Serve one connection and close it; whatever it does, this returns in time."""
        try:
            host, *_ = connection.socket.getpeername()
            with self._doors.enter(address_group(host)) as guest:
                if guest is not None:
                    await self._serve_guest(connection, guest)
                if guest is None or guest.is_turned_out:
                    self.counts["busy"] += 1
        except BROKEN:
            self.counts["broken"] += 1
        finally:
            await trio.aclose_forcefully(connection)

    async def _serve_guest(self, connection: trio.SocketStream, guest: Guest) -> None:
        """Serve a connection until it has to make room for another."""
        with guest.scope:
            with trio.move_on_after(self._limits.exchange_s) as patience:
                await self._exchange(connection, guest, patience)
            if patience.cancelled_caught:
                self.counts["slow"] += 1

    async def _exchange(
        self, connection: trio.SocketStream, guest: Guest, patience: trio.CancelScope
    ) -> None:
        self._look()
        tls = trio.SSLStream(connection, self._context, server_side=True, https_compatible=False)
        await tls.do_handshake()
        outcome, reply = await self._hear(tls, guest, patience)
        self.counts[outcome] += 1
        if reply is None:
            if outcome != join_protocol.THROTTLED:
                self._attempts.spend(guest.group, trio.current_time())
            reply = join_protocol.pack_refusal(outcome)
        await send_message(tls, reply)
        await tls.aclose()

    async def _wait_for_turn(
        self, asked: Request | RenewalRequest, guest: Guest, patience: trio.CancelScope
    ) -> bool:
        """Let a request wait if others from its address were refused; False if too many wait."""
        is_known = self._knows is not None and await self._knows(asked)
        if not guest.let_stay(self._limits.per_address if is_known else self._limits.asking):
            return False
        wait_s = self._attempts.wait_s(guest.group, trio.current_time())
        patience.deadline += wait_s
        await trio.sleep(wait_s)
        return True

    def _look(self) -> None:
        """Go by the files in the folder as they are: certificates may have been renewed."""
        stamp = stamp_of(self._member.folder)
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                member = open_membership(self._member.folder.path)
                self._context = join_server_context(member)
                self._member = member
            except (NodeError, OSError) as error:
                _log.error("the membership in the folder cannot be used: %s", error)

    async def _hear(
        self, tls: trio.SSLStream[trio.SocketStream], guest: Guest, patience: trio.CancelScope
    ) -> tuple[str, bytes | None]:
        """The outcome of a request, and what to answer unless it is a refusal."""
        own = self._member
        if self._admit is None:
            return join_protocol.NO_AUTHORITY, None
        challenge = Challenge(
            nonce=secrets.token_bytes(join_protocol.NONCE_BYTES),
            authority=own.authority.der,
        )
        await send_message(tls, join_protocol.pack(challenge))
        try:
            data = await receive_message(tls, join_protocol.REQUEST_LIMIT)
            asked = join_protocol.unpack_asked(data)
            if isinstance(asked, Renewal):
                renewal = join_protocol.check_renewal(asked, challenge.nonce, own.certificate.der)
                if not await self._wait_for_turn(renewal, guest, patience):
                    return join_protocol.THROTTLED, None
                return "renewed", join_protocol.pack(await self._admit(renewal))
            join_protocol.check_request(asked, challenge.nonce, own.certificate.der)
            check_name(asked.name)
            if not await self._wait_for_turn(asked, guest, patience):
                return join_protocol.THROTTLED, None
            answer = await self._admit(asked)
        except RevokedCertificateError:
            return join_protocol.REVOKED, None
        except JoinError as error:
            return error.cause or join_protocol.BAD_REQUEST, None
        except (SignedDataError, CertificateError, ConfigError):
            return join_protocol.BAD_REQUEST, None
        except (NodeError, ProtocolError) as error:
            _log.error("a join failed here: %s", error)
            return join_protocol.FAILED, None
        return "admitted", join_protocol.pack(answer)


def admit_with(registrar: Registrar, writer: StoreWriter, cluster_info: bytes = b"") -> Admit:
    """Admits whoever has a token; it is used up once it is on the disk, before the answer goes.

    ``cluster_info`` go with every answer; see `gossamer.node.peer.cluster_info`.
    """

    async def admit(request: Request | RenewalRequest) -> Answer:
        holder = registrar.current()
        revoked = holder.revoked().to_bytes()
        if isinstance(request, RenewalRequest):
            renewed = await writer.run(_renew, holder, request)
            return Answer(certificate=renewed.certificate, revoked=revoked)
        certificate = await writer.run(_redeem, holder, request)
        return Answer(certificate=certificate.der, revoked=revoked, cluster_info=cluster_info)

    return admit


def known_to(registrar: Registrar, writer: StoreWriter) -> Knows:
    """Knows who has a token that is out, and to whom a certificate was issued."""

    async def knows(request: Request | RenewalRequest) -> bool:
        return await writer.read(_is_known, registrar, request, time.time())

    return knows


def _is_known(
    store: Store, registrar: Registrar, request: Request | RenewalRequest, now: float
) -> bool:
    if isinstance(request, RenewalRequest):
        key = read_certificate(request.certificate).key
        return bool(store.admissions.certificates_of_key(key))
    return registrar.expects(store, request.secret, request.public_key, now)


def _redeem(store: Store, registrar: Registrar, request: Request) -> PeerCertificate:
    return registrar.redeem(store, request.secret, request.public_key, request.name, time.time())


def _renew(store: Store, registrar: Registrar, request: RenewalRequest) -> Renewed:
    return renew_peer(registrar, store, request, time.time())


async def serve_joins(server: JoinServer, listeners: Sequence[trio.SocketListener]) -> None:
    """Answer at ``listeners`` until cancelled."""
    await trio.serve_listeners(server.serve, list(listeners))
