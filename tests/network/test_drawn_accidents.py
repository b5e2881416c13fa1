"""Everyday accidents, drawn, at nodes in processes on hosts of their own.

Cuts between parts and in one direction, new addresses, nodes that boot before the switch does,
nodes that are killed, paused, or all restarted while they are apart. Every node publishes all the
time, and a named application at each wants everything: nothing acknowledged is lost, nothing comes
twice. A seed fixes the story, which a failing test prints.
"""

from __future__ import annotations

import random
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import attrs
import pytest
import trio

from gossamer.node.config.delivery import Delivery
from gossamer.node.errors import NodeError, UnacknowledgedError
from support.network_hosts import Host, network_hosts, number_anew
from support.node_fleets import QUICK, Fleet, Follower
from support.node_processes import COMMAND, Shell
from support.waiting import comes_true

pytestmark = pytest.mark.campaign

HOSTS = 5
DRAWS = 2
EPISODES = 3
# Until peers count each other as gone, whatever it was.
APART_S = 12.0
PAUSE_S = 0.1
REPAIR_S = 120.0
PORT = 7710


@attrs.define(eq=False)
class HostFleet(Fleet):
    """A fleet whose peers run on hosts of their own; they find each other by multicast."""

    hosts: Sequence[Host] = ()

    def host(self, name: str) -> Host:
        return self.hosts[self.names.index(name)]

    def begin(self, name: str, **streams: Any) -> None:
        command = (*self.host(name).inside, *COMMAND)
        words = ("node", "run", str(self.folder(name)), *self.options(name))
        self.running[name] = self.shell.start(*words, command=command, **streams)


SETTINGS: dict[str, object] = {
    **QUICK,
    "page__enabled": False,
    "preset": "lan",
    "listen__addresses": [f"0.0.0.0:{PORT}"],
    "discovery__peers": [],
    "discovery__multicast": True,
}


@attrs.define(eq=False)
class Story:
    """What happens, drawn; each episode ends with everything delivered everywhere."""

    fleet: HostFleet
    draws: random.Random
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
        size = self.draws.randrange(1, len(self.names))
        return shuffled[:size], shuffled[size:]

    def cut(self, these: Sequence[str], those: Sequence[str]) -> None:
        for name in these:
            self.fleet.host(name).shut_out(map(self.fleet.host, those))

    def heal(self) -> None:
        for host in self.fleet.hosts:
            host.let_in()

    async def publish(self, name: str) -> None:
        """Publish at a peer while it runs, until the end."""
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

    async def accident(self) -> None:
        """One of them, while everybody publishes."""
        accidents: list[Callable[[], Awaitable[None]]] = [
            self.split,
            self.split_and_restart,
            self.one_way,
            self.renumber,
            self.boot_before_the_switch,
            self.kill,
            self.pause,
        ]
        await self.draws.choice(accidents)()

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
        number_anew(self.fleet.hosts, f"10.{self.network}.0")
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
        number_anew(self.fleet.hosts, f"10.{self.network}.0")

    async def kill(self) -> None:
        killed = self.draws.sample(list(self.names), Delivery().successors)
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


async def test_nothing_acknowledged_is_lost_or_comes_twice(shell: Shell, seed: int) -> None:
    with network_hosts(HOSTS) as hosts, host_fleet(shell, hosts) as fleet:
        story = Story(fleet, random.Random(seed))
        await fleet.ready()
        followers = [Follower(fleet, name, "ledger") for name in fleet.names]

        def lacking() -> dict[str, int]:
            wanted = story.acknowledged.keys()
            return {one.peer: len(wanted - set(one.got)) for one in followers}

        async with trio.open_nursery() as nursery:
            for one in followers:
                await nursery.start(one.run)
            await trio.sleep(4)
            for name in fleet.names:
                nursery.start_soon(story.publish, name)
            for _ in range(EPISODES):
                await story.accident()
                story.heal()
                await trio.sleep(2)
                story.publishing = False
                done = await comes_true(lambda: not any(lacking().values()), REPAIR_S)
                assert done, (seed, story.told, lacking())
            nursery.cancel_scope.cancel()
        twice = [event for one in followers for event, n in Counter(one.got).items() if n > 1]
        assert not twice, (seed, story.told, twice)
        assert len(story.acknowledged) > 20 * EPISODES, (seed, story.told)
        print(f"seed {seed}: {len(story.acknowledged)} events acknowledged; {story.told}")
