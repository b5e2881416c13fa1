"""Peers and brokers on hosts of their own: one joins and is examined; accidents of several."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Self

import attrs
import pytest
import trio

from gossamer.node.commands.clients.subscribing import Wanted, taken
from gossamer.node.errors import NodeError
from gossamer.node.local.client import LocalClient, open_client
from gossamer.protocol.brokers.scot import Factor, Scot
from support.broker_processes import place_options
from support.host_stories import (
    ACCIDENTS,
    PORT,
    Accident,
    Host,
    HostFleet,
    Story,
    firewall,
    network_hosts,
    number_anew,
)
from support.node_fleets import LOOK_S, QUICK, Follower
from support.node_processes import COMMAND, PATIENCE_S, Shell, end, wait_for_line, wait_for_log
from support.waiting import running

pytestmark = pytest.mark.campaign

LINE = '{"symbol": "IBM", "price": 90, "volume": 1}\n'
ATTEMPTS = 200


@pytest.fixture
def hosts() -> Iterator[Sequence[Host]]:
    with network_hosts(2) as made:
        yield made


def on(host: Host, shell: Shell, *arguments: str, text: str = "", alone: bool = False) -> str:
    """What a command prints that does its work on ``host``, which may be ``alone`` then."""
    process = shell.start(*arguments, command=command_on(host), stdin=subprocess.PIPE)
    out, err = process.communicate(text, timeout=PATIENCE_S)
    assert process.returncode in ((0, 3) if alone else (0,)), err
    return out


def command_on(host: Host) -> tuple[str, ...]:
    return (*host.inside, *COMMAND)


@contextmanager
def node(host: Host, shell: Shell, folder: str, *more: str) -> Iterator[subprocess.Popen[str]]:
    process = shell.start("node", "run", folder, *more, command=command_on(host))
    try:
        wait_for_log(process, "ready")
        yield process
    finally:
        end(process, signal.SIGTERM)


def join(hosts: Sequence[Host], shell: Shell) -> None:
    """Make a cluster on the first host and a member of it on the second, in `desk` and `kitchen`.

    The desk's node has to run.
    """
    desk, kitchen = hosts
    token = on(desk, shell, "node", "invite", "--folder", "desk").strip()
    on(kitchen, shell, "node", "join", token, "kitchen")


def assert_events_arrive(hosts: Sequence[Host], shell: Shell) -> None:
    desk, kitchen = hosts
    subscribe = ("sub", "--folder", "kitchen", "--count", "1", "price > 80")
    subscriber = shell.start(*subscribe, command=command_on(kitchen))
    wait_for_line(subscriber, "subscribed")
    # A subscription needs some rounds to be known everywhere.
    for _ in range(ATTEMPTS):
        on(desk, shell, "pub", "--folder", "desk", "--jsonl", "-", text=LINE, alone=True)
        with suppress(subprocess.TimeoutExpired):
            subscriber.wait(0.2)
            break
    code, out, _ = end(subscriber)
    assert (code, json.loads(out)["values"]) == (0, json.loads(LINE))


def test_a_peer_on_a_second_host_joins_and_gets_events(hosts: Sequence[Host], shell: Shell) -> None:
    desk, kitchen = hosts
    shell.ok("node", "init", "desk")
    with node(desk, shell, "desk"):
        join(hosts, shell)
        with node(kitchen, shell, "kitchen", "--set", "discovery.multicast=false"):
            assert_events_arrive(hosts, shell)
            told = json.loads(on(kitchen, shell, "node", "status", "kitchen", "--json"))
            assert told["addresses"] == [f"{kitchen.address}:{PORT}"]


def test_peers_on_two_hosts_find_each_other(hosts: Sequence[Host], shell: Shell) -> None:
    desk, kitchen = hosts
    shell.ok("node", "init", "desk")
    with node(desk, shell, "desk"):
        join(hosts, shell)
    forgetful = ("--set", "discovery.peers=[]", "--set", "discovery.remember=false")
    with node(desk, shell, "desk", *forgetful), node(kitchen, shell, "kitchen", *forgetful):
        assert_events_arrive(hosts, shell)


def test_the_doctor_tells_why_a_host_cannot_be_reached(hosts: Sequence[Host], shell: Shell) -> None:
    desk, kitchen = hosts
    shell.ok("node", "init", "desk")
    examine = ("node", "doctor", "--folder", "kitchen", "--json")

    def assert_found(words: str, host: str = desk.address) -> None:
        code, out, err = end(shell.start(*examine, f"{host}:{PORT}", command=command_on(kitchen)))
        assert code == 1, err
        assert words in out

    with node(desk, shell, "desk"):
        join(hosts, shell)
        found = on(kitchen, shell, *examine, f"{desk.address}:{PORT}")
        assert f"{desk.address} is on the network of" in found
        with firewall(desk, PORT):
            assert_found("or a firewall drops it")
        assert_found("nobody on the way knows that machine", "10.77.0.9")
        assert_found("this machine has no way to that network", "10.78.0.1")
    assert_found("nothing listens on that port")


def test_a_cluster_given_new_addresses_meets_again(hosts: Sequence[Host], shell: Shell) -> None:
    """While its nodes run, while they do not, and while one starts without a network."""
    desk, kitchen = hosts
    shell.ok("node", "init", "desk")
    with node(desk, shell, "desk"):
        join(hosts, shell)
        with node(kitchen, shell, "kitchen"):
            assert_events_arrive(hosts, shell)
            number_anew(hosts, "10.78.0")
            assert_events_arrive(hosts, shell)
    number_anew(hosts, "10.79.0")
    with node(desk, shell, "desk"):
        kitchen.unplug(is_unplugged=True)
        with node(kitchen, shell, "kitchen"):
            kitchen.unplug(is_unplugged=False)
            assert_events_arrive(hosts, shell)


# Everyday accidents, drawn: cuts between parts and in one direction, new addresses, nodes that boot
# before the switch does, nodes that are killed, paused, or all restarted while they are apart.

HOSTS, EPISODES = 5, 3
DRAWS = 2
SETTINGS: dict[str, object] = {
    **QUICK,
    "page__enabled": False,
    "preset": "lan",
    "listen__addresses": [f"0.0.0.0:{PORT}"],
    "discovery__peers": [],
    "discovery__multicast": True,  # they find each other
}


@contextmanager
def host_fleet(shell: Shell, hosts: Sequence[Host]) -> Iterator[HostFleet]:
    made = HostFleet.make(shell, len(hosts), **SETTINGS)
    assert isinstance(made, HostFleet)
    made.hosts = hosts
    try:
        made.start(*made.names)
        yield made
    finally:
        made.stop()


async def test_peers_neither_lose_nor_repeat(shell: Shell, seed: int) -> None:
    """Every node publishes all the time, and a named application at each wants everything.

    A seed fixes the story, which a failing test prints.
    """
    with network_hosts(HOSTS) as hosts, host_fleet(shell, hosts) as fleet:
        await fleet.ready()
        followers = [Follower(fleet, name, "ledger") for name in fleet.names]
        async with running() as nursery:
            for one in followers:
                await nursery.start(one.run)
            await trio.sleep(4)
            await Story(fleet, random.Random(seed)).play(followers, EPISODES)


# Brokers, under the accidents that their family promises to survive.

# `ip netns exec` mounts what is in a folder of a namespace's name here over files of /etc.
ETC = Path("/etc/netns")
WANTED = "price >= 0"
# Another broker is found out to be gone several times as soon as with the settings of others.
LIMITS = {key: value for key, value in QUICK.items() if key.startswith("limits__")}


@attrs.frozen
class Layout:
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
        async with taken(
            self.fleet.address(self.peer), Wanted(expression=WANTED, name=self.name)
        ) as events:
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
    layout: Layout
    accidents: Sequence[Accident] = ACCIDENTS
    one_at_a_time: bool = False


FAMILIES = {
    "tree": Family(TREE),
    "scot": Family(SCOT, (Story.split, Story.one_way, Story.kill, Story.pause), one_at_a_time=True),
    "graph": Family(GRAPH),
}


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
async def test_brokers_neither_lose_nor_repeat(shell: Shell, family: Family, seed: int) -> None:
    count = len(family.layout.dials)
    with network_hosts(count) as hosts, broker_fleet(shell, hosts, family.layout) as fleet:
        await fleet.ready()
        followers = [BrokerFollower.at(fleet, name) for name in fleet.names]
        async with running() as nursery:
            for one in followers:
                await nursery.start(one.run)
            await fleet.known_everywhere(followers)
            draws = random.Random(seed)
            story = Story(fleet, draws, family.accidents, one_at_a_time=family.one_at_a_time)
            await story.play(followers, EPISODES)
        repeated = {one.peer: one.hidden for one in followers if one.hidden}
        assert not repeated, (story.told, repeated)
