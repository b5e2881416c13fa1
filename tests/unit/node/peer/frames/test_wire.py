"""Records to frames and back between two peers with real certificates, and with liars between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from gossamer.node.errors import BadFrame, ChangedEvent
from gossamer.node.monitoring.metrics import Counters
from gossamer.node.peer.frames.address_book import AddressBook
from gossamer.node.peer.frames.core import SELF, Core, Record
from gossamer.node.peer.frames.descriptor_authentication import (
    SIGNINGS_A_ROUND,
    PlainAuthentication,
    SignedAuthentication,
)
from gossamer.node.peer.frames.event_authentication import point_bytes
from gossamer.node.peer.frames.events import EventMemory
from gossamer.node.peer.frames.wire import Wire, frame_types
from gossamer.node.security.cluster import Membership
from gossamer.node.security.descriptors import Descriptor, DescriptorCache, sign_descriptor
from gossamer.node.security.encoding import encode
from gossamer.node.security.sealing import identifier
from gossamer.node.transport.base.base import Address
from gossamer.node.transport.base.schema import Frame
from gossamer.protocol.kernel.errors import MalformedRecordError, RemoteProtocolError
from gossamer.protocol.kernel.records import BODY, FROM, KIND, TO
from gossamer.protocol.peer.codec import Codec
from gossamer.protocol.peer.record_table.records import (
    ACKNOWLEDGE,
    EVENT,
    EVENT_ORIGIN,
    FIND_PLACE,
    HANDOVER,
    RECALLED,
    TMAN_REQUEST,
)
from gossamer.protocol.peer.settings import config
from gossamer.protocol.peer.settings.profile import ARC_START, IDENTIFIER, LOAD
from support.clusters import MadeCluster, made_cluster
from support.tampering import read_frame

SETTINGS = config.resilient(16, attributes=2, profile_ranges=1, event_memory=8)
CODEC = Codec(SETTINGS)
TYPES = frame_types(CODEC)
NOW = 1_000.0
LOAD_STEP = 3


@attrs.define(eq=False)
class Side:
    """One end of the wire: a peer with nothing around it."""

    member: Membership
    now: float
    core: Core = attrs.field(init=False)
    address_book: AddressBook = attrs.field(init=False)
    counters: Counters = attrs.field(factory=Counters)
    events: EventMemory = attrs.field(factory=lambda: EventMemory(8, 1 << 16))
    descriptors: DescriptorCache = attrs.field(init=False)
    authentication: SignedAuthentication = attrs.field(init=False)
    wire: Wire = attrs.field(init=False)
    signed: int = 0

    def __attrs_post_init__(self) -> None:
        self.core = Core(SETTINGS, self.key)
        self.address_book = AddressBook(self.key, 64, lambda: (), lambda: NOW)
        self.descriptors = DescriptorCache(self.member.authority, self.member.revoked)
        self.authentication = SignedAuthentication(
            self.member.authority,
            self.member.identity,
            self.member.certificate,
            self.descriptors,
            self.address_book,
            self.counters,
            sequence=self._next,
            now=lambda: self.now,
            profile_words=CODEC.profile_words,
            first_range=CODEC.first_range,
            load_step=LOAD_STEP,
        )
        self.authentication.addresses = (Address("127.0.0.1", 4000),)
        self.wire = Wire(CODEC, self.address_book, self.authentication, self.events)

    def _next(self) -> int:
        self.signed += 1
        return self.signed

    @property
    def key(self) -> int:
        return self.member.identity.key

    def meet(self, other: Side) -> int:
        """Learn the other's certificate, as in a handshake; return its handle here."""
        self.descriptors.learn(other.member.certificate.der, other.key, self.now)
        return self.address_book.handle_of(other.key)

    def hear(self, other: Side, profile: tuple[int, ...] | None = None) -> int:
        """Take a descriptor of the other, too; return its handle here."""
        handle = self.meet(other)
        entry = other.authentication.own(other.core.profile if profile is None else profile)
        assert self.authentication.read(entry, set()) is not None
        return handle

    def descriptor(self, handle: int, age: int = 0, profile: tuple[int, ...] = ()) -> list[int]:
        """The words of a descriptor, with this peer's own profile unless given."""
        return [age << 32 | handle, *(profile or self.core.profile)]

    def encode(self, kind: int, to: int, body: list[int]) -> Frame:
        """The frame for a record, read back as any receiver reads it."""
        record = [BODY + len(body), kind, to, SELF, *body]
        frame = self.wire.encode(record, self.core.profile)
        assert frame is not None
        return read(frame)


