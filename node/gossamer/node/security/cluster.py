"""A cluster, as a folder on each of its peers' machines.

    peer.key      this peer's key pair, PEM (PKCS #8), mode 600; never leaves the machine
    events.key    the key that it signs its events by (`gossamer.node.security.event_keys`)
    peer.pem      this peer's certificate; its presence makes the folder a membership
    peer.old.pem  the one before it was renewed, for clocks that turn out to have been ahead
    ca.pem        the certificate of the cluster's authority
    ca.key        the authority's key pair, mode 600; only where the cluster was made
    revoked.json  who belongs no more, signed by the authority
    revoked.proof only of a peer that was revoked itself: the authority's word of it
    cluster.json  what all members know of the cluster (`gossamer.node.peer.cluster_info`)
    schema.json   the version of the schema in force, signed by the authority, if not the first
    state.db      what the peer remembers (`gossamer.node.store`)

Who holds `ca.key` decides who belongs. Keep a copy of it offline: without it nobody can be invited
or revoked, with it anybody can.
"""

from __future__ import annotations

import secrets
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Final

from attrs import evolve, frozen

from gossamer.node.errors import CertificateError, ClusterFolderError
from gossamer.node.security.certificates import (
    CERTIFICATE_LIMIT,
    Authority,
    PeerCertificate,
    check_name,
    check_time,
    der_of_pem,
    issue_certificate,
    make_authority,
    read_authority,
    read_certificate,
)
from gossamer.node.security.identity import (
    SIGNATURE_BYTES,
    Identity,
    file_stamp,
    load_identity,
    make_folder,
    make_identity,
    read_file,
    save_identity,
    write_file,
)
from gossamer.node.security.revocation import RevocationList, load_list, proves, save_list

_PEM_LIMIT: Final = 2 * CERTIFICATE_LIMIT
# OpenSSL's X509_V_FLAG_NO_CHECK_TIME, which the module ssl has no name for.
_NO_CHECK_TIME: Final = 0x200000


@frozen
class ClusterFolder:
    """Where the files of a membership are.

    Attributes:
        path: the folder.
    """

    path: Path

    @property
    def peer_key(self) -> Path:
        """This peer's key pair."""
        return self.path / "peer.key"

    @property
    def event_key(self) -> Path:
        """The key that this peer signs its events by, once it has published."""
        return self.path / "events.key"

    @property
    def peer_certificate(self) -> Path:
        """This peer's certificate."""
        return self.path / "peer.pem"

    @property
    def previous_certificate(self) -> Path:
        """The certificate that this peer had before."""
        return self.path / "peer.old.pem"

    @property
    def authority_certificate(self) -> Path:
        """The authority's certificate."""
        return self.path / "ca.pem"

    @property
    def authority_key(self) -> Path:
        """The authority's key pair."""
        return self.path / "ca.key"

    @property
    def revoked(self) -> Path:
        """The list of those who belong no more."""
        return self.path / "revoked.json"

    @property
    def proof(self) -> Path:
        """The proof that this peer is revoked, where it is."""
        return self.path / "revoked.proof"

    @property
    def cluster_info(self) -> Path:
        """What all members know of the cluster."""
        return self.path / "cluster.json"

    @property
    def schema(self) -> Path:
        """The version of the schema in force, where that is not the first."""
        return self.path / "schema.json"

    @property
    def state(self) -> Path:
        """The state file."""
        return self.path / "state.db"


@frozen
class Membership:
    """What a peer needs to take part in its cluster.

    Attributes:
        folder: where it was read from.
        authority: the cluster's.
        identity: this peer's key pair.
        certificate: this peer's certificate.
        revoked: who belongs no more, as far as this peer knew when it was read.
    """

    folder: ClusterFolder
    authority: Authority
    identity: Identity
    certificate: PeerCertificate
    revoked: RevocationList

    @property
    def is_revoked(self) -> bool:
        """Whether this peer itself belongs no more, by the files in its folder as they are now."""
        key = self.identity.key
        if self.revoked.forbids(key, self.certificate.serial):
            return True
        try:
            proof = read_file(self.folder.proof, SIGNATURE_BYTES)
        except ClusterFolderError:
            return False
        return proves(self.authority, key, proof)


def make_cluster(
    path: Path,
    name: str,
    peer_name: str,
    now: float,
    *,
    new_identity: Callable[[], Identity] = make_identity,
) -> Membership:
    """Make a cluster and its first peer, which holds its authority.

    Args:
        path: the folder, made where missing.
        name: what the cluster is called.
        peer_name: what the first peer is called.
        now: Unix seconds.
        new_identity: makes the key pairs, of the authority and of the peer.

    Raises:
        ConfigError: a name is none; nothing was written.
        ClusterFolderError: the folder holds a membership, or cannot be written to.
    """
    check_name(name)
    check_name(peer_name)
    folder = ClusterFolder(path)
    make_folder(path)
    for file in (folder.authority_key, folder.authority_certificate, folder.peer_key):
        if file.exists():
            raise ClusterFolderError(file, "exists; expected a folder that holds no cluster yet")
    signer = new_identity()
    authority = make_authority(signer, secrets.token_hex(16), name, now)
    save_identity(signer, folder.authority_key)
    identity = new_identity()
    save_identity(identity, folder.peer_key)
    certificate = issue_certificate(authority, signer, identity.public_key, peer_name, now)
    save_membership(folder, authority, certificate, RevocationList(authority.cluster))
    return open_membership(path)


