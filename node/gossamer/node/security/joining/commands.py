"""What `gossamer node init`, `invite`, `join` and `revoke` do; each returns what to print."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import trio

from gossamer.node.errors import ClusterFolderError
from gossamer.node.security.cluster import (
    ClusterFolder,
    make_cluster,
    open_membership,
    save_membership,
)
from gossamer.node.security.identity import (
    Address,
    key_text,
    make_folder,
    make_identity,
    save_identity,
)
from gossamer.node.security.joining.admission import (
    TOKEN_LIFETIME_S,
    open_registrar,
    record_certificate,
)
from gossamer.node.security.joining.client import join as join_cluster
from gossamer.node.store import Store


def init_cluster(folder: Path, name: str, peer_name: str) -> str:
    """Make the cluster ``name`` and its first peer in ``folder``.

    Raises:
        ConfigError: a name is none.
        ClusterFolderError: the folder holds a cluster already, or cannot be written to.
    """
    now = time.time()
    member = make_cluster(folder, name, peer_name, now)
    with Store(member.folder.state) as store:
        store.bind(member.identity.key, now)
        record_certificate(store, member.certificate)
    return (
        f"cluster {name!r} ({member.authority.cluster}) made in {folder}\n"
        f"this peer is {peer_name!r} ({key_text(member.identity.key)})\n"
        f"keep a copy of {member.folder.authority_key} offline: whoever has it decides who belongs"
    )


def invite(
    folder: Path, addresses: tuple[Address, ...], lifetime_s: float = TOKEN_LIFETIME_S
) -> str:
    """A new join token, naming ``addresses`` as those where this peer takes join requests.

    Raises:
        ClusterFolderError: the folder holds no membership with the authority's key.
        ConfigError: an address or the lifetime is impossible.
        StoreError: the state file cannot be used.
    """
    registrar = open_registrar(open_membership(folder))
    with Store(registrar.member.folder.state) as store:
        return registrar.invite(store, addresses, time.time(), lifetime_s).to_text()


def join(token: str, folder: Path, name: str) -> str:
    """Become a member by ``token`` and keep the membership in ``folder``.

    Raises:
        NodeError: as of `gossamer.node.security.joining.client.join`.
        ConfigError: the name is none.
    """
    member = trio.run(join_cluster, token, folder, name)
    with Store(ClusterFolder(folder).state) as store:
        store.bind(member.identity.key, time.time())
    return (
        f"joined cluster {member.authority.name!r} ({member.authority.cluster}) in {folder}\n"
        f"this peer is {name!r} ({key_text(member.identity.key)})"
    )


def revoke(folder: Path, who: str, *, unrecorded: bool = False) -> str:
    """Let the peer ``who``, a name or a key, belong no more; see `Registrar.revoke`.

    Raises:
        ClusterFolderError: the folder lacks the authority's key, or no single peer is meant.
        StoreError: the state file cannot be used.
    """
    registrar = open_registrar(open_membership(folder))
    with Store(registrar.member.folder.state) as store:
        entry = registrar.revoke(store, who, time.time(), unrecorded=unrecorded)
    said = (
        f"peer {key_text(entry.key)} is revoked; running peers learn of it from this one,"
        " as soon as its node runs"
    )
    if not entry.serials:
        said += "\nno certificate of it is on record here: make sure that this is its key"
    return said


def admit_here(folder: Path, peers: Sequence[tuple[Path, str]]) -> None:
    """Make folders of further peers of this machine, without any network.

    Args:
        folder: of the peer that holds the authority.
        peers: folder and name of each.

    Raises:
        ClusterFolderError: the folder lacks the authority's key, or a new one is in use.
        StoreError: a state file cannot be used.
    """
    registrar = open_registrar(open_membership(folder))
    now = time.time()
    with Store(registrar.member.folder.state) as store:
        for path, name in peers:
            new = ClusterFolder(path)
            make_folder(path)
            if new.peer_key.exists():
                raise ClusterFolderError(path, "is a peer's folder already, expected a new one")
            identity = make_identity()
            save_identity(identity, new.peer_key)
            token = registrar.invite(store, (("127.0.0.1", 1),), now)
            certificate = registrar.redeem(store, token.secret, identity.public_key, name, now)
            save_membership(new, registrar.member.authority, certificate, registrar.revoked())
            with Store(new.state) as state:
                state.bind(identity.key, now)
