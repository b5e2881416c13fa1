"""Every command beside running nodes, also at random and killed: nothing stored is lost."""

from __future__ import annotations

import json
import random
import sqlite3
import stat
import subprocess
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, closing, suppress
from functools import partial
from pathlib import Path

import pytest
import trio
from attrs import define, field

from gossamer.client.link import LocalAddress
from gossamer.node.commands.clients.subscribing import Wanted, taken
from gossamer.node.errors import PublicationUncertainError, RefusedByNodeError, UnacknowledgedError
from gossamer.node.local.client import LocalClient, open_client
from gossamer.node.security.cluster import open_membership
from support.node_commands import COMMANDS, Done, deleted_files, filled, known_commands, run_for
from support.node_fleets import Fleet
from support.node_processes import PATIENCE_S, Shell, free_ports
from support.spark_processes import wait_for
from support.waiting import comes_true, running

ROLES = {
    "peer": (),
    "tree": ("--role", "broker"),
    "scot": ("--role", "broker", "--overlay", "scot", "--region", "a"),
    "trees": ("--role", "broker", "--overlay", "graph"),
}
# Commands that would never end are killed after so long.
ENDLESS = ("sub", "top", "reply")
ENDLESS_S = 3.0
STOP = "node stop {folder}"
# Of those that read or write what a running node has stored, one each.
FEW = (
    "node backup {folder} {new}",
    "node run {folder}",
    "node join {token} {new}",
    "pub symbol=IBM price=81 volume={volume} --folder {folder}",
)
EVENTS = 20
AT_ONCE = 4
# What the client whose events are counted asks for; those of the commands are of volume 0.
WANTED = "volume > 0"


def test_every_command_is_tried_beside_nodes() -> None:
    assert set(COMMANDS) == known_commands()


def quote(volume: int) -> dict[str, object]:
    return {"symbol": "IBM", "price": 81, "volume": volume}


def events(first: int, count: int) -> str:
    return "".join(json.dumps(quote(first + number)) + "\n" for number in range(count))


def publish(shell: Shell, role: str, first: int, count: int) -> None:
    name = () if role == "peer" else ("--name", "writer")
    printed = shell.ok("pub", "--folder", "desk", *name, "--jsonl", "-", text=events(first, count))
    assert [int(line.split()[0]) for line in printed.splitlines()] == list(range(1, count + 1))


def wait_for_rows(path: Path, count: int) -> None:
    """Wait until another process finds so many events to be counted in a node's history."""

    def has_enough() -> bool:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as other:
            ((found,),) = other.execute("SELECT count(*) FROM events").fetchall()
        return int(found) >= count

    wait_for(has_enough)


def run_commands(shell: Shell, token: str, only: Collection[str]) -> list[Done]:
    """Commands with every kind of argument but the one that ends the node, some at once."""
    (shell.folder / "lines").write_text(3 * events(0, 1) + "no event\n")
    (shell.folder / "batch").write_text("advertise b present(symbol)\nsubscribe s symbol == 'x'\n")
    files = {"folder": "desk", "lines": "lines", "batch": "batch"}
    values = files | {"member": "nobody", "volume": "0", "token": token}
    typed = [
        (command, arguments)
        for command, kinds in COMMANDS.items()
        for arguments in kinds
        if (text := f"{command} {arguments}") != STOP and (not only or text in only)
    ]

    def run(number: int) -> Done:
        command, arguments = typed[number]
        words = filled(command, arguments, {**values, "new": f"new{number}"})
        return run_for(shell, words, ENDLESS_S if command in ENDLESS else PATIENCE_S)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(run, range(len(typed))))


@pytest.mark.parametrize(
    ("role", "only"),
    [
        pytest.param("peer", FEW, id="few"),
        *(pytest.param(role, (), marks=pytest.mark.campaign, id=role) for role in ROLES),
    ],
)
def test_commands_lose_nothing_of_a_node(shell: Shell, role: str, only: Collection[str]) -> None:
    shell.ok("node", "init", "desk", "--preset", "local", "--name", "desk")
    join_at = f'listen.join_addresses=["127.0.0.1:{free_ports(1)}"]'
    running = partial(shell.node, "desk", *ROLES[role], "--set", join_at)
    with ExitStack() as stack:
        node = stack.enter_context(running())
        first, second, third = [shell.ok("node", "invite", "-f", "desk").strip() for _ in range(3)]
        shell.ok("node", "join", first, "kitchen")
        if role != "peer":
            filter_text = "present(symbol) and present(price) and present(volume)"
            shell.ok("advertise", filter_text, "--name", "writer", "--folder", "desk")
        subscriber = shell.subscriber(WANTED, "--folder", "desk", "--name", "ledger")
        subscriber.kill()
        subscriber.communicate()
        publish(shell, role, 1, EVENTS)
        done = run_commands(shell, second, only)
        assert len(done) >= len(only)
        for one in done:
            assert "Traceback" not in one.err, (one.words, one.err)
            assert one.code in (0, 1, 2) or one.was_killed, (one.words, one.code, one.err)
        assert node.poll() is None
        assert not deleted_files(node.pid)
        for path in (shell.folder / "desk").glob("*.db*"):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
        publish(shell, role, 1 + EVENTS, EVENTS)
        if role == "peer":
            # Nobody else holds them: they are safe once they are kept for the client.
            wait_for_rows(shell.folder / "desk/clients.db", 2 * EVENTS)
        node.kill()
        node.wait()
        stack.enter_context(running())
        named = ("--folder", "desk", "--name", "ledger", "--count", str(2 * EVENTS))
        got = [json.loads(line)["values"] for line in shell.ok("sub", WANTED, *named).splitlines()]
        assert sorted(one["volume"] for one in got) == list(range(1, 2 * EVENTS + 1))
        shell.ok("node", "join", third, "hall")
        joined = [one.words[3] for one in done if one.words[1] == "join" and one.code == 0]
        assert len(joined) == 1
        for member in ("kitchen", *joined, "hall"):
            assert "is revoked" in shell.ok("node", "revoke", member, "--folder", "desk")


