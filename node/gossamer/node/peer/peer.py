"""A peer for applications: subscribe, publish, and be told what the overlay delivers.

    async with open_peer("demo/peer1") as peer:
        await peer.ready()
        async with peer.subscribe('price > 80 and symbol == "IBM"') as events:
            await peer.publish({"symbol": "IBM", "price": 81.5})
            async for event in events:
                print(event.values)

`publish` returns once the event is acknowledged: it reaches every subscription that it matches,
once, despite as many crashes at once as `delivery.successors` says. A named application gets what
it missed while its peer was away, and no event twice over restarts of it; one that it has taken
from the stream counts as delivered. Not promised are events that were not acknowledged, that a
subscription made a moment ago gets events published the moment after, and any order among events.
`docs/promises.md` says all of it.
"""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Final

import trio

from gossamer.client.errors import unwrapped
from gossamer.node.config.node import NodeConfig
from gossamer.node.discovery.sources import Source, choose, local_addresses, static_peers
from gossamer.node.errors import ConfigurationError, InterfaceError, brief
from gossamer.node.monitoring.logs import log
from gossamer.node.peer.application import Peer
from gossamer.node.peer.assembly import run_peer
from gossamer.node.peer.cluster_info import peer_config
from gossamer.node.peer.dependencies import Dependencies
from gossamer.node.peer.frames.events import Event
from gossamer.node.peer.subscriptions import Subscription
from gossamer.node.peer.unicast.cluster_time import steady_time
from gossamer.node.security.cluster import (
    ClusterFolder,
    Membership,
    client_context,
    open_membership,
    server_context,
)
from gossamer.node.security.event_keys import (
    EventKey,
    load_event_key,
    make_event_key,
    save_event_key,
)
from gossamer.node.security.identity import ADDRESSES
from gossamer.node.security.schema_document import version_in_force
from gossamer.node.store import Store
from gossamer.node.store.writer import StoreWriter, open_writer
from gossamer.node.transport.base import Address, LocalPeer, Transport, Verify
from gossamer.node.transport.limits import Limits
from gossamer.node.transport.tcp import WILDCARDS, Credentials, TcpTransport
from gossamer.protocol.content.schema import Schema, SchemaVersion

__all__ = ["Event", "Peer", "Subscription", "open_peer"]

# The cluster of peers that have no certificates.
PLAIN_CLUSTER: Final = "plain"
_PLAIN_KEY: Final = "plain key"
_KEY_BITS: Final = 62


@asynccontextmanager
async def open_peer(
    config: NodeConfig | str | Path, state: StoreWriter | None = None
) -> AsyncIterator[Peer]:
    """A running peer of the cluster whose membership lies in its folder.

    Leaving, cancelled or not, says goodbye to the others and stops it within two seconds.

    Args:
        config: the peer's folder, or its configuration (`peer_config`), schema included.
        state: writes its state file, where that is open already (`open_state`).

    Raises:
        ConfigurationError: its configuration is impossible, or there is no schema.
        ClusterFolderError: as of `peer_config`.
        SecurityError: the folder holds no usable membership.
        StoreError: the state file in it cannot be used.
        ListenFailed: an address cannot be listened on.
    """
    if not isinstance(config, NodeConfig):
        config = peer_config(config)
    if config.schema is None:
        raise ConfigurationError("", "attributes", None, "at least one table", found="missing")
    folder = ClusterFolder(config.identity.folder)
    member = None if config.listen.plain_text else open_membership(folder.path)
    with unwrapped():
        async with nullcontext(state) if state is not None else open_state(config) as writer:
            key = await plain_key(writer) if member is None else member.identity.key
            async with run_peer(_dependencies(config, config.schema, member, key, writer)) as peer:
                yield peer


@asynccontextmanager
async def open_state(config: NodeConfig) -> AsyncIterator[StoreWriter]:
    """The state file of a node, for all of its parts: a process opens a state file once.

    Raises:
        SecurityError: the folder holds no usable membership; it is left as it is.
        StoreError: the state file in it cannot be used.
    """
    folder = ClusterFolder(config.identity.folder)
    if not config.listen.plain_text:
        open_membership(folder.path)
    async with open_writer(folder.state) as writer:
        yield writer


