"""Events come back exactly: as bytes, in frames, over the local socket and from the state file."""

from __future__ import annotations

import struct
import tempfile
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import cbor2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from gossamer.node import errors, store
from gossamer.node.local import frames as local
from gossamer.node.peer.batches import buffers, taking
from gossamer.node.peer.frames.core import header
from gossamer.node.peer.frames.event_frames import KINDS, MARK, event_frame, read_event_frame
from gossamer.node.peer.frames.events import Event, EventFormat, EventMemory
from gossamer.node.peer.frames.frame_types import frame_types
from gossamer.node.security.identity import encode
from gossamer.node.security.sealing import publisher_of
from gossamer.node.store.events import RetainedEvent
from gossamer.node.transport.frames import FrameReader, encode_frame
from gossamer.node.transport.limits import HEADER_BYTES, Limits
from gossamer.protocol.content import schema
from gossamer.protocol.content.schema import SchemaVersion, changed
from gossamer.protocol.content.values import Payload
from gossamer.protocol.kernel.errors import CapacityError, MalformedRecordError
from gossamer.protocol.kernel.struct import WORD_BYTES
from gossamer.protocol.peer.codec import Codec
from gossamer.protocol.peer.record_table.records import EVENT_ID, EVENT_MESSAGES, EVENT_ORIGIN
from gossamer.protocol.peer.settings import presets

DAYS = datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)
SCHEMA = schema.Schema(
    [
        schema.IntegerAttribute("whole", -(10**30), 10**30),
        schema.FloatAttribute("real", -1e300, 1e300),
        schema.StringAttribute("text"),
        schema.DateAttribute("day", *DAYS),
        schema.EnumerationAttribute("side", ["buy", "sell"]),
    ]
)
FORMAT = EventFormat(SchemaVersion.first(SCHEMA))
REAL = st.one_of(
    st.integers(-(10**40), 10**40),
    st.floats(-1e300, 1e300),
    st.fractions(-(10**20), 10**20, max_denominator=10**20),
    st.decimals(-(10**9), 10**9, allow_nan=False),
)
VALUES = st.fixed_dictionaries(
    {},
    optional={
        "whole": st.integers(-(10**30), 10**30),
        "real": REAL,
        "text": st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
        "day": st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29), timezones=st.just(UTC)),
        "side": st.sampled_from(["buy", "sell"]),
    },
).filter(bool)
GOOD = [1, 5, "a", 0, "buy"]


@given(values=VALUES, publisher=st.integers(0, (1 << 62) - 1), at=st.floats(0, 4e9))
def test_events_come_back_exactly(values: dict[str, object], publisher: int, at: float) -> None:
    exact = SCHEMA.check_event(values)
    event = FORMAT.from_bytes(7, FORMAT.to_bytes(exact, publisher, at))
    assert event.values == exact
    assert list(map(type, event.values.values())) == list(map(type, exact.values()))
    assert (event.id, event.publisher) == (7, publisher)
    assert event.published_at == pytest.approx(at, abs=1e-6)


@given(values=VALUES)
def test_values_come_back_exactly_over_the_local_socket(values: dict[str, object]) -> None:
    exact = SCHEMA.check_event(values)
    wire = local.values_to_wire(exact)
    reader = FrameReader(Limits())
    reader.feed(encode_frame("publish", number=1, values=wire))
    decoded = reader.next_frame()
    assert decoded is not None
    local.FRAMES.check(decoded)
    assert local.values_from_wire(SCHEMA, decoded["values"]) == exact
    # Programs in other languages need to know of no tags.
    data = cbor2.dumps(wire)
    assert cbor2.loads(data, tag_hook=None) == cbor2.loads(data)
    assert all(isinstance(one, str | int | float | list) for one in cbor2.loads(data).values())


def test_a_schema_comes_back_equal() -> None:
    assert local.schema_from_wire(local.schema_to_wire(SCHEMA)) == SCHEMA


