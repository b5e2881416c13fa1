"""Nodes of one cluster in processes that a test kills, pauses and restarts, and their clients."""

from __future__ import annotations

import json
import random
import resource
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final, Generic, Self, TypeVar

import attrs
import trio

from gossamer.client.link import LocalAddress
from gossamer.node.commands.clients.subscribing import Wanted, taken
from gossamer.node.commands.folder import address_of
from gossamer.node.errors import NodeError, UnacknowledgedError
from gossamer.node.local.client import LocalClient, open_client
from support.node_processes import PATIENCE_S, Shell, end, free_ports, wait_for_line, wait_for_log

# Between two looks at a process that another one changes.
LOOK_S = 0.1
# Peers that find each other, and find out that another is gone, several times as soon as others.
QUICK: dict[str, object] = {
    "protocol__round_s": 0.2,
    "delivery__replay_s": 6.0,
    "limits__ping_seconds": 1.0,
    "limits__silence_seconds": 4.0,
    "limits__stall_seconds": 2.0,
}
DEAREST: Final = 600.0

Name = TypeVar("Name", bound=Hashable)


async def until(condition: Callable[[], bool], patience_s: float = PATIENCE_S) -> float:
    """Wait for what other processes do; return for how long it was."""
    began = trio.current_time()
    with trio.fail_after(patience_s):
        while not condition():
            await trio.sleep(LOOK_S)
    return trio.current_time() - began


@attrs.define(eq=False)
class ClusterProcesses(Generic[Name]):
    """Nodes in the folder ``demo``, peer1, peer2, ..., by their names in this order.

    Behind their ports so many more are free as ``more_ports`` says.
    """

    shell: Shell
    names: Sequence[Name]
    more_ports: int = 0
    running: dict[Name, subprocess.Popen[str]] = attrs.field(factory=dict)
    first_port: int = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        count = len(self.names)
        self.first_port = free_ports(count + self.more_ports)
        ports = ("--port", str(self.first_port))
        self.shell.ok("node", "init", "demo", "--peers", str(count), *ports)

    def port(self, name: Name) -> int:
        return self.first_port + self.names.index(name)

    def folder(self, name: Name) -> Path:
        return self.shell.folder / f"demo/peer{self.names.index(name) + 1}"

    def at(self, name: Name) -> tuple[str, str]:
        return "--folder", str(self.folder(name))

    def address(self, name: Name) -> LocalAddress:
        return address_of(self.folder(name))

    def options(self, name: Name) -> Iterable[str]:
        raise NotImplementedError

    def begin(self, name: Name, **streams: Any) -> None:
        words = ("node", "run", str(self.folder(name)), *self.options(name))
        self.running[name] = self.shell.start(*words, **streams)

    def start(self, *names: Name) -> None:
        for name in names:
            self.begin(name)
        for name in names:
            wait_for_log(self.running[name], "ready")

    def kill(self, *names: Name) -> None:
        for name in names:
            self.running[name].kill()
        for name in names:
            self.running.pop(name).communicate(timeout=PATIENCE_S)

    def stop(self) -> None:
        with ExitStack() as stack:
            for process in self.running.values():
                process.send_signal(signal.SIGCONT)
                process.send_signal(signal.SIGTERM)
                stack.callback(end, process)

    @contextmanager
    def all_running(self) -> Iterator[Self]:
        try:
            self.start(*self.names)
            yield self
        finally:
            self.stop()

    async def tables(self, name: Name) -> dict[str, Any]:
        async with open_client(self.address(name)) as client:
            return await client.tables()


def settings_of(settings: Mapping[str, object]) -> Iterator[str]:
    """Options that say so; names have two underscores for a dot."""
    for key, value in settings.items():
        text = value if isinstance(value, str) else json.dumps(value)
        yield f"--set={key.replace('__', '.')}={text}"


