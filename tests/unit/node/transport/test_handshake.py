"""The hello: who is let in, who is not, and what each is told."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest
import trio
from trio.testing import memory_stream_pair

from gossamer.node.errors import BadFrame, HandshakeFailed, NodeError, PeerRefused, RefusedByPeer
from gossamer.node.transport.base import base
from gossamer.node.transport.base.frames import FrameReader, encode_frame
from gossamer.node.transport.base.limits import Limits
from gossamer.node.transport.handshake import PROTOCOL_VERSION, introduce
from support.transport_peers import identify, local_peer, message

LIMITS = Limits()
SOMEWHERE = base.Address("192.0.2.1", 4000)
HERE = (base.Address("127.0.0.1", 4000), base.Address("::1", 4001))

Outcome = base.Admitted | NodeError


def hello(**changes: Any) -> bytes:
    fields = {
        "version": PROTOCOL_VERSION,
        "software": "test",
        "cluster": "test",
        "key": 5,
        "addresses": [],
        "nonce": bytes(16),
    }
    return encode_frame("hello", **{**fields, **changes})


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
    reader = FrameReader(LIMITS)
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
    assert listener.hello.addresses == HERE
    assert listener.hello.software == "soft 9"
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


@pytest.mark.parametrize(
    ("meeting", "cause", "reason"),
    [
        ((ONE, TWO, {"version": 7}), "version", VERSIONS),
        ((OF_AA, OF_BB), "cluster", "its events are of schema aa, expected bb, the cluster's"),
        ((OF_THEIRS, TWO), "cluster", "it belongs to cluster 'theirs', expected 'test'"),
        ((ONE, TWO, {}, {"verify": revoked}), "refused", "the certificate of peer 1 was revoked"),
        ((ONE, ONE), "refused", "it has our own key"),
        ((ONE, TWO, {}, {"verify": other_key}), "refused", OTHER_KEY),
        ((ONE, TWO, {}, {"certificate": b"any"}), "refused", ANOTHERS),
        ((CERTIFIED, TWO, {}, {"certificate": b"x"}), "refused", ANOTHERS),
    ],
)
async def test_a_refused_dialler_is_told_why(meeting: Any, cause: str, reason: str) -> None:
    told, refused = await meet(*meeting)
    assert isinstance(refused, PeerRefused)
    assert isinstance(told, RefusedByPeer)
    assert (told.cause, told.reason) == (refused.cause, refused.reason) == (cause, reason)


async def test_a_refused_dialler_learns_nothing_but_the_reason() -> None:
    """Of a newer hello it is the version, not its fields."""
    newer = encode_frame("hello", version=PROTOCOL_VERSION + 1, colour="green")
    for greeting, why in (
        (newer, f"version {PROTOCOL_VERSION + 1}"),
        (hello(cluster="theirs"), "theirs"),
    ):
        near, far = memory_stream_pair()
        await far.send_all(greeting)
        with pytest.raises(PeerRefused, match=why):
            await greet(near, local_peer(2, addresses=HERE))
        assert [frame["type"] for frame in await frames_from(far)] == ["goodbye"]


@pytest.mark.parametrize(
    ("dialler", "shown", "schema"),
    [(OF_AA, None, "aa"), (ONE, None, ""), (CERTIFIED, b"own certificate", "")],
    ids=["of the same schema", "with no schema told", "with the certificate of its hello"],
)
async def test_members_get_in(dialler: base.LocalPeer, shown: bytes | None, schema: str) -> None:
    both = await meet(dialler, local_peer(2, schema="aa"), {}, {"certificate": shown})
    assert all(isinstance(one, base.Admitted) for one in both)
    assert isinstance(both[1], base.Admitted)
    assert both[1].hello.schema == schema


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
        await far.send_all(encode_frame("welcome", echo=nonce) + message(b"early"))
    assert results[0].rest == message(b"early")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "length is 1195725856"),
        (b"\x00\x00\x10\x01", "length is 4097, expected at most 4096"),
        (encode_frame("ping", number=1), "type is 'ping', expected a hello first"),
        (encode_frame("hello", version="1"), "version is '1'"),
        (encode_frame("hello", version=PROTOCOL_VERSION), "hello: software is missing"),
        (hello(addresses=["x"]), "hello: addresses is 'x', expected host:port"),
        (encode_frame("goodbye", reason=7), "goodbye: reason is 7"),
    ],
)
async def test_rubbish_is_answered_with_a_goodbye(data: bytes, why: str) -> None:
    near, far = memory_stream_pair()
    await far.send_all(data)
    with pytest.raises(BadFrame, match=why):
        await greet(near)
    assert (await frames_from(far))[0]["reason"] == "bad frame"


async def test_a_peer_that_drips_or_is_silent_or_hangs_up_is_not_waited_for() -> None:
    near, far = memory_stream_pair()

    async def drip() -> None:
        for byte in hello() * 10:
            await far.send_all(bytes([byte]))
            await trio.sleep(1)

    async def drip_until_cut() -> None:
        with pytest.raises(trio.BrokenResourceError):
            await drip()

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
