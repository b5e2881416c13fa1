"""`gossamer node init`, `invite`, `join` and `revoke`."""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import attrs
import trio

from gossamer.node.commands.folder import address_of, host_and_port
from gossamer.node.config.broker import families, family_names
from gossamer.node.config.checks import DEFAULT_JOIN_PORT, DEFAULT_PORT, is_loopback
from gossamer.node.config.file import CONFIG_NAME, load
from gossamer.node.config.node import PRESETS, NodeConfig, Protocol
from gossamer.node.errors import ClusterFolderError, ConfigurationError, NodeNotRunningError
from gossamer.node.peer.cluster_info import (
    DEFAULT_SCHEMA,
    ClusterInfo,
    parse_schema,
    read_cluster_info,
    read_schema_file,
    write_cluster_info,
)
from gossamer.node.security.cluster import ClusterFolder
from gossamer.node.security.identity import ADDRESSES, Address, write_file
from gossamer.node.security.joining import commands as security
from gossamer.node.security.joining.join_protocol import read_token
from gossamer.node.transport.base import Address as HostAndPort
from gossamer.protocol.kernel.errors import ConfigError, choice

# The node.toml that `init` and `join` write: few settings, with comments that name the others.

_TEXT: Final = """\
# This peer's configuration. 'gossamer node check {folder}' shows every setting with its value and
# where it comes from; docs/node.md explains them. Over this file go variables such as
# GOSSAMER_NODE_DELIVERY_RETENTION_S, and over those options such as --set delivery.retention_s=60.

# lan: peers of one local network find each other by multicast
# wan: peers far apart; list some of them in discovery.peers
# local: peers of one machine, loopback only, any free ports
preset = {preset}

[identity]
# What people call this peer, in logs and on the page.
name = {name}

[listen]
# Where other peers reach this one; every address of this machine unless you name some.
{addresses}
# Where those who want to join are answered, by the peer that holds ca.key.
{join_addresses}

[discovery]
# Look for peers by multicast DNS.
{multicast}
# Peers to try first, such as ["192.168.1.7:7710"].
{peers}

[delivery]
# How long events are kept for subscribers that are away, seconds.
# retention_s = 7200

[page]
# The page for browsers, and /metrics for Prometheus; port 0 is any free one.
{page}

[node]
# peer, or broker: see docs/broker-node.md.
# role = "broker"
# Whether a peer takes events by compiled rules: "auto" once it is busy, "always", "never".
# compiled = "auto"

[broker]
# Brokers to connect to; it is enough that one end of a link names the other.
# neighbours = ["192.168.1.7:7710"]
# covering = "incremental"
# The family of brokers, {overlays}: see docs/broker-node.md.
# overlay = "tree"

{families}
[local]
# The socket for applications of this machine: "" is a Unix socket in this folder.
# address = "127.0.0.1:7713"
"""


@attrs.frozen(kw_only=True)
class FirstConfig:
    """What differs from the preset in a new node.toml; None leaves the preset's.

    Attributes:
        preset: lan, wan or local.
        name: of the peer.
        addresses, join_addresses: where to listen.
        multicast: whether to look for peers by multicast.
        peers: to try first.
        page: address of the page.
    """

    preset: str
    name: str
    addresses: Sequence[str] | None = None
    join_addresses: Sequence[str] | None = None
    multicast: bool | None = None
    peers: Sequence[str] | None = None
    page: str | None = None


def write_config(folder: Path, first: FirstConfig) -> None:
    """Write node.toml, unless there is one.

    Raises:
        ClusterFolderError: it cannot be written.
    """
    path = folder / CONFIG_NAME
    if path.exists():
        return
    text = _TEXT.format(
        overlays=", ".join(family_names()),
        families="".join(f"{one.example}\n" for one in families() if one.example),
        folder=folder,
        preset=json.dumps(first.preset),
        name=json.dumps(first.name, ensure_ascii=False),
        addresses=_line("addresses", first.addresses, ["0.0.0.0:7710", "[::]:7710"]),
        join_addresses=_line("join_addresses", first.join_addresses, ["0.0.0.0:7712", "[::]:7712"]),
        multicast=_line("multicast", first.multicast, True),
        peers=_line("peers", first.peers or None, []),
        page=_line("address", first.page, "127.0.0.1:7711"),
    )
    try:
        write_file(path, text.encode())
    except OSError as error:
        raise ClusterFolderError(path, f"cannot be written: {error.strerror}") from error


def _line(name: str, value: object, example: object) -> str:
    """A setting, or what it would look like as a comment; TOML writes these values as JSON does."""
    if value is None:
        return f"# {name} = {json.dumps(example)}"
    return f"{name} = {json.dumps(value)}"


# Ports of this machine for peers that are made here: free ones, or those that were asked for.


