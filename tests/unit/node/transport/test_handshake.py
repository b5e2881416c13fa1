"""Frames and the hello: what is taken and refused, who is let in, and what each is told."""

from __future__ import annotations

import math
import struct
from hashlib import sha256
from typing import Any

import cbor2
import pytest
import trio
from trio.testing import memory_stream_pair

from gossamer.node.errors import BadFrame, HandshakeFailed, NodeError, PeerRefused, RefusedByPeer
from gossamer.node.transport import base, frames, schema
from gossamer.node.transport.handshake import PROTOCOL_VERSION, introduce
from gossamer.node.transport.limits import Limits
from gossamer.protocol.kernel.errors import ConfigError, RemoteProtocolError
from support.transport_peers import MESSAGE_FRAMES, drip, identify, local_peer, message

LIMITS = Limits()
SOMEWHERE = base.Address("192.0.2.1", 4000)
HERE = (base.Address("127.0.0.1", 4000), base.Address("::1", 4001))

Outcome = base.Admitted | NodeError


def hello(**changes: Any) -> bytes:
    fields: dict[str, Any] = {"version": PROTOCOL_VERSION, "software": "test", "cluster": "test"}
    fields |= {"key": 5, "addresses": [], "nonce": bytes(16)}
    return frames.encode_frame("hello", **fields | changes)


async def greet(
    stream: trio.abc.Stream,
    me: base.LocalPeer | None = None,
    dialled: bool = False,
    *,
    verify: base.Verify = identify,
    certificate: bytes | None = None,
    **options: Any,
) -> base.Admitted:
    options |= {"certificate": certificate, "dialled": dialled, "remote": SOMEWHERE}
    return await introduce(stream, me or local_peer(2), LIMITS, verify, **options)


async def frames_from(stream: trio.abc.ReceiveStream) -> list[dict[str, Any]]:
    reader = frames.FrameReader(LIMITS)
    reader.feed(await stream.receive_some(65536))
    return list(reader)


async def meet(
    dialler: base.LocalPeer,
    listener: base.LocalPeer,
    dialler_options: dict[str, Any] | None = None,
    listener_options: dict[str, Any] | None = None,
) -> tuple[Outcome, Outcome]:
    near, far = memory_stream_pair()
    outcomes: dict[bool, Outcome] = {}

    async def take_part(end: trio.abc.Stream, me: base.LocalPeer, dialled: bool, how: Any) -> None:
        try:
            outcomes[dialled] = await greet(end, me, dialled, **(how or {}))
        except NodeError as error:
            outcomes[dialled] = error

    async with trio.open_nursery() as nursery:
        nursery.start_soon(take_part, near, dialler, True, dialler_options)
        nursery.start_soon(take_part, far, listener, False, listener_options)
    return outcomes[True], outcomes[False]


async def test_two_peers_learn_who_the_other_is() -> None:
    dialler, listener = await meet(local_peer(1, addresses=HERE, software="soft 9"), local_peer(2))
    assert isinstance(dialler, base.Admitted)
    assert isinstance(listener, base.Admitted)
    assert dialler.identity == base.PeerIdentity(2, b"", "test-2")
    assert listener.identity.key == 1
    assert (listener.hello.addresses, listener.hello.software) == (HERE, "soft 9")
    assert (dialler.dialled, listener.dialled) == (True, False)


def revoked(_: bytes | None, hello: base.Hello) -> base.PeerIdentity:
    """Who is let in is for the caller to decide."""
    raise PeerRefused(f"the certificate of peer {hello.key} was revoked")


def other_key(_: bytes | None, __: base.Hello) -> base.PeerIdentity:
    return base.PeerIdentity(9)


ONE, TWO = local_peer(1), local_peer(2)
OF_AA, OF_BB = local_peer(1, schema="aa"), local_peer(2, schema="bb")
OF_THEIRS = base.LocalPeer(key=1, cluster="theirs")
CERTIFIED = local_peer(1, fingerprint=sha256(b"own certificate").digest())
OTHER_KEY = f"it claims key {1:016x}, its certificate says {9:016x}"
ANOTHERS = "its hello was made for another certificate"
VERSIONS = f"it speaks version 7 of the protocol, expected {PROTOCOL_VERSION}"


