"""Three nodes beside which commands are typed at random, some of them killed, and an account of it.

One node at a time is killed or stopped, once all events that were acknowledged before have reached
the clients of all three: more is not promised of three peers.
"""

from __future__ import annotations

import json
import random
import subprocess
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial

import trio
from attrs import define, field

from gossamer.client.address import LocalAddress
from gossamer.node.commands.folder import address_of
from gossamer.node.errors import (
    NodeError,
    PublicationUncertainError,
    RefusedByNodeError,
    UnacknowledgedError,
)
from gossamer.node.local.client import LocalClient, open_client
from gossamer.node.local.follower import follow
from support.node_commands import COMMANDS, Done, deleted_files, filled, run_for
from support.node_processes import Shell, free_ports

NODES = (1, 2, 3)
PATIENCE_S = 180
POLL_S = 0.1
# Of the mutations; the others are commands, some of them killed.
NODE_KILLS = 0.1
COMMAND_KILLS = 0.3
# Commands that would never end are killed after so long.
ENDLESS_S = 2.0
ENDLESS = ("sub", "top", "reply")
# Typed more often than others: whoever joins is to be revoked at the end.
MEMBERSHIP = ("node invite", "node join", "node revoke")
OFTEN = (*MEMBERSHIP, *MEMBERSHIP, "pub")
BAD_LINES = ('{"symbol": 1}', "no event", '{"volume": 1, "volume": 2}', "")
LINES = 12
PAUSE_S = 0.5


