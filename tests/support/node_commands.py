"""Every command of a node, good arguments and bad, also typed at random beside three nodes.

Of these one at a time is killed or stopped, once all events that were acknowledged before have
reached the clients of all three: more is not promised of three peers.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import shlex
import subprocess
import tomllib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import trio
from attrs import define, field, frozen

from gossamer.client.address import LocalAddress
from gossamer.node.cli.node import app
from gossamer.node.errors import (
    PublicationUncertainError,
    RefusedByNodeError,
    UnacknowledgedError,
)
from gossamer.node.local.client import LocalClient, open_client
from gossamer.node.local.follower import follow
from support.checkout import ROOT
from support.node_fleets import Fleet
from support.node_processes import Shell
from support.waiting import comes_true

GROUP = "gossamer.commands"

# By command, its arguments. {folder} is that of a node that runs, {new} one that is not there,
# {lines} a file of events and other lines, {batch} one of operations, {token} a token, {member} the
# name of one who may be a member, {volume} a number.
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "node init": ("{new}", "{folder}", "{new} --peers 2", "{new} --preset huge"),
    "node invite": (
        "--folder {folder}",
        "--folder {folder} --address 127.0.0.1:7",
        "--folder {folder} --address nowhere",
        "--folder {folder} --minutes -1",
        "--folder {new}",
    ),
    "node join": ("{token} {new}", "{token} {folder}", "nonsense {new}"),
    "node revoke": (
        "{member} --folder {folder}",
        "peer1 --folder {folder}",
        "0123456789abcdef --folder {folder} --unrecorded",
        "peer1 --folder {new}",
    ),
    "node renew": (
        "{folder}",
        "{folder} --request",
        "{folder} --grant {lines}",
        "{folder} --take {lines}",
        "{folder} --at 127.0.0.1:7",
        "{new}",
    ),
    "node check": ("{folder}", "{folder} --set listen.plain_text=3", "{new}"),
    "node backup": ("{folder} {new}", "{folder} {lines}", "{new} {new}"),
    "node restore": ("{lines} {new}", "{lines} {folder}", "{new} {folder}"),
    "node reload": ("{folder}", "{folder} --json", "{new}"),
    "node doctor": ("", "--folder {folder}", "--folder {folder} --json 127.0.0.1:1", "nowhere"),
    "node run": ("{folder}", "{folder} --set nonsense=1", "{new}", "{folder} {new}"),
    "node replay": ("{new}.avt", "{lines} --out {new}"),
    "node members": ("{folder}", "{folder} --json", "{new}"),
    "node service": ("{folder}", "{folder} --system --name desk", "{new}"),
    "node ready": ("{folder}", "{new}", "{folder} --within 0"),
    "node status": ("{folder}", "{folder} --json", "{new}"),
    "node trace": ("{folder}", "{folder} --message 00 --json", "{new}"),
    "node stop": ("{new}", "{folder}"),
    "sub": (
        "'volume >= 0' --folder {folder}",
        "'volume >= 0' --folder {folder} --name beside",
        "'volume >= 0' --folder {folder} --name beside --retained --count 1",
        "--forget --folder {folder} --name beside",
        "'volume >= 0' --folder {folder} --group beside --count 1",
        "'volume >= 0' --folder {folder} --ordered --name beside --count 1",
        "'volume >= 0' --folder {folder} --last",
        "'volume >= 0' --folder {folder} --group beside --forget",
        "'volume >= 0' --folder {folder} --group beside --name beside",
        "'volume >' --folder {folder} --group beside",
        "'volume >' --folder {folder}",
        "'volume >= 0' --folder {new}",
    ),
    "pub": (
        "symbol=IBM price=81 volume={volume} --folder {folder}",
        "symbol=IBM price=81 volume={volume} --folder {folder} --name writer",
        "symbol=IBM volume={volume} --retained-last symbol --folder {folder}",
        "symbol=IBM --retained-last symbol --delete --folder {folder}",
        "symbol=IBM --retained-last price --folder {folder}",
        "symbol=IBM price=dear --folder {folder}",
        "--jsonl {lines} --folder {folder}",
        "--jsonl {new} --folder {folder}",
        "symbol=IBM --folder {new}",
    ),
    "request": (
        "symbol=IBM price=81 volume={volume} --timeout 0.2 --folder {folder}",
        "symbol=IBM price=dear --folder {folder}",
        "symbol=IBM --payload {new} --folder {folder}",
        "symbol=IBM --folder {new}",
    ),
    "reply": (
        "'volume >= 0' --echo --folder {folder}",
        "'volume >= 0' --run cat --name beside --count 1 --folder {folder}",
        "'volume >= 0' --folder {folder}",
        "'volume >' --echo --folder {folder}",
        "'volume >= 0' --echo --folder {new}",
    ),
    "top": ("{folder} --once", "{folder} --cluster --once", "{folder}", "{new} --once"),
    "advertise": (
        "'present(symbol) and present(price)' --name beside --folder {folder}",
        "'present(' --name beside --folder {folder}",
        "--withdraw --name beside --folder {folder}",
    ),
    "unsub": ("--name beside --folder {folder}", "nothing --name beside --folder {folder}"),
    "batch": ("{batch} --name beside --folder {folder}", "{lines} --folder {folder}", "{new}"),
}


def known_commands() -> set[str]:
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"][GROUP]
    found = set()
    for name, point in points.items():
        module = importlib.import_module(point.partition(":")[0])
        if not module.__name__.startswith("gossamer.node."):
            continue
        if name == "node":
            callbacks = [one.callback for one in app.registered_commands]
            found |= {f"node {one.__name__}" for one in callbacks if one is not None}
        else:
            found.add(name)
    return found


@frozen
class Done:
    words: tuple[str, ...]
    code: int  # exit code, negative where it was killed
    out: str
    err: str

    @property
    def was_killed(self) -> bool:
        return self.code < 0


def filled(command: str, arguments: str, values: Mapping[str, object]) -> tuple[str, ...]:
    words = shlex.split(arguments)
    return (*command.split(), *(word.format_map(dict(values)) for word in words))


def run_for(shell: Shell, words: tuple[str, ...], seconds: float) -> Done:
    """Run a command; kill it after so many seconds, where it has not ended by then."""
    process = shell.start(*words, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
    return Done(words, process.returncode, out, err)


def deleted_files(process: int) -> list[str]:
    """Files that a process holds open, and that are not there any more."""
    found = []
    for entry in Path(f"/proc/{process}/fd").iterdir():
        try:
            target = os.readlink(entry)
        except FileNotFoundError:  # closed since it was listed
            continue
        if target.endswith(" (deleted)"):
            found.append(target)
    return found


# Typed at random.

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


def name_of(number: int) -> str:
    return f"demo/peer{number}"


class _JoinableFleet(Fleet):
    """The first of its peers lets others join."""

    def options(self, name: str) -> Iterable[str]:
        yield from super().options(name)
        if name == name_of(1):
            yield f'--set=listen.join_addresses=["127.0.0.1:{self.first_port + len(NODES)}"]'


@define(eq=False)
class MutatedCluster:
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
    fleet: _JoinableFleet = field(init=False)
    _draws: random.Random = field(init=False)
    _number: int = 0
    _next_volume: int = 1
    _first_counted: int = 1 << 60
    # Whose client has got something that was published at which node, and where that was.
    _heard_of: set[tuple[int, int]] = field(factory=set)
    _written_at: dict[int, int] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self._draws = random.Random(self.seed)
        settings = {"discovery__multicast": False, "page__enabled": False}
        names = list(map(name_of, NODES))
        self.fleet = _JoinableFleet(self.shell, names, 1, settings=settings)
        self.got = {number: [] for number in NODES}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The nodes, and at each a client that publishes and one that takes all events."""
        with self.fleet.all_running():
            async with trio.open_nursery() as nursery:
                await self.fleet.ready()
                for number in NODES:
                    nursery.start_soon(self._take, number)
                    nursery.start_soon(self._write, number)
                await self._until_known()
                for _ in range(3):
                    await self._type("node invite", "--folder {folder}", 1, PATIENCE_S)
                await self._type("node join", "{token} {new}", 1, PATIENCE_S)
                yield
                nursery.cancel_scope.cancel()

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
        assert not deleted_files(self.fleet.running[name_of(number)].pid), self.said()
        self.fleet.kill(name_of(number))
        await self._start_again(number)

    async def settled(self) -> None:
        """Wait until every client has got what was acknowledged by now."""
        due = frozenset(self.acknowledged)

        def missing() -> dict[int, list[int]]:
            return {n: lost for n in NODES if (lost := sorted(due - set(self.got[n])))}

        done = await comes_true(lambda: not missing(), PATIENCE_S)
        assert done, f"lost at {missing()}; {self.said()}"

    async def command(self, *words: str) -> Done:
        return await self._run(words, PATIENCE_S)

    def said(self) -> str:
        return "\n".join([f"seed {self.seed}", *self.done])

    def check_files(self) -> None:
        for process in self.fleet.running.values():
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
            "folder": name_of(node),
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
        lines: list[tuple[str, int | None]] = []
        for volume in volumes:
            if self._draws.random() < 0.3:
                lines.append((self._draws.choice(BAD_LINES), None))
            lines.append((json.dumps(quote(volume)), volume))
        return lines

    # Nodes

    def _address(self, number: int) -> LocalAddress:
        return self.fleet.address(name_of(number))

    async def _start_again(self, number: int) -> None:
        self.fleet.start(name_of(number))
        await self.fleet.ready()

    async def _after_stop(self, number: int) -> None:
        """Start a node again that was asked to stop, if it heard of it."""
        with suppress(subprocess.TimeoutExpired):
            self.fleet.running[name_of(number)].wait(5)
            await self._start_again(number)

    async def _until_known(self) -> None:
        pairs = {(a, b) for a in NODES for b in NODES}
        assert await comes_true(lambda: pairs <= self._heard_of), "the peers do not find each other"
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
