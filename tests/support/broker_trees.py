"""Broker nodes that form any tree, every one a process of its own, TLS on, over loopback."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from itertools import pairwise
from pathlib import Path
from string import ascii_uppercase

import psutil
import trio
from attrs import define, field, frozen

from gossamer.node.errors import NodeError
from gossamer.node.local.client import LocalClient, open_client
from support.broker_processes import dialling
from support.cluster_processes import ClusterProcesses
from support.node_processes import PATIENCE_S, Shell

POLL_S = 0.1
SETTINGS = {"discovery.multicast": "false"}


@frozen
class Overlay:
    """The papers' controlled overlays without inner brokers.

    A row of core brokers A, B, ..., with the publishers' brokers P1, P2, ... at the last one and
    the subscribers' S1, S2, ... at the others.
    """

    core: int
    subscriber_hosts: int
    publisher_hosts: int

    @property
    def row(self) -> tuple[str, ...]:
        return tuple(ascii_uppercase[: self.core])

    @property
    def subscribers(self) -> tuple[str, ...]:
        return tuple(f"S{number + 1}" for number in range(self.subscriber_hosts))

    @property
    def publishers(self) -> tuple[str, ...]:
        return tuple(f"P{number + 1}" for number in range(self.publisher_hosts))

    @property
    def brokers(self) -> tuple[str, ...]:
        return (*self.row, *self.subscribers, *self.publishers)

    def core_of(self, host: str) -> str:
        if host in self.publishers:
            return self.row[-1]
        attached = self.row[:-1]
        return attached[self.subscribers.index(host) * len(attached) // self.subscriber_hosts]

    def links(self) -> list[tuple[str, str]]:
        hosts = (*self.subscribers, *self.publishers)
        row = [(later, earlier) for earlier, later in pairwise(self.row)]
        return row + [(host, self.core_of(host)) for host in hosts]


# What a broker's log says when a link is down; what was sent and what was taken differ after that.
LINK_ENDED = "neighbour is gone"


@define(eq=False)
class BrokerTree(ClusterProcesses[str]):
    overlay: Overlay = field(kw_only=True)
    settings: Mapping[str, str] = field(kw_only=True)

    def options(self, name: str) -> Iterable[str]:
        dialled = [self.port(other) for one, other in self.overlay.links() if one == name]
        chosen = {**SETTINGS, **self.settings}
        return [
            *("--role", "broker", *dialling(dialled)),
            *(f"--set={key}={value}" for key, value in chosen.items()),
        ]

    def log(self, name: str) -> Path:
        return self.shell.folder / f"{name}.log"

    def start(self, *names: str) -> None:
        nowhere = subprocess.DEVNULL
        for name in names:
            with self.log(name).open("w") as log:
                self.begin(name, stdin=nowhere, stdout=nowhere, stderr=log)

    async def settle(self) -> None:
        """Wait until all links are up at both ends; raises `RuntimeError` if a broker ended
        instead."""
        with trio.fail_after(PATIENCE_S):
            for name in self.overlay.brokers:
                wanted = sum(name in link for link in self.overlay.links())
                await self._until_open(name)
                async with open_client(self.address(name), patience_s=0) as client:
                    while sum(link["up"] for link in (await client.tables())["links"]) < wanted:
                        await trio.sleep(POLL_S)

    async def _until_open(self, name: str) -> None:
        while True:
            self.check(name)
            with suppress(NodeError):
                async with open_client(self.address(name), patience_s=0):
                    return
            await trio.sleep(POLL_S)

    def check(self, name: str) -> None:
        """Make sure that a broker runs, and that no link of it broke; raises `RuntimeError`."""
        code = self.running[name].poll()
        log = self.log(name).read_text()
        if code is not None:
            raise RuntimeError(f"broker {name} ended with exit code {code}: {log[-2000:]}")
        broken = [line for line in log.splitlines() if LINK_ENDED in line]
        if broken:
            raise RuntimeError(f"a link of broker {name} broke: {broken[0]}")

    def processor_s(self) -> dict[str, float]:
        found = {}
        for name, process in self.running.items():
            times = psutil.Process(process.pid).cpu_times()
            found[name] = times.user + times.system
        return found

    def resident_bytes(self) -> int:
        """Memory of all brokers; what they share counts for each."""
        return sum(psutil.Process(one.pid).memory_info().rss for one in self.running.values())


def broker_tree(
    shell: Shell, overlay: Overlay, settings: Mapping[str, str]
) -> AbstractContextManager[BrokerTree]:
    return BrokerTree(shell, overlay.brokers, overlay=overlay, settings=settings).all_running()


async def read_numbers(client: LocalClient) -> dict[str, float]:
    """A broker's own metrics, without what all their names begin with."""
    prefix = "gossamer_broker_"
    lines: Sequence[str] = (await client.metrics()).splitlines()
    pairs = (line.removeprefix(prefix).rsplit(" ", 1) for line in lines if line.startswith(prefix))
    return {name: float(number) for name, number in pairs}
