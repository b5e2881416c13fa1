"""A cluster of real nodes in everyday use, with drawn churn and floods, and a watch over them.

Its clients are of other kinds than `support.campaign` has.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from pathlib import Path

import attrs
import trio

from gossamer.client import connect
from gossamer.client.errors import NodeError
from gossamer.client.frames import LAST
from gossamer.client.link import LocalAddress
from gossamer.client.results import Fate
from gossamer.node.local.client import LocalClient, open_client
from support.campaign import ALL, SYMBOLS, Campaign, Published
from support.node_fleets import Fleet
from support.node_processes import PATIENCE_S
from support.soak_measures import Sample, Trend, sample_of, times_of, trend

# Until what was acknowledged has come everywhere, and the ring is right again, beside other tests.
SETTLED_S = 180.0
# Of one request; fewer than the peers have room for.
FLOOD_EVENTS = 128
# What a node says once it takes more memory for good.
COMPILED = "compiled rules are used"
# No flood goes on for longer, whatever the node does with it.
FLOOD_S = 20.0


@attrs.define(eq=False)
class FleetNodes:
    fleet: Fleet
    names: dict[int, str] = attrs.field(factory=dict)

    @classmethod
    async def of(cls, fleet: Fleet) -> FleetNodes:
        found = cls(fleet)
        for name in fleet.names:
            async with fleet.client(name) as client:
                found.names[int(client.peer, 16)] = name
        return found

    @property
    def members(self) -> Collection[int]:
        return self.names

    def address(self, key: int) -> LocalAddress:
        return self.fleet.address(self.names[key])


@attrs.define(eq=False)
class Watch:
    fleet: Fleet
    every_s: float
    # Of each process, by the peer's name and the process' id.
    samples: dict[tuple[str, int], list[Sample]] = attrs.field(factory=dict)

    async def run(self) -> None:
        while True:
            for name in self.fleet.names:
                self.look(name)
            await trio.sleep(self.every_s)

    def look(self, name: str) -> Sample | None:
        pid = self.fleet.pid(name)
        found = None if pid is None else sample_of(pid, time.time())
        if pid is not None and found is not None:
            self.samples.setdefault((name, pid), []).append(found)
        return found

    def trends(self, warm_up_s: float) -> dict[tuple[str, int], Trend | None]:
        logs = {name: self.fleet.log(name) for name in self.fleet.names}
        steps = {name: times_of(COMPILED, log) for name, log in logs.items()}
        return {
            (name, pid): trend(samples, warm_up_s, steps[name])
            for (name, pid), samples in self.samples.items()
        }


@attrs.define(eq=False)
class Soak:
    """What happens to the cluster, drawn: faults one after another, and floods beside them."""

    run: Campaign[FleetNodes]  # the applications, and the accounts of what they got
    gap_s: float  # about how long nothing happens between two faults, and between two floods
    done: dict[str, int] = attrs.field(factory=dict)  # how often each kind of fault and flood came
    _versions: int = 1

    @property
    def fleet(self) -> Fleet:
        return self.run.crowd.fleet

    async def churn(self, until: float) -> None:
        """Kill, restart and pause peers, and change the schema, until a time of trio's clock.

        The first two peers are paused at most, so that their memory is watched all the time.
        """
        await self._go_on(until, [self.kill, self.restart, self.pause, self.change_schema])

    async def floods(self, until: float) -> None:
        """Let clients and strangers ask too much, until a time of trio's clock."""
        kinds = [self.flood_events, self.flood_subscriptions, self.flood_connections]
        nonsense = [self.speak_nonsense_locally, self.speak_nonsense_remotely]
        await self._go_on(until, [*kinds, *nonsense, self.read_nothing])

    async def _go_on(self, until: float, kinds: list[Callable[[], Awaitable[None]]]) -> None:
        draws = random.Random(self.run.draws.random())
        while True:
            for kind in draws.sample(kinds, len(kinds)):
                await trio.sleep(draws.uniform(0.5, 1.5) * self.gap_s)
                if trio.current_time() > until:
                    return
                await kind()
                name = getattr(kind, "__name__", "")
                self.done[name] = self.done.get(name, 0) + 1

    # Faults

    async def kill(self) -> None:
        key = self._draw_guest()
        name = self.run.crowd.names[key]
        with self.run.failing(key):
            self.fleet.kill(name)
            await trio.sleep(self.run.draws.uniform(1, 6))
            self.fleet.start(name)
            await self.fleet.ready(patience_s=SETTLED_S)
        await self.settled()

    async def restart(self) -> None:
        key = self._draw_guest()
        with self.run.failing(key):
            await trio.to_thread.run_sync(self.fleet.restart, self.run.crowd.names[key])
            await self.fleet.ready(patience_s=SETTLED_S)
        await self.settled()

    async def pause(self) -> None:
        key = self.run.draws.choice(list(self.run.crowd.names))
        name = self.run.crowd.names[key]
        with self.run.failing(key):
            self.fleet.send(name, signal.SIGSTOP)
            await trio.sleep(self.run.draws.uniform(1, 6))
            self.fleet.send(name, signal.SIGCONT)
        await self.settled()

    async def change_schema(self) -> None:
        """One attribute more, or a wider domain, by the command that people use."""
        self._versions += 1
        arguments = (
            ("add", f"extra{self._versions}", "boolean")
            if self._versions % 4 == 2 and self._versions < 40
            else ("widen", "price", f"maximum={100_000 + self._versions}")
        )
        command = ("node", "schema", *arguments, *self.fleet.at(self.fleet.names[0]))
        await trio.to_thread.run_sync(self.fleet.shell.ok, *command)

    def _draw_guest(self) -> int:
        return self.run.draws.choice(list(self.run.crowd.names)[2:])

    async def settled(self) -> None:
        before = trio.current_time()
        with trio.move_on_after(SETTLED_S):
            while self.run.missing(before):
                await trio.sleep(0.2)
        assert not self.run.missing(before), f"lost: {self.run.missing(before)}"

    # Floods

    async def flood_events(self) -> None:
        draws = self.run.draws
        prices = [draws.randrange(900) for _ in range(FLOOD_EVENTS)]
        symbol = draws.choice(SYMBOLS)

        async def flood(client: LocalClient) -> None:
            outcomes = await client.publish_each(
                [{"price": price, "symbol": symbol} for price in prices]
            )
            at = trio.current_time()
            for price, outcome in zip(prices, outcomes, strict=True):
                if outcome.fate == Fate.ACKNOWLEDGED:
                    known = Published(price, symbol, client.peer, at, is_last=False)
                    self.run.published[outcome.id] = known

        await _once(self._draw_address(), flood)

    async def flood_subscriptions(self) -> None:
        async def flood(client: LocalClient) -> None:
            for number in range(100):
                await client.subscribe(str(number), f"price > {number}")

        await _once(self._draw_address(), flood)

    async def flood_connections(self) -> None:
        address = self._draw_address()
        for _ in range(30):
            await _once(address, LocalClient.status)

    async def speak_nonsense_locally(self) -> None:
        """What no client says, at the socket for applications."""
        path = self._draw_address().path
        assert path is not None
        await self._speak_nonsense(lambda: trio.open_unix_socket(path))

    async def speak_nonsense_remotely(self) -> None:
        """What no peer says, at the port for peers."""
        port = self.fleet.port(self.run.draws.choice(self.fleet.names))
        await self._speak_nonsense(lambda: trio.open_tcp_stream("127.0.0.1", port))

    async def _speak_nonsense(self, dial: Callable[[], Awaitable[trio.SocketStream]]) -> None:
        with trio.move_on_after(FLOOD_S):
            for _ in range(30):
                with suppress(OSError, trio.BrokenResourceError):
                    async with await dial() as stream:
                        await stream.send_all(self.run.draws.randbytes(64))
                        await stream.receive_some()

    async def read_nothing(self) -> None:
        async def flood(client: LocalClient) -> None:
            await client.subscribe("all", ALL)
            await trio.sleep(self.gap_s)

        await _once(self._draw_address(), flood)

    def _draw_address(self) -> LocalAddress:
        return self.run.crowd.address(self.run.draws.choice(list(self.run.crowd.names)))


