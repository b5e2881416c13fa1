"""Whole peers of one cluster on loopback, for tests of the node."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import trio

from gossamer.node.config.node import Discovery, Identity, Listen, NodeConfig, Page, Protocol
from gossamer.node.peer.peer import Event, Peer, Subscription
from gossamer.node.security.cluster import Membership
from gossamer.node.transport.base.base import Address
from gossamer.protocol.content.schema import FloatAttribute, Schema, StringAttribute
from support.waiting import PATIENCE_S, eventually

SCHEMA = Schema([FloatAttribute("price", 0, 1000), StringAttribute("symbol")])
# Long enough for three peers of a process on a busy machine.
ROUND_S = 0.1
# Does something with the cluster's own state file while a peer that uses it runs: in a thread, as
# who waits for the file's lock in the peer's own thread would keep the peer from giving it back.
aside = trio.to_thread.run_sync


def config_of(
    folder: Path, bootstrap: Sequence[Address] = (), *, plain: bool = False, **protocol: Any
) -> NodeConfig:
    """A peer on loopback with short rounds that tries ``bootstrap``; TLS unless ``plain``."""
    return NodeConfig(
        preset="local",
        identity=Identity(folder=folder),
        listen=Listen(addresses=("127.0.0.1:0",), plain_text=plain),
        discovery=Discovery(multicast=False, peers=tuple(map(str, bootstrap))),
        protocol=Protocol(peers_expected=8, round_s=ROUND_S, settings=protocol),
        page=Page(enabled=False),
        schema=SCHEMA,
    )


def of_member(member: Membership, bootstrap: Sequence[Address] = (), **protocol: Any) -> NodeConfig:
    """The same for a peer that has a certificate."""
    return config_of(member.folder.path, bootstrap, **protocol)


def elsewhere(config: NodeConfig, *bootstrap: Address) -> NodeConfig:
    """``config`` with other contacts."""
    discovery = attrs.evolve(config.discovery, peers=tuple(map(str, bootstrap)))
    return attrs.evolve(config, discovery=discovery)


async def rounds_pass(*peers: Peer, rounds: int = 4) -> None:
    """Wait until each of ``peers`` has begun so many more rounds."""
    goals = [(peer, peer.counters.rounds + rounds) for peer in peers]
    await eventually(lambda: all(peer.counters.rounds >= goal for peer, goal in goals))


async def take(events: Subscription, count: int, patience_s: float = PATIENCE_S) -> list[Event]:
    with trio.fail_after(patience_s):
        return [await events.__anext__() for _ in range(count)]


async def take_ids(events: Subscription, count: int) -> set[int]:
    return {event.id for event in await take(events, count)}


async def knock(peer: Peer) -> trio.SocketStream:
    """A plain connection to where a peer listens."""
    return await trio.open_tcp_stream(*peer.addresses[0])


def linked(peer: Peer) -> set[int]:
    """Keys of the peers that ``peer`` has links to."""
    return {other.key for other in peer.snapshot().peers if other.links}