@given(data=st.binary(max_size=200), version=st.integers(1, 5))
def test_payloads_come_back(data: bytes, version: int) -> None:
    payload = Payload(data, "image/png")
    written = EventFormat(SchemaVersion(version, SCHEMA)).to_bytes({"whole": 5}, 1, 2.0, payload)
    assert publisher_of(written) == publisher_of(FORMAT.to_bytes({"whole": 5}, 1, 2.0))
    assert FORMAT.from_bytes(7, written) == Event(7, {"whole": 5}, 1, 2.0, payload)


def test_a_later_version_is_read_as_far_as_it_is_known() -> None:
    first = SchemaVersion.first(SCHEMA)
    wider = changed(SCHEMA["side"], {"values": ["buy", "sell", "short"]})
    later = first.added(schema.BooleanAttribute("open")).widened(wider)
    values = later.check_event({"whole": 5, "side": "short", "open": True})
    data = EventFormat(later).to_bytes(values, 1, 2.0)
    assert FORMAT.from_bytes(7, data).values == {"whole": 5, "side": "short"}
    early = FORMAT.to_bytes({"whole": 5}, 1, 2.0)
    assert EventFormat(later.without("whole")).from_bytes(7, early).values == {"whole": 5}
    wrong = encode([1, 2, later.number, [None, None, 5]])
    with pytest.raises(ValueError, match="'text' takes"):
        FORMAT.from_bytes(7, wrong)


@pytest.mark.parametrize(
    "content",
    [
        *([], [1, 2], [1, 2, 1, GOOD, 3], [1.0, 2, 1, GOOD], [1, 2, 0, GOOD]),
        *([1, 2, 1, GOOD, payload] for payload in ([], ["image/png"], ["image/png", "text"])),
        *([1, 2, 1, GOOD, payload] for payload in (["image", b"data"], [5, b"data"], b"data")),
        *([1, 2, 1, values] for values in ([], [*GOOD[:-1], None], [*GOOD, 1])),
        *([1, 2, 1, [whole, *GOOD[1:]]] for whole in ("1/0", "1/", "9" * 401, 1.5, True)),
        [1, 2, 1, [1, float("nan"), *GOOD[2:]]],
        [1, 2, 1, [1, 5, 6, 0, "buy"]],
        [1, 2, 1, [1, 5, "a", 1 << 62, "buy"]],
        [1, 2, 1, [1, 5, "a", "1970-13-13", "buy"]],
        [1, 2, 1, [1, 5, "a", 0, "hold"]],
    ],
)
def test_what_is_no_event_of_the_schema_is_refused(content: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        FORMAT.from_bytes(7, encode(content))


@given(st.binary(max_size=60))
def test_random_bytes_are_refused_or_an_event(data: bytes) -> None:
    with suppress(ValueError):
        assert set(FORMAT.from_bytes(7, data).values) <= set(SCHEMA.names)


@given(
    kept=st.lists(st.tuples(st.integers(0, 20), st.binary(max_size=30))),
    events=st.integers(1, 5),
    size=st.integers(1, 60),
)
def test_the_memory_keeps_the_newest(kept: list[tuple[int, bytes]], events: int, size: int) -> None:
    memory = EventMemory(events, size)
    for event, values in kept:
        known = memory.find(event)
        memory.keep(event, values)
        assert len(memory) <= events
        assert memory.bytes <= size
        if known is not None:
            assert memory.find(event) == known
        elif len(values) <= size:
            assert memory.find(event) == values


SETTINGS = presets.kindred(16, attributes=2, subscriptions=4, acknowledged_hops=4)
CODEC = Codec(SETTINGS)
TYPES = frame_types(CODEC)
BATCH = buffers.make_batch(SETTINGS)
UNBOXED = BATCH.unboxed()
MOST = 1 << 10
FROM = 7
WORDS = st.one_of(
    st.integers(-2, 3),
    st.sampled_from([(1 << 58) - 1, 1 << 58, (1 << 62) - 1, 1 << 62, -(1 << 63), (1 << 63) - 1]),
    st.integers(-(1 << 63), (1 << 63) - 1),
)


@st.composite
def frames(draw: st.DrawFn) -> bytes:
    """A frame that is right, or nearly."""
    kind = draw(st.sampled_from(sorted(KINDS)))
    count = int(BATCH.kinds[kind, 0]) + draw(st.sampled_from([0] * 8 + [-1, 1]))
    words = draw(st.lists(WORDS, min_size=count, max_size=count))
    good = draw(st.integers(0, 3))
    if good:
        words = [
            min(max(word, int(BATCH.lowest[kind, w])), int(BATCH.highest[kind, w]))
            if w < BATCH.lowest.shape[1]
            else word
            for w, word in enumerate(words)
        ]
    carries = kind in EVENT_MESSAGES or not good
    name = draw(st.sampled_from([b"", b"somebody"])) if carries else b""
    if len(words) > EVENT_ORIGIN and kind in EVENT_MESSAGES and good > 1:
        words[EVENT_ORIGIN] = 0 if name else -1
    values = draw(st.binary(min_size=good > 0, max_size=20)) if carries else b""
    data = bytearray(event_frame(kind, struct.pack(f"<{count}q", *words), name, values))
    if draw(st.integers(0, 4)) == 0:
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data)


