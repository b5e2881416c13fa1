"""Whole peers deliver over TLS, in plain text and in processes, and take frames in batches."""

from __future__ import annotations

import json
import random
import re
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
import trio

from bench.bench_node import SMALL, measure
from gossamer.client import Client, ReceivedEvent, Subscription, open_client
from gossamer.node.errors import ConfigurationError, ListenFailed, PeerStopped
from gossamer.node.monitoring.metrics import LINKS, NO_LINK
from gossamer.node.peer.batches import taking
from gossamer.node.peer.batches.buffers import MOST_FRAMES, Batch
from gossamer.node.peer.batches.exchange import Exchange, Rules
from gossamer.node.peer.batches.machine_code import BufferedStep, take_one
from gossamer.node.peer.frames.core import SELF, Core, Record
from gossamer.node.peer.frames.event_frames import KINDS, event_frame, read_event_frame
from gossamer.node.peer.peer import Peer, open_peer
from gossamer.node.transport.limits import HEADER_BYTES
from gossamer.protocol.content.schema import table_of
from gossamer.protocol.kernel.errors import ExpressionError, WrongValueError
from gossamer.protocol.kernel.records import BODY, FROM, KIND
from gossamer.protocol.kernel.struct import Struct
from gossamer.protocol.peer.record_table.fields import Sort
from gossamer.protocol.peer.record_table.records import (
    EVENT_ID,
    EVENT_MESSAGES,
    EVENT_ORIGIN,
    PUBLISH,
    TABLE,
)
from support.clusters import MadeCluster
from support.draws import few_or_many
from support.filter_strategies import SCHEMA, Written, matchable, random_event
from support.memory_peers import (
    ROUND_S,
    config_of,
    memory_peers,
    of_member,
    rounds_pass,
    take,
    take_ids,
)
from support.node_processes import Shell, free_ports
from support.switching_ways import InterpretedRules
from support.transport_peers import on_jumping_clock
from support.waiting import PATIENCE_S, POLL_S


async def test_events_reach_whoever_wants_them_once_and_nobody_else(cluster: MadeCluster) -> None:
    two, three = cluster.admit("second"), cluster.admit("third")
    async with (
        open_peer(of_member(cluster.first)) as first,
        open_peer(of_member(two, first.addresses)) as second,
        open_peer(of_member(three, first.addresses)) as third,
    ):
        for peer in (first, second, third):
            await peer.ready()
        dear = second.subscribe('price > 80 and symbol == "IBM"')
        cheap = third.subscribe("price <= 80")
        every = third.subscribe("price >= 0")
        await rounds_pass(first, second, third)
        published = {}
        for i in range(20):
            values: dict[str, Any] = {"price": 10.5 * i, "symbol": "IBM" if i % 2 else "SAP"}
            published[await (first, second, third)[i % 3].publish(values)] = values
        assert {e.id: dict(e.values) for e in await take(every, 20)} == published
        wanted = {i for i, v in published.items() if v["price"] > 80 and v["symbol"] == "IBM"}
        assert await take_ids(dear, len(wanted)) == wanted
        wanted = {i for i, v in published.items() if v["price"] <= 80}
        assert await take_ids(cheap, len(wanted)) == wanted
        await rounds_pass(first, second, third)
        assert len(dear) == len(cheap) == len(every) == 0
        counters = first.counters
        assert counters.accepted >= 2
        assert counters.frames_received > counters.events_forwarded > 0
        assert not any(counters.dropped.values())


