"""Every command beside running nodes, also at random and killed: nothing stored is lost."""

from __future__ import annotations

import json
import sqlite3
import stat
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import pytest
import trio

from gossamer.node.security.cluster import open_membership
from support import mutated_cluster
from support.mutated_cluster import NODES, POLL_S, MutatedCluster, quote
from support.node_commands import COMMANDS, Done, deleted_files, filled, known_commands, run_for
from support.node_processes import PATIENCE_S, Shell, free_ports
from support.spark_processes import wait_for

ROLES = {
    "peer": (),
    "tree": ("--role", "broker"),
    "scot": ("--role", "broker", "--overlay", "scot", "--region", "a"),
    "trees": ("--role", "broker", "--overlay", "graph"),
}
# Commands that would never end are killed.
ENDLESS = ("sub", "top", "reply")
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


def events(first: int, count: int) -> str:
    return "".join(json.dumps(quote(first + number)) + "\n" for number in range(count))


def publish(shell: Shell, role: str, first: int, count: int) -> None:
    name = () if role == "peer" else ("--name", "writer")
    text = events(first, count)
    printed = shell.ok("pub", "--folder", "desk", *name, "--jsonl", "-", text=text)
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
        return run_for(shell, words, 3.0 if command in ENDLESS else PATIENCE_S)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(run, range(len(typed))))


@pytest.mark.parametrize(
    ("role", "only"),
    [
        pytest.param("peer", FEW, id="few"),
        *(pytest.param(role, (), marks=pytest.mark.campaign, id=role) for role in ROLES),
    ],
)
def test_commands_leave_a_running_node_all_that_it_has_stored(
    shell: Shell, role: str, only: Collection[str]
) -> None:
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


# Commands typed at random.

DRAWS, MUTATIONS = 1, 40


@pytest.mark.campaign
async def test_nothing_acknowledged_is_lost_and_every_member_can_be_revoked(
    tmp_path: Path, seed: int
) -> None:
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
        with trio.fail_after(mutated_cluster.PATIENCE_S):
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
