"""Joining over the network: the inviter's desk and the joiner's call.

The desk has a port of its own. The peer port never sees anybody without a certificate.
"""

from __future__ import annotations

import logging
import math
import secrets
import ssl
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

import trio
from attrs import field, frozen

from gossamer.node.errors import (
    CertificateError,
    ClusterFolderError,
    JoinFailedError,
    JoinRefusedError,
    JoinRequestError,
    NodeError,
    RenewalError,
    RevokedCertificateError,
    TokenError,
    TokenExpiredError,
    TokenUnknownError,
    TokenUsedError,
)
from gossamer.node.security.addresses import Address
from gossamer.node.security.certificates import (
    Authority,
    PeerCertificate,
    check_name,
    read_certificate,
)
from gossamer.node.security.cluster import (
    ClusterFolder,
    Membership,
    join_client_context,
    join_server_context,
    open_membership,
    save_membership,
    stamp_of,
)
from gossamer.node.security.files import make_folder, write_file
from gossamer.node.security.identity import (
    Identity,
    load_identity,
    make_identity,
    save_identity,
)
from gossamer.node.security.joining import join_protocol
from gossamer.node.security.joining.admission import Registrar
from gossamer.node.security.joining.extending import renew_peer
from gossamer.node.security.joining.join_protocol import Answer, Challenge, Renewal, Request
from gossamer.node.security.joining.tokens import Token, read_token
from gossamer.node.security.renewal import (
    RenewalRequest,
    Renewed,
)
from gossamer.node.security.revocation import RevocationList
from gossamer.node.store import Store
from gossamer.node.store.writer import StoreWriter
from gossamer.node.transport.base.doors import Doors, Guest, address_group, warn_of_crowd
from gossamer.protocol.kernel.errors import ConfigError, ProtocolError

Admit = Callable[[Request | RenewalRequest], Awaitable[Answer]]
Knows = Callable[[Request | RenewalRequest], Awaitable[bool]]

_log = logging.getLogger(__name__)

# Who is not heard, since too many others from its address wait for that, asks again so often, and
# for so long, which is less than an exchange may take.
ASK_AGAIN_S: Final = 0.5
HEARD_AFTER_S: Final = 5.0

_LENGTH_BYTES: Final = 4
BROKEN: Final = (OSError, ssl.SSLError, trio.BrokenResourceError, trio.ClosedResourceError)
_CAUSES: Final = {
    TokenUnknownError: join_protocol.UNKNOWN,
    TokenExpiredError: join_protocol.EXPIRED,
    TokenUsedError: join_protocol.USED,
    RevokedCertificateError: join_protocol.REVOKED,
}