# Where free ports are looked for; beside the ports of a peer of the preset lan.
FIRST_PORT: Final = 7720
LAST_PORT: Final = 65_535
# A peer takes three ports in a row: for peers, for the page, and for those who want to join.
PORTS_OF_A_PEER: Final = DEFAULT_JOIN_PORT - DEFAULT_PORT + 1
LOOPBACK: Final = "127.0.0.1"
EVERYWHERE: Final = ("0.0.0.0", "[::]")


def first_config(preset: str, name: str, port: int | None) -> FirstConfig:
    """What a peer's first node.toml says beside its preset.

    Args:
        preset: lan, wan or local.
        name: of the peer.
        port: the first of its ports; None takes those of the preset where they are free.

    Raises:
        ConfigurationError: ``port`` cannot be, or none is free.
    """
    is_local = preset == "local"
    host = LOOPBACK if is_local else EVERYWHERE[0]
    if port is None:
        if is_local or last_taken(DEFAULT_PORT, PORTS_OF_A_PEER, host) is None:
            return FirstConfig(preset=preset, name=name)
        first = free_ports(PORTS_OF_A_PEER, host)
    else:
        first = asked_ports(port, PORTS_OF_A_PEER, host)
    hosts = (LOOPBACK,) if is_local else EVERYWHERE
    return FirstConfig(
        preset=preset,
        name=name,
        addresses=[f"{host}:{first}" for host in hosts],
        page=f"{LOOPBACK}:{first + 1}",
        join_addresses=[f"{host}:{first + 2}" for host in hosts],
    )


def free_ports(count: int, host: str = LOOPBACK) -> int:
    """The first of so many ports in a row that nobody listens at.

    Raises:
        ConfigurationError: there are none.
    """
    first = FIRST_PORT
    while first + count <= LAST_PORT:
        taken = last_taken(first, count, host)
        if taken is None:
            return first
        first = taken + 1
    raise ConfigurationError("", "--port", FIRST_PORT, f"{count} free ports in a row from there on")


def asked_ports(first: int, count: int, host: str = LOOPBACK) -> int:
    """``first``, from which on so many ports are free.

    Raises:
        ConfigurationError: they are not, or there are no such ports.
    """
    if not 1024 <= first <= LAST_PORT - count:
        expected = f"a port from 1024 to {LAST_PORT - count}, with {count} from it on"
        raise ConfigurationError("", "--port", first, expected)
    taken = last_taken(first, count, host)
    if taken is not None:
        expected = f"the first of {count} free ports in a row; somebody listens at {taken}"
        raise ConfigurationError("", "--port", first, expected)
    return first


def last_taken(first: int, count: int, host: str) -> int | None:
    """The last of some ports of this machine that somebody listens at."""
    for port in range(first + count - 1, first - 1, -1):
        with socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind((host, port))
            except OSError:
                return port
    return None


MAX_LOCAL_PEERS: Final = 64
ASK_S: Final = 5.0


def init(
    folder: Path,
    *,
    cluster: str,
    name: str,
    schema: Path | None,
    preset: str | None,
    peers: int,
    port: int | None,
) -> list[str]:
    """Make a cluster and its first peer, or several peers of this machine; what to print.

    Raises:
        NodeError, ConfigError: something is impossible; see the security layer.
    """
    if preset is not None and preset not in PRESETS:
        raise ConfigurationError("", "--preset", preset, choice(preset, PRESETS))
    cluster_info = ClusterInfo(DEFAULT_SCHEMA if schema is None else read_schema_file(schema))
    if peers > 1:
        if preset not in (None, "local"):
            raise ConfigurationError("", "--preset", preset, "local, or none, with --peers")
        return _init_several(folder, cluster, cluster_info, peers, port)
    first = first_config(preset or "lan", name, port)
    said = security.init_cluster(folder, cluster, name)
    write_cluster_info(ClusterFolder(folder), cluster_info)
    write_config(folder, first)
    return [
        said,
        *_ports_said(first),
        f"events are made of what {folder}/schema.toml describes",
        *_what_peers_lack(cluster_info),
        f"now: gossamer node run {folder}",
    ]


def _what_peers_lack(cluster_info: ClusterInfo) -> list[str]:
    """What has to be set before peers can run with so many attributes; brokers need nothing."""
    schema = parse_schema(cluster_info.schema, "schema.toml")
    try:
        NodeConfig().settings(schema)
    except ConfigError as error:
        return [
            f'{len(schema)} attributes: set protocol.preset = "resilient" in node.toml of every'
            f" peer, as {Protocol().preset} takes {error.expected}"
        ]
    return []


def invite(folder: Path | None, addresses: Sequence[str], lifetime_s: float) -> str:
    """A join token for one peer.

    Raises:
        NodeError, ConfigError: this peer cannot invite, or has no address to be joined at.
    """
    config = load(folder).config
    found = tuple(_at(text) for text in addresses) or _join_addresses(config)
    return security.invite(config.identity.folder, found[:ADDRESSES], lifetime_s)


