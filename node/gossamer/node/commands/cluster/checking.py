"""`gossamer node check` and `gossamer node doctor`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

import trio
from rich.console import Console

from gossamer.node.commands.folder import load
from gossamer.node.config.broker import BROKER
from gossamer.node.config.checks import DEFAULT_PORT, parse_address
from gossamer.node.config.families import family_named
from gossamer.node.config.file import config_table
from gossamer.node.config.node import NodeConfig
from gossamer.node.doctor.clock import Signs, signs_of_files
from gossamer.node.doctor.findings import all_well, findings_json, findings_table
from gossamer.node.doctor.local import Here, diagnose_here
from gossamer.node.doctor.remote import Greeting, Probes, diagnose
from gossamer.node.errors import (
    CertificateError,
    ConfigurationError,
    PeerRefused,
    StoreError,
    StoreVersionError,
)
from gossamer.node.local.address import is_locked, local_address
from gossamer.node.local.history import FILE_NAME as HISTORY
from gossamer.node.peer.cluster_info import cluster_schema, schema_fingerprint
from gossamer.node.peer.persistence import LAST_GAP, read_gap
from gossamer.node.security.certificates import (
    PeerCertificate,
    check_time,
    read_certificate,
    verify_issued,
)
from gossamer.node.security.cluster import (
    ClusterFolder,
    Membership,
    open_membership,
    timeless_context,
)
from gossamer.node.store.database import read_meta, read_version
from gossamer.node.store.schema import MIGRATIONS
from gossamer.node.transport.base.base import Address, Hello, LocalPeer, PeerIdentity
from gossamer.node.transport.base.limits import Limits
from gossamer.node.transport.handshake import PROTOCOL_VERSION, introduce
from gossamer.node.transport.streams.non_blocking import TcpStream
from gossamer.node.transport.streams.tls import TlsStream

_DAY_S: Final = 86_400.0


def check(folder: Path | None, changes: Iterable[str] | None) -> None:
    """Check configuration, schema and membership without starting anything; print what holds.

    Raises:
        NodeError: something would keep the node from starting.
    """
    loaded = load(folder, changes)
    config = loaded.config
    console = Console()
    console.print(config_table(loaded, Limits))
    schema = cluster_schema(config)
    names = ", ".join(f"{one.name} ({one.type_name})" for one in schema)
    said = [f"schema {schema_fingerprint(schema)}: {names}"]
    if not config.listen.plain_text:
        member = open_membership(config.identity.folder)
        days = (member.certificate.not_after - time.time()) / _DAY_S
        said.append(
            f"peer {member.certificate.name!r} of cluster {member.authority.name!r}, "
            f"certified for {days:.0f} more days"
        )
        state = member.folder.state
        if state.exists():
            _check_state(state)
    said.append(f"clients at {local_address(config.identity.folder, config.local)}")
    for line in said:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def doctor(folder: Path | None, peers: Sequence[str], *, as_json: bool) -> bool:
    """Find out why peers cannot be reached, and tell; return whether all is well.

    Raises:
        NodeError: there is no membership to look with.
    """
    config = load(folder).config
    member = open_membership(config.identity.folder)
    schema = schema_fingerprint(cluster_schema(config))
    if config.node.role == BROKER:
        schema = family_named(config.broker.overlay).schema
    asked = [_parse(text) for text in peers]
    sections = [("this machine", trio.run(diagnose_here, _here(config, member)))]
    for text, (host, port) in zip(peers, asked, strict=True):
        sections.append((text, trio.run(diagnose, host, port, probes(member, schema))))
    findings = [finding for _, found in sections for finding in found]
    if as_json:
        print(findings_json(findings))
        return all_well(findings)
    for title, found in sections:
        Console().print(findings_table(found, title))
    return all_well(findings)


def probes(member: Membership, schema: str) -> Probes:
    """How the doctor speaks to peers: as this one."""
    context = timeless_context(member)
    me = LocalPeer(
        key=member.identity.key,
        cluster=member.authority.cluster,
        software="gossamer doctor",
        fingerprint=member.certificate.fingerprint,
        schema=schema,
    )

    async def secure(stream: trio.SocketStream) -> trio.abc.Stream:
        tls = TlsStream(TcpStream(stream), context, server_side=False)
        await tls.do_handshake()
        return tls

    def identify(certificate: bytes | None, hello: Hello) -> PeerIdentity:
        try:
            found = verify_issued(member.authority, certificate or b"", hello.key, member.revoked)
        except CertificateError as error:
            raise PeerRefused(str(error)) from error
        return PeerIdentity(found.key, found.fingerprint, found.name)

    async def greet(stream: trio.abc.Stream) -> Greeting:
        assert isinstance(stream, TlsStream)
        certificate = stream.peer_certificate()
        admitted = await introduce(
            stream,
            me,
            Limits(),
            identify,
            certificate=certificate,
            dialled=True,
            remote=Address("", 0),
        )
        return Greeting(
            cluster=admitted.hello.cluster,
            key=admitted.hello.key,
            version=admitted.hello.version,
            ours_timely=_is_timely(member.certificate),
            theirs_timely=_is_timely(read_certificate(certificate or b"")),
        )

    return Probes(
        tls=secure, hello=greet, cluster=member.authority.cluster, version=PROTOCOL_VERSION
    )


def _check_state(path: Path) -> None:
    """Refuse a state file with which the node would not start; nothing is changed."""
    version = read_version(path)
    if version > len(MIGRATIONS):
        raise StoreVersionError(path, version, len(MIGRATIONS))


def _is_timely(certificate: PeerCertificate) -> bool:
    try:
        check_time(certificate, time.time())
    except CertificateError:
        return False
    return True


def _signs(folder: ClusterFolder) -> Signs:
    """When the peer is known to have run, by its files and by what it notes in its state."""
    paths = (folder.state, folder.path / HISTORY, folder.revoked, folder.cluster_info)
    seen = signs_of_files([*paths, folder.state.with_name(f"{folder.state.name}-wal")])
    gap = None
    if folder.state.exists():
        gap = _gap(folder.state)
    return Signs(seen, gap)


def _gap(state: Path) -> tuple[datetime, datetime] | None:
    """The last time in which the peer did not run, or its clock was set, by its state file."""
    try:
        found = read_meta(state, LAST_GAP)
        return None if found is None else read_gap(found)
    except (StoreError, ValueError, OverflowError):
        return None  # another check says what is wrong with the file


def _here(config: NodeConfig, member: Membership) -> Here:
    folder: ClusterFolder = member.folder
    return Here(
        key=folder.peer_key,
        certificate=folder.peer_certificate,
        revoked=member.is_revoked,
        signs=_signs(folder),
        state=folder.state,
        state_version=read_version,
        newest_version=len(MIGRATIONS),
        listen=None if is_locked(folder.path) else config.listen.endpoints,
        interface=config.listen.interface,
        multicast=config.discovery.multicast,
    )


def _parse(text: str) -> tuple[str, int]:
    try:
        return parse_address(text, DEFAULT_PORT)
    except ValueError:
        expected = "an address such as 192.168.1.7:7710"
        raise ConfigurationError("", "the peer to look at", text, expected) from None
