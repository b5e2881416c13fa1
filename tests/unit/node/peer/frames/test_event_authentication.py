"""Who is believed to have published what, and how peers learn whose keys events are signed by."""

from __future__ import annotations

import itertools
import logging
from typing import Any

import attrs
import pytest
import trio

from gossamer.node.errors import CertificateError
from gossamer.node.monitoring.metrics import FORGERY_CAUSES, Counters
from gossamer.node.peer.frames import forgeries
from gossamer.node.peer.frames import publishers as parked_events
from gossamer.node.peer.frames.address_book import AddressBook
from gossamer.node.peer.frames.event_authentication import (
    GATHER_S,
    PlainEvents,
    SignedEvents,
    Unsealed,
)
from gossamer.node.peer.frames.events import EventMemory
from gossamer.node.peer.frames.forgeries import SAID_AGAIN_S, Forgeries
from gossamer.node.peer.frames.frame_types import KEYS_AT_ONCE, PUBLISHER_FRAMES
from gossamer.node.peer.frames.publishers import PER_ROUND, PublisherService
from gossamer.node.security.cluster import Membership
from gossamer.node.security.descriptors import DescriptorCache
from gossamer.node.security.event_keys import EventKey, PublisherCache, introduce
from gossamer.node.security.identity import encode
from gossamer.node.security.revocation import Revocation, RevocationList
from gossamer.node.security.sealing import DRAW_BYTES, Seal, identifier, sign
from gossamer.node.transport.frames import FrameDecoder
from gossamer.node.transport.limits import HEADER_BYTES, Limits
from gossamer.node.transport.schema import Frame, FrameTypes
from support.clusters import DAY_S, MadeCluster, event_key

SEAL = Seal(coordinates=1)
POINT = bytes(8)
TYPES = FrameTypes(PUBLISHER_FRAMES)


@attrs.define(eq=False)
class Side:
    """One peer's part in it; frames go straight to the other sides it is connected to."""

    member: Membership
    number: int
    now: float
    others: dict[int, Side] = attrs.field(factory=dict)
    counters: Counters = attrs.field(factory=Counters)
    events: EventMemory = attrs.field(factory=lambda: EventMemory(1 << 10, 1 << 24))
    released: list[tuple[int, bytes, int]] = attrs.field(factory=list)
    lacking: list[int] = attrs.field(factory=list)
    sent: list[tuple[int, str]] = attrs.field(factory=list)
    revoked: list[RevocationList] = attrs.field(init=False)
    publishers: PublisherService = attrs.field(init=False)
    signed: SignedEvents = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        authority = self.member.authority
        self.revoked = [self.member.revoked]
        book = AddressBook(self.key, 64, lambda: 0.0)
        told = Forgeries(book, self.counters)
        cache = PublisherCache(
            authority, DescriptorCache(authority, self.member.revoked), lambda: self.revoked[-1]
        )
        self.publishers = PublisherService(
            *(self.key, cache, self.events, SEAL, told, self.counters, self._send),
            lambda: list(self.others),
            lambda: self.now,
            self.lacking.append,
        )
        self.publishers.release_to(lambda *what: self.released.append(what))
        self.signed = SignedEvents(SEAL, self.member, None, self._make_key, self.publishers, told)

    async def _make_key(self) -> EventKey:
        await trio.lowlevel.checkpoint()
        return event_key(self.number)

    @property
    def key(self) -> int:
        return self.member.identity.key

    def connect(self, other: Side) -> None:
        self.others[other.key], other.others[self.key] = other, self

    def disconnect(self, other: Side) -> None:
        del self.others[other.key], other.others[self.key]
        self.publishers.forget(other.key)
        other.publishers.forget(self.key)

    def _send(self, key: int, data: bytes) -> bool:
        if key not in self.others:
            return False
        frame: Frame = FrameDecoder(Limits()).decode(data[HEADER_BYTES:])
        TYPES.check(frame)
        self.sent.append((key, frame["type"]))
        self.others[key].publishers.receive(self.key, frame)
        return True

    def sealed(self, event: int) -> bytes:
        found = self.events.find(event)
        assert found is not None
        return found

    def keep(self, sealed: bytes) -> int:
        self.events.keep(identifier(sealed), sealed)
        return identifier(sealed)

    def pass_on(self, event: int, to: Side) -> bytes | None:
        """Send an event to another side; what that believes of it."""
        sealed = self.sealed(event)
        self.publishers.show(to.key, event)
        to.events.keep(event, sealed)
        return to.signed.open(event, sealed, self.key)

    async def publish(self, value: int = 7, draw: int = 1) -> int:
        unsealed = Unsealed(content_of(self, value), draw.to_bytes(DRAW_BYTES, "big"), POINT)
        (sealed,) = await self.signed.seal([unsealed])
        return self.keep(sealed)

    def introduction(self) -> bytes:
        found = self.publishers.find(event_key(self.number).signer)
        assert found is not None
        return found.introduction

    def forged(self) -> dict[str, int]:
        return {cause: count for cause, count in self.counters.events_forged.items() if count}


