"""Peers in processes of their own deliver exactly what nasty expressions ask for.

There is one batch of them; as a campaign, a thousand expressions.

`test_node_values` does the same over more peers in memory and what came while a peer was away;
here everything is in the way that is in the way of users: commands, TLS, the local door, clients.
"""

from __future__ import annotations

import random
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from gossamer.client import Client, ReceivedEvent, Subscription, open_client
from support.draws import few_or_many
from support.filter_strategies import Written, matchable, random_event
from support.node_processes import Shell, free_ports
from support.waiting import PATIENCE_S, POLL_S

pytestmark = pytest.mark.trio

SEED = 3
PEERS = ("demo/peer1", "demo/peer2", "demo/peer3")
AT_ONCE_EACH = 24
EVENTS_EACH = 3
ROUNDS = re.compile(r"^gossamer_rounds_total (\d+)", re.MULTILINE)
# The schema of `support.filter_strategies`.
SCHEMA_TEXT = """
[attributes.x]
type = "float"
minimum = -10
maximum = 10

[attributes.n]
type = "integer"
minimum = 0
maximum = 9

[attributes.s]
type = "string"

[attributes.d]
type = "date"
minimum = "2020-01-31"
maximum = "2020-02-03"

[attributes.e]
type = "enumeration"
values = ["S", "M", "L", "XL"]

[attributes.b]
type = "boolean"

[attributes.c]
type = "decimal"
minimum = 0
maximum = 5
places = 2
"""


@asynccontextmanager
async def clients_of_three_peers(folder: Path) -> AsyncIterator[list[Client]]:
    shell = Shell(folder)
    (folder / "schema.toml").write_text(SCHEMA_TEXT)
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


async def rounds_pass(clients: list[Client], rounds: int = 5) -> None:
    """Wait until each peer has begun so many more rounds."""
    for client in clients:
        goal = await rounds_of(client) + rounds
        while await rounds_of(client) < goal:
            await trio.sleep(POLL_S)


async def publish_all(clients: list[Client], draws: random.Random) -> dict[str, dict[str, Any]]:
    """Let every client publish a few events; return them by id, all acknowledged."""
    published = {}
    for client in clients:
        for _ in range(EVENTS_EACH):
            values = random_event(draws, absent=0.2)
            published[await client.publish(values)] = values
    return published


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
        published = await publish_all(clients, draws)
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