def goes_alone(data: bytes) -> tuple[int, list[int], bytes, bytes] | None:
    """A frame as the way of single frames reads it; None where that refuses it."""
    if data[HEADER_BYTES : HEADER_BYTES + 1] != bytes([MARK]):
        return None
    try:
        frame = read_event_frame(data[HEADER_BYTES:])
        TYPES.check(frame)
        words = list(struct.unpack(f"<{len(frame['words']) // WORD_BYTES}q", frame["words"]))
        if frame["kind"] in EVENT_MESSAGES and "event" not in frame:
            return None
        CODEC.check(header(frame["kind"], FROM, words))
    except (errors.BadFrame, MalformedRecordError):
        return None
    return frame["kind"], words, b"".join(frame["peers"]), frame.get("event", b"")


def lengths_are_right(data: bytes) -> bool:
    return len(data) - HEADER_BYTES == int.from_bytes(data[:HEADER_BYTES], "big") <= MOST


@pytest.mark.parametrize("form", ["interpreted", "compiled"])
@given(st.lists(frames(), max_size=6), st.integers(0, 30), st.binary(max_size=30))
def test_batches_take_whole_sane_frames(
    form: str, made: list[bytes], cut: int, rest: bytes
) -> None:
    data = b"".join(made) + rest
    data = data[: max(0, len(data) - cut)]
    BATCH.incoming[: len(data)] = np.frombuffer(data, np.uint8)
    # What is no part of it is a frame, too: were it read, more would be found.
    BATCH.incoming[len(data) : len(data) + 40] = 1
    if form == "compiled":
        count = int(taking.scan.compiled(BATCH, 0, len(data), FROM, MOST, 0))
    else:
        count = int(taking.scan.linked(UNBOXED, 0, len(data), FROM, MOST, 0))
    assert count <= buffers.MOST_FRAMES
    at = 0
    for row in range(count):
        size = HEADER_BYTES + int.from_bytes(data[at : at + HEADER_BYTES], "big")
        frame = data[at : at + size]
        assert len(frame) == size
        assert lengths_are_right(frame)
        expected = goes_alone(frame)
        assert expected is not None, frame
        kind, words, name, values = expected
        told = BATCH.frames[row]
        key = words[EVENT_ID] if kind in EVENT_MESSAGES else -1
        columns = (buffers.FRAME_KIND, buffers.SOURCE, buffers.END, buffers.EVENT_KEY)
        assert [told[column] for column in columns] == [kind, FROM, at + size, key]
        assert told[buffers.WORDS_AT] + WORD_BYTES * len(words) == told[buffers.NAME_AT]
        assert data[told[buffers.NAME_AT] : told[buffers.VALUES_AT]] == name
        assert data[told[buffers.VALUES_AT] : told[buffers.END]] == values
        at += size
    # The one at which it ended is not whole, or breaks a rule, or says of its publisher what no
    # peer of this program does.
    following = made[count] if count < len(made) else b""
    if following and data[at : at + len(following)] == following and lengths_are_right(following):
        read = goes_alone(following)
        assert read is None or not says_plainly_who_published(read)


