"""A broker from its configuration."""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext

import attrs

from gossamer.client.errors import unwrapped
from gossamer.node.broker.assembly import BrokerNode, run_broker
from gossamer.node.broker.host import BrokerDependencies, FamilyHost
from gossamer.node.config.broker import family_named
from gossamer.node.config.node import NodeConfig
from gossamer.node.peer.peer import (
    PLAIN_CLUSTER,
    advertised,
    open_state,
    plain_key,
    present,
    transport_of,
)
from gossamer.node.security.cluster import ClusterFolder, Membership, open_membership
from gossamer.node.store.writer import StoreWriter
from gossamer.node.transport.base import Address
from gossamer.node.transport.limits import Limits

# Links between brokers stay: what a neighbour sends can be long, and brokers can be slow.
STALL_S = 60.0
UNUSED_S = 86_400.0


@asynccontextmanager
async def open_broker(
    config: NodeConfig, state: StoreWriter | None = None
) -> AsyncIterator[BrokerNode]:
    """A running broker of the cluster whose membership lies in ``config.identity.folder``.

    Args:
        config: its configuration.
        state: writes its state file, where that is open already (`open_state`).

    Raises:
        SecurityError: the folder holds no usable membership.
        StoreError: the state file in it cannot be used.
        ListenFailed: an address cannot be listened on.
        ConfigurationError: its tables were made with settings that do not go with these.
        ConfigError: it has no place in its overlay.
    """
    folder = ClusterFolder(config.identity.folder)
    member = None if config.listen.plain_text else open_membership(folder.path)
    with unwrapped():
        async with nullcontext(state) if state is not None else open_state(config) as writer:
            key = await plain_key(writer) if member is None else member.identity.key
            async with run_broker(_dependencies(config, member, key, writer)) as node:
                yield node


def family_of(config: NodeConfig) -> FamilyHost:
    """The family of the broker that is configured, with its settings; raises `ConfigError`."""
    found: FamilyHost = family_named(config.broker.overlay).host_of(config)
    return found


def _dependencies(
    config: NodeConfig, member: Membership | None, key: int, writer: StoreWriter
) -> BrokerDependencies:
    limits = config.limits_as(Limits)
    if "stall_seconds" not in config.limits:
        limits = attrs.evolve(limits, stall_seconds=STALL_S)
    if "unused_seconds" not in config.limits:
        limits = attrs.evolve(limits, unused_seconds=UNUSED_S)

    def advertise(listening: Sequence[Address]) -> Sequence[Address]:
        return advertised(config, listening)

    from gossamer.command.main import installed_version

    return BrokerDependencies(
        key=key,
        name=config.identity.name or ("" if member is None else member.certificate.name),
        cluster=PLAIN_CLUSTER if member is None else member.authority.cluster,
        version=installed_version(),
        family=family_of(config),
        new_index=config.broker.new_index(),
        large_index=config.broker.large_index(),
        neighbours=[Address(host, port) for host, port in config.broker.endpoints],
        queue=config.broker.queue,
        full_wait_s=config.broker.full_wait_s,
        publications_first=config.broker.publications_first,
        retention_s=config.delivery.retention_s,
        limits=limits,
        make_transport=transport_of(member, limits),
        listen=[Address(host, port) for host, port in config.listen.endpoints],
        advertise=advertise,
        member=member,
        present=present,
        writer=writer,
        draws=random.SystemRandom(),
        now=time.time,
    )
