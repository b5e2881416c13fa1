"""Everyday accidents of nodes on hosts of their own: cuts, new addresses, kills, pauses.

A story draws them, while a client publishes at every node and an application at each wants
everything. It is told in what it says, and ends each accident with everything delivered everywhere.
"""

from __future__ import annotations

import random
import shutil
import signal
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Self

import attrs
import trio

from gossamer.node.config.delivery import Delivery
from gossamer.node.errors import NodeError, UnacknowledgedError
from gossamer.node.local.client import LocalClient, open_client
from gossamer.node.local.follower import follow
from gossamer.protocol.brokers.scot import Factor, Scot
from support.broker_processes import place_options
from support.network_hosts import Host, number_anew
from support.node_fleets import LOOK_S, QUICK, Fleet, Follower
from support.node_processes import COMMAND, PATIENCE_S, Shell
from support.waiting import comes_true

PORT = 7710
# Until nodes count each other as gone, whatever it was.
APART_S = 12.0
PAUSE_S = 0.1
# What is acknowledged in an episode at least.
LEAST = 20
# `ip netns exec` mounts what is in a folder of a namespace's name here over files of /etc.
ETC = Path("/etc/netns")
WANTED = "price >= 0"
# Another broker is found out to be gone several times as soon as with the settings of others.
LIMITS = {key: value for key, value in QUICK.items() if key.startswith("limits__")}


@attrs.define(eq=False)
class HostFleet(Fleet):
    """A fleet whose nodes run on hosts of their own, all at the same port."""

    hosts: Sequence[Host] = ()

    def host(self, name: str) -> Host:
        return self.hosts[self.names.index(name)]

    def begin(self, name: str, **streams: Any) -> None:
        command = (*self.host(name).inside, *COMMAND)
        words = ("node", "run", str(self.folder(name)), *self.options(name))
        self.running[name] = self.shell.start(*words, command=command, **streams)

    def renumber(self, network: str) -> None:
        number_anew(self.hosts, network)


@attrs.define(eq=False)
class Story:
    fleet: HostFleet
    draws: random.Random
    accidents: Sequence[Accident] = ()  # to draw from; all where there are none
    one_at_a_time: bool = False  # one node fails, and has its links again before another one does
    told: list[str] = attrs.field(factory=list)
    acknowledged: dict[str, str] = attrs.field(factory=dict)  # by event, where it was published
    publishing: bool = False
    network: int = 77

    @property
    def names(self) -> Sequence[str]:
        return self.fleet.names

    def say(self, what: str, *names: str) -> None:
        numbers = ", ".join(str(self.names.index(name) + 1) for name in names)
        self.told.append(f"{what} {numbers}".strip())

    def parts(self) -> tuple[list[str], list[str]]:
        shuffled = self.draws.sample(list(self.names), len(self.names))
        size = 1 if self.one_at_a_time else self.draws.randrange(1, len(self.names))
        return shuffled[:size], shuffled[size:]

    def cut(self, these: Sequence[str], those: Sequence[str]) -> None:
        for name in these:
            self.fleet.host(name).shut_out(map(self.fleet.host, those))

    def heal(self) -> None:
        for host in self.fleet.hosts:
            host.let_in()

    async def publish(self, name: str) -> None:
        price = 0
        while True:
            await trio.sleep(PAUSE_S)
            if not self.publishing:
                continue
            with trio.move_on_after(30):
                try:
                    async with self.fleet.client(name) as client:
                        while self.publishing:
                            price += 1
                            event = await client.publish({"symbol": "IBM", "price": price % 500})
                            self.acknowledged[event] = name
                            await trio.sleep(PAUSE_S)
                except (NodeError, UnacknowledgedError, AssertionError, trio.TooSlowError):
                    continue

    async def play(self, followers: Sequence[Follower], episodes: int) -> None:
        """Let accidents happen to nodes whose events these followers get.

        Each has everything in the end that was acknowledged at any node, and nothing twice.
        """
        async with trio.open_nursery() as nursery:
            for name in self.names:
                nursery.start_soon(self.publish, name)
            for _ in range(episodes):
                enough = partial(self._has_published, len(self.acknowledged) + LEAST)
                await self.draws.choice(self.accidents or ACCIDENTS)(self)
                self.heal()
                await trio.sleep(2)
                assert await comes_true(enough), (self.told, "nobody can publish")
                self.publishing = False
                done = await comes_true(lambda: not self.lacking(followers))
                assert done, (self.told, self.lacking(followers))
                if self.one_at_a_time:
                    await self.fleet.ready()
            nursery.cancel_scope.cancel()
        twice = [event for one in followers for event, n in Counter(one.got).items() if n > 1]
        assert not twice, (self.told, twice)
        print(f"{len(self.acknowledged)} events acknowledged; {self.told}")

    def _has_published(self, count: int) -> bool:
        return len(self.acknowledged) >= count

    def lacking(self, followers: Sequence[Follower]) -> dict[str, int]:
        wanted = self.acknowledged.keys()
        lacking = {one.peer: len(wanted - set(one.got)) for one in followers}
        return {name: count for name, count in lacking.items() if count}

    # The accidents, while everybody publishes.

    async def split(self) -> None:
        these, those = self.parts()
        self.say("parts, one of them", *these)
        self.publishing = True
        self.cut(these, those)
        self.cut(those, these)
        await trio.sleep(APART_S)

    async def split_and_restart(self) -> None:
        these, those = self.parts()
        self.say("parts that restart and publish then, one of them", *these)
        self.cut(these, those)
        self.cut(those, these)
        self.fleet.kill(*self.names)
        self.fleet.start(*self.names)
        await trio.sleep(APART_S)
        self.publishing = True
        await trio.sleep(APART_S / 2)

    async def one_way(self) -> None:
        these, those = self.parts()
        self.say("nothing reaches the others of", *these)
        self.publishing = True
        self.cut(these, those)
        await trio.sleep(APART_S)

    async def renumber(self) -> None:
        self.network += 1
        self.say(f"all are in network {self.network}")
        self.publishing = True
        self.fleet.renumber(f"10.{self.network}.0")
        await trio.sleep(APART_S)

    async def boot_before_the_switch(self) -> None:
        self.say("all boot before the switch")
        self.fleet.kill(*self.names)
        for host in self.fleet.hosts:
            host.unplug(is_unplugged=True)
        self.fleet.start(*self.names)
        self.publishing = True
        await trio.sleep(APART_S / 2)
        for host in self.fleet.hosts:
            host.unplug(is_unplugged=False)
        self.fleet.renumber(f"10.{self.network}.0")

    async def kill(self) -> None:
        count = 1 if self.one_at_a_time else Delivery().successors
        killed = self.draws.sample(list(self.names), count)
        self.say("killed are", *killed)
        self.publishing = True
        await trio.sleep(2)
        self.fleet.kill(*killed)
        await trio.sleep(self.draws.choice([0.0, APART_S]))
        self.fleet.start(*killed)

    async def pause(self) -> None:
        paused = self.draws.choice(list(self.names))
        self.say("paused is", paused)
        self.publishing = True
        await trio.sleep(2)
        self.fleet.send(paused, signal.SIGSTOP)
        await trio.sleep(APART_S)
        self.fleet.send(paused, signal.SIGCONT)


Accident = Callable[[Story], Awaitable[None]]
ACCIDENTS: Sequence[Accident] = (
    Story.split,
    Story.split_and_restart,
    Story.one_way,
    Story.renumber,
    Story.boot_before_the_switch,
    Story.kill,
    Story.pause,
)


# Brokers, which know their neighbours by names of hosts.


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
