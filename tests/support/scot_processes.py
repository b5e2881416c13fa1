"""Brokers of a SCOT in processes of their own, TLS on, over loopback.

Every link goes by way of a small relay in the test's own process, so that it can be cut.
"""

from __future__ import annotations

import math
import signal
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import trio
from attrs import define, field

from gossamer.node.commands.folder import address_of
from gossamer.node.errors import NodeError
from gossamer.node.local.client import LocalClient, open_client
from gossamer.protocol.brokers.scot import BrokerLabel, Scot
from support.node_processes import PATIENCE_S, Shell, end, free_ports, wait_for_log

POLL_S = 0.05

Link = tuple[BrokerLabel, BrokerLabel]


@define(eq=False)
class Relay:
    """Stands between the ends of a link.

    Attributes:
        port: where one end dials.
        target: where the other listens.
        cut: whether nothing goes through.
    """

    port: int
    target: int
    cut: bool = False
    _scopes: set[trio.CancelScope] = field(factory=set)

    async def run(self, *, task_status: trio.TaskStatus[list[trio.SocketListener]]) -> None:
        await trio.serve_tcp(self._serve, self.port, host="127.0.0.1", task_status=task_status)

    def break_now(self) -> None:
        """Cut the link."""
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
class ScotProcesses:
    """The brokers in the folder ``demo``: peer1, peer2, ..., cluster by cluster.

    Attributes:
        scot: the overlay; the names of its regions have one letter.
        settings: of `[scot]`, besides the factors.
        running: processes by label.
        relays: by link, the end that dials first.
    """

    shell: Shell
    scot: Scot
    settings: Mapping[str, str]
    running: dict[BrokerLabel, subprocess.Popen[str]] = field(factory=dict)
    relays: dict[Link, Relay] = field(factory=dict)
    _first_port: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        links = list(self.scot.links())
        self._first_port = free_ports(self.scot.broker_count + len(links))
        brokers = str(self.scot.broker_count)
        self.shell.ok("node", "init", "demo", "--peers", brokers, "--port", str(self._first_port))
        for number, (one, other) in enumerate(links):
            port = self._first_port + self.scot.broker_count + number
            self.relays[other, one] = Relay(port, self._port(one))

    def _port(self, label: BrokerLabel) -> int:
        return self._first_port + self.scot.brokers.index(label)

    def folder(self, label: BrokerLabel) -> Path:
        return self.shell.folder / f"demo/peer{self.scot.brokers.index(label) + 1}"

    def begin(self, label: BrokerLabel) -> None:
        """Start a broker that dials those before it."""
        dialled = [relay.port for (one, _), relay in self.relays.items() if one == label]
        joined = [f"{one}-{other}" for one, other in self.scot.acyclic.edges]
        edges = [word for edge in joined for word in ("--edge", edge)]
        count = str(len(self.scot.clusters))
        changes = [f"scot.{name}={value}" for name, value in self.settings.items()]
        self.running[label] = self.shell.start(
            *("node", "run", str(self.folder(label)), "--role", "broker", "--overlay", "scot"),
            *(
                "--region",
                label.region,
                "--cluster",
                str(label.cluster),
                "--clusters",
                count,
                *edges,
            ),
            *[word for port in dialled for word in ("--neighbour", f"127.0.0.1:{port}")],
            *[word for change in changes for word in ("--set", change)],
        )

    async def ready(self, label: BrokerLabel) -> None:
        """Wait until a broker that was begun is there."""
        await trio.to_thread.run_sync(wait_for_log, self.running[label], "ready")

    async def kill(self, label: BrokerLabel) -> None:
        """kill -9"""
        process = self.running.pop(label)
        process.kill()
        await trio.to_thread.run_sync(lambda: process.communicate(timeout=PATIENCE_S))

    async def with_client(
        self, label: BrokerLabel, name: str, work: Callable[[LocalClient], Awaitable[None]]
    ) -> None:
        """Do something as a client of a broker, as soon as that lets it in."""
        begun = False
        with trio.CancelScope() as patience:
            patience.deadline = trio.current_time() + PATIENCE_S
            while not begun:
                try:
                    async with open_client(
                        address_of(self.folder(label)), name, patience_s=0
                    ) as client:
                        begun, patience.deadline = True, math.inf
                        await work(client)
                except NodeError:
                    if begun:
                        raise
                    await trio.sleep(POLL_S)
        assert begun, f"{label} lets nobody in"

    async def settle(self) -> None:
        """Wait until every link between brokers that run is up at both ends, or cut at both."""
        for label in self.running:
            await self.with_client(label, "looker", partial(self._settle_one, label))

    async def _settle_one(self, label: BrokerLabel, client: LocalClient) -> None:
        with trio.fail_after(PATIENCE_S):
            while self._missing(label, await client.tables()):
                await trio.sleep(POLL_S)

    def _missing(self, label: BrokerLabel, told: dict[str, Any]) -> set[str]:
        ups = {link["place"] for link in told["links"] if link["up"]}
        beside = {
            (one if other == label else other): relay.cut
            for (one, other), relay in self.relays.items()
            if label in (one, other)
        }
        wanted = {str(one) for one, cut in beside.items() if not cut and one in self.running}
        return wanted ^ ups


@asynccontextmanager
async def scot_processes(shell: Shell, scot: Scot, **settings: str) -> AsyncIterator[ScotProcesses]:
    """Brokers that run; stopped at the end."""
    made = ScotProcesses(shell, scot, settings)
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
            for process in made.running.values():
                process.send_signal(signal.SIGTERM)
            for process in made.running.values():
                end(process)
            nursery.cancel_scope.cancel()