@frozen
class JoinLimits:
    """What the desk puts up with.

    Attributes:
        connections: at a time; the oldest makes room for one more.
        per_address: of those, from one address.
        asking: of those, with a request that waits to be heard; who is known waits beside them.
        exchange_s: seconds for a whole exchange, beside the wait for being heard.
        refusals: refused attempts of an address after which it has to wait.
        refusal_s: seconds after which one of them is forgotten.
        first_wait_s, longest_wait_s: how long the next request of that address waits to be heard:
            twice as long with each more that was refused. Shorter than an exchange, for which the
            other side waits.
        addresses: addresses whose refused attempts are remembered.
    """

    connections: int = field(default=32)
    per_address: int = field(default=16)
    asking: int = field(default=8)
    exchange_s: float = field(default=10.0)
    refusals: int = field(default=10)
    refusal_s: float = field(default=6.0)
    first_wait_s: float = field(default=0.5)
    longest_wait_s: float = field(default=4.0)
    addresses: int = field(default=1024)


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
        """A desk of ``member``; without ``admit`` it refuses everybody, for want of ca.key.

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
        except (TokenError, RevokedCertificateError) as error:
            return _CAUSES[type(error)], None
        except RenewalError as error:
            return error.cause or join_protocol.BAD_REQUEST, None
        except (JoinRequestError, CertificateError, ConfigError):
            return join_protocol.BAD_REQUEST, None
        except (NodeError, ProtocolError) as error:
            _log.error("a join failed here: %s", error)
            return join_protocol.FAILED, None
        return "admitted", join_protocol.pack(answer)


def admit_with(registrar: Registrar, writer: StoreWriter, notes: bytes = b"") -> Admit:
    """Admits whoever has a token; it is used up once it is on the disk, before the answer goes.

    ``notes`` go with every answer; see `gossamer.node.peer.cluster_info`.
    """

    async def admit(request: Request | RenewalRequest) -> Answer:
        holder = registrar.current()
        revoked = holder.revoked().to_bytes()
        if isinstance(request, RenewalRequest):
            renewed = await writer.run(_renew, holder, request)
            return Answer(certificate=renewed.certificate, revoked=revoked)
        certificate = await writer.run(_redeem, holder, request)
        return Answer(certificate=certificate.der, revoked=revoked, notes=notes)

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


async def serve_joins(desk: JoinServer, listeners: Sequence[trio.SocketListener]) -> None:
    """Answer at ``listeners`` until cancelled."""
    await trio.serve_listeners(desk.serve, list(listeners))


async def join(text: str, path: Path, name: str, limits: JoinLimits | None = None) -> Membership:
    """Become a member by the token ``text``, as ``name``, and keep the membership in ``path``.

    After a failure the folder holds a key and nothing else; trying again goes on with that key,
    and gets the certificate that may have been issued for it already.

    Raises:
        TokenTextError: the text is no token; nobody was asked.
        TokenError: the inviter does not accept it.
        JoinRefusedError: the inviter has another reason to refuse.
        JoinFailedError: the inviter was not found at any of the token's addresses.
        JoinRequestError: the inviter does not keep to the exchange.
        RevocationListError: the inviter sent a list that the authority did not sign.
        ClusterFolderError: the folder is a membership already, or cannot be written to.
        ConfigError: the name is none.
    """
    token = read_token(text)
    check_name(name)
    folder = ClusterFolder(path)
    if folder.peer_certificate.exists():
        raise ClusterFolderError(path, "is a membership already, expected a new folder")
    make_folder(path)
    identity = _own_identity(folder)
    attempts = []
    for host, port in token.addresses:
        try:
            with trio.fail_after((limits or JoinLimits()).exchange_s):
                found = await _ask_until_heard(token, (host, port), identity, name)
        except (*BROKEN, CertificateError, trio.TooSlowError) as error:
            attempts.append(f"{address_text(host, port)}: {why(error)}")
        else:
            if notes := found[3]:
                write_file(folder.notes, notes)
            save_membership(folder, *found[:3])
            return open_membership(path)
    raise JoinFailedError(tuple(attempts))


async def send_message(stream: trio.abc.SendStream, message: bytes) -> None:
    """Send one message, its length before it."""
    await stream.send_all(len(message).to_bytes(_LENGTH_BYTES, "big") + message)


async def receive_message(stream: trio.abc.ReceiveStream, limit: int) -> bytes:
    """The next message, of at most ``limit`` bytes.

    Raises:
        JoinRequestError: it is longer.
        trio.BrokenResourceError: the stream ends before the message does.
    """
    length = int.from_bytes(await _receive_exactly(stream, _LENGTH_BYTES), "big")
    if length > limit:
        raise JoinRequestError(f"a join message has {length} bytes, expected at most {limit}")
    return await _receive_exactly(stream, length)


async def _receive_exactly(stream: trio.abc.ReceiveStream, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        piece = await stream.receive_some(count - len(data))
        if not piece:
            raise trio.BrokenResourceError("the connection was closed")
        data += piece
    return bytes(data)


async def _ask_until_heard(
    token: Token, address: Address, identity: Identity, name: str
) -> tuple[Authority, PeerCertificate, RevocationList, bytes]:
    """As `_ask`, again and again for a while if too many others from this address ask as well."""
    give_up_at = trio.current_time() + HEARD_AFTER_S
    while True:
        try:
            return await _ask(token, address, identity, name)
        except JoinRefusedError as error:
            if error.cause != join_protocol.THROTTLED or trio.current_time() >= give_up_at:
                raise
        await trio.sleep(ASK_AGAIN_S)


async def _ask(
    token: Token, address: Address, identity: Identity, name: str
) -> tuple[Authority, PeerCertificate, RevocationList, bytes]:
    """The joiner's side of one exchange with the inviter at ``address``."""
    async with await trio.open_tcp_stream(*address) as connection:
        tls = trio.SSLStream(connection, join_client_context(), https_compatible=False)
        await tls.do_handshake()
        shown = tls.getpeercert(binary_form=True)
        data = await receive_message(tls, join_protocol.CHALLENGE_LIMIT)
        challenge = join_protocol.unpack(Challenge, data)
        inviter = join_protocol.recognise(token, challenge, shown, time.time())
        request = join_protocol.make_request(token, identity, name, challenge, shown)
        await send_message(tls, join_protocol.pack(request))
        data = await receive_message(tls, join_protocol.ANSWER_LIMIT)
        answer = join_protocol.unpack(Answer, data)
        certificate, revoked = join_protocol.read_answer(answer, inviter, identity, time.time())
        await tls.aclose()
        return inviter.authority, certificate, revoked, answer.notes


def _own_identity(folder: ClusterFolder) -> Identity:
    """The key that an earlier attempt left, or a new one."""
    if folder.peer_key.exists():
        return load_identity(folder.peer_key)
    identity = make_identity()
    save_identity(identity, folder.peer_key)
    return identity


def address_text(host: str, port: int) -> str:
    """An address for people."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def why(error: BaseException) -> str:
    """What went wrong at one address, in words."""
    if isinstance(error, trio.TooSlowError):
        return "no answer in time"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or "the connection was closed"
