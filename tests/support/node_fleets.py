"""Peers as processes that a test kills, pauses and starts again, and clients of theirs."""

from __future__ import annotations

import json
import resource
import signal
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager

import attrs
import trio

from gossamer.node.errors import NodeError, UnacknowledgedError
from gossamer.node.local.client import LocalClient, open_client
from gossamer.node.local.follower import follow
from support.cluster_processes import ClusterProcesses
from support.node_processes import PATIENCE_S, Shell

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


async def until(condition: Callable[[], bool], patience_s: float = PATIENCE_S) -> float:
    """Wait for what other processes do; return for how long it was."""
    began = trio.current_time()
    with trio.fail_after(patience_s):
        while not condition():
            await trio.sleep(LOOK_S)
    return trio.current_time() - began


@attrs.define(eq=False)
class Fleet(ClusterProcesses[str]):
    """Peers of one cluster, each a process; their names are their folders below the shell's."""

    # Of all, with two underscores for a dot.
    settings: dict[str, object] = attrs.field(factory=dict)

    @classmethod
    def make(cls, shell: Shell, peers: int, **settings: object) -> Fleet:
        """A cluster whose peers do not run yet."""
        names = [f"demo/peer{number + 1}" for number in range(peers)]
        return cls(shell, names, settings={"page__enabled": False, **settings})

    def options(self, name: str) -> Iterable[str]:
        del name
        for key, value in self.settings.items():
            text = value if isinstance(value, str) else json.dumps(value)
            yield from ("--set", f"{key.replace('__', '.')}={text}")

    def log(self, name: str) -> str:
        return (self.folder(name) / "log").read_text()

    def start(self, *names: str) -> None:
        for name in names:
            with (self.folder(name) / "log").open("a") as log:
                self.begin(name, stdout=log, stderr=log)

    def kill(self, *names: str) -> None:
        for name in names:
            self.running[name].kill()
        for name in names:
            self.running.pop(name).wait()

    def send(self, name: str, number: signal.Signals) -> None:
        self.running[name].send_signal(number)

    def pid(self, name: str) -> int | None:
        """Id of a peer's process, None while it does not run."""
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
        """A client of a peer, as soon as it can be reached."""
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
        """Wait until the ring of these peers is right; return for how long it was."""
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
    fleet = Fleet.make(shell, peers, **settings)
    try:
        fleet.start(*fleet.names)
        yield fleet
    finally:
        fleet.stop()


def _ring_links(snapshot: dict[str, list[dict[str, object]]]) -> set[object]:
    return {one["key"] for one in snapshot["peers"] if "ring" in one["links"]}  # type: ignore[operator]


@attrs.define(eq=False)
class Follower:
    """A named application that acknowledges each event once it has noted it."""

    fleet: Fleet
    peer: str
    name: str
    got: list[str] = attrs.field(factory=list)  # ids of the events it was handed

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        address = self.fleet.address(self.peer)
        async with follow(address, {"all": "price >= 0"}, name=self.name) as events:
            task_status.started()
            async for event in events:
                self.got.append(event.id)
                await events.acknowledge(event)


@attrs.define(eq=False)
class Publisher:
    """Publishes events one after another and notes which were acknowledged."""

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
