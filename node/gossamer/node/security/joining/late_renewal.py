"""Asking for a new certificate at a join server, as one does whose certificate has expired."""

from __future__ import annotations

import time
from collections.abc import Sequence

import trio

from gossamer.node.errors import CertificateError, JoinFailedError, JoinRequestError
from gossamer.node.security.addresses import Address
from gossamer.node.security.certificates import read_certificate, verify_peer
from gossamer.node.security.cluster import Membership, join_client_context
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
from gossamer.node.security.renewal import Renewed, accept, ask, newer_authority


async def renew_at(
    member: Membership, addresses: Sequence[Address], limits: JoinLimits | None = None
) -> Membership:
    """``member`` with a new certificate from a join server at ``addresses``; nothing is written.

    Raises:
        JoinRefusedError: the holder of the authority's key does not renew it.
        JoinFailedError: no holder of this cluster was found at any of them.
        CertificateError, RenewalError: what was answered is of no use.
    """
    attempts = []
    for host, port in addresses:
        try:
            with trio.fail_after((limits or JoinLimits()).exchange_s):
                renewed = await _ask_anew(member, (host, port))
        except (*BROKEN, CertificateError, JoinRequestError, trio.TooSlowError) as error:
            attempts.append(f"{address_text(host, port)}: {why(error)}")
        else:
            return accept(member, renewed, time.time())
    raise JoinFailedError(tuple(attempts))


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
