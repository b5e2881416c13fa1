"""Brokers in processes of their own: rows, trees, a SCOT whose links can be cut, and a graph."""

from __future__ import annotations

import math
import re
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from itertools import pairwise
from string import ascii_uppercase
from typing import Any

import psutil
import trio
from attrs import define, field, frozen

from gossamer.client.link import LocalAddress
from gossamer.node.errors import NodeError
from gossamer.node.local.client import LocalClient, open_client
from gossamer.protocol.brokers.scot import BrokerLabel, Scot
from support.node_fleets import ClusterProcesses, Fleet
from support.node_processes import PATIENCE_S, Shell, wait_for_log

POLL_S = 0.05
QUIET = {"discovery.multicast": "false"}
# All publications are sampled and any saving is worth other trees, so that there are many.
GRAPH = {"graph.probability": 1, "graph.threshold": 0, **QUIET}
INSTALLED = r"(?m)^gossamer_broker_installed_total (\S+)"

Link = tuple[BrokerLabel, BrokerLabel]


def broker_options(ports: Iterable[int], settings: Mapping[str, object]) -> list[str]:
    dialled = [word for port in ports for word in ("--neighbour", f"127.0.0.1:{port}")]
    return ["--role", "broker", *dialled, *(f"--set={key}={one}" for key, one in settings.items())]


def place_options(scot: Scot, label: BrokerLabel) -> list[str]:
    """Where a broker of a SCOT is, and what the SCOT is like."""
    return [
        *("--region", label.region, "--cluster", str(label.cluster)),
        *("--clusters", str(len(scot.clusters))),
        *(f"--edge={one}-{other}" for one, other in scot.acyclic.edges),
    ]


@define(eq=False)
class BrokerProcesses(ClusterProcesses[int]):
    names: Sequence[int] = (1, 2, 3)

    def options(self, name: int) -> Iterable[str]:
        before = [self.port(name - 1)] if name > 1 else []
        return ("--covering", "active", *broker_options(before, {}))

    def wait_for(self, number: int, **sizes: int) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            told = trio.run(self.tables, number)
            if all(told["sizes"][name] == size for name, size in sizes.items()):
                return told
            assert time.monotonic() < deadline, f"{told['sizes']}, expected {sizes}"
            time.sleep(POLL_S)


def broker_processes(shell: Shell) -> AbstractContextManager[BrokerProcesses]:
    return BrokerProcesses(shell).all_running()


@define(eq=False)
class Relay:
    """Stands between the ends of a link: one dials ``port``, the other listens at ``target``."""

    port: int
    target: int
    cut: bool = False
    _scopes: set[trio.CancelScope] = field(factory=set)

    async def run(self, *, task_status: trio.TaskStatus[list[trio.SocketListener]]) -> None:
        await trio.serve_tcp(self._serve, self.port, host="127.0.0.1", task_status=task_status)

    def break_now(self) -> None:
        self.cut = True
        for scope in self._scopes:
            scope.cancel()

    async def _serve(self, near: trio.SocketStream) -> None:
        if self.cut:
            return
        with trio.CancelScope() as scope:
            self._scopes.add(scope)
            try:
                far = await trio.open_tcp_stream("127.0.0.1", self.target)
                async with far, trio.open_nursery() as nursery:
                    nursery.start_soon(_pump, near, far, scope)
                    nursery.start_soon(_pump, far, near, scope)
            except OSError:
                pass  # nobody listens there now
            finally:
                self._scopes.discard(scope)


async def _pump(
    source: trio.SocketStream, sink: trio.SocketStream, scope: trio.CancelScope
) -> None:
    try:
        async for data in source:
            await sink.send_all(data)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass
    scope.cancel()


@define(eq=False)
class ScotProcesses(ClusterProcesses[BrokerLabel]):
    """The brokers of a SCOT, cluster by cluster; its regions have names of one letter.

    Every link goes by way of a small relay in the test's own process, so that it can be cut. Relays
    are known by the ends of their links, the one that dials first.
    """

    scot: Scot = field(kw_only=True)
    settings: Mapping[str, str] = field(kw_only=True)
    relays: dict[Link, Relay] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        links = list(self.scot.links())
        first = self.first_port + self.scot.broker_count
        for port, (one, other) in enumerate(links, first):
            self.relays[other, one] = Relay(port, self.port(one))

    def options(self, name: BrokerLabel) -> Iterable[str]:
        settings = {f"scot.{key}": value for key, value in self.settings.items()}
        ports = (relay.port for (one, _), relay in self.relays.items() if one == name)
        place = place_options(self.scot, name)
        return ["--overlay", "scot", *place, *broker_options(ports, settings)]

    async def ready(self, label: BrokerLabel) -> None:
        await trio.to_thread.run_sync(wait_for_log, self.running[label], "ready")

    async def with_client(
        self, label: BrokerLabel, name: str, work: Callable[[LocalClient], Awaitable[None]]
    ) -> None:
        begun = False
        with trio.CancelScope() as patience:
            patience.deadline = trio.current_time() + PATIENCE_S
            while not begun:
                try:
                    async with open_client(self.address(label), name, patience_s=0) as client:
                        begun, patience.deadline = True, math.inf
                        await work(client)
                except NodeError:
                    if begun:
                        raise
                    await trio.sleep(POLL_S)
        assert begun, f"{label} lets nobody in"

    async def settle(self) -> None:
        """Wait until every link between brokers that run is up at both ends, or cut at both."""
        with trio.fail_after(PATIENCE_S):
            for label in self.running:
                while self._missing(label, await self.tables(label)):
                    await trio.sleep(POLL_S)

    def _missing(self, label: BrokerLabel, told: dict[str, Any]) -> set[str]:
        ups = {link["place"] for link in told["links"] if link["up"]}
        beside = {
            (one if other == label else other): relay.cut
            for (one, other), relay in self.relays.items()
            if label in (one, other)
        }
        return ups ^ {str(one) for one, cut in beside.items() if not cut and one in self.running}


