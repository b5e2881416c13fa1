"""Everything a node offers at once, under drawn schedules of everything that may fail.

A seed fixes the schedule, but no identifiers: the keys that sign events are made anew in each run.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import pytest
import trio

from gossamer.client.link import LocalAddress
from gossamer.node.config.delivery import Delivery
from gossamer.node.config.node import Local
from gossamer.node.local.address import local_address
from gossamer.node.local.groups.service import Groups
from gossamer.node.local.history import History, open_history
from gossamer.node.local.serving.publishing import Services
from gossamer.node.local.serving.server import open_local_server
from gossamer.node.peer.peer import Peer
from gossamer.node.security.schema_document import SchemaDocument, save_document
from gossamer.protocol.content.schema import (
    BooleanAttribute,
    EnumerationAttribute,
    SchemaVersion,
    changed,
)
from support.campaign import Campaign, Reader
from support.clusters import MadeCluster
from support.local_nodes import no_cluster
from support.memory_peers import REPLICAS, SCHEMA, MemberPeers, ring_errors, running_members
from support.memory_transport import Faults, MemoryNetwork
from support.switching_ways import let_peers_switch
from support.transport_peers import on_jumping_clock
from support.waiting import at_once, comes_true, running

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
        async with history as opened, running() as nursery:
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


DRAWS = 2
PEERS = 6
EPISODES = 5
# Most often that which nodes have by default.
PRESETS = ["resilient", "kindred", "kindred"]
PATIENCE_S = 180.0
LATE = Faults(latency_s=(0.0, 0.1))
ROUGH = attrs.evolve(LATE, breaking=0.001, duplication=0.05, reordering=0.05)
VERSIONS = [SchemaVersion.first(SCHEMA).added(BooleanAttribute("halted"))]
VERSIONS.append(VERSIONS[0].widened(changed(SCHEMA["price"], {"maximum": 1_000_000})))
VERSIONS.append(VERSIONS[1].added(EnumerationAttribute("side", ("buy", "sell"))))


@attrs.define(eq=False)
class Schedule:
    """What happens to the nodes, drawn; each episode ends with everything delivered.

    At most `REPLICAS` nodes crash in an episode, which is as many as the promise allows for.
    """

    run: Campaign[MemberNodes]
    seed: int
    story: list[str] = attrs.field(factory=list)
    version: int = 0
    guests: list[int] = attrs.field(factory=list)

    @property
    def crowd(self) -> MemberNodes:
        return self.run.crowd

    @property
    def first(self) -> int:
        """The node where the cluster was made, which runs all the time."""
        return next(iter(self.crowd.members))

    async def play(self) -> None:
        draws = self.run.draws
        kinds: list[Callable[[], Awaitable[None]]] = [
            *(self.crash_some, self.crash_the_leader, self.pause_one, self.part_all),
            *(self.upgrade, self.restart_all, self.come_and_go, self.fill_a_disk),
        ]
        for kind in draws.sample(kinds, EPISODES):
            self.crowd.network.faults = draws.choice([LATE, ROUGH])
            await trio.sleep(draws.uniform(0, 10))
            await kind()
            self.crowd.network.faults = LATE
            await self.settled()

    async def settled(self) -> None:
        before = trio.current_time()
        await self.until(lambda: not self.run.is_missing_some(before))
        await self.until(lambda: not ring_errors(self.crowd.peers))

    async def until(self, condition: Callable[[], bool]) -> None:
        assert await comes_true(condition, PATIENCE_S), (
            f"{self}: {self.run.missing(trio.current_time() - PATIENCE_S)}"
        )

    def __str__(self) -> str:
        return f"seed {self.seed}, {'; '.join(self.story)}; {self.run.summary()}"

    async def crash_some(self) -> None:
        others = [key for key in self.crowd.peers if key != self.first]
        await self._crash(self.run.draws.sample(others, self.run.draws.randint(1, REPLICAS)))

    async def crash_the_leader(self) -> None:
        groups = {key: one.describe() for key, one in self.crowd.groups.items()}
        leading = [key for key, found in groups.items() if any(one["leads"] for one in found)]
        await self._crash([key for key in leading if key != self.first][:REPLICAS])

    async def _crash(self, keys: Collection[int]) -> None:
        away_s = self.run.draws.uniform(1, 60)
        self.story.append(f"{self._names(keys)} crash for {away_s:.0f} s")
        async with trio.open_nursery() as nursery:
            for key in keys:
                nursery.start_soon(self._away, key, self.crowd.crash, away_s)

    async def _away(self, key: int, end: Callable[[int], Awaitable[None]], away_s: float) -> None:
        with self.run.failing(key):
            await end(key)
            await trio.sleep(away_s)
            await self.crowd.add(key)

    async def pause_one(self) -> None:
        key = self.run.draws.choice(list(self.crowd.peers))
        await self._part([key], self.run.draws.uniform(1, 60))

    async def part_all(self) -> None:
        keys = list(self.crowd.peers)
        await self._part(self.run.draws.sample(keys, len(keys) // 2), self.run.draws.uniform(5, 60))

    async def _part(self, keys: list[int], for_s: float) -> None:
        self.story.append(f"{self._names(keys)} cut off for {for_s:.0f} s")
        rest = [key for key in self.crowd.peers if key not in keys]
        with self.run.failing(*self.crowd.peers):
            self.crowd.network.partition(keys, rest)
            await trio.sleep(for_s)
            self.crowd.network.heal()

    async def upgrade(self) -> None:
        """The schema changes while a node is away, which hears of it when it is back."""
        version = VERSIONS[self.version]
        self.version += 1
        self.story.append(f"version {version.number} of the schema")
        cluster = self.crowd.cluster
        document = SchemaDocument.signed(cluster.first.authority, version, cluster.registrar.signer)
        save_document(cluster.first.folder.schema, document)
        await self.crash_some()
        await self.until(lambda: all(one.version == version for one in self.crowd.peers.values()))

    async def restart_all(self) -> None:
        self.story.append("all restart")
        for key in list(self.crowd.peers):
            if key != self.first:
                await self._away(key, self.crowd.stop, self.run.draws.uniform(0.5, 5))
                await self.until(lambda: not ring_errors(self.crowd.peers))
                await self.crowd.rounds()

    async def come_and_go(self) -> None:
        for _ in range(2):
            self.guests.append(await self.crowd.admit(f"guest {len(self.guests)}"))
        self.story.append("two guests come, and one goes")
        await trio.sleep(self.run.draws.uniform(5, 20))
        with self.run.failing(self.guests[-1]):
            await self.crowd.crash(self.guests[-1])

    async def fill_a_disk(self) -> None:
        """One node cannot write for its clients for a while; a crash meanwhile is not promised."""
        key = self.run.draws.choice(list(self.crowd.histories))
        for_s = self.run.draws.uniform(2, 30)
        self.story.append(f"the disk of {self._names([key])} is full for {for_s:.0f} s")
        with self.run.failing(key):
            await self.crowd.limit_disk(key, 1)
            await trio.sleep(for_s)
            await self.crowd.limit_disk(key, 1 << 30)

    def _names(self, keys: Collection[int]) -> str:
        order = list(self.crowd.members)
        return " and ".join(str(order.index(key)) for key in keys)


@asynccontextmanager
async def a_campaign(
    cluster: MadeCluster, seed: int, peers: int = PEERS
) -> AsyncIterator[Schedule]:
    network, preset = MemoryNetwork(seed, LATE), PRESETS[seed % len(PRESETS)]
    nodes = running_members(MemberNodes, cluster, peers, network, preset=preset)
    async with nodes as crowd, running() as nursery:
        await crowd.whole(PATIENCE_S)
        run = Campaign(crowd, random.Random(seed))
        first, *others = crowd.peers
        workers = others[len(others) // 2 :]
        readers = [
            *(Reader(first), Reader(first, ordered=True)),
            *(Reader(others[0], "ada"), Reader(others[1], "eve", ordered=True)),
        ]
        await run.begin(nursery, readers, workers, others[:2])
        await crowd.rounds(5 * peers)
        async with trio.open_nursery() as publishers:
            for key in crowd.peers:
                publishers.start_soon(run.publish, key, 2.0)
            publishers.start_soon(run.quit_work, workers)
            publishers.start_soon(run.request, first)
            yield Schedule(run, seed)
            run.stopping = True


def last_of(crowd: MemberNodes) -> list[dict[str, str]]:
    return [
        {str(one.values["symbol"]): f"{one.id:016x}" for one in peer.last_values()}
        for peer in crowd.peers.values()
    ]


def check(schedule: Schedule) -> None:
    print(schedule)
    run = schedule.run
    run.check(schedule)
    assert run.wrong_replies() == [], str(schedule)
    assert all(times == 1 for taken in run.taken.values() for times in taken.values())
    assert sum(sum(one.counters.events_forged.values()) for one in run.crowd.peers.values()) == 0


@on_jumping_clock
async def test_applications_of_all_kinds_over_a_crash(cluster: MadeCluster) -> None:
    async with a_campaign(cluster, 4, 4) as schedule:
        await schedule.crash_the_leader()
        schedule.run.stopping = True
        await schedule.settled()
        assert schedule.run.dealt
    check(schedule)


@pytest.mark.campaign
@on_jumping_clock
async def test_campaign(cluster: MadeCluster, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if seed % 2:
        let_peers_switch(monkeypatch, machine_code=True)
    async with a_campaign(cluster, seed) as schedule:
        run = schedule.run
        await schedule.play()
        run.stopping = True
        await trio.sleep(45)  # until the last request's time is over
        await schedule.settled()
        await schedule.until(
            lambda: all(one == last_of(run.crowd)[0] for one in last_of(run.crowd))
        )
        await run.crowd.rounds(8)
        values = last_of(run.crowd)[0]
    assert len(run.published) > 100
    check(schedule)
    assert run.outdated(values) == {}, str(schedule)


@pytest.mark.campaign
@on_jumping_clock
async def test_connections_that_break_let_nobody_deal_twice(cluster: MadeCluster) -> None:
    """No peer fails, so that each event of the group is one worker's, without an excuse."""
    async with a_campaign(cluster, 1) as schedule:
        run = schedule.run
        run.crowd.network.faults = attrs.evolve(LATE, breaking=0.004)
        await trio.sleep(60)
        run.crowd.network.faults = LATE
        run.stopping = True
        await schedule.settled()
        broken = run.crowd.network.broken
    print(schedule)
    assert broken > 20
    assert {event: made for event, made in run.dealt.items() if len(made) > 1} == {}