@pytest.fixture
def sides(cluster: MadeCluster) -> list[Side]:
    """Alice, who knows Bob, who knows Carol, who knows Dave; nobody knows more."""
    members = [cluster.first, *map(cluster.admit, ("bob", "carol", "dave"))]
    made = [Side(member, number, cluster.now) for number, member in enumerate(members)]
    for one, other in itertools.pairwise(made):
        one.connect(other)
    return made


def content_of(side: Side, value: int = 7) -> bytes:
    return encode([side.key, 1, 1, [value]])


def last_logged(caplog: pytest.LogCaptureFixture) -> dict[str, Any]:
    fields: dict[str, Any] = vars(caplog.records[-1])["fields"]
    return fields


async def test_strangers_verify_what_others_pass_on(sides: list[Side]) -> None:
    """The introduction goes before the first event on each connection, and no more after that."""
    for value in (1, 2, 3):
        event = await sides[0].publish(value)
        for one, other in itertools.pairwise(sides):
            assert one.pass_on(event, other) == content_of(sides[0], value)
    assert [len(side.sent) for side in sides] == [1, 1, 1, 0]
    assert all(side.forged() == {} for side in sides[1:])


async def test_holders_of_events_know_publishers_that_have_left(sides: list[Side]) -> None:
    alice, bob, carol, dave = sides
    event = await alice.publish()
    alice.pass_on(event, bob)
    alice.disconnect(bob)
    assert bob.pass_on(event, carol) == content_of(alice)
    # A connection that is new brings it anew: what was on the old one may be lost.
    bob.disconnect(carol)
    bob.connect(dave)
    assert bob.pass_on(event, dave) == content_of(alice)


async def test_events_of_one_turn_share_a_signature(sides: list[Side]) -> None:
    """Whoever publishes event after event signs now and then; one event alone is signed at once."""
    alice, bob, *_ = sides
    events: list[int] = []

    async def publish(value: int) -> None:
        events.append(await alice.publish(value))

    async def publish_many(count: int, pause_s: float) -> int:
        """Publish so many events with pauses; return how many signatures they have."""
        events.clear()
        async with trio.open_nursery() as nursery:
            for value in range(count):
                nursery.start_soon(publish, value)
                if pause_s:
                    await trio.sleep(pause_s)
        assert len(set(events)) == count
        assert all(alice.pass_on(event, bob) is not None for event in events)
        return len({SEAL.open(alice.sealed(event)).signature for event in events})

    await alice.publish()  # which makes the key
    await trio.sleep(GATHER_S)
    before = trio.current_time()
    await alice.publish(0)
    assert trio.current_time() == before
    assert await publish_many(40, GATHER_S / 8) <= 7
    assert await publish_many(150, 0) == 3


async def test_who_is_cancelled_while_others_wait_signs_for_them(sides: list[Side]) -> None:
    alice, bob, *_ = sides
    await alice.publish()
    event: list[int] = []

    async def other() -> None:
        event.append(await alice.publish(2, 2))

    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:
            scope.cancel()
            nursery.start_soon(other)
            await alice.publish(3, 3)
    assert alice.pass_on(event[0], bob) == content_of(alice, 2)


def sealed_as(side: Side, content: bytes) -> bytes:
    """An event properly signed by one member, whoever it names."""
    draw = bytes(DRAW_BYTES)
    leaf = SEAL.leaf(content, draw, POINT)
    (proof,) = sign(side.member.authority, event_key(side.number), [leaf])
    return SEAL.close(content, draw, POINT, proof)


async def forge(side: Side, other: Side, how: str) -> bytes:
    sealed, content = side.sealed(await side.publish()), content_of(side)
    size, end = len(content), len(sealed) - len(POINT)
    return {
        "name": sealed_as(side, content_of(other)),
        "value": content_of(side, 8) + sealed[size:],
        "signature": sealed[: end - 1] + bytes([sealed[end - 1] ^ 1]) + POINT,
        "draw": content + bytes(DRAW_BYTES) + sealed[size + DRAW_BYTES :],
        "point": sealed[:end] + bytes([*POINT[:-1], 1]),
        "unsigned": content + bytes(DRAW_BYTES) + POINT,
    }[how]