async def test_a_refused_dialler_is_told_why_and_learns_nothing_but_the_reason() -> None:
    """Of a newer hello it is the version, not its fields."""
    meeting: tuple[Any, ...]
    for meeting, cause, reason in (
        ((ONE, TWO, {"version": 7}), "version", VERSIONS),
        ((OF_AA, OF_BB), "cluster", "its events are of schema aa, expected bb, the cluster's"),
        ((OF_THEIRS, TWO), "cluster", "it belongs to cluster 'theirs', expected 'test'"),
        ((ONE, TWO, {}, {"verify": revoked}), "refused", "the certificate of peer 1 was revoked"),
        ((ONE, ONE), "refused", "it has our own key"),
        ((ONE, TWO, {}, {"verify": other_key}), "refused", OTHER_KEY),
        ((ONE, TWO, {}, {"certificate": b"any"}), "refused", ANOTHERS),
        ((CERTIFIED, TWO, {}, {"certificate": b"x"}), "refused", ANOTHERS),
    ):
        told, refused = await meet(*meeting)
        assert isinstance(refused, PeerRefused)
        assert isinstance(told, RefusedByPeer)
        assert (told.cause, told.reason) == (refused.cause, refused.reason) == (cause, reason)
    newer = frames.encode_frame("hello", version=PROTOCOL_VERSION + 1, colour="green")
    for greeting, why in (
        (newer, f"version {PROTOCOL_VERSION + 1}"),
        (hello(cluster="theirs"), "theirs"),
    ):
        near, far = memory_stream_pair()
        await far.send_all(greeting)
        with pytest.raises(PeerRefused, match=why):
            await greet(near, local_peer(2, addresses=HERE))
        assert [frame["type"] for frame in await frames_from(far)] == ["goodbye"]


async def test_members_get_in() -> None:
    for dialler, shown, told in (
        (OF_AA, None, "aa"),
        (ONE, None, ""),  # that tells no schema
        (CERTIFIED, b"own certificate", ""),  # with the one of its hello
    ):
        both = await meet(dialler, local_peer(2, schema="aa"), {}, {"certificate": shown})
        assert isinstance(both[0], base.Admitted)
        assert isinstance(both[1], base.Admitted)
        assert both[1].hello.schema == told


async def test_a_dialler_refuses_whom_it_did_not_mean() -> None:
    dialler, listener = await meet(ONE, TWO, {"expected": 3})
    assert isinstance(dialler, PeerRefused)
    assert "it is peer 0000000000000002, expected peer 0000000000000003" in str(dialler)
    assert isinstance(listener, RefusedByPeer)


async def test_a_recorded_handshake_is_of_no_use_later(monkeypatch: pytest.MonkeyPatch) -> None:
    near, far = memory_stream_pair()
    recorded: list[bytes] = []
    send_all = near.send_all

    async def record(data: bytes) -> None:
        recorded.append(data)
        await send_all(data)

    monkeypatch.setattr(near, "send_all", record)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(greet, far)
        await greet(near, ONE, dialled=True)
    assert len(recorded) == 2, "a hello and a welcome"

    near, far = memory_stream_pair()
    await far.send_all(b"".join(recorded))
    with pytest.raises(PeerRefused, match="echoed a nonce of another connection"):
        await greet(near)


async def test_what_follows_the_welcome_is_kept_for_the_connection() -> None:
    near, far = memory_stream_pair()
    results: list[base.Admitted] = []

    async def listen() -> None:
        results.append(await greet(near))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        await far.send_all(hello())
        nonce = (await frames_from(far))[0]["nonce"]
        await far.send_all(frames.encode_frame("welcome", echo=nonce) + message(b"early"))
    assert results[0].rest == message(b"early")


async def test_rubbish_is_answered_with_a_goodbye() -> None:
    for data, why in (
        (b"GET / HTTP/1.1\r\n\r\n", "length is 1195725856"),
        (b"\x00\x00\x10\x01", "length is 4097, expected at most 4096"),
        (frames.encode_frame("ping", number=1), "type is 'ping', expected a hello first"),
        (frames.encode_frame("hello", version="1"), "version is '1'"),
        (frames.encode_frame("hello", version=PROTOCOL_VERSION), "hello: software is missing"),
        (hello(addresses=["x"]), "hello: addresses is 'x', expected host:port"),
        (frames.encode_frame("goodbye", reason=7), "goodbye: reason is 7"),
    ):
        near, far = memory_stream_pair()
        await far.send_all(data)
        with pytest.raises(BadFrame, match=why):
            await greet(near)
        assert (await frames_from(far))[0]["reason"] == "bad frame"


async def test_a_peer_that_drips_or_is_silent_or_hangs_up_is_not_waited_for() -> None:
    near, far = memory_stream_pair()

    async def drip_until_cut() -> None:
        with pytest.raises(trio.BrokenResourceError):
            await drip(far, hello() * 10)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(drip_until_cut)
        with pytest.raises(HandshakeFailed, match="within 10"):
            await greet(near)
    for dialled in (True, False):
        near, _far = memory_stream_pair()
        began = trio.current_time()
        with pytest.raises(HandshakeFailed, match="within 10"):
            await greet(near, dialled=dialled)
        assert trio.current_time() == pytest.approx(began + 10)
    near, far = memory_stream_pair()
    await far.aclose()
    with pytest.raises(HandshakeFailed, match="without a word"):
        await greet(near, dialled=True)