def read(frame: bytes) -> Frame:
    decoded = read_frame(frame)
    TYPES.check(decoded)
    return decoded


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[MadeCluster]:
    with made_cluster(tmp_path / "first") as made:
        yield made


@pytest.fixture
def sides(cluster: MadeCluster) -> tuple[Side, Side, Side]:
    """Alice and Bob, who have met, and Carol, whom only Alice has heard."""
    alice, bob, carol = (
        Side(member, cluster.now)
        for member in (cluster.first, cluster.admit("bob"), cluster.admit("carol"))
    )
    alice.meet(bob)
    bob.meet(alice)
    alice.hear(carol)
    return alice, bob, carol


def mentions(side: Side, record: Record) -> list[int]:
    """The keys of the peers in a record's descriptors, in order."""
    found = CODEC.references(record)[2:]
    return [side.address_book.key_of(record[at] & 0xFFFFFFFF) for at, _ in found]


def links_frame(alice: Side, *others: tuple[int, int]) -> Frame:
    """Alice's links, as handles and ages."""
    to = next(iter(alice.address_book)).handle
    words = [w for handle, age in others for w in alice.descriptor(handle, age)]
    body = [1 + len(others), *alice.descriptor(SELF), *words]
    return alice.encode(TMAN_REQUEST, to, body)


def test_a_record_arrives_with_the_receivers_handles_and_signed_profiles(
    sides: tuple[Side, Side, Side],
) -> None:
    """The ages are the carrier's; the profiles are their owners', whatever the carrier says."""
    alice, bob, carol = sides
    bob.meet(carol)
    frame = links_frame(alice, (alice.address_book.handle_of(carol.key), 3))
    decoded = bob.wire.decode(alice.key, frame)
    record = decoded.record
    assert record is not None
    assert decoded.missing == frozenset()
    assert (record[KIND], record[TO], record[FROM]) == (
        TMAN_REQUEST,
        SELF,
        bob.address_book.handle_of(alice.key),
    )
    assert mentions(bob, record) == [alice.key, carol.key]
    size = 1 + CODEC.profile_words
    assert tuple(record[BODY + 2 : BODY + 1 + size]) == alice.core.profile
    assert record[BODY + 1 + size] >> 32 == 3
    assert tuple(record[BODY + 2 + size :]) == carol.core.profile
    assert bob.address_book.addresses_of(carol.key) == (Address("127.0.0.1", 4000),)


def test_what_nobody_certified_is_left_out_and_asked_for(sides: tuple[Side, Side, Side]) -> None:
    alice, bob, carol = sides
    decoded = bob.wire.decode(
        alice.key, links_frame(alice, (alice.address_book.handle_of(carol.key), 0))
    )
    assert decoded.missing == {carol.key}
    assert decoded.record is not None
    assert mentions(bob, decoded.record) == [alice.key]


@pytest.mark.parametrize("place", [70, 100, 5])
def test_a_forged_descriptor_is_left_out_and_counted_and_the_rest_taken(
    sides: tuple[Side, Side, Side], place: int
) -> None:
    """A byte of content or signature was changed on the way."""
    alice, bob, carol = sides
    bob.meet(carol)
    frame = links_frame(alice, (alice.address_book.handle_of(carol.key), 0))
    forged = bytearray(frame["peers"][1])
    forged[place] ^= 1
    frame["peers"][1] = bytes(forged)
    record = bob.wire.decode(alice.key, frame).record
    assert record is not None
    assert mentions(bob, record) == [alice.key]
    assert bob.counters.dropped["forged"] <= 1
    assert bob.descriptors.find(carol.key) is None


def test_a_stale_descriptor_counts_for_its_age_and_the_newest_for_what_it_says(
    sides: tuple[Side, Side, Side],
) -> None:
    alice, bob, carol = sides
    newer = with_word(carol.core.profile, LOAD, 77)
    carol.authentication.new_round()
    bob.hear(carol, newer)
    frame = links_frame(alice, (alice.address_book.handle_of(carol.key), 2))
    record = bob.wire.decode(alice.key, frame).record
    assert record is not None
    assert tuple(record[-CODEC.profile_words :]) == newer
    assert bob.counters.dropped["stale"] == 1