@pytest.mark.parametrize("how", ["value", "signature", "draw", "point", "unsigned", "name"])
async def test_what_was_changed_is_not_delivered_but_counted_and_named(
    sides: list[Side], how: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Under an identifier of its own, which the event itself loses nothing by."""
    alice, bob, carol, _ = sides
    event = alice.keep(await forge(alice, carol, how))
    with caplog.at_level(logging.WARNING):
        assert alice.pass_on(event, bob) is None
    assert bob.forged() == {"name" if how == "name" else "signature": 1}
    assert bob.counters.dropped["forged event"] == 1
    assert len(caplog.records) == 1
    told = {"peer": f"{alice.key:016x}", "publisher": f"{alice.key:016x}", "id": f"{event:016x}"}
    if how == "name":  # which is known for certain
        told |= {"publisher": f"{carol.key:016x}", "signed_by": f"{alice.key:016x}"}
    assert last_logged(caplog).items() >= told.items()
    genuine = await alice.publish()
    assert alice.pass_on(genuine, bob) == content_of(alice)


async def test_events_of_the_revoked_are_refused(sides: list[Side], cluster: MadeCluster) -> None:
    alice, bob, *_ = sides
    event = await alice.publish()
    entry = Revocation(alice.key, (alice.member.certificate.serial,), int(cluster.now + DAY_S))
    assert alice.pass_on(event, bob) == content_of(alice)
    signer = cluster.registrar.signer
    bob.revoked.append(bob.revoked[-1].with_entry(entry, signer, cluster.now))
    assert alice.pass_on(event, bob) is None
    assert bob.forged() == {"revoked": 1}


async def test_an_event_waits_for_an_introduction_that_was_lost(sides: list[Side]) -> None:
    """Whoever brought it is asked at once, then others; then it is handed out after all."""
    alice, bob, carol, dave = sides
    event = await alice.publish()
    sealed = alice.sealed(event)
    alice.pass_on(event, bob)
    # Carol gets it of Dave, who has never heard of Alice.
    assert carol.signed.open(event, sealed, dave.key) is None
    assert carol.sent == [(dave.key, "publishers wanted")]
    assert carol.released == []
    carol.publishers.new_round()
    assert carol.released == [(event, sealed, dave.key)]
    assert carol.signed.open(event, sealed, dave.key) == content_of(alice)
    assert carol.forged() == {}


async def test_events_without_proof_are_given_up_and_take_little_room(sides: list[Side]) -> None:
    alice, bob, carol, dave = sides
    event = await alice.publish()
    assert carol.signed.open(event, alice.sealed(event), dave.key) is None
    for number in range(parked_events.PATIENCE_ROUNDS + 1):
        assert carol.forged() == {}, f"round {number}"
        before = len(carol.sent)
        carol.publishers.new_round()
        assert len(carol.sent) - before <= parked_events.ASKED_A_ROUND
    assert carol.forged() == {"unknown key": 1}
    assert carol.released == []
    for number in range(parked_events.MOST_OF_ONE + 3):
        sealed = sealed_as(alice, content_of(alice, number))
        bob.publishers.park(SEAL.signer_of(sealed), number, sealed, carol.key)
    assert bob.forged() == {}
    assert bob.counters.dropped["unproven"] == 3
    assert bob.sent == [(carol.key, "publishers wanted")] * 2, "once for those outside, too"


async def test_what_finds_no_room_to_wait_comes_in_the_end(
    sides: list[Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From what is remembered, as what is held is; the rest is asked for again."""
    monkeypatch.setattr(parked_events, "MOST_OF_ONE", 1)
    alice, bob, carol, dave = sides
    events = [await alice.publish(number, number + 1) for number in range(4)]
    alice.pass_on(events[0], bob)
    carol.events.keep(events[2], alice.sealed(events[2]))
    for event in events:
        assert carol.signed.open(event, alice.sealed(event), dave.key) is None
    assert (carol.released, carol.lacking) == ([], [])
    for _ in range(3):
        carol.publishers.new_round()
    assert sorted(event for event, *_ in carol.released) == sorted([events[0], events[2]])
    assert sorted(carol.lacking) == sorted([events[1], events[3]])


def test_who_makes_up_keys_takes_neither_the_room_of_others_nor_their_answers() -> None:
    parked = parked_events.ParkedEvents()
    sealed = encode([5, 1, 1, [7]])
    for number in range(2 * parked_events.MOST_OF_ONE):
        parked.add(number.to_bytes(8, "big"), parked_events.Parked(number, sealed, 1))
    assert len(parked) == parked_events.MOST_OF_ONE
    assert parked.add(b"honest  ", parked_events.Parked(7, sealed, 2))
    given_up, questions = parked.new_round([1, 2, 3, 4])
    assert given_up == []
    assert set(questions) == {1, 2, 3}
    assert max(map(len, questions.values())) == KEYS_AT_ONCE
    rounds = (parked.new_round([1, 2, 3, 4])[1] for _ in range(10))
    assert any(b"honest  " in signers for asked in rounds for signers in asked.values())
    assert parked.take(b"honest  ") == [parked_events.Parked(7, sealed, 2)]
    for neighbour in range(3, 2 + parked_events.MOST_PARKED):
        for number in range(parked_events.MOST_OF_ONE):
            one = parked_events.Parked(neighbour << 8 | number, sealed, neighbour)
            parked.add(b"any key ", one)
    assert len(parked) == parked_events.MOST_PARKED
    parked.take(b"any key ")
    assert not parked.add(b"any key ", parked_events.Parked(1, bytes(parked_events.MOST_BYTES), 9))
    assert len(parked) == parked_events.MOST_OF_ONE


async def test_introductions_are_right_and_bounded(sides: list[Side], cluster: MadeCluster) -> None:
    alice, bob, *_ = sides
    await alice.publish()
    *rest, last = alice.introduction()
    wrong = bytes([*rest, last ^ 1])
    with pytest.raises(CertificateError):
        bob.publishers.receive(alice.key, {"type": "publishers", "introductions": [wrong]})
    bob.publishers.new_round()
    again: Frame = {"type": "publishers", "introductions": [alice.introduction()]}
    for _ in range(2 * PER_ROUND):
        bob.publishers.receive(alice.key, again)
    assert bob.counters.dropped["flood"] == 0, "what is known costs nothing"
    member = alice.member
    for number in range(PER_ROUND + 1):
        certificate = cluster.certify(member.identity, f"alice {number}")
        other = introduce(member.authority, member.identity, certificate, event_key(0))
        bob.publishers.receive(alice.key, again | {"introductions": [other.introduction]})
    assert bob.counters.dropped["flood"] == 2


async def test_a_clock_that_is_wrong_trusts_nobody_new_and_blames_nobody(sides: list[Side]) -> None:
    alice, bob, carol, _ = sides
    event = await alice.publish()
    assert alice.pass_on(event, bob) is not None
    bob.now = carol.now = bob.now + 1000 * DAY_S
    assert alice.pass_on(event, bob) is not None
    assert bob.pass_on(event, carol) is None
    assert carol.counters.dropped["stale"] > 0
    carol.now -= 1000 * DAY_S
    carol.publishers.new_round()
    carol.publishers.new_round()
    assert [one[0] for one in carol.released] == [event]


def test_forgeries_are_logged_at_times(sides: list[Side], caplog: pytest.LogCaptureFixture) -> None:
    seconds = [0.0]
    book, counters = AddressBook(5, 64, lambda: 0.0), Counters()
    told = Forgeries(book, counters, lambda: seconds[0])
    neighbours = [side.key for side in sides]
    with caplog.at_level(logging.WARNING):
        for number in range(1000):
            told.note("signature", number, content_of(sides[0]), neighbours[0])
        told.note("name", 5, content_of(sides[0]), neighbours[0], neighbours[2])
        told.note("signature", 5, content_of(sides[0]), neighbours[1])
        assert len(caplog.records) == 3
        seconds[0] = SAID_AGAIN_S
        told.note("signature", 5, content_of(sides[0]), neighbours[0])
    assert last_logged(caplog)["more_like_this"] == "999"
    assert counters.events_forged["signature"] == 1002


async def test_without_certificates_nothing_is_signed_and_everybody_believed() -> None:
    plain = PlainEvents(coordinates=1)
    (sealed,) = await plain.seal([Unsealed(b"content", bytes(DRAW_BYTES), POINT)])
    assert plain.open(identifier(sealed), sealed, 5) == b"content"
    assert plain.open(5, b"short", 5) == b""


def test_every_cause_is_one_of_the_metrics() -> None:
    names = ("CHANGED", "UNSIGNED", "OTHERS_NAME", "REVOKED", "UNKNOWN", "TWO_CONTENTS")
    assert {getattr(forgeries, name) for name in names} == set(FORGERY_CAUSES)
