"""Whole peers with real certificates and signed descriptors, on a network in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any, TypeVar

import attrs
import trio

from gossamer.node.discovery.sources import static_peers
from gossamer.node.peer.assembly import Dependencies
from gossamer.node.security.cluster import Membership
from gossamer.node.security.event_keys import EventKey
from gossamer.node.store.writer import StoreWriter
from gossamer.node.transport.base.base import Address, Transport
from support.clusters import MadeCluster, event_key
from support.memory_peers import MemoryPeers
from support.memory_transport import MemoryNetwork


@attrs.define(kw_only=True)
class MemberPeers(MemoryPeers):
    """Peers of one cluster; each is told of the address of the one that made it."""

    cluster: MadeCluster
    members: dict[int, Membership] = attrs.field(factory=dict)
    offset_s: float = 0.0  # how wrong all clocks are, beside those of some
    change: Callable[[int, Dependencies], Dependencies] = lambda _, dependencies: dependencies
    # By which members sign their events, once they have published.
    event_keys: dict[int, EventKey] = attrs.field(factory=dict)
    every: int = 0  # each so many'th member is bad; none, where it is 0
    # What is different about a bad one beside that.
    betray: Callable[[Membership, Dependencies], Dependencies] = lambda _, dependencies: (
        dependencies
    )
    bad: set[int] = attrs.field(factory=set)

    @property
    def honest(self) -> list[int]:
        return [key for key in self.peers if key not in self.bad]

    def now(self, key: int = -1) -> float:
        """Unix seconds, as the peer ``key`` sees them."""
        wrong_s = self.offset_s + self.wrong_s.get(key, 0.0)
        return self.cluster.now + trio.current_time() + wrong_s

    async def admit(self, name: str) -> int:
        """Let a new member run; return its key."""
        member = self.cluster.admit(name) if self.members else self.cluster.first
        key = member.identity.key
        self.members[key] = member
        self.network.certificates[key] = member.certificate.der
        await self.add(key)
        return key

    def address_of(self, key: int) -> Address:
        return Address("memory", 1000 + list(self.members).index(key))

    def _dependencies(self, key: int, writer: StoreWriter) -> Dependencies:
        member = self.members[key]
        first = next(iter(self.members))
        bootstrap = [] if key == first else [self.address_of(first)]
        dependencies = attrs.evolve(
            super()._dependencies(key, writer),
            name=member.certificate.name,
            cluster=member.authority.cluster,
            member=member,
            listen=[self.address_of(key)],
            sources=lambda _: [static_peers(bootstrap)],
            now=lambda: self.now(key),
            present=self._present,
            event_key=self.event_keys.get(key),
            make_event_key=partial(self._make_event_key, key),
        )
        dependencies = self.change(key, dependencies)
        if self.every and len(self.members) % self.every == 0:
            self.bad.add(key)
        return self.betray(member, dependencies) if key in self.bad else dependencies

    async def _make_event_key(self, key: int) -> EventKey:
        """Another key for each member of a cluster; to make them anew each time takes a while."""
        await trio.lowlevel.checkpoint()
        self.event_keys[key] = event_key(len(self.event_keys))
        return self.event_keys[key]

    def _present(self, _: Transport, member: Membership) -> None:
        self.members[member.identity.key] = member
        self.network.certificates[member.identity.key] = member.certificate.der


MembersT = TypeVar("MembersT", bound=MemberPeers)


def member_peers(
    cluster: MadeCluster, count: int, *, network: MemoryNetwork | None = None, **changes: Any
) -> AbstractAsyncContextManager[MemberPeers]:
    """Running members of ``cluster``, the one that made it first; stopped at the end."""
    return running_members(MemberPeers, cluster, count, network or MemoryNetwork(), **changes)


@asynccontextmanager
async def running_members(
    kind: type[MembersT], cluster: MadeCluster, count: int, network: MemoryNetwork, **changes: Any
) -> AsyncIterator[MembersT]:
    """The same of any kind."""
    folder = cluster.folder.parent
    async with trio.open_nursery() as nursery:
        crowd = kind(network, folder, nursery, cluster=cluster, **changes)
        for number in range(count):
            await crowd.admit(f"member {number}")
        for peer in crowd.peers.values():
            await peer.ready()
        yield crowd
        for key in list(crowd.peers):
            await crowd.stop(key)