def test_a_sender_that_passes_another_off_as_itself_is_cut(sides: tuple[Side, Side, Side]) -> None:
    alice, bob, carol = sides
    bob.meet(carol)
    frame = links_frame(alice)
    frame["peers"][0] = alice.authentication.show(carol.key)
    with pytest.raises(BadFrame, match="descriptor of the sender"):
        bob.wire.decode(alice.key, frame)


def test_a_sender_whose_own_descriptor_is_forged_is_cut(sides: tuple[Side, Side, Side]) -> None:
    alice, bob, _ = sides
    frame = links_frame(alice)
    frame["peers"][0] = bytes(64) + frame["peers"][0][64:]
    with pytest.raises(BadFrame, match="not believed"):
        bob.wire.decode(alice.key, frame)


def test_profiles_that_no_sane_peer_signs_are_left_out(
    sides: tuple[Side, Side, Side],
) -> None:
    """Its owner is to blame, not who passed it on."""
    alice, bob, carol = sides
    bob.meet(carol)
    insane = Descriptor(
        carol.key,
        carol.member.certificate.serial,
        (),
        (1 << 62, *carol.core.profile[1:]),
        99,
        0,
    )
    signed = sign_descriptor(carol.member.authority, carol.member.identity, insane)
    frame = links_frame(alice, (alice.address_book.handle_of(carol.key), 0))
    frame["peers"][1] = signed.signature + signed.content
    record = bob.wire.decode(alice.key, frame).record
    assert record is not None
    assert mentions(bob, record) == [alice.key]
    assert bob.counters.dropped["forged"] == 1


def test_a_lookup_for_a_newcomer_that_is_not_believed_says_nothing(
    sides: tuple[Side, Side, Side],
) -> None:
    alice, bob, carol = sides
    handle = alice.address_book.handle_of(carol.key)
    frame = alice.encode(
        FIND_PLACE, alice.address_book.handle_of(bob.key), [1, 0, *alice.descriptor(handle)]
    )
    decoded = bob.wire.decode(alice.key, frame)
    assert decoded.record is None
    assert decoded.missing == {carol.key}


def test_entries_of_unknown_peers_are_left_out_of_a_handover(
    sides: tuple[Side, Side, Side],
) -> None:
    """Events could not be sent there; known ones are named by the key alone where that will do."""
    alice, bob, _ = sides
    box = [0, 1, 2, 3, 4]
    to = alice.address_book.handle_of(bob.key)
    stranger = alice.address_book.handle_of(12345)
    body = [2, SELF, 7, *box, stranger, 7, *box]
    frame = alice.encode(HANDOVER, to, body)
    assert frame["peers"][1] == (12345).to_bytes(8, "big")
    record = bob.wire.decode(alice.key, frame).record
    assert record is not None
    assert record[BODY:] == [1, bob.address_book.handle_of(alice.key), 7, *box]
    assert 12345 not in bob.address_book


def change(frame: Frame, field: str, value: Any) -> Frame:
    return {**frame, field: value}


def test_frames_that_break_the_layout_cost_the_connection(sides: tuple[Side, Side, Side]) -> None:
    alice, bob, _ = sides
    frame = links_frame(alice)
    words = frame["words"]
    for broken in (
        change(frame, "words", words[:-1]),
        change(frame, "words", words[:-8]),
        change(frame, "words", words + bytes(8)),
        change(frame, "words", (5).to_bytes(8, "little") + words[8:]),
        change(frame, "words", words[:8] + (1).to_bytes(8, "little")),
        change(frame, "words", words[:8] + (1 << 40).to_bytes(8, "little")),
        change(frame, "kind", EVENT),
        change(frame, "peers", []),
    ):
        with pytest.raises(RemoteProtocolError):
            bob.wire.decode(alice.key, broken)


POINT = [5, 6]


def sealed_of(publisher: Side, point: Sequence[int] = POINT) -> bytes:
    """An event of ``publisher``."""
    return encode([publisher.key, 1, 1, [7]]) + point_bytes(point)


def event_body(event: int, mode: int = 2) -> list[int]:
    return [event, 0, mode, 1, 1, -1, *POINT]


def keep_event(side: Side, publisher: Side) -> int:
    """Let one side remember an event of ``publisher``; its identifier."""
    sealed = sealed_of(publisher)
    side.events.keep(identifier(sealed), sealed)
    return identifier(sealed)


