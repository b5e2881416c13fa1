"""A running peer, part of an overlay, and thousands of frames that no peer sends."""

from __future__ import annotations

import logging
import random
import re
import struct
from collections import Counter
from collections.abc import Callable

import attrs
import pytest
import trio

from gossamer.node.broker.families.scot_links import SCOT_FRAMES
from gossamer.node.local.frames import LOCAL_TYPES
from gossamer.node.peer.assembly import Dependencies
from gossamer.node.peer.frames.frame_types import frame_types
from gossamer.node.security.cluster import Membership
from gossamer.node.security.identity import SIGNATURE_BYTES, decode, encode
from gossamer.node.security.joining.admission import request_of
from gossamer.node.transport.base import Address, Admitted, Handler, Hello, PeerIdentity
from gossamer.node.transport.frames import CONTROL_FRAMES
from gossamer.node.transport.handshake import PROTOCOL_VERSION
from gossamer.node.transport.schema import Frame
from gossamer.protocol.peer.codec import Codec
from gossamer.protocol.peer.record_table import records
from gossamer.protocol.peer.settings import presets
from gossamer.protocol.peer.settings.profile import NOTHING
from support.attackers import descriptor_of, intercepted, memory_of_process, read_frame, tampered
from support.checkout import ROOT
from support.clusters import MadeCluster
from support.frame_fuzzing import Fuzzed, Fuzzer
from support.memory_peers import ROUND_S, MemberPeers, member_peers, take_ids
from support.transport_peers import on_jumping_clock

# How often the other side may be let run before it must have reacted to a frame.
TURNS = 40


class Mouthpiece(trio.abc.Stream):
    """A stream whose other end says what it is given, until it is told goodbye."""

    def __init__(self, next_frame: Callable[[], Fuzzed | None]) -> None:
        self.tried: Counter[str] = Counter()
        self.last: Fuzzed | None = None
        self.unpunished: list[Fuzzed] = []
        self.goodbye = False
        self._next_frame = next_frame

    async def receive_some(self, max_bytes: int | None = None) -> bytes:  # noqa: ARG002
        await trio.lowlevel.checkpoint()
        if self.last is not None and (self.last.is_bad or self.last.is_last):
            for _ in range(TURNS if not self.goodbye else 0):
                await trio.lowlevel.checkpoint()
                if self.goodbye:
                    break
            if self.last.is_bad and not self.goodbye:
                self.unpunished.append(self.last)
            return b""
        self.last = None if self.goodbye else self._next_frame()
        if self.last is None:
            return b""
        self.tried[self.last.how] += 1
        return self.last.data

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await trio.lowlevel.checkpoint()
        self.goodbye = self.goodbye or b"goodbye" in bytes(data)

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


@attrs.define
class Door:
    """A peer's listener, through which admitted peers are brought in."""

    handler: Handler | None = None  # what the peer does with who comes in

    def open(self, dependencies: Dependencies) -> Dependencies:
        def note(handler: Handler) -> Handler:
            self.handler = handler
            return handler

        return intercepted(dependencies, note)

    async def bring(self, member: Membership, stream: trio.abc.Stream) -> None:
        assert self.handler is not None
        key = member.identity.key
        hello = Hello(1, "fuzz", member.authority.cluster, key, (), bytes(16), None)
        identity = PeerIdentity(key, member.certificate.fingerprint, "fuzz")
        await self.handler(Admitted(stream, identity, hello, False, Address("memory", 9)))


DRAWS = 1
# Of the process, from a tenth of the frames to their end.
GROWTH_BYTES = 24 << 20
# Frames of each kind overheard, and frames tried between two gossip rounds.
TEMPLATES, A_ROUND = 12, 1000
SETTINGS = presets.resilient(
    16,
    attributes=2,
    subscriptions=16,
    event_memory=256,
    pending_publications=16,
    held_events=256,
    retention_rounds=100,
)
CODEC = Codec(SETTINGS)
TYPES = frame_types(CODEC)
SOURCE = ROOT / "node/gossamer/node"


