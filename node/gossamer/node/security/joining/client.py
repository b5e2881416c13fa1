"""Joining over the network: what the one who joins does, late renewals among it."""

from __future__ import annotations

import ssl
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import trio
from attrs import field, frozen

from gossamer.node.errors import CertificateError, ClusterFolderError, JoinError, SignedDataError
from gossamer.node.security.certificates import (
    Authority,
    PeerCertificate,
    check_name,
    read_certificate,
    verify_peer,
)
from gossamer.node.security.cluster import (
    ClusterFolder,
    Membership,
    join_client_context,
    open_membership,
    save_membership,
)
from gossamer.node.security.identity import (
    Address,
    Identity,
    load_identity,
    make_folder,
    make_identity,
    save_identity,
    write_file,
)
from gossamer.node.security.joining import join_protocol
from gossamer.node.security.joining.join_protocol import Answer, Challenge, Token, read_token
from gossamer.node.security.renewal import Renewed, accept, ask, newer_authority
from gossamer.node.security.revocation import RevocationList

# Messages of a join on a byte stream, the bounds on them, and the words for what breaks.


_LENGTH_BYTES: Final = 4
BROKEN: Final = (OSError, ssl.SSLError, trio.BrokenResourceError, trio.ClosedResourceError)


@frozen
class JoinLimits:
    """What the join server puts up with.

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


async def send_message(stream: trio.abc.SendStream, message: bytes) -> None:
    """Send one message, its length before it."""
    await stream.send_all(len(message).to_bytes(_LENGTH_BYTES, "big") + message)


async def receive_message(stream: trio.abc.ReceiveStream, limit: int) -> bytes:
    """The next message, of at most ``limit`` bytes.

    Raises:
        SignedDataError: it is longer.
        trio.BrokenResourceError: the stream ends before the message does.
    """
    length = int.from_bytes(await _receive_exactly(stream, _LENGTH_BYTES), "big")
    if length > limit:
        raise SignedDataError(f"a join message has {length} bytes, expected at most {limit}")
    return await _receive_exactly(stream, length)


async def _receive_exactly(stream: trio.abc.ReceiveStream, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        piece = await stream.receive_some(count - len(data))
        if not piece:
            raise trio.BrokenResourceError("the connection was closed")
        data += piece
    return bytes(data)


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


# Who is not heard, since too many others from its address wait for that, asks again so often, and
# for so long, which is less than an exchange may take.
ASK_AGAIN_S: Final = 0.5
HEARD_AFTER_S: Final = 5.0


async def join(text: str, path: Path, name: str, limits: JoinLimits | None = None) -> Membership:
    """Become a member by the token ``text``, as ``name``, and keep the membership in ``path``.

    After a failure the folder holds a key and nothing else; trying again goes on with that key,
    and gets the certificate that may have been issued for it already.

    Raises:
        JoinError: the text is no token, and nobody was asked; the inviter refuses; or it was not
            found at any of the token's addresses.
        SignedDataError: the inviter does not keep to the exchange, or sent a list that the
            authority did not sign.
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
            if cluster_info := found[3]:
                write_file(folder.cluster_info, cluster_info)
            save_membership(folder, *found[:3])
            return open_membership(path)
    raise _unreached(attempts)


def _unreached(attempts: Sequence[str]) -> JoinError:
    words = f"the inviter was not reached ({'; '.join(attempts)})"
    return JoinError(words, attempts=tuple(attempts))


async def _ask_until_heard(
    token: Token, address: Address, identity: Identity, name: str
) -> tuple[Authority, PeerCertificate, RevocationList, bytes]:
    """As `_ask`, again and again for a while if too many others from this address ask as well."""
    give_up_at = trio.current_time() + HEARD_AFTER_S
    while True:
        try:
            return await _ask(token, address, identity, name)
        except JoinError as error:
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
        return inviter.authority, certificate, revoked, answer.cluster_info


def _own_identity(folder: ClusterFolder) -> Identity:
    """The key that an earlier attempt left, or a new one."""
    if folder.peer_key.exists():
        return load_identity(folder.peer_key)
    identity = make_identity()
    save_identity(identity, folder.peer_key)
    return identity


# Asking for a new certificate at a join server, as one does whose certificate has expired.


async def renew_at(
    member: Membership, addresses: Sequence[Address], limits: JoinLimits | None = None
) -> Membership:
    """``member`` with a new certificate from a join server at ``addresses``; nothing is written.

    Raises:
        JoinError: the holder of the authority's key does not renew it, no holder of this cluster
            was found at any of them, or what was answered is no newer certificate.
        CertificateError: what was answered is of no use.
    """
    attempts = []
    for host, port in addresses:
        try:
            with trio.fail_after((limits or JoinLimits()).exchange_s):
                renewed = await _ask_anew(member, (host, port))
        except (*BROKEN, CertificateError, SignedDataError, trio.TooSlowError) as error:
            attempts.append(f"{address_text(host, port)}: {why(error)}")
        else:
            return accept(member, renewed, time.time())
    raise _unreached(attempts)


async def _ask_anew(member: Membership, address: Address) -> Renewed:
    """The member's side of one exchange with the holder at ``address``."""
    async with await trio.open_tcp_stream(*address) as connection:
        tls = trio.SSLStream(connection, join_client_context(), https_compatible=False)
        await tls.do_handshake()
        shown = tls.getpeercert(binary_form=True)
        data = await receive_message(tls, join_protocol.CHALLENGE_LIMIT)
        challenge = join_protocol.unpack(Challenge, data)
        authority = newer_authority(member.authority, challenge.authority)
        holder = read_certificate(shown).key
        verify_peer(authority, shown, holder, member.revoked, time.time())
        request = ask(member.identity, member.certificate)
        renewal = join_protocol.make_renewal(member.identity, request, challenge, shown)
        await send_message(tls, join_protocol.pack(renewal))
        data = await receive_message(tls, join_protocol.ANSWER_LIMIT)
        answer = join_protocol.unpack(Answer, data)
        await tls.aclose()
        return Renewed(answer.certificate, authority.der)