async def _once(address: LocalAddress, flood: Callable[[LocalClient], Awaitable[object]]) -> None:
    """Let a client flood until it is done, refused, cut, or without its node."""
    with suppress(NodeError), trio.move_on_after(FLOOD_S):
        async with open_client(address, patience_s=0) as client:
            await flood(client)


# Clients


@attrs.define(eq=False)
class Program:
    """A program without an event loop that reads under a name, in a thread."""

    folder: Path
    got: list[str] = attrs.field(factory=list)  # ids of what it was handed
    _stopping: threading.Event = attrs.field(factory=threading.Event)

    def run(self) -> None:
        with (
            connect(self.folder, patience_s=600) as client,
            client.subscribe(ALL, name="program") as events,
        ):
            while not self._stopping.is_set():
                try:
                    event = events.receive(timeout_s=0.5)
                except TimeoutError:
                    continue
                self.got.append(event.id)
                events.acknowledge(event)

    def stop(self) -> None:
        self._stopping.set()


@attrs.define(eq=False)
class Printer:
    """`gossamer sub` in a process of its own."""

    fleet: Fleet
    name: str
    _process: subprocess.Popen[str] | None = None

    @property
    def _file(self) -> Path:
        return self.fleet.shell.folder / "printed.jsonl"

    def start(self) -> None:
        with self._file.open("w") as out, self._file.with_suffix(".log").open("w") as log:
            self._process = self.fleet.shell.start(
                "sub", ALL, *self.fleet.at(self.name), "--name", "printer", stdout=out, stderr=log
            )

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(PATIENCE_S)

    @property
    def got(self) -> list[str]:
        return [str(json.loads(one)["id"]) for one in self._file.read_text().split("\n")[:-1]]


@attrs.define(eq=False)
class Browser:
    fleet: Fleet
    name: str
    every_s: float
    seen: int = 0  # how often it got both

    async def run(self) -> None:
        while True:
            await trio.to_thread.run_sync(self._look, abandon_on_cancel=True)
            await trio.sleep(self.every_s)

    def _look(self) -> None:
        address = self._address()
        try:
            for path in ("", "metrics"):
                with urllib.request.urlopen(address + path, timeout=PATIENCE_S) as answer:
                    assert answer.read()
        except (urllib.error.URLError, OSError):
            return  # the peer is away
        self.seen += 1

    def _address(self) -> str:
        """Where the page is, by the log."""
        lines = self.fleet.log(self.name).splitlines()
        told = [json.loads(line) for line in lines if '"page"' in line]
        return str([one["at"] for one in told if one["event"] == "page"][-1])


async def last_values(nodes: FleetNodes, key: int, symbols: Collection[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    async with open_client(nodes.address(key), patience_s=0) as client:
        await client.subscribe("last", ALL, LAST)
        with trio.move_on_after(PATIENCE_S):
            while not set(symbols) <= set(found):
                event = await client.events.receive()
                if event.last:
                    found[str(event.values["symbol"])] = event.id
    return found