def says_plainly_who_published(read: tuple[int, list[int], bytes, bytes]) -> bool:
    kind, words, name, values = read
    if kind not in EVENT_MESSAGES:
        return not name and not values
    return words[EVENT_ORIGIN] == (0 if name else -1)


LIMITS = store.StoreLimits(events=5, event_bytes=40, clients=2, delivered=3)
event_ids = st.integers(0, 9).map(lambda number: bytes([number]))
clients = st.sampled_from(["a", "b", "c"])


class StoreAgainstModel(RuleBasedStateMachine):
    """Events and deliveries, with the file closed and opened now and then."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.store = store.Store(Path(self.folder.name) / "state.db", LIMITS)
        self.events: list[tuple[bytes, int, float]] = []
        self.delivered: dict[str, list[bytes]] = {}
        self.numbers: list[int] = []

    @initialize(now=st.integers(-10, 10))
    def bind(self, now: int) -> None:
        self.store.bind(7, now)

    @rule(event_id=event_ids, size=st.integers(0, 50), expires_at=st.integers(0, 20))
    def retain(self, event_id: bytes, size: int, expires_at: int) -> None:
        event = RetainedEvent(event_id, 1, b"x" * size, 0.0, float(expires_at))
        if size > 40:
            with pytest.raises(CapacityError, match="an event is larger"):
                self.store.events.retain_all([event])
            return
        is_new = all(event_id != known for known, _, _ in self.events)
        assert bool(self.store.events.retain_all([event])) == is_new
        if is_new:
            self.events.append((event_id, size, expires_at))
        while len(self.events) > 5 or sum(size for _, size, _ in self.events) > 40:
            del self.events[0]

    @rule(now=st.integers(0, 20))
    def prune(self, now: int) -> None:
        left = [one for one in self.events if one[2] > now]
        assert self.store.events.prune(now) == len(self.events) - len(left)
        self.events = left

    @rule(client=clients, event_id=event_ids)
    def mark(self, client: str, event_id: bytes) -> None:
        if client not in self.delivered and len(self.delivered) == 2:
            return
        known = self.delivered.setdefault(client, [])
        new = [] if event_id in known else [event_id]
        assert self.store.deliveries.mark_all(client, [event_id]) == new
        if event_id not in known:
            self.delivered[client] = [*known, event_id][-3:]

    @rule(client=clients)
    def forget(self, client: str) -> None:
        self.store.deliveries.forget(client)
        self.delivered.pop(client, None)

    @rule(count=st.integers(1, 5))
    def lease(self, count: int) -> None:
        first = self.store.lease_sequence(count)
        self.numbers += range(first, first + count)

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = store.Store(Path(self.folder.name) / "state.db", LIMITS)

    @invariant()
    def agrees(self) -> None:
        found = self.store.events.after(0, -1.0, 100)
        assert [one.event_id for one in found] == [event_id for event_id, _, _ in self.events]
        sizes = [size for _, size, _ in self.events]
        assert self.store.events.totals() == (len(sizes), sum(sizes))
        counts = {client: len(known) for client, known in self.delivered.items()}
        assert self.store.deliveries.clients() == counts
        assert self.numbers == sorted(set(self.numbers))

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()


TestStoreAgainstModel = StoreAgainstModel.TestCase
TestStoreAgainstModel.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
