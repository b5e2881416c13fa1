"""Whatever bytes, tokens, questions and settings a node is given: taken as they are, or refused."""

from __future__ import annotations

import itertools
import random
import string
import struct
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import cbor2
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gossamer.node.config.file import load_config
from gossamer.node.config.node import PRESETS
from gossamer.node.errors import BadFrame, JoinError
from gossamer.node.local.groups import wire
from gossamer.node.local.replies import SERVICE as REPLY
from gossamer.node.local.replies import Replies
from gossamer.node.peer.frames import event_authentication, events
from gossamer.node.peer.unicast import last_values
from gossamer.node.peer.unicast.cluster_time import SERVICE as CLOCK
from gossamer.node.peer.unicast.last_values import SERVICE as LAST
from gossamer.node.peer.unicast.messages import REQUEST_TYPE, ReplyTo, enclosed, opened
from gossamer.node.peer.unicast.order import SERVICE as ORDER
from gossamer.node.peer.unicast.order import read_answer
from gossamer.node.security.identity import encode
from gossamer.node.security.joining.join_protocol import Token, read_token
from gossamer.node.transport.base import Address
from gossamer.node.transport.frames import (
    FrameReader,
    count_items,
    encode_frame,
)
from gossamer.node.transport.handshake import PROTOCOL_VERSION
from gossamer.node.transport.limits import HEADER_BYTES, Limits
from gossamer.node.transport.schema import shorten
from gossamer.protocol.content.schema import SchemaVersion
from gossamer.protocol.content.values import Payload
from support.draws import larger
from support.loopback_peer import SCHEMA, LoopbackPeer
from support.transport_peers import MESSAGE_FRAMES

LIMITS = Limits(frame_bytes=2048, queue_bytes=4096, items=128, depth=4)
PIECE_BYTES = 512
MUTATIONS = larger(6_000, 20_000)
TYPE_NAMES = ("hello", "welcome", "goodbye", "ping", "pong", "message", "ack")
INT64 = st.integers(-(2**63), 2**63 - 1)
leaves = st.none() | st.booleans() | INT64 | st.floats(allow_nan=False) | st.text() | st.binary()
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)
maps = st.dictionaries(st.text(), values, max_size=5)


