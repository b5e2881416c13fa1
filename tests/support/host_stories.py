"""Everyday accidents of nodes on hosts of their own: cuts, new addresses, kills, pauses.

Hosts are network namespaces on one switch, each with an address of its own. A story draws
accidents, while a client publishes at every node and an application at each wants everything. It is
told in what it says, and ends each accident with everything delivered everywhere.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import attrs
import pytest
import trio

from gossamer.node.config.delivery import Delivery
from gossamer.node.errors import NodeError, UnacknowledgedError
from support.node_fleets import Fleet, Follower
from support.node_processes import COMMAND
from support.waiting import comes_true

PORT = 7710
# Until nodes count each other as gone, whatever it was.
APART_S = 12.0
PAUSE_S = 0.1
# What is acknowledged in an episode at least.
LEAST = 20


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
    *(Story.split, Story.split_and_restart, Story.one_way, Story.renumber),
    *(Story.boot_before_the_switch, Story.kill, Story.pause),
)


NETWORK = "10.77.0"
SWITCH = "switch"


@attrs.define
class Host:
    name: str
    number: int
    interface: str  # of the network that all hosts are on
    network: str = NETWORK

    @property
    def address(self) -> str:
        return f"{self.network}.{self.number}"

    @property
    def inside(self) -> tuple[str, ...]:
        """What a command begins with that is to run on this host."""
        return ("ip", "netns", "exec", self.name)

    def run(self, *command: str) -> None:
        _run(*self.inside, *command)

    def shut_out(self, others: Iterable[Host]) -> None:
        """Let nothing of this host reach others, until `let_in`."""
        for other in others:
            self.run("ip", "route", "replace", "blackhole", f"{other.address}/32")

    def let_in(self) -> None:
        self.run("ip", "route", "flush", "type", "blackhole")

    def unplug(self, *, is_unplugged: bool) -> None:
        self.run("ip", "link", "set", self.interface, "down" if is_unplugged else "up")


@contextmanager
def network_hosts(count: int) -> Iterator[Sequence[Host]]:
    """So many hosts; the test is skipped where this user may not make any."""
    mine = os.getpid()
    hosts = [Host(f"gossamer-{mine}-{n}", n, f"gsm{mine}n{n}") for n in range(1, count + 1)]
    switch = Host(f"gossamer-{mine}-{SWITCH}", 0, SWITCH)
    with ExitStack() as stack:
        for host in (switch, *hosts):
            _make_namespace(host)
            stack.callback(_run, "ip", "netns", "delete", host.name)
        switch.run("ip", "link", "add", SWITCH, "type", "bridge")
        switch.run("ip", "link", "set", SWITCH, "up")
        for host in hosts:
            port = f"gsp{mine}n{host.number}"  # of its own: it is on this machine at first
            _run("ip", "link", "add", host.interface, "type", "veth", "peer", "name", port)
            _run("ip", "link", "set", host.interface, "netns", host.name)
            _run("ip", "link", "set", port, "netns", switch.name)
            switch.run("ip", "link", "set", port, "master", SWITCH, "up")
            host.run("ip", "link", "set", host.interface, "up")
            host.run("ip", "link", "set", "lo", "up")
        number_anew(hosts, NETWORK)
        yield hosts


def number_anew(hosts: Sequence[Host], network: str) -> None:
    for host in hosts:
        host.run("ip", "address", "flush", "dev", host.interface, "scope", "global")
        host.network = network
        host.run("ip", "address", "add", f"{host.address}/24", "dev", host.interface)
        # Multicast goes the way of the interface that has an address.
        host.run("ip", "route", "replace", "224.0.0.0/4", "dev", host.interface)


@contextmanager
def firewall(host: Host, port: int) -> Iterator[None]:
    """Let ``host`` drop what comes to a TCP port; skipped where there is no firewall to use."""
    if shutil.which("nft") is None:
        pytest.skip("there is no nft here to make a firewall with")
    table = ("table", "inet", "gossamer")
    host.run("nft", "add", *table)
    hook = "{ type filter hook input priority 0 ; }"
    host.run("nft", "add", "chain", *table[1:], "input", hook)
    host.run("nft", "add", "rule", *table[1:], "input", "tcp", "dport", str(port), "drop")
    try:
        yield
    finally:
        host.run("nft", "delete", *table)


def _make_namespace(host: Host) -> None:
    if shutil.which("ip") is None:
        pytest.skip("there is no ip command (iproute2) here to make network namespaces with")
    try:
        _run("ip", "netns", "add", host.name)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"network namespaces cannot be made here: {error.stderr.strip()}")


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=20)
