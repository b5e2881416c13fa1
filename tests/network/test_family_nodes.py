"""Nodes that are brokers of a general graph, or of a family from outside, in memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import attrs
import cbor2
import pytest
import trio

from gossamer.node.broker.contract.host import FamilyHost
from gossamer.node.broker.session import read_id
from gossamer.node.commands.cluster.tracing import tables_for_people
from gossamer.node.config.families import NAMED
from gossamer.node.transport.base.frames import encode_frame
from gossamer.protocol.brokers.core.messages import Id
from support.flooding import FloodingHost
from support.memory_brokers import (
    PATIENCE_S,
    MemoryBrokers,
    MemoryClient,
    machine,
    memory_graph,
)
from support.transport_peers import on_jumping_clock
from support.waiting import eventually

INTERESTS = {"odd": "odd == true", "own": "for == {number}"}


async def publish(client: MemoryClient, numbers: range) -> dict[str, int]:
    """Documents for one broker each, every other one for all; by id their number."""
    found = {}
    for number in numbers:
        values = {"odd": number % 2 == 1, "for": number % 5 + 1, "number": number}
        found[await client.publish(values)] = number
    return found


def wanted(broker: int, published: dict[str, int]) -> set[str]:
    return {id_ for id_, number in published.items() if number % 2 or number % 5 + 1 == broker}


async def all_got(clients: dict[int, MemoryClient], published: dict[str, int]) -> None:
    """Wait until every client has what it is to have; nothing else, and nothing twice."""
    for broker, client in clients.items():
        await client.until_got(wanted(broker, published))
        assert set(client.got) == wanted(broker, published)


@on_jumping_clock
async def test_trees_are_planned_anew_and_exchanged_under_load(tmp_path: Path) -> None:
    async with memory_graph(tmp_path) as graph:
        clients = await graph.subscribers(**INTERESTS)
        publisher = await graph.client(4, "publisher")
        before = machine(graph.nodes[4]).present.plan.version
        published: dict[str, int] = {}
        for start in range(0, 60, 4):
            published |= await publish(publisher, range(start, start + 4))
            await trio.sleep(1)
        await all_got(clients, published)
        assert machine(graph.nodes[1]).counters.plans > 1
        assert machine(graph.nodes[4]).present.plan.version > before
        await graph.settle()
        assert {machine(graph.nodes[number]).sizes().versions for number in graph.nodes} == {1}


@on_jumping_clock
async def test_another_broker_takes_over_and_nothing_is_lost(tmp_path: Path) -> None:
    async with memory_graph(tmp_path) as graph:
        clients = await graph.subscribers(**INTERESTS)
        publisher = await graph.client(3, "publisher")
        published = await publish(publisher, range(10))
        await all_got(clients, published)
        assert graph.coordinator() == 1
        await graph.crash(1)
        published |= await publish(publisher, range(10, 20))
        await graph.settle()
        assert graph.coordinator() == 2
        published |= await publish(publisher, range(20, 30))
        gone = clients.pop(1)
        await all_got(clients, published)

        await gone.return_to(await graph.start(1))
        await graph.settle()
        assert graph.coordinator() == 1
        await all_got({1: gone}, published)


@on_jumping_clock
async def test_a_broker_that_forgot_everything_gets_it_again(tmp_path: Path) -> None:
    async with memory_graph(tmp_path) as graph:
        clients = await graph.subscribers(**INTERESTS)
        await graph.crash(2)
        (tmp_path / "2.db").unlink()
        await trio.sleep(2)
        await graph.start(2)
        await graph.settle()
        publisher = await graph.client(2, "publisher")
        published = await publish(publisher, range(10))
        del clients[2]
        await all_got(clients, published)


@on_jumping_clock
async def test_routes_and_tables_are_shown(tmp_path: Path) -> None:
    async with memory_graph(tmp_path) as graph:
        await graph.subscribers(**INTERESTS)
        publisher = await graph.client(3, "publisher")
        name, _, number = (await publisher.publish({"odd": True})).partition(":")
        await graph.settle()
        route = await graph.nodes[5].trace(Id(name, int(number)))
        assert {one.broker for one in route} == {f"{other:016x}" for other in graph.nodes}
        told = graph.nodes[2].tables()
        assert told["coordinator"] == f"{1:016x}"
        assert told["sizes"]["subscriptions"] == 5
        assert sum(tree["subscriptions"] for tree in told["trees"]) == 5
        assert all(link["takes publications"] for link in told["links"])
        titles = [title for title, _ in tables_for_people(told)]
        assert titles[0] == f"broker broker 2 ({2:016x}): neighbours"
        assert "coordinator of 5 brokers is" in titles[1]
        assert titles[2] == "5 subscriptions of all brokers"
        # What breaks the rules costs the connection.
        connection = graph.nodes[2].pool.get(1)
        assert connection is not None
        part = cbor2.dumps(["confirm", ["x", -1], 0])
        assert connection.try_send(encode_frame("broker", session=1 << 60, part=part, last=True))
        await eventually(lambda: not connection.is_open, PATIENCE_S)


# A family of brokers from outside the package.


PROGRAM = """
import sys
from pathlib import Path
from gossamer.node.config.file import load_config
from gossamer.node.broker.node import family_of
config = load_config(Path(sys.argv[1])).config
print(config.broker.overlay, family_of(config).described())
"""


@attrs.define
class MemoryFloods(MemoryBrokers):
    def family(self, number: int) -> FamilyHost:
        del number
        return FloodingHost()

    def _is_settled(self) -> bool:
        ups = sum(sum(machine(node).neighbours.values()) for node in self.nodes.values())
        return ups == 2 * sum({*edge} <= set(self.nodes) for edge in self.edges)


@on_jumping_clock
async def test_a_family_from_outside_runs_in_nodes_and_is_recalled(tmp_path: Path) -> None:
    async with MemoryFloods.running(tmp_path, [(1, 2), (2, 3)]) as floods:
        ada = await MemoryClient.attach(floods.nodes[3], "ada")
        await ada.subscribe("low", "number < 5")
        bob = await floods.client(1, "bob")
        first = await bob.publish({"number": 3})
        await bob.publish({"number": 7})
        await ada.until_got({first})
        assert set(ada.got) == {first}
        route = await floods.nodes[1].trace(read_id(first))
        assert [one.broker for one in route] == [f"{number:016x}" for number in (1, 2, 3)]
        await floods.crash(3)
        node = await floods.start(3)
        await floods.settle()
        await ada.return_to(node)
        second = await bob.publish({"number": 4})
        await ada.until_got({first, second})
        assert set(ada.got) == {first, second}


@pytest.mark.parametrize("named", [True, False])
def test_a_configuration_names_it(tmp_path: Path, named: bool) -> None:
    file = tmp_path / "node.toml"
    file.write_text('[broker]\noverlay = "flooding"\n' + '[flooding]\nmotto = "all"\n' * named)
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    environment = {
        **os.environ,
        "PYTHONPATH": path,
        NAMED: "support.flooding_family:FLOODING" * named,
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(file)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if named:
        assert done.stdout == "flooding {'motto': 'all'}\n", done.stderr
    else:
        assert "expected one of tree, scot, graph" in done.stderr
