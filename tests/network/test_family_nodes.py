"""Brokers of a graph, of a family from outside, or of a SCOT that changes: nodes in memory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import attrs
import cbor2
import pytest
import trio

from gossamer.node.broker.families.scot_settings import ScotSection, is_part
from gossamer.node.broker.host import FamilyHost
from gossamer.node.broker.session import read_id
from gossamer.node.commands.cluster.listing import tables_for_people
from gossamer.node.config.broker import NAMED
from gossamer.node.errors import StoreError
from gossamer.node.transport.frames import encode_frame
from gossamer.protocol.brokers.core.messages import Id, UnsafeError
from gossamer.protocol.brokers.scot import Factor, Scot, ScotSettings
from support.flooding import FloodingHost
from support.memory_brokers import (
    PATIENCE_S,
    MemoryBrokers,
    MemoryClient,
    MemoryScot,
    all_got,
    machine,
    memory_graph,
    memory_scot,
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


async def all_have(clients: dict[int, MemoryClient], published: dict[str, int]) -> None:
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
        await all_have(clients, published)
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
        await all_have(clients, published)
        assert graph.coordinator() == 1
        await graph.crash(1)
        published |= await publish(publisher, range(10, 20))
        await graph.settle()
        assert graph.coordinator() == 2
        published |= await publish(publisher, range(20, 30))
        gone = clients.pop(1)
        await all_have(clients, published)

        await gone.return_to(await graph.start(1))
        await graph.settle()
        assert graph.coordinator() == 1
        await all_have({1: gone}, published)


@on_jumping_clock
async def test_a_broker_that_forgot_everything_gets_it_again(tmp_path: Path) -> None:
    async with memory_graph(tmp_path) as graph:
        clients = await graph.subscribers(**INTERESTS)
        await graph.crash(2)
        (tmp_path / "2.db").unlink()
        await trio.sleep(2)
        await graph.start(2)
        await graph.settle()
        published = await publish(await graph.client(2, "publisher"), range(10))
        del clients[2]
        await all_have(clients, published)


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
        assert (told["coordinator"], told["sizes"]["subscriptions"]) == (f"{1:016x}", 5)
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
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(file)],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path]),
            NAMED: "support.flooding_family:FLOODING" * named,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    if named:
        assert done.stdout == "flooding {'motto': 'all'}\n", done.stderr
    else:
        assert "expected one of tree, scot, graph" in done.stderr


# Nodes of a SCOT are restarted in turn with other settings, or as part of a larger overlay.

PLAIN = ScotSettings(routing="static", around_failures=True)
ONE = ScotSettings(around_failures=True, take_over=True)
TWO = ScotSettings(around_failures=True, take_over=True, backups=2)


def tables(scot: MemoryScot) -> dict[int, Counter[tuple[str, str, str]]]:
    """Whose subscriptions each broker knows, from where, and those that it keeps for others."""
    found: dict[int, Counter[tuple[str, str, str]]] = {}
    for number, node in scot.nodes.items():
        found[number] = Counter((one.id.broker, *one.hop) for one in machine(node).table())
        for row in node.tables()["replicas"]:
            found[number]["kept", row["place"], row["client"]] += row["subscriptions"]
    return found


async def publish_everywhere(scot: MemoryScot, *, at_peace: bool) -> set[str]:
    """Publish at every broker; what is to reach all, which others take over if not at peace."""
    due = set()
    for node in list(scot.nodes.values()):
        publisher = await MemoryClient.attach(node, None)
        try:
            id_ = await publisher.publish({"x": 1})
        except UnsafeError:
            assert not at_peace
            continue
        if at_peace or machine(node).settings.take_over:
            due.add(id_)
        node.members.leave(publisher.member)
    if at_peace:
        await scot.settle()
    return due


async def forget_all(clients: dict[int, MemoryClient]) -> None:
    for client in clients.values():
        await client.node.members.forget(client.member)
        client.node.members.leave(client.member)


@pytest.mark.parametrize("clusters", [2, pytest.param(3, marks=pytest.mark.campaign)])
@pytest.mark.parametrize("change", [(PLAIN, ONE), (ONE, PLAIN), (ONE, TWO), (TWO, ONE)])
@on_jumping_clock
async def test_brokers_restarted_one_after_another_take_over_from_then_on_or_not(
    tmp_path: Path, change: tuple[ScotSettings, ScotSettings], clusters: int
) -> None:
    before, then = change
    overlay = Scot(Factor.path("ab"), Factor.complete(clusters))
    (tmp_path / "other").mkdir()
    async with memory_scot(tmp_path / "other", scot=overlay, settings=then) as fresh:
        await fresh.subscribers(all="present(x)")
        expected = tables(fresh)
    async with memory_scot(tmp_path, scot=overlay, settings=before) as scot:
        clients = await scot.subscribers(all="present(x)")
        due = await publish_everywhere(scot, at_peace=True)
        for number, end in zip(list(scot.nodes), (scot.stop, scot.crash) * clusters, strict=True):
            await end(number)
            due |= await publish_everywhere(scot, at_peace=False)
            scot.settings = then
            node = await scot.start(number)
            due |= await publish_everywhere(scot, at_peace=False)
            await scot.settle()
            await clients[number].return_to(node)
            due |= await publish_everywhere(scot, at_peace=True)
            await all_got(clients, due)
        assert tables(scot) == expected
        await forget_all(clients)
        await scot.settle()
        assert not any(found.total() for found in tables(scot).values())


SMALL = Scot(Factor.path("ab"), Factor.complete(2))
LARGER = {
    "a cluster": Scot(Factor.path("ab"), Factor.complete(3)),
    "a region": Scot(Factor.path("abc"), Factor.complete(2)),
}


def in_words(scot: Scot) -> str:
    edges = tuple("-".join(edge) for edge in zip(scot.regions, scot.regions[1:], strict=False))
    return ScotSection(region="a", clusters=len(scot.clusters), edges=edges).overlay


def enlarge(made: MemoryScot, larger: Scot) -> list[int]:
    """What brokers are from now on when they start; returns the numbers of those that are new."""
    numbers = {made.label(number): number for number in made.nodes}
    new = [label for label in larger.brokers if label not in numbers]
    numbers |= {label: number for number, label in enumerate(new, len(numbers) + 1)}
    made.places = {number: label for label, number in numbers.items()}
    links = [sorted((numbers[one], numbers[other])) for one, other in larger.links()]
    known = set(map(frozenset, made.edges))
    made.edges += [(later, earlier) for earlier, later in links if {later, earlier} not in known]
    made.scot = larger
    return [numbers[label] for label in new]


@pytest.mark.parametrize("routing", [PLAIN, ONE], ids=["plain", "taking over"])
@pytest.mark.parametrize("more", LARGER)
@on_jumping_clock
async def test_overlays_grow_without_loss(tmp_path: Path, more: str, routing: ScotSettings) -> None:
    larger = LARGER[more]
    words = {number: in_words(SMALL) for number in range(1, 5)}
    async with memory_scot(tmp_path, scot=SMALL, settings=routing, words=words) as scot:
        clients = await scot.subscribers(all="present(x)")
        due = await publish_everywhere(scot, at_peace=True)
        new = enlarge(scot, larger)
        for number, end in zip(list(scot.nodes), (scot.stop, scot.crash) * 2, strict=True):
            await end(number)
            scot.words[number] = in_words(larger)
            node = await scot.start(number)
            await scot.settle()
            await clients[number].return_to(node)
            due |= await publish_everywhere(scot, at_peace=True)
            await all_got(clients, due)
        for number in new:
            scot.words[number] = in_words(larger)
            await scot.start(number)
            due |= await publish_everywhere(scot, at_peace=False)
        await scot.settle()
        due |= await publish_everywhere(scot, at_peace=True)
        await all_got(clients, due)
        for number in new:
            clients[number] = await scot.client(number, f"client {number}", wants="present(x)")
        await all_got(clients, await publish_everywhere(scot, at_peace=True))
        brokers = list(map(machine, scot.nodes.values()))
        for broker in brokers:
            assert len(broker.table()) == larger.broker_count
            beside = len(broker.position.primary) + len(larger.clusters) - 1
            assert len(broker.neighbours()) == beside
        await forget_all(clients)
        await scot.settle()
        assert not any(broker.table() for broker in brokers)


@on_jumping_clock
async def test_nothing_can_be_taken_away(tmp_path: Path) -> None:
    async with memory_scot(tmp_path, scot=LARGER["a cluster"]) as scot:
        await scot.stop(1)
        scot.places[1] = scot.label(1)
        scot.scot = SMALL
        with pytest.raises(StoreError, match=r"a neighbour at B\(a,2\), expected all clus"):
            async with scot.opened(1):
                pass


@pytest.mark.parametrize(
    ("one", "other", "part"),
    [
        ("2 clusters of a-b, bid routing", "3 clusters of a-b b-c, bid routing", True),
        ("3 clusters of a-b, bid routing", "2 clusters of a-b b-c, bid routing", False),
        ("2 clusters of a, bid routing", "2 clusters of a-b, bid routing", True),
        ("2 clusters of c, bid routing", "2 clusters of a-b, bid routing", False),
        ("2 clusters of a-c, bid routing", "2 clusters of a-b b-c, bid routing", False),
        ("2 clusters of a-b, bid routing", "2 clusters of a-b, static routing", False),
        ("anything", "anything", True),
        ("anything", "2 clusters of a-b, bid routing", False),
    ],
)
def test_an_overlay_is_part_of_one_that_has_all_of_it(one: str, other: str, part: bool) -> None:
    assert is_part(one, other) is part
