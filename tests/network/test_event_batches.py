"""A peer that takes frames in batches does what one does that takes them one at a time."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trio

from gossamer.node.peer.batches.buffers import MOST_FRAMES, Batch
from gossamer.node.peer.batches.exchange import Exchange, InterpretedRules, Rules
from gossamer.node.peer.batches.machine_code import BufferedStep, take_one
from gossamer.node.peer.batches.taking import scan, take
from gossamer.node.peer.frames.core import SELF, Core, Record
from gossamer.node.peer.frames.event_frames import KINDS, event_frame, read_event_frame
from gossamer.node.transport.base.limits import HEADER_BYTES
from gossamer.protocol.kernel.records import BODY, FROM, KIND
from gossamer.protocol.kernel.struct import Struct
from gossamer.protocol.peer.record_table.records import (
    EVENT_ID,
    EVENT_MESSAGES,
    EVENT_ORIGIN,
    PUBLISH,
    TABLE,
)
from gossamer.protocol.peer.record_table.table import Sort
from support.memory_peers import memory_peers, rounds_pass
from support.transport_peers import on_jumping_clock

pytestmark = pytest.mark.usefixtures("each_preset")

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
        return int(scan.compiled(self._batch, begin, end, source, most, first))

    def take(self, first: int, count: int, now: int) -> int:
        return int(take.compiled(self._state, self._batch, first, count, now))


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
                values = {"price": draws.uniform(0, 100), "symbol": "A"}
                nursery.start_soon(watched.publish, values)
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
    """What a frame of the peer's own says."""
    read = read_event_frame(frame[HEADER_BYTES:])
    body = np.frombuffer(read["words"], "<i8").tolist()
    if read["kind"] in EVENT_MESSAGES:
        assert read["event"] == f"event {body[EVENT_ID]}".encode()
        if read["peers"]:
            assert read["peers"] == [NAME]
            body[EVENT_ORIGIN] = origin
    return [BODY + len(body), read["kind"], to, SELF, *body]


def in_batches(exchange: Exchange, records: list[Record]) -> list[Record]:
    """Take records of one peer as frames; return what is written."""
    data = b"".join(map(as_frame, records))
    exchange.load(data)
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
