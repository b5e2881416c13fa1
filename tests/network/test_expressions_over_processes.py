"""Peers in processes of their own deliver exactly what nasty expressions ask for."""

from __future__ import annotations

import json
import random
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
import trio

from gossamer.client import Client, ReceivedEvent, Subscription, open_client
from gossamer.protocol.content.schema import table_of
from support.draws import few_or_many
from support.filter_strategies import SCHEMA, Written, matchable, random_event
from support.node_processes import Shell, free_ports
from support.waiting import PATIENCE_S, POLL_S

pytestmark = pytest.mark.trio

SEED = 3
PEERS = ("demo/peer1", "demo/peer2", "demo/peer3")
AT_ONCE_EACH = 24
EVENTS_EACH = 3
ROUNDS = re.compile(r"^gossamer_rounds_total (\d+)", re.MULTILINE)


@asynccontextmanager
async def clients_of_three_peers(folder: Path) -> AsyncIterator[list[Client]]:
    shell = Shell(folder)
    described = [
        f"attributes.{one.name}.{key} = {json.dumps(value)}\n"
        for one in SCHEMA.attributes
        for key, value in table_of(one).items()
    ]
    (folder / "schema.toml").write_text("".join(described))
    ports = ("--peers", str(len(PEERS)), "--port", str(free_ports(len(PEERS))))
    shell.ok("node", "init", "demo", "--schema", "schema.toml", *ports)
    async with AsyncExitStack() as stack:
        for peer in PEERS:
            stack.enter_context(shell.node(peer, "--set", "protocol.round_s=0.1"))
        yield [await stack.enter_async_context(open_client(folder / peer)) for peer in PEERS]


async def rounds_of(client: Client) -> int:
    found = ROUNDS.search(await client.metrics())
    assert found is not None
    return int(found[1])


async def rounds_pass(clients: list[Client]) -> None:
    """Wait until each peer has begun a few more rounds."""
    for client in clients:
        goal = await rounds_of(client) + 5
        while await rounds_of(client) < goal:
            await trio.sleep(POLL_S)


async def collect(stream: Subscription, found: list[ReceivedEvent]) -> None:
    while True:
        found.append(await anext(stream))


async def check_batch(clients: list[Client], batch: list[Written], draws: random.Random) -> int:
    """Subscribe, publish, and compare what came with what matches; return how many events did."""
    came: list[list[ReceivedEvent]] = [[] for _ in batch]
    async with AsyncExitStack() as stack:
        streams = [
            await stack.enter_async_context(clients[i % len(clients)].subscribe(one.text))
            for i, one in enumerate(batch)
        ]
        nursery = await stack.enter_async_context(trio.open_nursery())
        for stream, found in zip(streams, came, strict=True):
            nursery.start_soon(collect, stream, found)
        await rounds_pass(clients)
        published = {}
        for client in clients * EVENTS_EACH:
            values = random_event(draws, absent=0.2)
            published[await client.publish(values)] = values
        due = [
            sorted(event for event, values in published.items() if one.matches(values))
            for one in batch
        ]
        with trio.move_on_after(PATIENCE_S):
            while sum(map(len, came)) < sum(map(len, due)):
                await trio.sleep(POLL_S)
        # What comes that nobody asked for, or a second time, comes within these.
        await rounds_pass(clients)
        nursery.cancel_scope.cancel()
    for one, ids, events in zip(batch, due, came, strict=True):
        assert sorted(event.id for event in events) == ids, (SEED, one.text)
        for event in events:
            assert event.values == published[event.id], (SEED, one.text)
    return sum(map(len, due))


@few_or_many(30, 1000)
async def test_expressions_over_three_processes(tmp_path: Path, count: int) -> None:
    draws = random.Random(SEED)
    source = matchable(draws)
    tried = deliveries = 0
    async with clients_of_three_peers(tmp_path) as clients:
        while tried < count:
            batch = [next(source) for _ in range(min(count, AT_ONCE_EACH * len(clients)))]
            deliveries += await check_batch(clients, batch, draws)
            tried += len(batch)
    print(f"seed {SEED}: {tried} expressions, {deliveries} deliveries")
    assert deliveries > tried