@attrs.define
class Overheard:
    """What peers really send each other, a few frames of every kind."""

    # By type and, of records, kind: who sent it, and what.
    frames: dict[tuple[str, int], list[tuple[int, Frame]]] = attrs.field(factory=dict)

    def listen_to(self, key: int, dependencies: Dependencies) -> Dependencies:
        def note(data: bytes) -> bytes:
            frame = read_frame(data)
            kept = self.frames.setdefault((frame["type"], frame.get("kind", -1)), [])
            if len(kept) < TEMPLATES:
                kept.append((key, frame))
            return data

        return tampered(dependencies, note)

    def as_sent_by(self, speaker: Member) -> list[Frame]:
        """The same as ``speaker`` would send it: where others speak of themselves, it does."""
        kept = [one for frames in self.frames.values() for one in frames]
        return [speaker.in_place_of(sender, frame) for sender, frame in kept]


@attrs.define
class Member:
    membership: Membership
    profile: tuple[int, ...]  # what it said of itself when it still was a good peer
    _sequence: int = 1 << 40

    def describe(self, profile: tuple[int, ...]) -> bytes:
        """An entry, properly signed, that says this of its owner."""
        self._sequence += 1
        return descriptor_of(self.membership, profile, self._sequence)

    def describe_oddly(self, draws: random.Random) -> bytes:
        words = list(self.profile)
        for _ in range(draws.randrange(3)):
            words[draws.randrange(len(words))] = draws.getrandbits(64) - (1 << 63)
        return self.describe(tuple(words[: draws.choice((len(words), len(words), 3, 0))]))

    def in_place_of(self, sender: int, frame: Frame) -> Frame:
        own = self.describe(self.profile)
        if frame["type"] == "greeting":
            return frame | {"peer": own}
        if "peers" in frame:
            entries = [own if owner_of(entry) == sender else entry for entry in frame["peers"]]
            return frame | {"peers": entries}
        return frame

    def rarely_sent(self) -> list[Frame]:
        """Frames of the kinds that a small quiet overlay does not need."""
        own = [self.describe(self.profile)]
        point = [5] * SETTINGS.attributes
        box = [0, *[0, 1 << 61] * SETTINGS.attributes]
        part = [5, 6, 9, records.ALL_CLASSES, 0, 0]
        rare: list[tuple[int, list[int], list[bytes]]] = [
            (records.LOAD_SHIFTED, [0], own),
            (records.STORED, [7, 0], []),
            (records.STORED_FOR, [7, 0, 0], own),
            (records.COMPARE, [0, 0, 1, 16, *part, 7, *box], own),
            (records.COMPARED, [*part, 1, 1, 2, 3], []),
            (records.LISTED, [*part, 1, 8, 9, *point], []),
            (records.LACKING, [*part, 1, 8], []),
            (records.REPAIRED, [7, 0, 0, 1, 1, -1, *point], []),
            (records.COMPARE_SOON, [], []),
            (records.REPLAY_OFFER, [2, 8, 9], []),
            (records.REPLAY_WANTED, [2, 8, 9], []),
        ]
        certificate, authority = self.membership.certificate.der, self.membership.authority.der
        wanted = {"certificate": certificate, "signature": request_of(self.membership).signature}
        named = {"version": PROTOCOL_VERSION, "software": "", "cluster": "", "key": 1}
        figures, troubles = {"position": 0.5}, {"troubles": ["none"]}
        return [
            *(
                {"type": "record", "kind": kind, "words": packed(words), "peers": peers}
                for kind, words, peers in rare
            ),
            {"type": "revocations", "number": 5},
            {"type": "revocations", "number": 5, "list": b"{}"},
            {"type": "revocations wanted"},
            {"type": "schema", "number": 5},
            {"type": "schema", "number": 5, "document": b"{}"},
            {"type": "schema wanted"},
            {"type": "report wanted", "number": 1},
            {"type": "report", "number": 1, "figures": figures, "wanted": [1] * 64, **troubles},
            {"type": "question", "service": "last", "number": 1, "body": encode([0, []])},
            {"type": "question", "service": "order", "number": 2, "body": encode([0, 9, []])},
            {"type": "question", "service": "nothing", "number": 3, "body": b""},
            {"type": "answer", "number": 4, "body": encode([])},
            {"type": "answer", "number": 5},
            {"type": "renewal wanted", **wanted},
            {"type": "publishers wanted", "signers": [bytes(8), b"12345678"]},
            {"type": "renewed", "certificate": certificate, "authority": authority},
            {"type": "goodbye", "reason": "revoked", "detail": "", "proof": bytes(64)},
            {"type": "welcome", "echo": bytes(16)},
            {"type": "hello", "nonce": bytes(16), "addresses": [], **named},
        ]