def _dependencies(
    config: NodeConfig, schema: Schema, member: Membership | None, key: int, writer: StoreWriter
) -> Dependencies:
    limits = config.limits_as(Limits)
    folder = ClusterFolder(config.identity.folder)
    first = SchemaVersion.first(schema)
    later = None
    if member is not None:
        later = version_in_force(member.folder.schema, member.authority, first)
    event_key_path = folder.event_key

    name = config.identity.name or ("" if member is None else member.certificate.name)
    return Dependencies(
        key=key,
        name=name,
        cluster=PLAIN_CLUSTER if member is None else member.authority.cluster,
        version=_version(),
        schema=schema,
        later_schema=later,
        settings=config.settings(schema),
        round_s=config.protocol.round_s,
        acknowledge_s=config.delivery.acknowledge_s,
        limits=limits,
        make_transport=transport_of(member, limits, fair=True),
        listen=[Address(host, port) for host, port in config.listen.endpoints],
        advertise=partial(advertised, config),
        writer=writer,
        member=member,
        event_key=None if member is None else load_event_key(event_key_path),
        make_event_key=partial(trio.to_thread.run_sync, _make_event_key, event_key_path),
        present=present,
        sources=partial(_sources, config, member, key),
        remember=config.discovery.remember,
        compiled=config.node.compiled,
        draws=random.SystemRandom(),
        now=time.time,
        steady=steady_time,
    )


def transport_of(
    member: Membership | None, limits: Limits, *, fair: bool = False
) -> Callable[[LocalPeer, Verify], Transport]:
    """What makes the transport: TCP, with TLS for a member of a cluster.

    A ``fair`` one is for peers, whose frames take turns; those of brokers keep their order.
    """

    def make(me: LocalPeer, verify: Verify) -> Transport:
        credentials = None
        if member is not None:
            credentials = Credentials(server_context(member), client_context(member))
        return TcpTransport(me, limits, verify, credentials, fair=fair)

    return make


def present(transport: Transport, member: Membership) -> None:
    """Show the certificate of ``member`` on the next connections; raises OSError if it cannot."""
    if isinstance(transport, TcpTransport):
        transport.credentials = Credentials(server_context(member), client_context(member))


def advertised(config: NodeConfig, listening: Sequence[Address]) -> Sequence[Address]:
    """Where others reach a peer that listens at ``listening``.

    What is configured; else the addresses listened on, those of the interfaces in use where it
    listens on all of them.

    Raises:
        InterfaceError: the interface that is configured is gone, or the machine has lost an
            address that is listened on.
    """
    _check_hosts([address.host for address in listening if address.host not in WILDCARDS])
    if config.listen.advertise:
        return [Address.parse(text) for text in config.listen.advertise][:ADDRESSES]
    found: dict[Address, None] = {}
    for address in listening:
        if address.host not in WILDCARDS:
            found[address] = None
            continue
        version = 6 if ":" in address.host else 4
        for one in choose(config.listen.interface, local_addresses()):
            # Link-local addresses mean something on this machine only.
            if one.address.version == version and not one.address.is_link_local:
                found[Address(str(one.address), address.port)] = None
    return list(found)[:ADDRESSES]


def _check_hosts(hosts: Iterable[str]) -> None:
    local = {str(one.address).partition("%")[0] for one in local_addresses()}
    for host in hosts:
        bare = host.partition("%")[0]
        if bare not in local and _is_this_machine_s(bare):
            raise InterfaceError(
                f"this machine does not have the address {brief(host)} any more, at which this "
                "peer listens: nobody reaches it there"
            )


def _is_this_machine_s(host: str) -> bool:
    """Whether a host that is listened on is an address that an interface has to have."""
    try:
        return not ip_address(host).is_loopback
    except ValueError:
        return False  # a name


def _sources(
    config: NodeConfig, member: Membership | None, key: int, listening: Sequence[Address]
) -> Sequence[Source]:
    sources: list[Source] = [static_peers(config.discovery.static_peers)]
    if config.discovery.multicast and member is not None and listening:
        from gossamer.node.discovery.multicast import Announcement, Multicast
        from gossamer.node.transport.handshake import PROTOCOL_VERSION

        announcement = Announcement(
            cluster=member.authority.cluster,
            key=key,
            version=PROTOCOL_VERSION,
            port=listening[0].port,
        )
        sources.append(
            Multicast(
                announcement,
                interface=config.listen.interface,
                found_limit=config.discovery.found_limit,
                found_per_s=config.discovery.found_per_s,
            )
        )
    return sources


def _make_event_key(path: Path) -> EventKey:
    key = make_event_key()
    try:
        save_event_key(key, path)
    except OSError as error:
        # Others verify what it signs all the same; after a restart there is another one.
        log.warning("the key for events cannot be kept", file=path.name, cause=error.strerror)
    return key


async def plain_key(writer: StoreWriter) -> int:
    """The key of a peer without certificates: drawn once, kept in its state file."""
    kept = await writer.run(Store.get_meta, _PLAIN_KEY)
    if kept is None:
        kept = random.SystemRandom().getrandbits(_KEY_BITS).to_bytes(8, "big")
        await writer.run(Store.set_meta, _PLAIN_KEY, kept)
    return int.from_bytes(kept, "big")


def _version() -> str:
    from gossamer.command.main import installed_version

    return installed_version()