@define(eq=False)
class MutatedCluster:
    """The cluster, and what is known of it."""

    shell: Shell  # where commands run; the nodes are in its folder ``demo``
    seed: int
    # Numbers (volumes) of the events that somebody was told are acknowledged.
    acknowledged: set[int] = field(factory=set)
    # Those that the client at each node was handed, in order.
    got: dict[int, list[int]] = field(init=False)
    tokens: list[str] = field(factory=list)  # that were printed, and that nobody has used
    # Folders of peers that have joined, or tried to, with their tokens.
    joins: dict[str, str] = field(factory=dict)
    done: list[str] = field(factory=list)
    _draws: random.Random = field(init=False)
    _port: int = field(init=False)
    _processes: dict[int, subprocess.Popen[str]] = field(factory=dict)
    _number: int = 0
    _next_volume: int = 1
    _first_counted: int = 1 << 60
    # Whose client has got something that was published at which node, and where that was.
    _heard_of: set[tuple[int, int]] = field(factory=set)
    _written_at: dict[int, int] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self._draws = random.Random(self.seed)
        self._port = free_ports(4)
        self.got = {number: [] for number in NODES}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The nodes, and at each a client that publishes and one that takes all events."""
        self.shell.ok("node", "init", "demo", "--peers", "3", "--port", str(self._port))
        try:
            for number in NODES:
                self._launch(number)
            async with trio.open_nursery() as nursery:
                for number in NODES:
                    await self._until_ready(number)
                    nursery.start_soon(self._take, number)
                    nursery.start_soon(self._write, number)
                await self._until_known()
                for _ in range(3):
                    await self._type("node invite", "--folder {folder}", 1, PATIENCE_S)
                await self._type("node join", "{token} {new}", 1, PATIENCE_S)
                yield
                nursery.cancel_scope.cancel()
        finally:
            for process in self._processes.values():
                process.kill()
                process.wait()

    # What is done

    async def mutate(self) -> None:
        if self._draws.random() < NODE_KILLS:
            await self.kill_node(self._draws.choice(NODES))
            return
        command = self._draws.choice([*sorted(COMMANDS), *OFTEN])
        arguments = self._draws.choice(COMMANDS[command])
        node = self._draws.choice((1, 1, 2, 3))
        if command in MEMBERSHIP and self._draws.random() < 0.5:  # what comes of it is of interest
            arguments, node = COMMANDS[command][0], 1
        seconds = ENDLESS_S if command in ENDLESS else float(PATIENCE_S)
        if self._draws.random() < COMMAND_KILLS:
            seconds = min(seconds, self._draws.uniform(0.05, 1.5))
        await self._type(command, arguments, node, seconds)

    async def kill_node(self, number: int) -> None:
        await self.settled()
        self.done.append(f"kill node {number}")
        process = self._processes[number]
        assert not deleted_files(process.pid), self.said()
        process.kill()
        process.wait()
        await self._start_again(number)

    async def settled(self) -> None:
        """Wait until every client has got what was acknowledged by now."""
        due = frozenset(self.acknowledged)
        deadline = trio.current_time() + PATIENCE_S
        while missing := {n: lost for n in NODES if (lost := sorted(due - set(self.got[n])))}:
            assert trio.current_time() < deadline, f"lost at {missing}; {self.said()}"
            await trio.sleep(POLL_S)

    async def command(self, *words: str) -> Done:
        return await self._run(words, PATIENCE_S)

    def said(self) -> str:
        return "\n".join([f"seed {self.seed}", *self.done])

    def check_files(self) -> None:
        """No node holds a file open that is not there any more."""
        for process in self._processes.values():
            assert process.poll() is None, self.said()
            assert not deleted_files(process.pid), self.said()

    async def connections(self, number: int) -> int:
        async with open_client(self._address(number)) as client:
            return int((await client.status())["connections"])

    async def _type(self, command: str, arguments: str, node: int, seconds: float) -> None:
        self._number += 1
        volumes = self._volumes(LINES)
        written = self._lines(volumes)
        values = {
            "folder": f"demo/peer{node}",
            "new": f"new{self._number}",
            "lines": f"lines{self._number}",
            "batch": "batch",
            "token": self.tokens[-1] if self.tokens else "nonsense",
            "member": self._draws.choice(["nobody", *sorted(self.joins)]),
            "volume": self._volumes(1)[0],
        }
        (self.shell.folder / "batch").write_text("subscribe s volume > 0\n")
        lines = self.shell.folder / f"lines{self._number}"
        lines.write_text("\n".join(text for text, _ in written))
        words = filled(command, arguments, values)
        stops = (command, arguments) == ("node stop", "{folder}")
        if stops:
            await self.settled()
        joins = (command, arguments) == ("node join", "{token} {new}") and bool(self.tokens)
        if joins:
            self.joins[str(values["new"])] = self.tokens.pop()
        done = await self._run(words, seconds)
        assert "Traceback" not in done.err, f"{done.err}; {self.said()}"
        if command == "pub" and "--jsonl" in words:
            self._note_published(done, [volume for _, volume in written])
        elif command == "pub" and f"volume={values['volume']}" in words:
            self._note_published(done, [values["volume"]])
        if command == "node invite" and "--address" not in words:
            self.tokens += whole_lines(done)
        if stops:
            await self._after_stop(node)

    async def _run(self, words: Sequence[str], seconds: float) -> Done:
        done = await trio.to_thread.run_sync(partial(run_for, self.shell, tuple(words), seconds))
        *_, last = ["", *done.err.splitlines()]
        self.done.append(f"{' '.join(words)[:120]}: {done.code} {last[:160]}")
        return done

    def _note_published(self, done: Done, volumes: Sequence[object]) -> None:
        """What a command printed is what its user knows, also where it was killed."""
        for line in whole_lines(done):
            place = int(line.split()[0]) - 1 if len(line.split()) == 2 else 0
            volume = volumes[place]
            assert isinstance(volume, int), f"line {place + 1} is no event; {self.said()}"
            self._note_acknowledged(volume)

    def _note_acknowledged(self, volume: int) -> None:
        if volume >= self._first_counted:
            self.acknowledged.add(volume)

    def _volumes(self, count: int) -> list[int]:
        self._next_volume += count
        return list(range(self._next_volume - count, self._next_volume))

    def _lines(self, volumes: Sequence[int]) -> list[tuple[str, int | None]]:
        """Lines of events with these volumes, and others."""
        lines: list[tuple[str, int | None]] = []
        for volume in volumes:
            if self._draws.random() < 0.3:
                lines.append((self._draws.choice(BAD_LINES), None))
            lines.append((json.dumps(quote(volume)), volume))
        return lines

    # Nodes

    def _address(self, number: int) -> LocalAddress:
        return address_of(self.shell.folder / f"demo/peer{number}")

    def _launch(self, number: int) -> None:
        settings = ["--set", "discovery.multicast=false", "--set", "page.enabled=false"]
        if number == 1:
            settings += ["--set", f'listen.join_addresses=["127.0.0.1:{self._port + 3}"]']
        with (self.shell.folder / f"log{number}").open("a") as log:
            self._processes[number] = self.shell.start(
                *("node", "run", f"demo/peer{number}", *settings),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )

    async def _start_again(self, number: int) -> None:
        self._launch(number)
        await self._until_ready(number)

    async def _after_stop(self, number: int) -> None:
        """Start a node again that was asked to stop, if it heard of it."""
        with suppress(subprocess.TimeoutExpired):
            self._processes[number].wait(5)
        if self._processes[number].poll() is not None:
            await self._start_again(number)

    async def _until_ready(self, number: int) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            with suppress(NodeError):
                async with open_client(self._address(number), patience_s=0) as client:
                    if (await client.status())["ready"]:
                        return
            assert self._processes[number].poll() is None, f"node {number} ended; {self.said()}"
            assert time.monotonic() < deadline, f"node {number} is not ready; {self.said()}"
            await trio.sleep(POLL_S)

    async def _until_known(self) -> None:
        """Wait until events of each node reach the clients of all."""
        deadline = trio.current_time() + PATIENCE_S
        while not all((a, b) in self._heard_of for a in NODES for b in NODES):
            assert trio.current_time() < deadline, "the peers do not find each other"
            await trio.sleep(POLL_S)
        self._first_counted = self._volumes(1)[0]

    # Clients

    async def _take(self, number: int) -> None:
        async with follow(self._address(number), {"all": "volume > 0"}, name="ledger") as events:
            async for event in events:
                volume = event.values["volume"]
                self.got[number].append(volume)
                self._heard_of.add((number, self._written_at.get(volume, 0)))
                await events.acknowledge(event)

    async def _write(self, number: int) -> None:
        async with open_client(self._address(number), patience_s=PATIENCE_S) as client:
            while True:
                (volume,) = self._volumes(1)
                self._written_at[volume] = number
                await self._write_one(client, volume)
                await trio.sleep(PAUSE_S)

    async def _write_one(self, client: LocalClient, volume: int) -> None:
        with suppress(UnacknowledgedError, PublicationUncertainError, RefusedByNodeError):
            await client.publish(quote(volume))
            self._note_acknowledged(volume)


def whole_lines(done: Done) -> list[str]:
    """What a command printed, but a last line that it did not end."""
    return [line.strip() for line in done.out.splitlines(keepends=True) if line.endswith("\n")]


def quote(volume: int) -> dict[str, object]:
    """An event that is told from all others by its volume."""
    return {"symbol": "IBM", "price": 81, "volume": volume}