@attrs.define(eq=False)
class Fleet(ClusterProcesses[str]):
    """Peers whose names are their folders below the shell's, where their logs are as well."""

    settings: Mapping[str, object] = attrs.field(factory=dict)

    @classmethod
    def make(cls, shell: Shell, peers: int, **settings: object) -> Self:
        names = [f"demo/peer{number + 1}" for number in range(peers)]
        return cls(shell, names, settings={"page__enabled": False, **settings})

    def options(self, name: str) -> Iterable[str]:
        del name
        return settings_of(self.settings)

    def log(self, name: str) -> str:
        return (self.folder(name) / "log").read_text()

    def start(self, *names: str) -> None:
        for name in names:
            with (self.folder(name) / "log").open("a") as log:
                self.begin(name, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def send(self, name: str, number: signal.Signals) -> None:
        self.running[name].send_signal(number)

    def pid(self, name: str) -> int | None:
        process = self.running.get(name)
        return None if process is None or process.poll() is not None else process.pid

    def restart(self, name: str) -> None:
        process = self.running.pop(name)
        process.terminate()
        process.wait(PATIENCE_S)
        self.start(name)

    def limit_files(self, name: str, size: int) -> None:
        """Let no file of a peer grow beyond ``size`` bytes, as on a disk that is full."""
        hard = resource.RLIM_INFINITY
        resource.prlimit(self.running[name].pid, resource.RLIMIT_FSIZE, (size, hard))

    @asynccontextmanager
    async def client(self, name: str) -> AsyncIterator[LocalClient]:
        with trio.fail_after(PATIENCE_S):
            while True:
                try:
                    async with open_client(self.address(name), patience_s=0):
                        break
                except NodeError:
                    self._check_running([name])
                    await trio.sleep(LOOK_S)
        async with open_client(self.address(name), patience_s=0) as client:
            yield client

    async def ready(
        self, names: Iterable[str] | None = None, patience_s: float = PATIENCE_S
    ) -> float:
        chosen = list(self.names if names is None else names)
        began = trio.current_time()
        with trio.move_on_after(patience_s) as scope:
            while not await self._ring_is_right(chosen):
                self._check_running(chosen)
                await trio.sleep(LOOK_S)
        if scope.cancelled_caught:
            logs = {name: self.log(name)[-1500:] for name in chosen}
            raise AssertionError(f"the ring was not right after {patience_s} s: {logs}")
        return trio.current_time() - began

    def _check_running(self, names: Iterable[str]) -> None:
        for name in names:
            process = self.running.get(name)
            if process is not None and process.poll() is not None:
                told = self.log(name)[-2000:]
                raise AssertionError(f"{name} ended with {process.returncode}: {told}")

    async def _ring_is_right(self, names: list[str]) -> bool:
        seen = {}
        for name in names:
            try:
                async with self.client(name) as client:
                    snapshot = await client.snapshot()
            except NodeError:
                return False  # it was there, and does not answer for now
            seen[snapshot["key"]] = snapshot
        order = sorted(seen, key=lambda key: seen[key]["position"])
        following = zip(order, [*order[1:], order[0]], strict=True)
        return all(after in _ring_links(seen[key]) for key, after in following if key != after)


@contextmanager
def running_fleet(shell: Shell, peers: int, **settings: object) -> Iterator[Fleet]:
    with Fleet.make(shell, peers, **settings).all_running() as fleet:
        yield fleet


def _ring_links(snapshot: dict[str, list[dict[str, object]]]) -> set[object]:
    return {one["key"] for one in snapshot["peers"] if "ring" in one["links"]}  # type: ignore[operator]


@attrs.define(eq=False)
class Follower:
    fleet: Fleet
    peer: str
    name: str
    got: list[str] = attrs.field(factory=list)  # ids of the events it was handed

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        address = self.fleet.address(self.peer)
        async with taken(address, Wanted(expression="price >= 0", name=self.name)) as events:
            task_status.started()
            async for event in events:
                self.got.append(event.id)
                await events.acknowledge(event)


@attrs.define(eq=False)
class Publisher:
    fleet: Fleet
    peer: str
    acknowledged: set[str] = attrs.field(factory=set)
    uncertain: int = 0  # how many were not

    async def run(self, events: int, pause_s: float) -> None:
        async with self.fleet.client(self.peer) as client:
            for number in range(events):
                values = {"symbol": "IBM", "price": float(number % 500), "volume": number}
                try:
                    self.acknowledged.add(await client.publish(values))
                except UnacknowledgedError:
                    self.uncertain += 1
                await trio.sleep(pause_s)


# Peers that all publish at once, and subscribers that write what they get to files.


def thresholds(fleet: Fleet) -> dict[str, float]:
    """The least price that the subscriber of each peer wants, by what it is called."""
    peers = len(fleet.names)
    return {Path(name).name: DEAREST * place / peers for place, name in enumerate(fleet.names)}


@contextmanager
def subscribers(
    shell: Shell, fleet: Fleet, rotate_s: float, *others: tuple[str, str, str, str]
) -> Iterator[None]:
    """One at each peer, and others [peer, expression, into, as]; each finishes its last file."""
    wanted = zip(fleet.names, thresholds(fleet).items(), strict=True)
    of_peers = [(name, f"price >= {least}", "got", called) for name, (called, least) in wanted]
    with ExitStack() as stack:
        for name, expression, into, called in (*of_peers, *others):
            words = ("sub", "--folder", name, expression, "--into", into, "--as", called)
            named = ("--name", f"keep-{called}", "--rotate-s", f"{rotate_s:g}")
            process = shell.start(*words, *named)
            stack.callback(end, process)
            stack.callback(process.send_signal, signal.SIGINT)
            wait_for_line(process, "subscribed")
        yield


def publish_at_once(
    shell: Shell, fleet: Fleet, events: int, draws: random.Random, timeout_s: float
) -> dict[str, float]:
    """Publish at all peers at the same time, as fast as these take events; their prices by id."""
    running = []
    peers = len(fleet.names)
    for place, name in enumerate(fleet.names):
        count = events // peers + (place < events % peers)
        prices = [round(draws.uniform(0, DEAREST), 2) for _ in range(count)]
        file, told = shell.folder / f"{place}.jsonl", shell.folder / f"{place}.told"
        values = ({"symbol": "IBM", "price": price, "volume": 1} for price in prices)
        file.write_text("".join(f"{json.dumps(one)}\n" for one in values))
        with told.open("w") as out:
            words = ("pub", "--folder", name, "--jsonl", str(file))
            running.append((shell.start(*words, stdout=out), prices, told))
    published: dict[str, float] = {}
    for process, prices, told in running:
        _, errors = process.communicate(timeout=timeout_s)
        assert process.returncode == 0, errors
        acknowledged = [line.split() for line in told.read_text().splitlines()]
        assert len(acknowledged) == len(prices)
        published |= {event: prices[int(number) - 1] for number, event in acknowledged}
    return published


def ids_in(files: Sequence[Path]) -> set[str]:
    return {json.loads(line)["id"] for file in files for line in file.read_text().splitlines()}