def save_membership(
    folder: ClusterFolder,
    authority: Authority,
    certificate: PeerCertificate,
    revoked: RevocationList,
) -> None:
    """Write what makes the folder, which holds the peer's key, a membership."""
    write_file(folder.authority_certificate, authority.pem)
    save_list(folder.revoked, revoked)
    write_file(folder.peer_certificate, certificate.pem)


def stamp_of(folder: ClusterFolder) -> tuple[tuple[int, ...], ...]:
    """What changes whenever a certificate in ``folder`` is replaced."""
    return tuple(map(file_stamp, (folder.peer_certificate, folder.authority_certificate)))


def save_renewed(member: Membership) -> None:
    """Write a renewed certificate, of the peer or of the authority, in place of the old one.

    Raises:
        OSError: it could not be written; each file is the old one or the new one.
    """
    folder, pem = member.folder, member.certificate.pem
    write_file(folder.authority_certificate, member.authority.pem)
    present = read_file(folder.peer_certificate, _PEM_LIMIT)
    if present != pem:
        write_file(folder.previous_certificate, present)
        write_file(folder.peer_certificate, pem)


def previous_membership(member: Membership, now: float) -> Membership | None:
    """``member`` with the certificate that it had before, where that is valid at ``now``.

    One that was renewed by a clock which was ahead is not valid yet once the clock is right.
    """
    folder = member.folder
    try:
        found = read_certificate(_read_pem(folder.previous_certificate))
        check_time(found, now)
    except (ClusterFolderError, CertificateError):
        return None
    return evolve(member, certificate=found) if found.key == member.identity.key else None


def open_membership(path: Path) -> Membership:
    """Read the membership in the folder ``path``.

    Raises:
        ClusterFolderError: it holds none, its files do not belong together, or the private key
            cannot be used.
        CertificateError: a certificate is none of this software's.
    """
    folder = ClusterFolder(path)
    if not folder.peer_certificate.exists():
        reason = "holds no membership; run 'gossamer node init' or 'gossamer node join TOKEN' first"
        raise ClusterFolderError(path, reason)
    identity = load_identity(folder.peer_key)
    authority = read_authority(_read_pem(folder.authority_certificate))
    certificate = read_certificate(_read_pem(folder.peer_certificate))
    if certificate.public_key != identity.public_key:
        raise ClusterFolderError(
            folder.peer_certificate, f"is for another key than {folder.peer_key.name}"
        )
    return Membership(
        folder, authority, identity, certificate, load_list(folder.revoked, authority)
    )


def load_signer(folder: ClusterFolder, authority: Authority) -> Identity:
    """The authority's key pair, where this peer holds it.

    Raises:
        ClusterFolderError: it does not, as only the peer that made the cluster does; or it cannot
            be used.
    """
    if not folder.authority_key.exists():
        raise ClusterFolderError(
            folder.path,
            f"holds no {folder.authority_key.name}; do this where cluster {authority.name!r}"
            " was made",
        )
    signer = load_identity(folder.authority_key)
    if signer.public_key != authority.public_key:
        raise ClusterFolderError(
            folder.authority_key, f"does not fit {folder.authority_certificate.name}"
        )
    return signer


def server_context(member: Membership) -> ssl.SSLContext:
    """TLS for accepting peers: both sides show certificates of the cluster."""
    context = _mutual(ssl.PROTOCOL_TLS_SERVER, member)
    # A resumed session would skip the certificate, and with it a revocation.
    context.num_tickets = 0
    return context


def client_context(member: Membership) -> ssl.SSLContext:
    """TLS for connecting to peers: both sides show certificates of the cluster."""
    return _mutual(ssl.PROTOCOL_TLS_CLIENT, member)


def timeless_context(member: Membership) -> ssl.SSLContext:
    """As `client_context`, but whenever certificates are valid: to find out whose clock is wrong.

    Nothing is to be believed of a peer met by it.
    """
    context = client_context(member)
    context.verify_flags |= ssl.VerifyFlags(_NO_CHECK_TIME)
    return context


def join_server_context(member: Membership) -> ssl.SSLContext:
    """TLS for those who want to join: they have no certificate yet, and see this peer's."""
    context = _tls_1_3(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(member.folder.peer_certificate, member.folder.peer_key, _no_password)
    context.num_tickets = 0
    return context


def join_client_context() -> ssl.SSLContext:
    """TLS for joining: trusts nobody, because the joining side verifies the inviter itself."""
    context = _tls_1_3(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _mutual(protocol: int, member: Membership) -> ssl.SSLContext:
    context = _tls_1_3(protocol)
    # Certificates name no hosts: a peer is known by its key, whichever address it has today. The
    # transport compares that key with the peer's hello (`verify_peer`).
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    context.load_verify_locations(cadata=member.authority.der)
    context.load_cert_chain(member.folder.peer_certificate, member.folder.peer_key, _no_password)
    return context


def _tls_1_3(protocol: int) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context


def _no_password() -> bytes:
    """Keeps a key file that was swapped for an encrypted one from asking at the terminal."""
    return b""


def _read_pem(path: Path) -> bytes:
    return der_of_pem(read_file(path, _PEM_LIMIT), path)
