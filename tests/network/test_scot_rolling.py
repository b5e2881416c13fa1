"""Nodes that are brokers of a SCOT are restarted one after another with other settings."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

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
    """Publish at every broker that runs; returns what is to reach everybody.

    That is all at peace, and else what was acknowledged by brokers that take over.
    """
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