def test_an_event_is_encoded_once_for_all_who_get_it(sides: tuple[Side, Side, Side]) -> None:
    alice, bob, _ = sides
    event = keep_event(alice, alice)
    first = alice.wire.encode([BODY + 7, EVENT, 1, SELF, *event_body(event)], ())
    second = alice.wire.encode([BODY + 7, EVENT, 2, SELF, *event_body(event)], ())
    assert first is second
    assert first is not None
    record = bob.wire.decode(alice.key, read(first)).record
    assert record is not None
    assert record[BODY:] == event_body(event)
    assert bob.events.find(event) == sealed_of(alice)
    other = alice.wire.encode([BODY + 7, EVENT, 2, SELF, *event_body(event, mode=1)], ())
    assert other != first


def test_an_event_whose_values_are_forgotten_is_not_sent(sides: tuple[Side, Side, Side]) -> None:
    alice, bob, _ = sides
    record = [BODY + 7, EVENT, 1, SELF, *event_body(identifier(sealed_of(alice)))]
    assert alice.wire.encode(record, ()) is None
    keep_event(alice, alice)
    frame = read(alice.wire.encode(record, ()) or b"")
    del frame["event"]
    with pytest.raises(BadFrame, match="event"):
        bob.wire.decode(alice.key, frame)


def test_an_impossible_event_is_not_remembered(sides: tuple[Side, Side, Side]) -> None:
    alice, bob, _ = sides
    event = keep_event(alice, alice)
    body = event_body(event)
    body[1] = 2
    frame = read(alice.wire.encode([BODY + 7, EVENT, 1, SELF, *body], ()) or b"")
    with pytest.raises(MalformedRecordError, match="attribute"):
        bob.wire.decode(alice.key, frame)
    assert bob.events.find(event) is None


def test_a_publisher_is_named_as_every_peer_is_and_never_by_a_handle(
    sides: tuple[Side, Side, Side],
) -> None:
    """A handle of the sender's means somebody else to the receiver, or nobody at all."""
    alice, bob, carol = sides
    event = keep_event(alice, bob)
    bob.authentication.own(bob.core.profile)
    body = event_body(event)
    body[EVENT_ORIGIN] = alice.address_book.handle_of(bob.key)
    bob.authentication.own(bob.core.profile)
    frame = read(alice.wire.encode([BODY + 7, EVENT, 1, SELF, *body], ()) or b"")
    record = bob.wire.decode(alice.key, frame).record
    assert record is not None
    assert record[BODY + EVENT_ORIGIN] == SELF
    assert bob.wire.decode(alice.key, frame | {"peers": [carol_key(carol)]}).record == [
        *record[: BODY + EVENT_ORIGIN],
        -1,
        *record[BODY + EVENT_ORIGIN + 1 :],
    ]
    with pytest.raises(BadFrame, match="a place in a list of 0 peers"):
        bob.wire.decode(alice.key, frame | {"peers": []})


def test_a_publisher_is_believed_for_a_round(sides: tuple[Side, Side, Side]) -> None:
    """Its entry comes with every copy of its events; from the next round on it is judged anew."""
    alice, bob, carol = sides
    bob.meet(carol)
    event = keep_event(alice, carol)
    body = event_body(event)
    body[EVENT_ORIGIN] = alice.address_book.handle_of(carol.key)
    frame = read(alice.wire.encode([BODY + 7, EVENT, 1, SELF, *body], ()) or b"")

    def publisher() -> int:
        record = bob.wire.decode(alice.key, frame).record
        assert record is not None
        return record[BODY + EVENT_ORIGIN]

    known = publisher()
    assert bob.address_book.key_of(known) == carol.key
    judged = bob.descriptors.counts.total()
    assert [publisher(), publisher()] == [known, known]
    assert bob.descriptors.counts.total() == judged
    bob.wire.new_round()
    assert publisher() == known
    assert bob.descriptors.counts.total() == judged + 1


def carol_key(carol: Side) -> bytes:
    return carol.key.to_bytes(8, "big")


