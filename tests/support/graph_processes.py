"""Brokers of a general graph in processes of their own, TLS on, over loopback."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import trio
from attrs import define, field

from gossamer.client.address import LocalAddress
from gossamer.node.commands.folder import address_of
from gossamer.node.errors import NodeError
from gossamer.node.local.client import LocalClient, open_client
from support.node_processes import PATIENCE_S, Shell, end, free_ports, wait_for_log

POLL_S = 0.05
SETTINGS = {
    "graph.probability": 1,
    "graph.threshold": 0,
    "discovery.multicast": "false",
}
"""All publications are sampled and any saving is worth other trees, so that there are many."""


@define(eq=False)
class GraphProcesses:
    """Brokers in the folder ``demo``, on a ring with a link from each to the third one after it.

    Attributes:
        count: how many there are.
        interval_s: between two plans.
        running: by number, from 1 on.
    """

    shell: Shell
    count: int
    interval_s: float
    running: dict[int, subprocess.Popen[str]] = field(factory=dict)
    _first_port: int = field(init=False)
    _keys: dict[str, int] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self._first_port = free_ports(self.count)
        self.shell.ok(
            *("node", "init", "demo", "--peers", str(self.count)),
            *("--port", str(self._first_port)),
        )

    def neighbours(self, number: int) -> list[int]:
        """The brokers before a broker that it dials."""
        dialled = {number - 1, number - 3} | ({1} if number == self.count else set())
        return sorted(one for one in dialled if 1 <= one < number)

    def start(self, number: int) -> None:
        """Start a broker; it is ready when this returns."""
        self.launch(number)
        wait_for_log(self.running[number], "ready")

    def launch(self, number: int) -> None:
        """Begin to start a broker."""
        times = {"graph.interval_s": self.interval_s, "graph.tick_s": 0.3 * self.interval_s}
        options = [f"--set={name}={value}" for name, value in {**SETTINGS, **times}.items()]
        for other in self.neighbours(number):
            options += ["--neighbour", f"127.0.0.1:{self._first_port + other - 1}"]
        self.running[number] = self.shell.start(
            *("node", "run", f"demo/peer{number}", "--role", "broker", "--overlay", "graph"),
            *options,
            stdout=subprocess.DEVNULL,
        )

    def kill(self, number: int) -> None:
        """kill -9"""
        process = self.running.pop(number)
        process.kill()
        process.communicate(timeout=PATIENCE_S)

    def address(self, number: int) -> LocalAddress:
        """Where a broker's clients connect."""
        return address_of(self.shell.folder / f"demo/peer{number}")

    async def tables(self, number: int) -> dict[str, Any]:
        """What a broker tells of its tables."""
        async with open_client(self.address(number)) as client:
            return await client.tables()

    async def coordinator(self) -> int | None:
        """The broker that all running ones take for the coordinator, None if they do not agree."""
        found = set()
        for number in self.running:
            told = await self.tables(number)
            found.add(told["coordinator"])
        names = {self._number_of(text) for text in found}
        return names.pop() if len(names) == 1 else None

    async def until_all(self, condition: Callable[[Mapping[str, Any]], bool]) -> None:
        """Wait until the tables of all brokers that run are as they should be."""
        with trio.fail_after(PATIENCE_S):
            for number in sorted(self.running):
                while not condition(await self.tables(number)):
                    await trio.sleep(POLL_S)

    async def installed(self) -> int:
        """How often coordinators that run have installed other trees."""
        found = 0.0
        for number in self.running:
            async with open_client(self.address(number)) as client:
                told = re.search(
                    r"(?m)^gossamer_broker_installed_total (\S+)", await client.metrics()
                )
                found += float(told[1]) if told else 0.0
        return int(found)

    async def learn_keys(self) -> None:
        """Learn by which key each broker is known."""
        for number in self.running:
            async with open_client(self.address(number)) as client:
                self._keys[(await client.status())["peer"]] = number

    def _number_of(self, label: str) -> int | None:
        return next((number for key, number in self._keys.items() if key in label), None)


@define(eq=False)
class Subscriber:
    """A client with a name that comes back whenever its broker does, and forgets nothing.

    Attributes:
        got: publications by their position at the broker. One that is handed on again after the
            connection ended has the same position.
    """

    name: str
    filters: Mapping[str, str]
    got: dict[int, str] = field(factory=dict)

    async def run(
        self,
        address: LocalAddress,
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Take what comes, until cancelled."""
        asked = False
        while True:
            try:
                async with open_client(address, self.name, patience_s=0) as client:
                    if not asked:
                        for label, text in self.filters.items():
                            await client.subscribe(label, text)
                        asked = True
                        task_status.started()
                    await self._take(client)
            except NodeError:
                if not asked:
                    raise
            await trio.sleep(POLL_S)

    async def _take(self, client: LocalClient) -> None:
        async for event in client.events:
            self.got[event.position] = event.id
            await client.acknowledge(event)

    @property
    def ids(self) -> list[str]:
        """What it got, in order."""
        return [self.got[position] for position in sorted(self.got)]


@contextmanager
def graph_processes(shell: Shell, count: int, interval_s: float) -> Iterator[GraphProcesses]:
    """Brokers that run; stopped at the end."""
    brokers = GraphProcesses(shell, count, interval_s)
    try:
        for number in range(1, count + 1):
            brokers.launch(number)
        for process in brokers.running.values():
            wait_for_log(process, "ready")
        yield brokers
    finally:
        for process in brokers.running.values():
            process.send_signal(signal.SIGTERM)
        for process in brokers.running.values():
            end(process)
