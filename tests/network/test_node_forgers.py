"""A fifth of all peers in league change, forge, claim, replay, delay and drop events."""

from __future__ import annotations

import itertools
import logging
import random
import struct
from collections import Counter
from collections.abc import Callable
from typing import Any

import attrs
import cbor2
import pytest
import trio

from gossamer.node.errors import NotAcknowledged
from gossamer.node.peer.dependencies import Dependencies
from gossamer.node.peer.frames.event_authentication import point_bytes
from gossamer.node.peer.frames.events import Event
from gossamer.node.peer.frames.frame_types import WORD_BYTES
from gossamer.node.peer.peer import Subscription
from gossamer.node.security.cluster import Membership
from gossamer.node.security.event_keys import EventKey
from gossamer.node.security.identity import encode, key_text
from gossamer.node.security.sealing import DRAW_BYTES, Seal, identifier, sign
from gossamer.node.transport.frames import encode_frame
from gossamer.node.transport.schema import Frame
from gossamer.protocol.peer.record_table.records import EVENT, EVENT_MESSAGES, EVENT_VALUES, TREE
from gossamer.protocol.peer.settings import presets
from support.attackers import attacker, introduction_of, read_frame, tampered, write_frame
from support.clusters import MadeCluster, event_key
from support.memory_peers import SCHEMA, member_peers, take
from support.transport_peers import on_jumping_clock

pytestmark = on_jumping_clock

POINT_AT = EVENT_VALUES * WORD_BYTES
# Event frames that a forger keeps back at most, and that the league remembers.
DELAYED, REMEMBERED = 4, 64
# Of the event frames that pass through them, the part that forgers do something to.
SHARE = 0.5


@attrs.define
class ForgersLeague:
    seal: Seal
    draws: random.Random  # what that is
    done: Counter[str] = attrs.field(factory=Counter)  # how often they did what
    seen: list[Frame] = attrs.field(factory=list)  # frames of events, some of them old
    _left: list[Callable[[Forger, Frame, bytes], bytes]] = attrs.field(factory=list)

    def next_deed(self) -> Callable[[Forger, Frame, bytes], bytes]:
        """Another one, until there is none that was not done; then all again."""
        if not self._left:
            self._left = self.draws.sample(DEEDS, len(DEEDS))
        return self._left.pop()


@attrs.define
class Forger:
    league: ForgersLeague
    member: Membership
    key: EventKey
    _kept_back: list[bytes] = attrs.field(factory=list)

    def change(self, dependencies: Dependencies) -> Dependencies:
        return tampered(dependencies, self._rewrite)

    def _rewrite(self, data: bytes) -> bytes:
        frame: Frame = read_frame(data)
        if frame["type"] != "record" or frame["kind"] not in EVENT_MESSAGES:
            return data
        self._see(frame)
        if self.league.draws.random() >= SHARE:
            return data
        deed = self.league.next_deed()
        self.league.done[deed.__name__] += 1
        return deed(self, frame, data)

    def _see(self, frame: Frame) -> None:
        seen = self.league.seen
        if len(seen) < REMEMBERED:
            seen.append(frame)
        else:
            seen[self.league.draws.randrange(REMEMBERED)] = frame

    def drop(self, _frame: Frame, _data: bytes) -> bytes:
        return b""

    def delay(self, _frame: Frame, data: bytes) -> bytes:
        self._kept_back.append(data)
        if len(self._kept_back) < DELAYED:
            return b""
        late, self._kept_back = self._kept_back, []
        return b"".join(reversed(late))

    def replay(self, _frame: Frame, data: bytes) -> bytes:
        return data + write_frame(self.league.draws.choice(self.league.seen)) + data

    def change_values(self, frame: Frame, _data: bytes) -> bytes:
        return write_frame(self._changed(frame, with_other_values))

    def change_time(self, frame: Frame, _data: bytes) -> bytes:
        return write_frame(self._changed(frame, lambda parts: [parts[0], parts[1] + 1, *parts[2:]]))

    def change_publisher(self, frame: Frame, _data: bytes) -> bytes:
        own_key = self.member.identity.key
        return write_frame(self._changed(frame, lambda parts: [own_key, *parts[1:]]))

    def change_identifier(self, frame: Frame, _data: bytes) -> bytes:
        return write_frame(numbered(frame, self.league.draws.getrandbits(58)))

    def change_point(self, frame: Frame, _data: bytes) -> bytes:
        words = bytearray(frame["words"])
        words[POINT_AT + self.league.draws.randrange(len(words) - POINT_AT - 1)] ^= 1
        return write_frame(frame | {"words": bytes(words)})

    def change_and_rename(self, frame: Frame, data: bytes) -> bytes:
        """Before the event itself, under an identifier that belongs to what was changed."""
        return write_frame(renamed(self._changed(frame, with_other_values))) + data

    def move_and_rename(self, frame: Frame, data: bytes) -> bytes:
        """The same content a second time, at another place of the ring."""
        words = frame["words"][:POINT_AT] + bytes(len(frame["words"]) - POINT_AT)
        return write_frame(renamed(frame | {"words": words})) + data

    def spoil_signature(self, frame: Frame, data: bytes) -> bytes:
        event = frame["event"]
        return write_frame(renamed(frame | {"event": event[:-1] + bytes([event[-1] ^ 1])})) + data

    def claim_name(self, frame: Frame, data: bytes) -> bytes:
        """An event of its own making, signed by its own key, under the publisher's name."""
        parts = cbor2.loads(self._content_of(frame))
        made = encode([parts[0], parts[1] + 1, parts[2], [2.5, "FORGED"]])
        event = signed(self.member, self.key, made, frame["words"][POINT_AT:])
        own = introduction_of(self.member, self.key)
        introduction = encode_frame("publishers", introductions=[own])
        return introduction + write_frame(renamed(frame | {"event": event})) + data

    def _content_of(self, frame: Frame) -> bytes:
        return self.league.seal.open(frame["event"] + frame["words"][POINT_AT:]).content

    def _changed(self, frame: Frame, change: Callable[[list[Any]], list[object]]) -> Frame:
        """The event with other content, under the identifier and proof that it had."""
        content = self._content_of(frame)
        rest: bytes = frame["event"][len(content) :]
        return frame | {"event": encode(change(cbor2.loads(content))) + rest}