def test_greetings_tell_who_can_be_joined_through(sides: tuple[Side, Side, Side]) -> None:
    alice, bob, carol = sides
    greeting = read(alice.wire.encode_greeting(alice.core.profile))
    handle, profile = bob.wire.decode_greeting(alice.key, greeting) or (-1, ())
    assert bob.address_book.key_of(handle) == alice.key
    assert tuple(profile) == alice.core.profile
    bob.meet(carol)
    with pytest.raises(BadFrame, match="greeting"):
        bob.wire.decode_greeting(carol.key, greeting)
    forged = change(greeting, "peer", bytes(64) + greeting["peer"][64:])
    fresh = Side(bob.member, bob.now)
    fresh.meet(alice)
    assert fresh.wire.decode_greeting(alice.key, forged) is None


def with_word(profile: tuple[int, ...], place: int, word: int) -> tuple[int, ...]:
    return (*profile[:place], word, *profile[place + 1 :])


def test_loads_are_signed_once_a_round_by_steps_and_places_a_few_times(
    sides: tuple[Side, Side, Side],
) -> None:
    alice = sides[0]
    profile = alice.core.profile
    alice.authentication.own(profile)
    begun = alice.signed
    alice.authentication.new_round()
    for load in range(1, 10):
        alice.authentication.own(with_word(profile, LOAD, load))
    assert alice.signed == begun + 1
    profile = with_word(profile, LOAD, LOAD_STEP)
    for place in range(1, 10):
        alice.authentication.own(with_word(profile, ARC_START, place))
    assert alice.signed == begun + SIGNINGS_A_ROUND
    for load in (1, LOAD_STEP + 1, 2 * LOAD_STEP - 1):
        alice.authentication.new_round()
        alice.authentication.own(with_word(with_word(profile, ARC_START, 3), LOAD, load))
    assert alice.signed == begun + SIGNINGS_A_ROUND
    for load in (2 * LOAD_STEP, LOAD_STEP):
        begun = alice.signed
        alice.authentication.new_round()
        alice.authentication.own(with_word(with_word(profile, ARC_START, 3), LOAD, load))
        assert alice.signed == begun + 1


def test_without_certificates_profiles_and_addresses_are_believed_as_they_come() -> None:
    books = [AddressBook(key, 8, lambda: (), lambda: NOW) for key in (100, 200)]
    authentications = [
        PlainAuthentication(key, address_book)
        for key, address_book in zip((100, 200), books, strict=True)
    ]
    authentications[0].addresses = (Address("127.0.0.1", 1),)
    one, two = (
        Wire(CODEC, address_book, authentication, EventMemory(1, 1))
        for address_book, authentication in zip(books, authentications, strict=True)
    )
    profile = Core(SETTINGS, 100).profile
    books[0].learn(300, [Address("127.0.0.1", 3)])
    changed = with_word(profile, IDENTIFIER, 5)
    body = [SELF, *profile, 2 << 32 | books[0].handle_of(300), *changed]
    frame = one.encode([BODY + len(body), ACKNOWLEDGE, books[0].handle_of(200), SELF, *body], ())
    record = two.decode(100, read(frame or b"")).record
    assert record is not None
    assert tuple(record[-CODEC.profile_words :]) == changed
    assert books[1].addresses_of(100) == (Address("127.0.0.1", 1),)
    assert books[1].addresses_of(300) == (Address("127.0.0.1", 3),)
    broken = read(frame or b"")
    broken["peers"][1] = (300).to_bytes(8, "big") + b"\xff"
    record = two.decode(100, broken).record
    assert record is not None
    assert len(record) == BODY + 1 + CODEC.profile_words


def test_who_wants_to_know_travels_with_an_event(sides: tuple[Side, Side, Side]) -> None:
    """As who it is, not as a handle; passed on by others too."""
    alice, bob, carol = sides
    event = keep_event(alice, alice)
    words = event_body(event)
    words[EVENT_ORIGIN] = SELF
    alice.core.take(alice.core.timer(1))
    frame = alice.encode(EVENT, alice.address_book.handle_of(bob.key), words)
    assert len(frame["peers"]) == 1
    record = bob.wire.decode(alice.key, frame).record
    assert record is not None
    assert bob.address_book.key_of(record[BODY + EVENT_ORIGIN]) == alice.key
    assert bob.address_book.addresses_of(alice.key) == alice.authentication.addresses
    carol.meet(bob)
    carol.meet(alice)
    passed_on = bob.encode(EVENT, bob.address_book.handle_of(carol.key), record[BODY:])
    record = carol.wire.decode(bob.key, passed_on).record
    assert record is not None
    assert carol.address_book.key_of(record[BODY + EVENT_ORIGIN]) == alice.key