@asynccontextmanager
async def scot_processes(shell: Shell, scot: Scot, **settings: str) -> AsyncIterator[ScotProcesses]:
    links = len(list(scot.links()))
    made = ScotProcesses(shell, scot.brokers, links, scot=scot, settings=settings)
    async with trio.open_nursery() as nursery:
        for relay in made.relays.values():
            await nursery.start(relay.run)
        try:
            for label in scot.brokers:
                made.begin(label)
            for label in scot.brokers:
                await made.ready(label)
            await made.settle()
            yield made
        finally:
            made.stop()
            nursery.cancel_scope.cancel()


@define(eq=False)
class GraphProcesses(ClusterProcesses[int]):
    interval_s: float = field(kw_only=True)
    _keys: dict[str, int] = field(factory=dict)

    def options(self, name: int) -> Iterable[str]:
        times = {"graph.interval_s": self.interval_s, "graph.tick_s": 0.3 * self.interval_s}
        beside = {name - 1, name - 3} | ({1} if name == len(self.names) else set())
        ports = (self.port(one) for one in sorted(beside) if 1 <= one < name)
        return ["--overlay", "graph", *broker_options(ports, {**GRAPH, **times})]

    def begin(self, name: int, **streams: Any) -> None:
        super().begin(name, stdout=subprocess.DEVNULL, **streams)

    async def coordinator(self) -> int | None:
        found = {(await self.tables(number))["coordinator"] for number in self.running}
        numbers = {
            next((number for key, number in self._keys.items() if key in text), None)
            for text in found
        }
        return numbers.pop() if len(numbers) == 1 else None

    async def until_all(self, condition: Callable[[Mapping[str, Any]], bool]) -> None:
        with trio.fail_after(PATIENCE_S):
            for number in sorted(self.running):
                while not condition(await self.tables(number)):
                    await trio.sleep(POLL_S)

    async def installed(self) -> int:
        """How often coordinators that run have installed other trees."""
        found = 0.0
        for number in self.running:
            async with open_client(self.address(number)) as client:
                told = re.search(INSTALLED, await client.metrics())
                found += float(told[1]) if told else 0.0
        return int(found)

    async def learn_keys(self) -> None:
        for number in self.running:
            async with open_client(self.address(number)) as client:
                self._keys[(await client.status())["peer"]] = number


@define(eq=False)
class Subscriber:
    """A client with a name that comes back whenever its broker does, and forgets nothing.

    It knows publications by their position at the broker, which stays the same for those that are
    handed on again after the connection ended.
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
        return [self.got[position] for position in sorted(self.got)]


def graph_processes(
    shell: Shell, count: int, interval_s: float
) -> AbstractContextManager[GraphProcesses]:
    return GraphProcesses(shell, range(1, count + 1), interval_s=interval_s).all_running()


# Trees of any shape.


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
class BrokerTree(Fleet):
    overlay: Overlay = field(kw_only=True)

    def options(self, name: str) -> Iterable[str]:
        dialled = [self.port(other) for one, other in self.overlay.links() if one == name]
        return broker_options(dialled, {**QUIET, **self.settings})

    async def settle(self) -> None:
        """Wait until all links are up at both ends; raises `RuntimeError` if a broker ended
        instead."""
        with trio.fail_after(PATIENCE_S):
            for name in self.overlay.brokers:
                wanted = sum(name in link for link in self.overlay.links())
                while await self._links_up(name) < wanted:
                    self.check(name)
                    await trio.sleep(POLL_S)

    async def _links_up(self, name: str) -> int:
        with suppress(NodeError):
            async with open_client(self.address(name), patience_s=0) as client:
                return sum(link["up"] for link in (await client.tables())["links"])
        return -1  # it does not listen yet

    def check(self, name: str) -> None:
        """Make sure that a broker runs, and that no link of it broke; raises `RuntimeError`."""
        code = self.running[name].poll()
        log = self.log(name)
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
        return sum(psutil.Process(one.pid).memory_info().rss for one in self.running.values())


def broker_tree(
    shell: Shell, overlay: Overlay, settings: Mapping[str, str]
) -> AbstractContextManager[BrokerTree]:
    return BrokerTree(shell, overlay.brokers, overlay=overlay, settings=settings).all_running()


async def read_numbers(client: LocalClient) -> dict[str, float]:
    prefix = "gossamer_broker_"
    lines: Sequence[str] = (await client.metrics()).splitlines()
    pairs = (line.removeprefix(prefix).rsplit(" ", 1) for line in lines if line.startswith(prefix))
    return {name: float(number) for name, number in pairs}