def with_other_values(parts: list[Any]) -> list[object]:
    return [*parts[:3], [1.5, "FORGED"]]


DEEDS = (
    *(Forger.drop, Forger.delay, Forger.replay),
    *(Forger.change_values, Forger.change_time, Forger.change_publisher),
    *(Forger.change_identifier, Forger.change_point),
    *(Forger.change_and_rename, Forger.move_and_rename, Forger.spoil_signature),
    Forger.claim_name,
)


def signed(member: Membership, key: EventKey, content: bytes, point: bytes) -> bytes:
    """What a frame has of an event, but for its point."""
    seal, draw = Seal(len(point) // WORD_BYTES), bytes(DRAW_BYTES)
    (proof,) = sign(member.authority, key, [seal.leaf(content, draw, point)])
    return seal.close(content, draw, point, proof)[: -len(point)]


def numbered(frame: Frame, number: int) -> Frame:
    return frame | {"words": number.to_bytes(WORD_BYTES, "little") + frame["words"][WORD_BYTES:]}


def renamed(frame: Frame) -> Frame:
    """An event under the identifier that is its own."""
    return numbered(frame, identifier(frame["event"] + frame["words"][POINT_AT:]))


SEED = 3


def fields_of(caplog: pytest.LogCaptureFixture, event: str) -> list[dict[str, Any]]:
    return [vars(line)["fields"] for line in caplog.records if line.getMessage() == event]


def keys_in(text: str, keys: set[int]) -> bool:
    return any(key_text(key) in text or str(key) in text for key in keys)


@pytest.mark.parametrize(
    ("preset", "peers", "forgers", "events"),
    [
        pytest.param("resilient", 10, 3, 30, id="few"),
        pytest.param("resilient", 40, 8, 60, marks=pytest.mark.campaign, id="resilient"),
        pytest.param("kindred", 40, 8, 60, marks=pytest.mark.campaign, id="kindred"),
    ],
)
async def test_a_fifth_of_forgers_has_nothing_delivered_that_nobody_published(
    cluster: MadeCluster,
    preset: str,
    peers: int,
    forgers: int,
    events: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What they changed is found out by the next peer, which names them; nobody else is blamed."""
    caplog.set_level(logging.WARNING, "gossamer")
    settings = getattr(presets, preset)(
        peers,
        attributes=2,
        subscriptions=16,
        event_memory=512,
        replicas=2,
        pending_publications=32,
        replay_rounds=60,
        held_events=1024,
        retention_rounds=600,
    )
    league = ForgersLeague(Seal(settings.coordinates), random.Random(SEED))
    own_keys, draws = map(event_key, itertools.count(101)), random.Random(SEED)
    published, acknowledged = dict[int, Event](), dict[int, float]()
    async with member_peers(
        cluster,
        peers,
        change=lambda _, dependencies: attrs.evolve(dependencies, settings=settings),
        every=peers // forgers,
        betray=lambda member, found: Forger(league, member, next(own_keys)).change(found),
    ) as crowd:

        async def publish() -> None:
            key, price = draws.choice(crowd.honest), draws.uniform(0, 1000)
            at = crowd.now(key)
            try:
                event = await crowd.publish(key, price)
                acknowledged[event] = price
            except NotAcknowledged as error:
                event = error.event
            published[event] = Event(event, {"price": price, "symbol": "A"}, key, at)

        wanted: dict[int, tuple[float, Subscription]] = {}
        for key in crowd.honest:  # each wants a third of all events
            low = draws.uniform(0, 660)
            wanted[key] = low, crowd.peers[key].subscribe(f"price >= {low} and price < {low + 330}")
        await crowd.rounds(8)
        async with trio.open_nursery() as nursery:
            for _ in range(events):
                nursery.start_soon(publish)
                await trio.sleep(0.2)
        await crowd.rounds(8)
        delivered = {key: await take(stream, len(stream)) for key, (_, stream) in wanted.items()}
        forged: Counter[str] = Counter()  # what honest peers did not believe, by cause
        for key in crowd.honest:
            forged.update(crowd.peers[key].counters.events_forged)
    due = {
        key: {event for event, price in acknowledged.items() if low <= price < low + 330}
        for key, (low, _) in wanted.items()
    }
    came = sum(len(due[key] & {event.id for event in got}) for key, got in delivered.items())
    share = came / sum(map(len, due.values()))
    told = f"{preset}, seed {SEED}: {dict(league.done)}, found {dict(forged)}"
    print(f"{told}; acknowledged {len(acknowledged)}/{events}, delivered {share:.3f}")
    for key, got in delivered.items():
        assert len({event.id for event in got}) == len(got), f"{key_text(key)} got one twice"
        for event in got:
            genuine = published[event.id]
            assert (event.values, event.publisher) == (genuine.values, genuine.publisher), told
            assert event.published_at == pytest.approx(genuine.published_at, abs=2e-6)
    assert set(league.done) == {deed.__name__ for deed in DEEDS}, told
    assert min(forged[cause] for cause in ("changed", "signature", "name")) > 0, told
    assert forged["two contents"] == forged["revoked"] == 0, told
    for fields in fields_of(caplog, "an event is not its publisher's"):
        if fields["cause"] == "changed":
            assert keys_in(fields["peer"], crowd.bad), fields
        if fields["cause"] == "name":
            assert keys_in(fields["signed_by"], crowd.bad), fields
    cut = [fields["peer"] for fields in fields_of(caplog, "a peer was cut")]
    assert cut
    assert [peer for peer in cut if not keys_in(peer, crowd.bad)] == [], told
    assert share > 0.5, told


async def test_of_two_events_with_one_identifier_each_peer_gets_one(
    cluster: MadeCluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whichever comes first; who gets both says who signed them. All have one identifier here."""
    monkeypatch.setattr("gossamer.node.peer.frames.wire.identifier", lambda _: 9)
    caplog.set_level(logging.WARNING, "gossamer")
    async with member_peers(cluster, 5, preset="resilient") as crowd:
        streams = {key: peer.subscribe("price >= 0") for key, peer in crowd.peers.items()}
        await crowd.rounds(8)
        member, signer = cluster.admit("two-tongued"), event_key(99)
        author = member.identity.key
        point = [1 << 60] * len(SCHEMA)
        contents = [encode([author, price, 1, [float(price), "A"]]) for price in (1, 2)]
        pair = [signed(member, signer, content, point_bytes(point)) for content in contents]
        words = struct.pack(f"<{6 + len(point)}q", 9, 0, TREE, 1, 1, -1, *point)
        for key in crowd.peers:
            async with attacker(crowd, key, member) as attack:
                await attack.send("publishers", introductions=[introduction_of(member, signer)])
                for event in pair if key % 2 else reversed(pair):
                    await attack.send("record", kind=EVENT, words=words, peers=[], event=event)
                await attack.send("ping", number=1)
                await attack.next_frame("pong")
        await crowd.rounds(4)
        for key, events in streams.items():
            taken = await take(events, len(events))
            got = [(event.publisher, event.values["price"]) for event in taken]
            assert got in ([(author, 1.0)], [(author, 2.0)]), key_text(key)
        counted = [peer.counters.events_forged["two contents"] for peer in crowd.peers.values()]
        assert sum(counted) >= len(crowd.peers)
    lines = fields_of(caplog, "an event is not its publisher's")
    assert lines
    assert all(fields["cause"] == "two contents" for fields in lines)
    assert all(keys_in(fields["publisher"], {author}) for fields in lines)