def test_a_publisher_without_a_certificate_is_asked_for_and_otherwise_left_out(
    sides: tuple[Side, Side, Side],
) -> None:
    alice, bob, carol = sides
    event = keep_event(alice, carol)
    words = event_body(event)
    words[EVENT_ORIGIN] = alice.address_book.handle_of(carol.key)
    decoded = bob.wire.decode(alice.key, alice.encode(EVENT, 1, words))
    assert decoded.missing == {carol.key}
    assert decoded.record is not None
    assert decoded.record[BODY + EVENT_ORIGIN] == -1


def test_a_publisher_that_is_no_place_in_the_list_is_refused(
    sides: tuple[Side, Side, Side],
) -> None:
    alice, bob, _ = sides
    event = keep_event(alice, alice)
    words = event_body(event)
    frame = alice.encode(EVENT, 1, words)
    words[EVENT_ORIGIN] = 3
    frame["words"] = b"".join(word.to_bytes(8, "little", signed=True) for word in words)
    with pytest.raises(BadFrame, match="a peer is 3"):
        bob.wire.decode(alice.key, frame)


def test_a_recalled_event_brings_its_values(sides: tuple[Side, Side, Side]) -> None:
    alice, bob, _ = sides
    event = keep_event(alice, alice)
    decoded = bob.wire.decode(alice.key, alice.encode(RECALLED, 1, event_body(event)))
    assert decoded.record is not None
    assert decoded.record[KIND] == RECALLED
    assert bob.events.find(event) == sealed_of(alice)


def words_of(body: Sequence[int]) -> bytes:
    return b"".join(word.to_bytes(8, "little", signed=True) for word in body)


@pytest.mark.parametrize("how", ["identifier", "content", "point", "longer", "shorter"])
def test_whoever_changes_an_event_is_found_out_by_the_first_who_gets_it(
    sides: tuple[Side, Side, Side], how: str
) -> None:
    """Nothing of it is remembered, and the event itself is taken afterwards."""
    alice, bob, _ = sides
    event = keep_event(alice, alice)
    good = alice.encode(EVENT, 1, event_body(event))
    changed = {
        "identifier": {"words": words_of(event_body(event + 1))},
        "content": {"event": good["event"][:-1] + b"\x08"},
        "point": {"words": words_of([*event_body(event)[:-1], 7])},
        "longer": {"event": good["event"] + b"\x00"},
        "shorter": {"event": good["event"][:-1]},
    }[how]
    for known in (False, True):
        with pytest.raises(ChangedEvent, match=f"event is {event + (how == 'identifier'):016x}"):
            bob.wire.decode(alice.key, good | changed)
        assert len(bob.events) == known
        assert bob.wire.decode(alice.key, good).record is not None
        assert bob.events.find(event) == sealed_of(alice)


def test_no_event_is_acknowledged_to_another_than_its_publisher(
    sides: tuple[Side, Side, Side],
) -> None:
    alice, bob, _ = sides
    event = keep_event(alice, bob)
    alice.core.take(alice.core.timer(1))
    body = event_body(event)
    body[EVENT_ORIGIN] = SELF
    frame = alice.encode(EVENT, alice.address_book.handle_of(bob.key), body)
    with pytest.raises(ChangedEvent, match=f"publisher is {alice.key:016x}.*{bob.key:016x}"):
        bob.wire.decode(alice.key, frame)
    assert bob.events.find(event) is None


def test_of_two_events_with_one_identifier_the_first_counts(
    sides: tuple[Side, Side, Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which takes 2^29 tries of whoever publishes both; here every identifier is the same."""
    alice, bob, carol = sides
    told: list[tuple[int, bytes, bytes, int]] = []
    bob.wire.on_two_contents = lambda *what: told.append(what)
    monkeypatch.setattr("gossamer.node.peer.frames.wire.identifier", lambda _: 9)
    first, second = sealed_of(alice), encode([alice.key, 2, 1, [7]]) + point_bytes(POINT)
    for side, sealed in ((alice, first), (carol, second)):
        side.meet(bob)
        bob.meet(side)
        side.events.keep(9, sealed)
        record = bob.wire.decode(side.key, side.encode(EVENT, 1, event_body(9))).record
        assert (record is None) == (side is carol)
    assert told == [(9, first, second, carol.key)]
    assert bob.events.find(9) == first