# Commands typed at random at three nodes, of which one at a time is killed or stopped, once all
# events acknowledged before have reached the clients of all: more is not promised of three peers.

DRAWS, MUTATIONS = 1, 40
NODES = (1, 2, 3)
POLL_S = 0.1
# Of the mutations; the others are commands, some of them killed.
NODE_KILLS = 0.1
COMMAND_KILLS = 0.3
# Typed more often than others: whoever joins is to be revoked at the end.
MEMBERSHIP = ("node invite", "node join", "node revoke")
OFTEN = (*MEMBERSHIP, *MEMBERSHIP, "pub")
BAD_LINES = ('{"symbol": 1}', "no event", '{"volume": 1, "volume": 2}', "")
LINES = 12
PAUSE_S = 0.5


def name_of(number: int) -> str:
    return f"demo/peer{number}"


class _JoinableFleet(Fleet):
    def options(self, name: str) -> Iterable[str]:
        yield from super().options(name)
        if name == name_of(1):
            yield f'--set=listen.join_addresses=["127.0.0.1:{self.first_port + len(NODES)}"]'


@define(eq=False)
class MutatedCluster:
    shell: Shell  # where commands run; the nodes are in its folder ``demo``
    seed: int
    acknowledged: set[int] = field(factory=set)
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
        self.fleet = _JoinableFleet(self.shell, list(map(name_of, NODES)), 1, settings=settings)
        self.got = {number: [] for number in NODES}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The nodes, and at each a client that publishes and one that takes all events."""
        with self.fleet.all_running():
            async with running() as nursery:
                await self.fleet.ready()
                for number in NODES:
                    nursery.start_soon(self._take, number)
                    nursery.start_soon(self._write, number)
                await self._until_known()
                for _ in range(3):
                    await self._type("node invite", "--folder {folder}", 1, PATIENCE_S)
                await self._type("node join", "{token} {new}", 1, PATIENCE_S)
                yield

    async def mutate(self) -> None:
        if self._draws.random() < NODE_KILLS:
            await self.kill_node(self._draws.choice(NODES))
            return
        command = self._draws.choice([*sorted(COMMANDS), *OFTEN])
        arguments = self._draws.choice(COMMANDS[command])
        node = self._draws.choice((1, 1, 2, 3))
        if command in MEMBERSHIP and self._draws.random() < 0.5:  # what comes of it is of interest
            arguments, node = COMMANDS[command][0], 1
        seconds = ENDLESS_S if command in ENDLESS else PATIENCE_S
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
        written = self._lines(self._volumes(LINES))
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
        if (command, arguments) == ("node join", "{token} {new}") and bool(self.tokens):
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

    async def _take(self, number: int) -> None:
        async with taken(
            self._address(number), Wanted(expression="volume > 0", name="ledger")
        ) as events:
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


@pytest.mark.campaign
async def test_nothing_is_lost_and_every_member_can_be_revoked(tmp_path: Path, seed: int) -> None:
    cluster = MutatedCluster(Shell(tmp_path), seed)
    async with cluster.running():
        for _ in range(MUTATIONS):
            await cluster.mutate()
        await cluster.settled()
        for number in NODES:
            assert len(set(cluster.got[number])) == len(cluster.got[number]), cluster.said()
        cluster.check_files()
        await cluster.kill_node(1)
        members = [*await join_all(cluster), "demo/peer2", "demo/peer3"]
        for member in members:
            await revoke(cluster, member)
        with trio.fail_after(PATIENCE_S):
            while await cluster.connections(1):
                await trio.sleep(POLL_S)
    print(
        f"seed {seed}: {MUTATIONS} mutations, {len(cluster.acknowledged)} events acknowledged, "
        f"{len(members)} members revoked"
    )


async def join_all(cluster: MutatedCluster) -> list[str]:
    """Use every token that was printed, and end every join that was killed; folders of members."""
    for folder, token in cluster.joins.items():
        again = await cluster.command("node", "join", token, folder)
        assert again.code == 0 or "is a membership already" in again.err, cluster.said()
    for number, token in enumerate(cluster.tokens):
        joined = await cluster.command("node", "join", token, f"late{number}")
        assert joined.code == 0, cluster.said()
    return [*cluster.joins, *(f"late{number}" for number in range(len(cluster.tokens)))]


async def revoke(cluster: MutatedCluster, folder: str) -> None:
    done = await cluster.command("node", "revoke", Path(folder).name, "--folder", "demo/peer1")
    assert done.code == 0, cluster.said()
    key = open_membership(cluster.shell.folder / folder).identity.key
    assert open_membership(cluster.shell.folder / "demo/peer1").revoked.forbids(key, 0)
