"""`gossamer node check` and `gossamer node doctor`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

import trio
from rich.console import Console

from gossamer.command.waiting import waiting
from gossamer.node.commands.folder import ask, host_and_port
from gossamer.node.config.broker import BROKER, family_named
from gossamer.node.config.checks import (
    DEFAULT_JOIN_PORT,
    DEFAULT_PAGE_PORT,
    DEFAULT_PORT,
)
from gossamer.node.config.file import config_table, load
from gossamer.node.config.node import NodeConfig
from gossamer.node.doctor.failures import Finding, all_well, findings_json, findings_table
from gossamer.node.doctor.local import Here, Signs, check_machine, diagnose_here, signs_of_files
from gossamer.node.doctor.remote import Greeting, Probes, diagnose
from gossamer.node.errors import (
    CertificateError,
    NodeError,
    PeerRefused,
    StoreError,
)
from gossamer.node.local.address import is_locked, local_address
from gossamer.node.local.client import LocalClient
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
from gossamer.node.store.database import MIGRATIONS, newer_version, read_meta, read_version
from gossamer.node.transport.base import Address, Hello, LocalPeer, PeerIdentity
from gossamer.node.transport.byte_streams import TcpStream, TlsStream
from gossamer.node.transport.handshake import PROTOCOL_VERSION, introduce
from gossamer.node.transport.limits import Limits
from gossamer.protocol.kernel.errors import ProtocolError

_DAY_S: Final = 86_400.0
# Peers that are tried, and nodes that are looked at, where none is named.
MOST_TRIED: Final = 8

Sections = list[tuple[str, list[Finding]]]


def check(folder: Path | None, changes: Iterable[str] | None) -> None:
    """Check configuration, schema and membership without starting anything; print what holds.

    Raises:
        NodeError, ConfigError: something would keep the node from starting.
    """
    loaded = load(folder, changes)
    config = loaded.config
    console = Console()
    console.print(config_table(loaded, Limits))
    schema = cluster_schema(config)
    names = ", ".join(f"{one.name} ({one.type_name})" for one in schema)
    if config.node.role != BROKER:
        config.settings(schema)
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

    Without a folder, and in one without a membership, it looks at the machine and at the nodes in
    the folders below. Without addresses it asks the node that runs, or tries those that its
    configuration names.

    Raises:
        NodeError: there is no membership to look with in the folder that was named, or none to
            reach others with.
    """
    expected = "an address such as 192.168.1.7:7710 (this peer's own folder goes after --folder)"
    what = "the peer to look at"
    asked = [host_and_port(text, what, DEFAULT_PORT, expected) for text in peers]
    with waiting("examining"):
        if folder is None and not peers and not _is_node(load(None).config.identity.folder):
            sections = _around(Path("."))
        else:
            sections = _of_node(folder, asked)
    findings = [finding for _, found in sections for finding in found]
    if as_json:
        print(findings_json(findings))
        return all_well(findings)
    for title, found in sections:
        Console().print(findings_table(found, title))
    return all_well(findings)


def _of_node(folder: Path | None, asked: Sequence[tuple[str, int]]) -> Sections:
    """The node in a folder, and those peers that it should reach."""
    config = load(folder).config
    member = open_membership(config.identity.folder)
    schema = schema_fingerprint(cluster_schema(config))
    if config.node.role == BROKER:
        schema = family_named(config.broker.overlay).schema
    sections: Sections = [("this machine", trio.run(diagnose_here, _here(config, member)))]
    if not asked and is_locked(config.identity.folder):
        # To reach others as the peer that it is would cost it its connections to them.
        return [*sections, ("the running node", [_ask_node(config)])]
    for host, port in asked or config.discovery.static_peers[:MOST_TRIED]:
        found = trio.run(diagnose, host, port, probes(member, schema))
        sections.append((str(Address(host, port)), found))
    return sections


def _around(here: Path) -> Sections:
    """The machine, and the nodes in the folders below this one."""
    ports = (DEFAULT_PORT, DEFAULT_PAGE_PORT, DEFAULT_JOIN_PORT)
    nodes = sorted(one.parent for depth in ("*", "*/*") for one in here.glob(f"{depth}/peer.pem"))
    running = [one for one in nodes if is_locked(one)]
    # A node that runs may have them, and they are its own findings then.
    sections: Sections = [("this machine", check_machine(here, () if running else ports))]
    for one in nodes[:MOST_TRIED]:
        try:
            config = load(one).config
            found = trio.run(diagnose_here, _here(config, open_membership(config.identity.folder)))
            if one in running:
                found.append(_ask_node(config))
        except (NodeError, ProtocolError) as error:
            found = [Finding("node", False, str(error))]
        sections.append((str(one), found))
    if not nodes:
        advice = (
            "'gossamer node init FOLDER' makes a cluster and its first peer, 'gossamer node join "
            "TOKEN FOLDER' joins one; --folder names a node that is elsewhere."
        )
        sections.append(("nodes", [Finding("nodes", True, "none in the folders here", advice)]))
    return sections


def _is_node(folder: Path) -> bool:
    return ClusterFolder(folder).peer_certificate.exists()


def _ask_node(config: NodeConfig) -> Finding:
    try:
        address = local_address(config.identity.folder, config.local)
        said = ask(address, LocalClient.status)
    except NodeError as error:
        return Finding("node", False, f"it runs and does not answer: {error}")
    what = f"it has run for {said['uptime_s']:.0f} s, with {said['connections']} connections"
    troubles = said["troubles"]
    if troubles:
        return Finding("node", False, f"{what}; {'; '.join(troubles)}")
    return Finding("node", True, what)


def probes(member: Membership, schema: str) -> Probes:
    """How the doctor speaks to peers: as this one."""
    context = timeless_context(member)
    me = LocalPeer(
        key=member.identity.key,
        cluster=member.authority.cluster,
        software="gossamer doctor",
        fingerprint=member.certificate.fingerprint,
        schema=schema,
        process=b"",
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
        raise newer_version(path, version)


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
