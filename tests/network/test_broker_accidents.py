"""The accidents that a family of brokers promises to survive, in processes on hosts."""

from __future__ import annotations

import random
import shutil
from collections.abc import (
    AsyncIterator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Self

import attrs
import pytest
import trio

from gossamer.node.errors import NodeError
from gossamer.node.local.client import LocalClient, open_client
from gossamer.node.local.durable import follow
from gossamer.protocol.brokers.scot import Factor, Scot
from support.broker_processes import place_options
from support.host_stories import ACCIDENTS, PORT, Accident, HostFleet, Story
from support.network_hosts import Host, network_hosts
from support.node_fleets import LOOK_S, QUICK, Follower
from support.node_processes import PATIENCE_S, Shell

pytestmark = pytest.mark.campaign

DRAWS = 2
EPISODES = 3
# `ip netns exec` mounts what is in a folder of a namespace's name here over files of /etc.
ETC = Path("/etc/netns")
WANTED = "price >= 0"
# Another broker is found out to be gone several times as soon as with the settings of others.
LIMITS = {key: value for key, value in QUICK.items() if key.startswith("limits__")}


@attrs.frozen
class Layout:
    """Brokers of a family, numbered from 1 on."""

    overlay: str  # the family
    dials: Sequence[Sequence[int]]  # which of the others each connects to
    settings: Mapping[str, object] = attrs.field(factory=dict)  # with two underscores for a dot
    places: Sequence[Sequence[str]] = ()  # what each is told of where it is, as options
    announces: bool = False  # whether who publishes says before what it will publish

    def options(self, number: int) -> Iterator[str]:
        yield from ("--role", "broker", "--overlay", self.overlay)
        for other in self.dials[number - 1]:
            yield from ("--neighbour", f"host{other}:{PORT}")
        if self.places:
            yield from self.places[number - 1]

    def links(self, number: int) -> int:
        return len(self.dials[number - 1]) + sum(number in others for others in self.dials)


def scot_layout(scot: Scot, **settings: object) -> Layout:
    """The brokers of a SCOT, cluster by cluster; of two that are linked the later one dials."""
    numbers = {label: number for number, label in enumerate(scot.brokers, 1)}
    dials: list[list[int]] = [[] for _ in numbers]
    for link in scot.links():
        earlier, later = sorted(numbers[end] for end in link)
        dials[later - 1].append(earlier)
    return Layout("scot", dials, settings, [place_options(scot, label) for label in numbers])


TREE = Layout("tree", [(), (1,), (2,), (2,), (4,)], announces=True)
# A ring with a chord, whose trees are often planned anew.
GRAPH = Layout(
    "graph",
    [(), (1,), (1, 2), (3,), (1, 4)],
    {"graph__interval_s": 2.0, "graph__probability": 1.0, "graph__threshold": 0.0},
)
SCOT = scot_layout(
    Scot(Factor.path("ab"), Factor.complete(3)), scot__around_failures=True, scot__take_over=True
)


@attrs.define(eq=False)
class BrokerFleet(HostFleet):
    """Brokers on hosts; a client of each has the name that `client` gives it, and publishes."""

    layout: Layout = TREE

    def number(self, name: str) -> int:
        return self.names.index(name) + 1

    def options(self, name: str) -> Iterable[str]:
        yield from super().options(name)
        yield from self.layout.options(self.number(name))

    def renumber(self, network: str) -> None:
        super().renumber(network)
        self.name_hosts()

    def name_hosts(self) -> None:
        """Say on each host where all are, in the file that its programs have before them."""
        lines = [f"{host.address} host{host.number}\n" for host in self.hosts]
        for host in self.hosts:
            file = ETC / host.name / "hosts"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("".join(["127.0.0.1 localhost\n", *lines]))

    @asynccontextmanager
    async def client(self, name: str) -> AsyncIterator[LocalClient]:
        async with super().client(name):
            pass
        async with open_client(self.address(name), "exchange", patience_s=0) as client:
            if self.layout.announces:
                await client.advertise("all", f"present(symbol) and {WANTED}")
            yield client

    async def ready(
        self, names: Iterable[str] | None = None, patience_s: float = PATIENCE_S
    ) -> float:
        began = trio.current_time()
        with trio.fail_after(patience_s):
            for name in self.names if names is None else names:
                while not await self._has_its_links(name):
                    await trio.sleep(LOOK_S)
        return trio.current_time() - began

    async def _has_its_links(self, name: str) -> bool:
        self._check_running([name])
        try:
            links = (await self.tables(name))["links"]
        except NodeError:
            return False  # it does not listen yet
        ups = [link for link in links if link.get("takes publications", link["up"])]
        return len(ups) == self.layout.links(self.number(name))

    async def known_everywhere(self, followers: Sequence[Follower]) -> None:
        published: dict[str, set[str]] = {name: set() for name in self.names}
        with trio.fail_after(PATIENCE_S):
            while any(
                not ids.intersection(one.got) for ids in published.values() for one in followers
            ):
                for name, ids in published.items():
                    async with self.client(name) as client:
                        ids.add(await client.publish({"symbol": "IBM", "price": 1}))


@attrs.define(eq=False)
class BrokerFollower(Follower):
    """A named client that wants everything, and notes where what it gets was kept for it."""

    positions: list[int] = attrs.field(factory=list)

    @classmethod
    def at(cls, fleet: BrokerFleet, name: str) -> Self:
        """One of a broker, of a name that no other broker has a client of."""
        return cls(fleet, name, f"ledger {fleet.number(name)}")

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        address = self.fleet.address(self.peer)
        async with follow(address, {"all": WANTED}, name=self.name) as events:
            task_status.started()
            async for event in events:
                self.got.append(event.id)
                self.positions.append(event.position)
                await events.acknowledge(event)

    @property
    def hidden(self) -> int:
        """Deliveries that the client was not handed, as it had got the same publication before."""
        return self.positions[-1] - len(self.positions) if self.positions else 0


@contextmanager
def broker_fleet(shell: Shell, hosts: Sequence[Host], layout: Layout) -> Iterator[BrokerFleet]:
    names = [f"demo/peer{host.number}" for host in hosts]
    settings: dict[str, object] = {
        **LIMITS,
        **layout.settings,
        "page__enabled": False,
        "listen__addresses": [f"0.0.0.0:{PORT}"],
        "discovery__multicast": False,
    }
    made = BrokerFleet(shell, names, settings=settings, hosts=hosts, layout=layout)
    try:
        made.name_hosts()
        with made.all_running():
            yield made
    finally:
        for host in hosts:
            shutil.rmtree(ETC / host.name, ignore_errors=True)


@attrs.frozen
class Family:
    """Brokers, and what may happen to them."""

    layout: Layout
    accidents: Sequence[Accident] = ACCIDENTS
    one_at_a_time: bool = False


FAMILIES = {
    "tree": Family(TREE),
    "scot": Family(SCOT, (Story.split, Story.one_way, Story.kill, Story.pause), one_at_a_time=True),
    "graph": Family(GRAPH),
}


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
async def test_nothing_acknowledged_is_lost_or_comes_twice(
    shell: Shell, family: Family, seed: int
) -> None:
    count = len(family.layout.dials)
    with network_hosts(count) as hosts, broker_fleet(shell, hosts, family.layout) as fleet:
        await fleet.ready()
        followers = [BrokerFollower.at(fleet, name) for name in fleet.names]
        async with trio.open_nursery() as nursery:
            for one in followers:
                await nursery.start(one.run)
            await fleet.known_everywhere(followers)
            draws = random.Random(seed)
            story = Story(fleet, draws, family.accidents, one_at_a_time=family.one_at_a_time)
            await story.play(followers, EPISODES)
            nursery.cancel_scope.cancel()
        repeated = {one.peer: one.hidden for one in followers if one.hidden}
        assert not repeated, (story.told, repeated)
