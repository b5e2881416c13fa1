"""Nodes of a SCOT are restarted in turn with other settings, or as part of a larger overlay."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from gossamer.node.broker.families.scot.settings import ScotSection, is_part
from gossamer.node.errors import StoreError
from gossamer.protocol.brokers.core.errors import UnsafeError
from gossamer.protocol.brokers.scot import Factor, Scot, ScotSettings
from support.memory_brokers import MemoryClient, MemoryScot, all_got, machine, memory_scot
from support.transport_peers import on_jumping_clock

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


# The overlay takes in another cluster, or another region.


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
async def test_a_running_overlay_takes_in_more_and_nobody_misses_anything(
    tmp_path: Path, more: str, routing: ScotSettings
) -> None:
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