async def test_peers_without_certificates_find_each_other_on_loopback(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        peers: list[Peer] = []
        for name in ("a", "b", "c"):
            (tmp_path / name).mkdir()
            config = config_of(tmp_path / name, peers[0].addresses if peers else (), plain=True)
            peers.append(await stack.enter_async_context(open_peer(config)))
            await peers[-1].ready()
        events = peers[2].subscribe('symbol startswith "I"')
        await rounds_pass(*peers)
        published = await peers[1].publish({"price": 1, "symbol": "IBM"})
        assert await take_ids(events, 1) == {published}


async def test_a_peer_alone_serves_itself_until_it_ends(cluster: MadeCluster) -> None:
    async with open_peer(of_member(cluster.first)) as peer:
        await peer.ready()
        events = peer.subscribe("price > 5")
        first = await peer.publish({"price": 6, "symbol": "A"})
        assert (await take_ids(events, 1), peer.gauges().subscriptions) == ({first}, 1)
        second = await peer.publish({"price": 6, "symbol": "A"})
    assert [event.id async for event in events] == [second]
    with pytest.raises(PeerStopped):
        peer.subscribe("price > 5")
    with pytest.raises(PeerStopped):
        await peer.publish({"price": 6, "symbol": "A"})


async def test_errors_come_out_as_they_are(cluster: MadeCluster) -> None:
    """Not in a group, although tasks run beside."""
    config = of_member(cluster.first)
    with pytest.raises(ExpressionError):
        async with open_peer(config) as peer:
            peer.subscribe("prize > 5")
    with pytest.raises(WrongValueError):
        async with open_peer(config) as peer:
            await peer.publish({"price": "high", "symbol": "A"})
    with pytest.raises(ZeroDivisionError):
        async with open_peer(config):
            raise ZeroDivisionError
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        in_use = attrs.evolve(config.listen, addresses=(f"127.0.0.1:{port}",))
        for changes, error, words in (
            ({"listen": in_use}, ListenFailed, str(port)),
            ({"schema": None}, ConfigurationError, "attributes"),
        ):
            with pytest.raises(error, match=words):
                async with open_peer(attrs.evolve(config, **changes)):
                    raise AssertionError("it opened")


@pytest.mark.campaign
def test_every_match_is_delivered_once_and_nothing_else(tmp_path: Path) -> None:
    measures, unexpected = measure(SMALL, tmp_path)
    assert not unexpected
    found = {one.name: one.value for one in measures}
    assert found.keys() >= {"latency, median", "memory of each further peer"}
    assert 0 < found["hops of a delivery, mean"] <= 2 * SMALL.peers
    assert 0 <= found["traffic overhead"] < 100


@on_jumping_clock
async def test_frames_are_counted_by_kind_of_link_and_attempts_in_vain_too(tmp_path: Path) -> None:
    keys = [1 + (number << 58) for number in range(4)]
    async with memory_peers(tmp_path, *keys) as crowd:
        await crowd.rounds(40)
        peer = crowd.peers[1]
        counters = peer.counters
        for counts in (counters.link_frames_sent, counters.link_frames_received):
            assert counts.keys() == {*LINKS, NO_LINK}
            assert counts["ring"] > 40, "both neighbours on the ring are heard of every round"
        for one in crowd.peers.values():
            one.gauges()
        sent = sum(one.counters.bytes_sent for one in crowd.peers.values())
        received = sum(one.counters.bytes_received for one in crowd.peers.values())
        assert received > 1000
        assert abs(sent - received) < 0.2 * sent, "nothing is under way for long in memory"
        assert sum(counters.link_frames_sent.values()) >= 0.9 * counters.frames_sent
        assert counters.dials + counters.accepted >= 3
        failed = counters.dials_failed
        crowd.network.partition([1], keys[1:])
        await trio.sleep(200 * ROUND_S)
        peer.gauges()
        assert counters.dials >= counters.dials_failed > failed


# Peers in processes deliver exactly what nasty expressions ask for.

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


async def rounds_of_processes_pass(clients: list[Client]) -> None:
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
        await rounds_of_processes_pass(clients)
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
        await rounds_of_processes_pass(clients)
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


# A peer that takes frames in batches does what one does that takes them one at a time.

KEYS = [1 + (i << 58) for i in range(7)]
EFFECTS = {kind.number for kind in TABLE if kind.sort is Sort.EFFECT}
EVENTS = 150
# More than a batch has room for.
TOGETHER = 80
MOST = 1 << 20
NAME = b"somebody"


class CompiledRules:
    """Both rules as a compiler's process calls them."""

    def __init__(self, core: Core, batch: Batch) -> None:
        self._state, self._batch = core.state, batch

    def scan(self, begin: int, end: int, source: int, most: int, first: int) -> int:
        return int(taking.scan.compiled(self._batch, begin, end, source, most, first))

    def take(self, first: int, count: int, now: int) -> int:
        return int(taking.take.compiled(self._state, self._batch, first, count, now))


async def overhear(folder: Path, seed: int) -> tuple[Any, int, list[tuple[int, Record]]]:
    """Settings, key and records of a peer in an overlay whose peers subscribe and publish."""
    draws = random.Random(seed)
    async with memory_peers(folder, *KEYS, settings={"subscriptions": 16}) as crowd:
        peers = list(crowd.peers.values())
        watched = peers[3]
        core = watched._core
        # From its first record on: it begins anew.
        core.restart()
        taken: list[tuple[int, Record]] = []

        def note(record: Record) -> None:
            if record[KIND] not in EFFECTS:
                taken.append((core.now, list(record)))

        watched.observe(note)
        for peer in peers:
            for _ in range(0 if peer is watched else 4):
                low = draws.uniform(0, 90)
                peer.subscribe(f"price >= {low} and price <= {low + 20}")
        await rounds_pass(*peers, rounds=6)
        for _ in range(EVENTS):
            await draws.choice(peers).publish({"price": draws.uniform(0, 100), "symbol": "A"})
        async with trio.open_nursery() as nursery:
            for _ in range(TOGETHER):
                nursery.start_soon(watched.publish, {"price": draws.uniform(0, 100), "symbol": "A"})
        await rounds_pass(*peers, rounds=3)
        return core.settings, watched.key, taken


def by_source(taken: list[tuple[int, Record]]) -> Iterator[tuple[bool, int, list[Record]]]:
    """What follows each other: frames of one peer, or one other record."""
    kinds = groupby(taken, lambda one: (goes_by_batch(one[1]), one[0], one[1][FROM]))
    for (own, now, _), group in kinds:
        records = [record for _, record in group]
        together = MOST_FRAMES if own else 1
        for i in range(0, len(records), together):
            yield own, now, records[i : i + together]


def goes_by_batch(record: Record) -> bool:
    return record[KIND] == PUBLISH or (record[KIND] in KINDS and record[FROM] != SELF)


def as_frame(record: Record) -> bytes:
    body = list(record[BODY:])
    name = values = b""
    if record[KIND] == PUBLISH:
        name, values = NAME, f"event {body[EVENT_ID]}".encode()
    elif record[KIND] in EVENT_MESSAGES:
        values = f"event {body[EVENT_ID]}".encode()
        if body[EVENT_ORIGIN] >= 0:
            name, body[EVENT_ORIGIN] = NAME, 0
    return event_frame(record[KIND], np.array(body, "<i8").tobytes(), name, values)


def as_record(frame: bytes, to: int, origin: int) -> Record:
    read = read_event_frame(frame[HEADER_BYTES:])
    body = np.frombuffer(read["words"], "<i8").tolist()
    if read["kind"] in EVENT_MESSAGES:
        assert read["event"] == f"event {body[EVENT_ID]}".encode()
        if read["peers"]:
            assert read["peers"] == [NAME]
            body[EVENT_ORIGIN] = origin
    return [BODY + len(body), read["kind"], to, SELF, *body]


def in_batches(exchange: Exchange, records: list[Record]) -> list[Record]:
    exchange.load(b"".join(map(as_frame, records)))
    rows = exchange.scan(records[0][FROM], MOST)
    assert len(rows) == len(records)
    for i, record in enumerate(records):
        if record[KIND] == PUBLISH:
            exchange.name(i, SELF)
        elif record[KIND] in EVENT_MESSAGES and record[BODY + EVENT_ORIGIN] >= 0:
            exchange.name(i, record[BODY + EVENT_ORIGIN])
    written, taken = [], 0
    while taken < len(rows):
        before = taken
        taken, following = exchange.take(before, len(rows))
        assert taken > before
        for one in following:
            origin = records[one.row][BODY + EVENT_ORIGIN] if one.record is None else -1
            frame = exchange.outgoing(one.begin, one.end)
            written.append(one.record or as_record(frame, one.to, origin))
    return written


def state_of(struct: Struct) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in struct.field_names():
        value = getattr(struct, name)
        if isinstance(value, Struct):
            found |= {f"{name}.{inner}": one for inner, one in state_of(value).items()}
        elif isinstance(value, np.ndarray) and not struct.is_shared(name):
            found[name] = value
    return found


@pytest.mark.parametrize("form", [InterpretedRules, CompiledRules])
@pytest.mark.parametrize("seed", [1])
@pytest.mark.usefixtures("each_preset")
@on_jumping_clock
async def test_frames_in_batches_are_taken_as_one_at_a_time(
    tmp_path: Path, form: Callable[[Core, Batch], Rules], seed: int
) -> None:
    """What a peer took in an overlay at work is taken again by two that know nothing but that."""
    settings, key, taken = await overhear(tmp_path, seed)
    alone, together = Core(settings, key), Core(settings, key)
    exchange = Exchange(together, form)
    if form is CompiledRules:
        # Other records are taken as with machine code, by the rules of a compiler's process.
        state = together.state
        step = BufferedStep(together, lambda buffers, now: take_one.compiled(state, buffers, now))
        together.take_by(step.take)
    frames = batches = written = 0
    for own, now, records in by_source(taken):
        alone.now = together.now = now
        expected = [one for record in records for one in alone.take(list(record))]
        if own:
            found = in_batches(exchange, records)
            frames, batches = frames + len(records), batches + 1
            written += sum(one[KIND] in KINDS for one in found)
        else:
            found = [one for record in records for one in together.take(list(record))]
        assert found == expected, (seed, records)
    left, right = state_of(alone.state), state_of(together.state)
    for name, value in left.items():
        if not name.startswith("work."):
            np.testing.assert_array_equal(value, right[name], f"{name}, seed {seed}")
    print(f"seed {seed}: {frames} frames in {batches} batches, {written} frames written")
    assert frames > EVENTS // 4
    assert written > 0