SMALL = Limits(frame_bytes=1024, items=64, depth=4)


def decode(body: bytes, limits: Limits = SMALL) -> dict[str, Any]:
    return frames.FrameDecoder(limits).decode(body)


def framed(body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + body


def test_what_is_no_plain_map_is_refused_and_the_next_is_taken() -> None:
    decoder = frames.FrameDecoder(SMALL)
    for body, why in (
        (b"", "premature end"),
        (b"\x01", "is 1, expected a map"),
        (b"\xa0\xa0", "1 bytes too many"),
        (b"\xa1\x01\x01", "key must be a text string"),
        (b"\xa2\x61a\x01\x61a\x02", "Duplicate map key"),
        (b"\xbf\x61a\x01\xff", "indefinite"),
        (b"\xa1\x61a\x9f\x01\xff", "indefinite"),
        (b"\xa1\x61a\x7f\x61b\xff", "indefinite"),
        (b"\xa1\x61a" + b"\x81" * 4 + b"\x01", "depth"),
        (b"\xa1\x61a" + b"\x81" * 600, "more values"),
        (b"\xa1\x61a\x82\x01", "premature end"),
        (b"\xa1\x61a\x83\x01", "premature end"),
        (b"\xa1\x61a" + b"\x81" * 9, "depth"),
        (b"\xa1\x61a\x5b\x7f\xff\xff\xff\xff\xff\xff\xff", "premature end"),
        (b"\xa1\x61a\x9b\x00\x00\x00\xff\xff\xff\xff\xff", "premature end"),
        (b"\xa1\x61a\xbb\xff\xff\xff\xff\xff\xff\xff\xff", "unreadable"),
        (b"\xa1\x61a\x61\xff", "can't decode byte 0xff"),
        (b"\xa1\x61a\x1c", "subtype 0x1c"),
        (b"\xa1\x61a\xc2\x41\x01", "tags are not"),
        (b"\xa1\xc0\x61a\x01", "unreadable"),
        (b"\xd9\xd9\xf7\xa0", "tags are not"),
    ):
        with pytest.raises(BadFrame, match=why):
            decoder.decode(body)
        assert decoder.decode(b"\xa1\x61a\x01") == {"a": 1}


def test_no_tag_is_interpreted() -> None:
    for tag in [*range(2048), 43000, 55799, 65535]:
        for payload in (b"\x01", b"\x61\x31", b"\x41\x31", b"\x82\x01\x02", b"\xa0"):
            with pytest.raises(BadFrame, match="tag"):
                decode(b"\xa1\x61a\xd9" + tag.to_bytes(2, "big") + payload, Limits())


def test_values_are_counted_before_any_is_made_and_no_further_than_the_limit() -> None:
    body = cbor2.dumps({"a": [0] * 62})
    assert len(decode(body, Limits(items=65))["a"]) == 62
    with pytest.raises(BadFrame, match="at most 64 values"):
        decode(body)
    assert frames.count_items(b"\x00" * 10**6, 100) == 101
    for length in (23, 24, 255, 256, 65_535, 65_536):  # a long text is one value
        assert frames.count_items(cbor2.dumps({"a": "x" * length, "b": b"x" * length}), 100) == 5


def test_a_frame_of_the_longest_size_is_taken_and_a_longer_refused_at_its_header() -> None:
    body = cbor2.dumps({"type": "x", "pad": b""})
    body = cbor2.dumps({"type": "x", "pad": bytes(1024 - len(body) - 2)})
    assert len(body) == 1024
    reader = frames.FrameReader(SMALL)
    reader.feed(framed(body) + struct.pack(">I", 1025))
    assert reader.next_frame() is not None
    with pytest.raises(BadFrame, match="length is 1025, expected at most 1024 bytes"):
        reader.next_frame()


def test_a_reader_goes_on_while_somebody_looks_at_what_it_held() -> None:
    """Such as a traceback that is kept: the node would end where the buffer cannot be resized."""
    first, second = (framed(cbor2.dumps({"n": n})) for n in (1, 2))
    reader = frames.FrameReader(SMALL)
    reader.feed(first + second[:3])
    held = reader.waiting()
    reader.feed(second[3:5])
    assert reader.next_frame() == {"n": 1}
    later = reader.waiting()
    reader.feed(second[5:])
    assert reader.next_frame() == {"n": 2}
    assert bytes(held) == first + second[:3]
    assert bytes(later) == second[:5]


def test_frames_arrive_byte_by_byte_and_the_rest_goes_to_another_reader() -> None:
    stream = b"".join(frames.encode_frame("ping", number=i) for i in range(10))
    reader, other = frames.FrameReader(SMALL), frames.FrameReader(SMALL)
    numbers = []
    for at in range(len(stream) - 3):
        reader.feed(stream[at : at + 1])
        numbers += [frame["number"] for frame in reader]
        assert reader.buffered < len(stream) / 10 + 1
    assert numbers == list(range(9))
    other.feed(reader.take_rest() + stream[-3:])
    assert other.next_frame() == {"type": "ping", "number": 9}
    assert reader.buffered == other.buffered == 0


GOOD_AND_BAD: list[tuple[schema.Field, list[Any], list[Any]]] = [
    (schema.Integer(), [0, 2**63 - 1, -(2**63)], [2**63, -(2**63) - 1, 1.0, True, "1", None]),
    (schema.Integer(1, 3), [1, 3], [0, 4]),
    (schema.Number(), [1, 1.5, -0.0], [math.nan, math.inf, True, 2**64 - 1, "1"]),
    (schema.Number(0, 1), [0, 1.0], [-0.1, 2]),
    (schema.Flag(), [True, False], [0, 1, None]),
    (schema.Text(3), ["", "abc", "äöü"], ["abcd", b"abc", 1]),
    (schema.Bytes(3, shortest=1), [b"a", b"abc"], [b"", b"abcd", "a"]),
    (schema.ListOf(schema.Integer(0, 9), 2), [[], [1, 9]], [[1, 2, 3], [10], {}, (1,), "12"]),
    (schema.MapOf(schema.Flag(), 1), [{}, {"a": True}], [{"a": True, "b": True}, {b"a": True}]),
    (schema.MapOf(schema.Flag(), 1), [], [{"a": 1}, []]),
    (schema.MapOf(schema.Flag(), 1, longest_key=2), [{"ab": True}], [{"abc": True}]),
    (schema.AnyOf(schema.Integer(), schema.Text(2)), [1, "ab"], [1.5, "abc", None]),
    (schema.Optional(schema.Flag()), [True], [None]),
]


def test_a_field_takes_what_it_says() -> None:
    for field, good, bad in GOOD_AND_BAD:
        types = schema.FrameTypes({"t": {"f": field}})
        for value in good:
            types.check({"type": "t", "f": value})
        for value in bad:
            with pytest.raises(BadFrame, match=r"^t: f.* expected "):
                types.check({"type": "t", "f": value})


def test_a_complaint_names_frame_field_and_expectation() -> None:
    frame: dict[str, Any]
    for frame, why in (
        ({}, "frame: type is None, expected a known type"),
        ({"type": "x"}, "frame: type is 'x'"),
        ({"type": ["ping"]}, "frame: type is a list of 1"),
        ({"type": "ping"}, "ping: number is missing"),
        ({"type": "ping", "number": -1}, "ping: number is -1, expected a whole number from 0"),
        ({"type": "ping", "number": 1, "more": 1}, "ping: a field is 'more'"),
        ({"type": "goodbye", "reason": "r", "detail": 1}, "goodbye: detail is 1, expected text"),
        ({"type": "goodbye", "reason": "r" * 40}, "goodbye: reason is 'rrr"),
        ({"type": "ack", "numbers": [1, "a"]}, r"ack: numbers\[1\] is 'a', expected a whole"),
    ):
        with pytest.raises(BadFrame, match=why) as caught:
            MESSAGE_FRAMES.check(frame)
        assert isinstance(caught.value, RemoteProtocolError)
        assert len(str(caught.value)) < 300
    # What they show of values is short.
    large = ["x" * 10**6, b"x" * 10**6, [1] * 10**6, {"a": "b" * 10**6}, 2**64, cbor2.undefined]
    assert all(len(schema.shorten(value)) < 70 for value in large)


def test_types_are_added_without_touching_the_old_ones() -> None:
    more = frames.CONTROL_FRAMES.extended({"news": {"text": schema.Text(5)}})
    more.check({"type": "news", "text": "abc"})
    assert "news" in more
    assert "news" not in frames.CONTROL_FRAMES
    for types, words in (
        ({"ping": {}}, "frame type is 'ping'"),
        ({"news": {"type": schema.Flag()}}, "another name"),
    ):
        with pytest.raises(ConfigError, match=words):
            frames.CONTROL_FRAMES.extended(types)