def framed(body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + body


def read(pieces: list[bytes], limits: Limits = LIMITS) -> tuple[list[Any], str | None, int]:
    """The frames in ``pieces``, the complaint that ended them, and the most bytes ever held."""
    reader = FrameReader(limits)
    frames: list[Any] = []
    most = 0
    try:
        for piece in pieces:
            reader.feed(piece)
            most = max(most, reader.buffered)
            for frame in reader:
                frames.append(frame)
                MESSAGE_FRAMES.check(frame)
    except BadFrame as error:
        return frames, str(error), most
    return frames, None, most


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    ends = list(itertools.accumulate(sizes, initial=0))
    return [data[at:end] for at, end in itertools.pairwise([*ends, None])]


def items_of(value: object) -> int:
    if isinstance(value, dict):
        return 1 + sum(1 + items_of(entry) for entry in value.values())
    return 1 + sum(map(items_of, value)) if isinstance(value, list) else 1


@given(maps)
def test_every_plain_map_comes_back_and_is_counted_exactly(content: dict[str, Any]) -> None:
    reader, data = FrameReader(Limits()), cbor2.dumps(content)
    reader.feed(framed(data))
    assert (reader.next_frame(), count_items(data, 10**6)) == (content, items_of(content))


@given(st.binary(max_size=200), st.integers(0, 50))
def test_counting_any_bytes_ends_within_its_limit(body: bytes, limit: int) -> None:
    assert 0 <= count_items(body, limit) <= min(limit + 1, len(body))


@given(
    st.lists(st.integers(0, 2**62), max_size=8),
    st.binary(max_size=300),
    st.lists(st.integers(0, 40), max_size=20),
)
def test_frames_do_not_depend_on_cuts(numbers: list[int], rubbish: bytes, sizes: list[int]) -> None:
    data = b"".join(encode_frame("ping", number=number) for number in numbers)
    frames, complaint, _ = read(cut(data, sizes))
    assert complaint is None
    assert [frame["number"] for frame in frames] == numbers
    for spoilt in (rubbish, data + rubbish):
        assert read([spoilt])[:2] == read(cut(spoilt, sizes))[:2]


@given(maps)
def test_a_map_of_no_known_type_is_a_bad_frame(content: dict[str, Any]) -> None:
    assume(content.get("type") not in TYPE_NAMES)
    frames, complaint, _ = read([framed(cbor2.dumps(content))], Limits())
    assert frames == [content]
    assert complaint is not None
    assert "expected a known type of frame" in complaint


@given(values)
def test_anything_is_shown_shortly(value: object) -> None:
    assert len(shorten(value)) < 80


def sample_frames(draws: random.Random) -> list[bytes]:
    return [
        encode_frame(
            "hello",
            version=PROTOCOL_VERSION,
            software="fuzz",
            cluster="test",
            key=draws.getrandbits(62),
            addresses=["127.0.0.1:4000", "[::1]:4000"],
            nonce=draws.randbytes(16),
            fingerprint=draws.randbytes(32),
        ),
        encode_frame("welcome", echo=draws.randbytes(16)),
        encode_frame("goodbye", reason="shutdown", detail="x" * draws.randrange(200)),
        encode_frame("ping", number=draws.getrandbits(62)),
        encode_frame("message", kind=16, body=draws.randbytes(draws.randrange(1500)), number=1),
        encode_frame("ack", numbers=[draws.getrandbits(62) for _ in range(draws.randrange(100))]),
    ]


def mutate(frame: bytes, draws: random.Random) -> bytes:
    """``frame`` with something wrong in its length, its heads or its values."""
    body = bytearray(frame[HEADER_BYTES:])
    at = draws.randrange(len(body))
    how = draws.randrange(8)
    if how == 0:
        body[at] ^= 1 << draws.randrange(8)
    elif how == 1:
        body[at : at + 1] = bytes([draws.randrange(256)]) * draws.randrange(1, 40)
    elif how == 2:
        del body[at : at + draws.randrange(1, 20)]
    elif how == 3:  # a container or string that claims to be huge
        body[at:at] = bytes([draws.choice((0x5B, 0x7B, 0x9B, 0xBB))]) + draws.randbytes(8)
    elif how == 4:  # deep
        body[at:at] = b"\x81" * draws.randrange(1, 600)
    elif how == 5:  # a tag
        body[at:at] = bytes([0xC0 + draws.randrange(28)])
    elif how == 6:  # no end
        body[at:at] = draws.choice((b"\x9f", b"\xbf", b"\x7f", b"\x5f"))
    else:  # a length that is not that of the body
        return struct.pack(">I", draws.getrandbits(draws.randrange(1, 33))) + bytes(body)
    return framed(bytes(body))


def test_mutated_frames_cost_no_more_than_one_frame_and_one_piece() -> None:
    draws = random.Random(20_000)
    refused = 0
    for _ in range(MUTATIONS // 6):
        for frame in sample_frames(draws):
            data = mutate(frame, draws) + draws.choice((b"", frame))
            pieces = [data[at : at + PIECE_BYTES] for at in range(0, len(data), PIECE_BYTES)]
            frames, complaint, most = read(pieces)
            assert most < HEADER_BYTES + LIMITS.frame_bytes + PIECE_BYTES
            assert len(frames) <= 2
            assert len(complaint or "") < 400
            refused += complaint is not None
    assert refused > MUTATIONS / 2, "most mutations are to be wrong"


PLAIN_VALUES = st.one_of(
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.binary(max_size=20),
    st.text(max_size=10),
    st.sampled_from(["127.0.0.1:7710", "price > 80"]),
    st.booleans(),
    st.floats(allow_nan=False, width=16),
    st.none(),
)
VALUES = st.recursive(
    PLAIN_VALUES,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=12,
)
# Mostly of the shape that a question has: a list that begins with a small number.
LISTS = st.tuples(st.integers(0, 4), st.lists(VALUES, max_size=7)).map(lambda of: [of[0], *of[1]])
BODIES = st.one_of((VALUES | LISTS).map(encode), st.binary(max_size=40))


@cache
def offered() -> dict[str, Callable[[int, bytes], bytes]]:
    """The services of a peer that keep nothing on the disk."""
    peer = LoopbackPeer()
    Replies(peer)
    form = events.EventFormat(SchemaVersion.first(SCHEMA))
    plain = event_authentication.PlainEvents(2)
    last_values.LastValueKeeper(
        peer.messages, plain, lambda: form, peer.clock, random.Random(1), 1.0
    )
    return peer.messages.services


@pytest.mark.parametrize("name", [REPLY, ORDER, LAST, CLOCK])
@given(body=BODIES)
def test_a_service_answers_or_refuses(name: str, body: bytes) -> None:
    with suppress(ValueError):
        assert isinstance(offered()[name](7, body), bytes)


@given(body=BODIES, token=st.text(max_size=40))
def test_what_is_read_is_what_it_should_be_or_refused(body: bytes, token: str) -> None:
    """An envelope that is none is the application's own."""
    for read in (wire.read_announcement, wire.read_hello_answer, wire.read_report, read_answer):
        with suppress(ValueError):
            read(body)
    with suppress(ValueError):
        wire.read_event(body, 1, SCHEMA)
    with suppress(ValueError):
        _, _, parts = wire.read_question(body)
        wire.read_round(parts)
    with suppress(ValueError):
        ReplyTo.from_token(token)
    for content_type, unpack in (
        (REQUEST_TYPE, opened),
        (last_values.LAST_TYPE, last_values.mark_of),
    ):
        payload = Payload(body, content_type)
        content, found = unpack(payload)
        assert found is not None or content == payload


@given(data=st.binary(max_size=50), seconds=st.floats(0.001, 86_400.0))
def test_what_is_enclosed_comes_out_again(data: bytes, seconds: float) -> None:
    reply_to = ReplyTo(5, 6, (Address("127.0.0.1", 7710), Address("::1", 1)), round(seconds, 3))
    assert ReplyTo.from_token(reply_to.to_token()) == reply_to
    for payload in (None, Payload(data), Payload(data, "text/plain")):
        assert opened(enclosed(payload, reply_to)) == (payload, reply_to)
        mark = last_values.LastMark("symbol", round(seconds, 3), is_deleted=True)
        assert last_values.mark_of(last_values.marked(payload, mark)) == (payload, mark)


hosts = st.from_regex(r"[a-z0-9.:-]{1,40}", fullmatch=True)
tokens = st.builds(
    Token,
    st.binary(min_size=16, max_size=16).map(bytes.hex),
    st.binary(min_size=32, max_size=32),
    st.integers(0, (1 << 62) - 1),
    st.lists(st.tuples(hosts, st.integers(1, 65_535)), min_size=1, max_size=8).map(tuple),
    st.binary(min_size=16, max_size=16),
)
positions = st.floats(0, 1, exclude_max=True)
letters = st.sampled_from(string.printable.strip()) | st.characters()


@given(tokens, positions, positions, letters)
def test_mistakes_in_tokens_are_found(token: Token, where: float, end: float, letter: str) -> None:
    """A wrong character, two swapped neighbours, and a part that is missing."""
    text = token.to_text()
    assert read_token(text) == token
    at, swapped = int(where * len(text)), int(where * (len(text) - 1))
    low, high = sorted((at, int(end * len(text))))
    for changed in (
        text[:at] + letter + text[at + 1 :],
        text[:swapped] + text[swapped + 1] + text[swapped] + text[swapped + 2 :],
        text[:low] + text[high:],
    ):
        if changed.strip() != text:
            with pytest.raises(JoinError):
                read_token(changed)


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_no_text_does_more_than_be_refused(data: bytes) -> None:
    with pytest.raises(JoinError):
        read_token("gossamer1-" + data.decode("latin-1"))


NUMBERS = {
    "delivery.successors": (0, 16),
    "delivery.event_memory": (1, 65536),
    "delivery.retention_s": (0, 86400),
    "discovery.found_limit": (1, 65536),
    "protocol.round_s": (1, 3600),
    "protocol.peers_expected": (2, 1000),
    "protocol.ring_links": (1, 16),
    "limits.frame_bytes": (0, 100),
}
layers = st.fixed_dictionaries(
    {}, optional={name: st.integers(*bounds) for name, bounds in NUMBERS.items()}
)


@given(preset=st.sampled_from(sorted(PRESETS)), file=layers, environment=layers, flags=layers)
def test_the_later_layer_wins(
    preset: str, file: dict[str, int], environment: dict[str, int], flags: dict[str, int]
) -> None:
    variables = {
        f"GOSSAMER_NODE_{name.replace('.', '_').upper()}": str(value)
        for name, value in environment.items()
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "node.toml")
        lines = [f"{name} = {value}\n" for name, value in file.items()]
        path.write_text(f'preset = "{preset}"\n' + "".join(lines))
        loaded = load_config(path, variables, flags)
    values = {name: value for name, value, _ in loaded.rows()}
    stack: list[tuple[str, Mapping[str, object]]] = [
        ("preset", PRESETS[preset]),
        ("file", file),
        ("environment", environment),
        ("flag", flags),
    ]
    for name in NUMBERS:
        setting = [(source, layer[name]) for source, layer in stack if name in layer]
        source, expected = setting[-1] if setting else ("default", values.get(name))
        assert (values.get(name), loaded.origin(name).source) == (expected, source)