def packed(words: list[int]) -> bytes:
    return struct.pack(f"<{len(words)}q", *words)


def owner_of(entry: bytes) -> int:
    """Whose descriptor, or bare key, an entry is."""
    if len(entry) <= SIGNATURE_BYTES:
        return int.from_bytes(entry, "big")
    return int(decode(entry[SIGNATURE_BYTES:])[1])


async def overhear(crowd: MemberPeers) -> None:
    await crowd.whole()
    for number, peer in enumerate(list(crowd.peers.values())):
        peer.subscribe(f"price >= {number}", name="early")
    await crowd.rounds(4)
    for peer in crowd.peers.values():
        await peer.publish({"price": 500, "symbol": "A"})
    await crowd.admit("late")
    await crowd.rounds(6)


@attrs.define
class Assault:
    """Frame after frame, each on a connection that lasts until one is refused."""

    fuzzer: Fuzzer
    left: int
    tried: Counter[str] = attrs.field(factory=Counter)
    cut: int = 0

    def next_frame(self) -> Fuzzed | None:
        if self.left == 0:
            return None
        self.left -= 1
        return self.fuzzer.next_frame()

    async def go_on(self, door: Door, member: Member, until_left: int) -> None:
        goal = max(0, until_left)
        while self.left > goal:
            stream = Mouthpiece(self.next_frame)
            await door.bring(member.membership, stream)
            assert stream.unpunished == []
            self.tried.update(stream.tried)
            self.cut += stream.goodbye


@pytest.mark.parametrize("frames", [2000, pytest.param(50_000, marks=pytest.mark.campaign)])
@on_jumping_clock
async def test_no_frame_harms_a_running_peer_and_bad_ones_cost_the_connection(
    cluster: MadeCluster, caplog: pytest.LogCaptureFixture, frames: int, seed: int
) -> None:
    """The peer goes on taking part in the overlay, and its memory does not grow."""
    # Tests keep each line of a log, which would count as memory of the peer's.
    caplog.set_level(logging.CRITICAL, "gossamer")
    overheard, door = Overheard(), Door()

    def change(key: int, dependencies: Dependencies) -> Dependencies:
        dependencies = attrs.evolve(dependencies, settings=SETTINGS)
        if key == target_key:
            return door.open(dependencies)
        return overheard.listen_to(key, dependencies)

    target_key = cluster.first.identity.key
    async with member_peers(cluster, 4, change=change) as crowd:
        target, speaker_key = crowd.peers[target_key], list(crowd.peers)[2]
        await overhear(crowd)
        member = Member(crowd.members[speaker_key], profile_of(crowd, speaker_key))
        await crowd.stop(speaker_key)
        templates = [*overheard.as_sent_by(member), *member.rarely_sent()]
        assert {frame["type"] for frame in templates} == set(TYPES)
        assert {frame["kind"] for frame in templates if "kind" in frame} == CODEC.kinds
        fuzzer = Fuzzer(TYPES, templates, random.Random(seed), member.describe_oddly)
        assault = Assault(fuzzer, frames)
        await assault.go_on(door, member, frames - frames // 10)
        before = memory_of_process()
        while assault.left:
            await assault.go_on(door, member, assault.left - A_ROUND)
            await trio.sleep(ROUND_S)
        growth = memory_of_process() - before
        print(f"{frames} frames, {assault.cut} cut, {growth} bytes more: {assault.tried}")
        assert growth < GROWTH_BYTES
        assert assault.cut > frames / 4
        assert target.counters.closed["bad frame"] == assault.cut
        await crowd.whole()
        events = target.subscribe("price == 7")
        await crowd.rounds(8)
        published = await crowd.publish(next(key for key in crowd.peers if key != target_key), 7)
        assert published in await take_ids(events, 1)


def profile_of(crowd: MemberPeers, key: int) -> tuple[int, ...]:
    place = round(crowd.peers[key].snapshot().position * (1 << 62))
    return (place, place, 0, *[NOTHING] * (CODEC.profile_words - 3))


def test_every_frame_that_the_node_makes_has_a_schema() -> None:
    known = {*TYPES, *LOCAL_TYPES, *CONTROL_FRAMES, *SCOT_FRAMES}
    for path in SOURCE.rglob("*.py"):
        made = re.findall(r'encode_frame\(\s*"([^"]+)"', path.read_text(encoding="utf-8"))
        assert set(made) <= known, path.name
