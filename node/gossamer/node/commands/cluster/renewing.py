"""`gossamer node renew`: a new certificate for a peer, also after the old one has expired."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import trio

from gossamer.client.errors import unwrapped
from gossamer.node.commands.folder import host_and_port
from gossamer.node.config.checks import DEFAULT_JOIN_PORT
from gossamer.node.config.file import load
from gossamer.node.errors import ClusterFolderError, ConfigurationError, JoinError
from gossamer.node.peer.cluster_info import read_cluster_info
from gossamer.node.security.certificates import date_text
from gossamer.node.security.cluster import Membership, open_membership, save_renewed
from gossamer.node.security.identity import Address
from gossamer.node.security.joining.admission import (
    open_registrar,
    renew_here,
    renew_peer,
    request_of,
)
from gossamer.node.security.joining.client import renew_at
from gossamer.node.security.renewal import TEXT_LIMIT, RenewalRequest, Renewed, accept
from gossamer.node.store import Store

STDIN: Final = "-"


def renew(
    folder: Path | None, at: Sequence[str], *, request: bool, grant: str | None, take: str | None
) -> str:
    """Renew the certificate of the peer in ``folder``, or do a step of that; what to print.

    Args:
        folder: of the peer.
        at: where the holder of the authority's key takes join requests.
        request: print a request for the holder, and nothing else.
        grant: file of a request to answer, where the authority's key is.
        take: file of an answer.

    Raises:
        SecurityError: it is not renewed, and why.
        ConfigurationError: a file or an address is none.
        StoreError: the state file cannot be used.
    """
    if sum(map(bool, (at, request, grant, take))) > 1:
        expected = "one of --at, --request, --grant and --take"
        raise ConfigurationError("", "the options", "several", expected, "several ways at once")
    config = load(folder).config
    member = open_membership(config.identity.folder)
    if request:
        return request_of(member, config.identity.name).to_text().rstrip("\n")
    if grant is not None:
        return _grant(member, grant)
    if take is not None:
        return _keep(member, accept(member, Renewed.from_text(_read(take)), time.time()))
    if member.folder.authority_key.exists():
        return _renew_here(member)
    return _renew_at(
        member,
        [_at(text) for text in at] or _known(member),
    )


def _grant(member: Membership, source: str) -> str:
    request = RenewalRequest.from_text(_read(source))
    registrar = open_registrar(member)
    with Store(member.folder.state) as store:
        return renew_peer(registrar, store, request, time.time()).to_text().rstrip("\n")


def _renew_here(member: Membership) -> str:
    with Store(member.folder.state) as store:
        found = renew_here(open_registrar(member), store, time.time(), force=True)
    return f"{_said(found)}\n{_authority_said(found)}"


def _renew_at(member: Membership, addresses: Sequence[Address]) -> str:
    if not addresses:
        raise JoinError(
            "nobody is known who could renew the certificate: name the address at which the peer"
            " that made the cluster takes join requests (--at HOST:PORT), or carry a file there and"
            " back (--request here, --grant there, --take here)"
        )
    with unwrapped():
        return _keep(member, trio.run(renew_at, member, addresses))


def _keep(member: Membership, found: Membership) -> str:
    try:
        save_renewed(found)
    except OSError as error:
        reason = f"cannot be written: {error.strerror}"
        raise ClusterFolderError(member.folder.path, reason) from error
    return _said(found)


def _said(member: Membership) -> str:
    until = date_text(member.certificate.not_after)
    return f"the certificate of peer {member.certificate.name!r} is valid until {until}"


def _authority_said(member: Membership) -> str:
    until = date_text(member.authority.not_after)
    return (
        f"the certificate of the authority is valid until {until}; running peers learn it from this"
        " one, as soon as its node runs"
    )


def _at(text: str) -> Address:
    return host_and_port(text, "--at", DEFAULT_JOIN_PORT)


def _known(member: Membership) -> list[Address]:
    """Where the peer that admitted this one took join requests."""
    try:
        return [
            host_and_port(text, "--at", DEFAULT_JOIN_PORT)
            for text in read_cluster_info(member.folder).join_addresses
        ]
    except ClusterFolderError:
        return []


def _read(source: str) -> str:
    try:
        if source == STDIN:
            return sys.stdin.read(TEXT_LIMIT + 1)
        with open(source, encoding="ascii") as file:
            return file.read(TEXT_LIMIT + 1)
    except OSError as error:
        found = f"unreadable ({error.strerror or error})"
        raise ConfigurationError("", "the file", source, "a text file, or -", found) from None
    except UnicodeDecodeError:
        raise JoinError(f"{source} holds neither a request nor an answer") from None
