"""Joining over the network: what the one who joins does."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

import trio

from gossamer.node.errors import (
    CertificateError,
    ClusterFolderError,
    JoinFailedError,
    JoinRefusedError,
)
from gossamer.node.security.addresses import Address
from gossamer.node.security.certificates import (
    Authority,
    PeerCertificate,
    check_name,
)
from gossamer.node.security.cluster import (
    ClusterFolder,
    Membership,
    join_client_context,
    open_membership,
    save_membership,
)
from gossamer.node.security.files import make_folder, write_file
from gossamer.node.security.identity import (
    Identity,
    load_identity,
    make_identity,
    save_identity,
)
from gossamer.node.security.joining import join_protocol
from gossamer.node.security.joining.join_protocol import Answer, Challenge
from gossamer.node.security.joining.messages import (
    BROKEN,
    JoinLimits,
    address_text,
    receive_message,
    send_message,
    why,
)
from gossamer.node.security.joining.tokens import Token, read_token
from gossamer.node.security.revocation import RevocationList

# Who is not heard, since too many others from its address wait for that, asks again so often, and
# for so long, which is less than an exchange may take.
ASK_AGAIN_S: Final = 0.5
HEARD_AFTER_S: Final = 5.0


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
            if cluster_info := found[3]:
                write_file(folder.cluster_info, cluster_info)
            save_membership(folder, *found[:3])
            return open_membership(path)
    raise JoinFailedError(tuple(attempts))


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
        return inviter.authority, certificate, revoked, answer.cluster_info


def _own_identity(folder: ClusterFolder) -> Identity:
    """The key that an earlier attempt left, or a new one."""
    if folder.peer_key.exists():
        return load_identity(folder.peer_key)
    identity = make_identity()
    save_identity(identity, folder.peer_key)
    return identity