def _ports_said(first: FirstConfig) -> list[str]:
    if first.addresses is None:
        return []
    return [f"it listens at {first.addresses[0]}, its page is at {first.page}"]


def join(token: str, folder: Path, *, name: str, preset: str | None, port: int | None) -> list[str]:
    """Become a member by ``token``; what to print.

    Raises:
        NodeError, ConfigError: as of the security layer.
    """
    if preset is not None and preset not in PRESETS:
        raise ConfigurationError("", "--preset", preset, choice(preset, PRESETS))
    inviter = read_token(token).addresses
    alone = all(is_loopback(host) for host, _ in inviter)
    first = first_config(preset or ("local" if alone else "lan"), name, port)
    said = security.join(token, folder, name)
    join_addresses = tuple(str(HostAndPort(*one)) for one in inviter)
    cluster_info = attrs.evolve(
        read_cluster_info(ClusterFolder(folder)), join_addresses=join_addresses
    )
    write_cluster_info(ClusterFolder(folder), cluster_info)
    write_config(folder, attrs.evolve(first, peers=cluster_info.peers))
    return [said, *_ports_said(first), f"now: gossamer node run {folder}"]


def revoke(folder: Path | None, who: str, *, unrecorded: bool = False) -> str:
    """Let a peer belong no more; ``unrecorded`` as of the security layer.

    Raises:
        NodeError: this peer cannot do that, or knows no such peer.
    """
    return security.revoke(load(folder).config.identity.folder, who, unrecorded=unrecorded)


def _init_several(
    folder: Path, cluster: str, cluster_info: ClusterInfo, peers: int, port: int | None
) -> list[str]:
    names = [f"peer{number}" for number in range(1, peers + 1)]
    if peers > MAX_LOCAL_PEERS:
        raise ConfigurationError("", "--peers", peers, f"at most {MAX_LOCAL_PEERS} peers")
    port = free_ports(peers) if port is None else asked_ports(port, peers)
    security.init_cluster(folder / names[0], cluster, names[0])
    security.admit_here(folder / names[0], [(folder / name, name) for name in names[1:]])
    addresses = [f"{LOOPBACK}:{port + number}" for number in range(peers)]
    for name, address in zip(names, addresses, strict=True):
        write_cluster_info(ClusterFolder(folder / name), cluster_info)
        first = FirstConfig(
            preset="local",
            name=name,
            addresses=[address],
            multicast=False,
            peers=[other for other in addresses if other != address],
        )
        write_config(folder / name, first)
    folders = " ".join(str(folder / name) for name in names)
    return [
        f"cluster {cluster!r} of {peers} peers made in {folder}, for this machine only",
        f"events are made of what {folder}/{names[0]}/schema.toml describes",
        *_what_peers_lack(cluster_info),
        f"now: gossamer node run {folders}",
    ]


def _join_addresses(config: NodeConfig) -> tuple[Address, ...]:
    """Where the peer takes join requests: as it says itself, if it runs."""
    try:
        return tuple(map(_at, trio.run(_ask_addresses, config)))
    except NodeNotRunningError:
        pass
    if any(port == 0 for _, port in config.listen.join_endpoints):
        reason = "takes join requests at a port that is known only while its node runs"
        raise ClusterFolderError(
            config.identity.folder, f"{reason}; start it, or name one by --address"
        )
    return reachable(config.listen.join_endpoints, config)


def _at(text: str) -> Address:
    return host_and_port(text, "--address", DEFAULT_JOIN_PORT)


async def _ask_addresses(config: NodeConfig) -> list[str]:
    from gossamer.node.local.client import open_client

    with trio.fail_after(ASK_S):
        async with open_client(address_of(config.identity.folder), patience_s=0) as client:
            return list((await client.status())["join_addresses"])


def reachable(listening: Sequence[Address], config: NodeConfig) -> tuple[Address, ...]:
    """Where others reach what listens there; an address that means all of them is replaced."""
    from gossamer.node.peer.peer import advertised

    # What is advertised is the peers' port, so that only the listening addresses count here.
    found = advertised(_not_advertising(config), [HostAndPort(*one) for one in listening])
    return tuple((address.host, address.port) for address in found)


def _not_advertising(config: NodeConfig) -> NodeConfig:
    return attrs.evolve(config, listen=attrs.evolve(config.listen, advertise=()))


def join_material(config: NodeConfig, addresses: Sequence[object]) -> bytes:
    """The notes for those who join by this peer, which can be found at ``addresses``."""
    kept = read_cluster_info(ClusterFolder(config.identity.folder))
    return ClusterInfo(kept.schema, tuple(map(str, addresses))).to_bytes()
