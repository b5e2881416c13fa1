"""Whole nodes of one cluster on a network in memory: signed members with groups and a local socket.

What differs from nodes that people run is the network between them and the clock, which jumps. The
local socket, its clients and the state files are real ones.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import trio

from gossamer.client.address import LocalAddress
from gossamer.node.config.delivery import Delivery
from gossamer.node.config.node import Local
from gossamer.node.local.address import local_address
from gossamer.node.local.groups.service import Groups
from gossamer.node.local.history import History, open_history
from gossamer.node.local.services import Services
from gossamer.node.local.serving.server import open_local_server
from gossamer.node.peer.peer import Peer
from support.local_nodes import no_cluster
from support.memory_members import MemberPeers
from support.waiting import at_once

RETENTION_S = Delivery().retention_s


@attrs.define(kw_only=True)
class MemberNodes(MemberPeers):
    """Nodes of one cluster; those that crash leave their disk as it was at that instant."""

    groups: dict[int, Groups] = attrs.field(factory=dict)
    histories: dict[int, History] = attrs.field(factory=dict)

    def address(self, key: int) -> LocalAddress:
        return local_address(self._home(key), Local(), {})

    def _home(self, key: int) -> Path:
        """What a node keeps for its clients; a short name, as a socket's path has to be."""
        home = self.folder / f"n{list(self.members).index(key)}"
        home.mkdir(exist_ok=True)
        return home

    @asynccontextmanager
    async def _beside(self, peer: Peer) -> AsyncIterator[None]:
        history = open_history(
            self._log_of(peer.key), RETENTION_S, now=lambda: self.now(peer.key), aside=at_once
        )
        async with history as opened, trio.open_nursery() as nursery:
            self.histories[peer.key] = opened
            groups = self.groups[peer.key] = Groups(peer, opened, RETENTION_S)
            await nursery.start(groups.run)
            services = Services(
                peer=peer,
                history=opened,
                groups=groups,
                limits=Local(),
                describe=lambda: {"groups": groups.describe()},
                snapshot=lambda: peer.snapshot().to_json(),
                metrics_text=lambda: b"",
                list_members=peer.members,
                cluster=no_cluster,
                stop=lambda: None,
                standing=peer.standing,
            )
            async with open_local_server(self.address(peer.key), services, RETENTION_S):
                yield
            del self.groups[peer.key], self.histories[peer.key]
            nursery.cancel_scope.cancel()

    async def limit_disk(self, key: int, pages: int) -> None:
        """Let the file of a node's clients grow to so many pages, to what it has at least."""
        await self.histories[key]._writer.run(
            lambda store: store._database.execute(f"PRAGMA max_page_count = {pages:d}")
        )

    def _log_of(self, key: int) -> Path:
        return self._home(key) / "clients.db"

    async def crash(self, key: int) -> None:
        """Let a node end without a word: nothing of what it does from now on reaches its disk."""
        self.network.isolate(key)
        kept = self._home(key) / "as it was"
        kept.mkdir()
        files = list(self._files(key))
        for file in files:
            shutil.copyfile(file, kept / file.name)
        await self.stop(key)
        for file in self._files(key):
            file.unlink()
        for file in files:
            shutil.copyfile(kept / file.name, file)
        shutil.rmtree(kept)

    def _files(self, key: int) -> Iterable[Path]:
        """The databases of a node and their logs; an index of a log is made anew from it."""
        for base in (self.folder / f"{key}.db", self._log_of(key)):
            for suffix in ("", "-wal"):
                file = base.with_name(base.name + suffix)
                if file.exists():
                    yield file
