"""Records to frames and back between two peers with real certificates, and with liars between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import pytest

from gossamer.node.errors import BadFrame, ChangedEvent
from gossamer.node.peer.frames.address_book import AddressBook
from gossamer.node.peer.frames.core import SELF, Core, Record
from gossamer.node.peer.frames.descriptor_authentication import (
    SIGNINGS_A_ROUND,
    PlainAuthentication,
)
from gossamer.node.peer.frames.event_authentication import point_bytes
from gossamer.node.peer.frames.events import EventMemory
from gossamer.node.peer.frames.wire import Wire
from gossamer.node.security.descriptors import Descriptor, sign_descriptor
from gossamer.node.security.identity import encode
from gossamer.node.security.sealing import identifier
from gossamer.node.transport.base import Address
from gossamer.node.transport.schema import Frame
from gossamer.protocol.kernel.errors import MalformedRecordError, RemoteProtocolError
from gossamer.protocol.kernel.records import BODY, FROM, KIND, TO
from gossamer.protocol.peer.record_table import records
from gossamer.protocol.peer.settings.profile import ARC_START, IDENTIFIER, LOAD
from support.wire_sides import CODEC, LOAD_STEP, NOW, SETTINGS, Side, Sides, read


def mentions(side: Side, record: Record) -> list[int]:
    """The keys of the peers in a record's descriptors, in order."""
    found = CODEC.references(record)[2:]
    return [side.address_book.key_of(record[at] & 0xFFFFFFFF) for at, _ in found]


def links_frame(alice: Side, *others: tuple[int, int]) -> Frame:
    """Alice's links, as handles and ages."""
    to = next(iter(alice.address_book)).handle
    words = [w for handle, age in others for w in alice.descriptor(handle, age)]
    body = [1 + len(others), *alice.descriptor(SELF), *words]
    return alice.encode(records.TMAN_REQUEST, to, body)


def test_a_record_arrives_with_the_receivers_handles_and_signed_profiles(sides: Sides) -> None:
    """The ages are the carrier's; the profiles are their owners', whatever the carrier says."""
    alice, bob, carol = sides
    bob.meet(carol)
    frame = links_frame(alice, (alice.handle(carol), 3))
    decoded = bob.wire.decode(alice.key, frame)
    record = decoded.record
    assert record is not None
    assert decoded.missing == frozenset()
    heads = (record[KIND], record[TO], record[FROM])
    assert heads == (records.TMAN_REQUEST, SELF, bob.handle(alice))
    assert mentions(bob, record) == [alice.key, carol.key]
    size = 1 + CODEC.profile_words
    assert tuple(record[BODY + 2 : BODY + 1 + size]) == alice.core.profile
    assert record[BODY + 1 + size] >> 32 == 3
    assert tuple(record[BODY + 2 + size :]) == carol.core.profile
    assert bob.address_book.addresses_of(carol.key) == (Address("127.0.0.1", 4000),)


def test_what_nobody_certified_is_left_out_and_asked_for(sides: Sides) -> None:
    alice, bob, carol = sides
    decoded = bob.wire.decode(alice.key, links_frame(alice, (alice.handle(carol), 0)))
    assert decoded.missing == {carol.key}
    assert decoded.record is not None
    assert mentions(bob, decoded.record) == [alice.key]
    # A lookup for a newcomer that is not believed says nothing.
    body = [1, 0, *alice.descriptor(alice.handle(carol))]
    frame = alice.encode(records.FIND_PLACE, alice.handle(bob), body)
    decoded = bob.wire.decode(alice.key, frame)
    assert decoded.record is None
    assert decoded.missing == {carol.key}


@pytest.mark.parametrize("place", [70, 100, 5])
def test_a_forged_descriptor_is_counted_and_the_rest_taken(sides: Sides, place: int) -> None:
    """A byte of content or signature was changed on the way."""
    alice, bob, carol = sides
    bob.meet(carol)
    frame = links_frame(alice, (alice.handle(carol), 0))
    forged = bytearray(frame["peers"][1])
    forged[place] ^= 1
    frame["peers"][1] = bytes(forged)
    assert mentions(bob, bob.taken(alice, frame)) == [alice.key]
    assert bob.counters.dropped["forged"] <= 1
    assert bob.descriptors.find(carol.key) is None


def test_a_stale_descriptor_counts_for_its_age_and_the_newest_for_the_rest(sides: Sides) -> None:
    alice, bob, carol = sides
    newer = with_word(carol.core.profile, LOAD, 77)
    carol.authentication.new_round()
    bob.hear(carol, newer)
    frame = links_frame(alice, (alice.handle(carol), 2))
    record = bob.taken(alice, frame)
    assert tuple(record[-CODEC.profile_words :]) == newer
    assert bob.counters.redundant["older descriptor"] == 1
    assert not any(bob.counters.dropped.values()), "gossip repeats itself, and loses nothing"


def test_a_sender_that_shows_no_descriptor_of_its_own_is_cut(sides: Sides) -> None:
    alice, bob, carol = sides
    bob.meet(carol)
    frame = links_frame(alice)
    (own,) = frame["peers"]
    for shown, words in (
        (alice.authentication.show(carol.key), "descriptor of the sender"),
        (bytes(64) + own[64:], "not believed"),
    ):
        with pytest.raises(BadFrame, match=words):
            bob.wire.decode(alice.key, frame | {"peers": [shown]})


def test_profiles_that_no_sane_peer_signs_are_left_out(sides: Sides) -> None:
    alice, bob, carol = sides
    bob.meet(carol)
    insane = Descriptor(
        carol.key, carol.member.certificate.serial, (), (1 << 62, *carol.core.profile[1:]), 99, 0
    )
    signed = sign_descriptor(carol.member.authority, carol.member.identity, insane)
    frame = links_frame(alice, (alice.handle(carol), 0))
    frame["peers"][1] = signed.signature + signed.content
    assert mentions(bob, bob.taken(alice, frame)) == [alice.key]
    assert bob.counters.dropped["forged"] == 1


def test_entries_of_unknown_peers_are_left_out_of_a_handover(sides: Sides) -> None:
    """Events could not be sent there; known ones are named by the key alone where that will do."""
    alice, bob, _ = sides
    box = [0, 1, 2, 3, 4]
    body = [2, SELF, 7, *box, alice.address_book.handle_of(12345), 7, *box]
    frame = alice.encode(records.HANDOVER, alice.handle(bob), body)
    assert frame["peers"][1] == (12345).to_bytes(8, "big")
    record = bob.taken(alice, frame)
    assert record[BODY:] == [1, bob.handle(alice), 7, *box]
    assert 12345 not in bob.address_book


def test_frames_that_break_the_layout_cost_the_connection(sides: Sides) -> None:
    alice, bob, _ = sides
    frame = links_frame(alice)
    words = frame["words"]
    faults: list[dict[str, Any]] = [
        {"words": words[:-1]},
        {"words": words[:-8]},
        {"words": words + bytes(8)},
        {"words": (5).to_bytes(8, "little") + words[8:]},
        {"words": words[:8] + (1).to_bytes(8, "little")},
        {"words": words[:8] + (1 << 40).to_bytes(8, "little")},
        {"kind": records.EVENT},
        {"peers": []},
    ]
    for broken in faults:
        with pytest.raises(RemoteProtocolError):
            bob.wire.decode(alice.key, frame | broken)


def test_greetings_tell_who_can_be_joined_through(sides: Sides) -> None:
    alice, bob, carol = sides
    greeting = read(alice.wire.encode_greeting(alice.core.profile))
    handle, profile = bob.wire.decode_greeting(alice.key, greeting) or (-1, ())
    assert bob.address_book.key_of(handle) == alice.key
    assert tuple(profile) == alice.core.profile
    bob.meet(carol)
    with pytest.raises(BadFrame, match="greeting"):
        bob.wire.decode_greeting(carol.key, greeting)
    forged = greeting | {"peer": bytes(64) + greeting["peer"][64:]}
    fresh = Side(bob.member, bob.now)
    fresh.meet(alice)
    assert fresh.wire.decode_greeting(alice.key, forged) is None


def with_word(profile: tuple[int, ...], place: int, word: int) -> tuple[int, ...]:
    return (*profile[:place], word, *profile[place + 1 :])


def test_loads_are_signed_once_a_round_by_steps_and_places_a_few_times(sides: Sides) -> None:
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
    elsewhere = with_word(profile, ARC_START, 3)
    for load in (1, LOAD_STEP + 1, 2 * LOAD_STEP - 1):
        alice.authentication.new_round()
        alice.authentication.own(with_word(elsewhere, LOAD, load))
    assert alice.signed == begun + SIGNINGS_A_ROUND
    for load in (2 * LOAD_STEP, LOAD_STEP):
        begun = alice.signed
        alice.authentication.new_round()
        alice.authentication.own(with_word(elsewhere, LOAD, load))
        assert alice.signed == begun + 1


def test_without_certificates_profiles_and_addresses_are_believed_as_they_come() -> None:
    books = [AddressBook(key, 8, lambda: NOW) for key in (100, 200)]
    alice, bob = PlainAuthentication(100, books[0]), PlainAuthentication(200, books[1])
    alice.addresses = (Address("127.0.0.1", 1),)
    one, two = (
        Wire(CODEC, book, authentication, EventMemory(1, 1))
        for book, authentication in zip(books, (alice, bob), strict=True)
    )
    profile = Core(SETTINGS, 100).profile
    books[0].learn(300, [Address("127.0.0.1", 3)])
    changed = with_word(profile, IDENTIFIER, 5)
    body = [SELF, *profile, 2 << 32 | books[0].handle_of(300), *changed]
    head = [BODY + len(body), records.ACKNOWLEDGE, books[0].handle_of(200), SELF]
    frame = one.encode([*head, *body], ())
    record = two.decode(100, read(frame or b"")).record
    assert tuple(record or ())[-CODEC.profile_words :] == changed
    assert books[1].addresses_of(100) == (Address("127.0.0.1", 1),)
    assert books[1].addresses_of(300) == (Address("127.0.0.1", 3),)
    broken = read(frame or b"")
    broken["peers"][1] = (300).to_bytes(8, "big") + b"\xff"
    assert len(two.decode(100, broken).record or ()) == BODY + 1 + CODEC.profile_words


POINT = [5, 6]


def sealed_of(publisher: Side, point: Sequence[int] = POINT) -> bytes:
    return encode([publisher.key, 1, 1, [7]]) + point_bytes(point)


def event_body(event: int, mode: int = 2, origin: int = -1) -> list[int]:
    body = [event, 0, mode, 1, 1, -1, *POINT]
    body[records.EVENT_ORIGIN] = origin
    return body


def words_of(body: Sequence[int]) -> bytes:
    return b"".join(word.to_bytes(8, "little", signed=True) for word in body)


def keep_event(side: Side, publisher: Side) -> int:
    sealed = sealed_of(publisher)
    side.events.keep(identifier(sealed), sealed)
    return identifier(sealed)


def event_frame(alice: Side, body: Sequence[int], to: int = 1) -> bytes:
    return alice.wire.encode([BODY + 7, records.EVENT, to, SELF, *body], ()) or b""


def test_an_event_is_encoded_once_for_all_who_get_it_or_recall_it(sides: Sides) -> None:
    alice, bob, _ = sides
    event = keep_event(alice, alice)
    first, second = (event_frame(alice, event_body(event), to) for to in (1, 2))
    assert first is second
    record = bob.taken(alice, read(first))
    assert record[BODY:] == event_body(event)
    assert bob.events.find(event) == sealed_of(alice)
    assert event_frame(alice, event_body(event, mode=1), 2) != first
    fresh = Side(bob.member, bob.now)
    fresh.meet(alice)
    record = fresh.taken(alice, alice.encode(records.REPAIRED, 1, event_body(event)))
    assert record[KIND] == records.REPAIRED
    assert fresh.events.find(event) == sealed_of(alice)


def test_an_event_with_forgotten_or_impossible_values_is_not_sent_or_kept(sides: Sides) -> None:
    alice, bob, _ = sides
    body = event_body(identifier(sealed_of(alice)))
    assert event_frame(alice, body) == b""
    event = keep_event(alice, alice)
    frame = read(event_frame(alice, body))
    del frame["event"]
    with pytest.raises(BadFrame, match="event"):
        bob.wire.decode(alice.key, frame)
    body[1] = 2
    with pytest.raises(MalformedRecordError, match="attribute"):
        bob.wire.decode(alice.key, read(event_frame(alice, body)))
    assert bob.events.find(event) is None


def test_a_publisher_is_named_as_every_peer_is_and_never_by_a_handle(sides: Sides) -> None:
    """A handle of the sender's means somebody else to the receiver, or nobody at all."""
    alice, bob, carol = sides
    event = keep_event(alice, bob)
    bob.authentication.own(bob.core.profile)
    body = event_body(event, origin=alice.handle(bob))
    bob.authentication.own(bob.core.profile)
    frame = read(event_frame(alice, body))
    record = bob.taken(alice, frame)
    assert record[BODY + records.EVENT_ORIGIN] == SELF
    carols = frame | {"peers": [carol.key.to_bytes(8, "big")]}
    assert bob.taken(alice, carols) == [*record[:BODY], *event_body(event)]
    with pytest.raises(BadFrame, match="a place in a list of 0 peers"):
        bob.wire.decode(alice.key, frame | {"peers": []})


def test_a_publisher_is_believed_for_a_round(sides: Sides) -> None:
    """Its entry comes with every copy of its events; from the next round on it is judged anew."""
    alice, bob, carol = sides
    bob.meet(carol)
    body = event_body(keep_event(alice, carol), origin=alice.handle(carol))
    frame = read(event_frame(alice, body))

    def publisher() -> int:
        return bob.taken(alice, frame)[BODY + records.EVENT_ORIGIN]

    known = publisher()
    assert bob.address_book.key_of(known) == carol.key
    with patch.object(bob.descriptors, "recognise", wraps=bob.descriptors.recognise) as read_anew:
        assert [publisher(), publisher()] == [known, known]
        assert read_anew.call_count == 0
        bob.wire.new_round()
        assert publisher() == known
        assert read_anew.call_count == 1


def test_who_wants_to_know_travels_with_an_event(sides: Sides) -> None:
    """As who it is, not as a handle; passed on by others too."""
    alice, bob, carol = sides
    words = event_body(keep_event(alice, alice), origin=SELF)
    alice.core.take(alice.core.timer(1))
    frame = alice.encode(records.EVENT, alice.handle(bob), words)
    assert len(frame["peers"]) == 1
    record = bob.taken(alice, frame)
    assert bob.address_book.key_of(record[BODY + records.EVENT_ORIGIN]) == alice.key
    assert bob.address_book.addresses_of(alice.key) == alice.authentication.addresses
    carol.meet(bob)
    carol.meet(alice)
    passed_on = bob.encode(records.EVENT, bob.handle(carol), record[BODY:])
    record = carol.taken(bob, passed_on)
    assert carol.address_book.key_of(record[BODY + records.EVENT_ORIGIN]) == alice.key
    # None is acknowledged to another than its publisher.
    event = keep_event(alice, bob)
    frame = alice.encode(records.EVENT, alice.handle(bob), event_body(event, origin=SELF))
    with pytest.raises(ChangedEvent, match=f"publisher is {alice.key:016x}.*{bob.key:016x}"):
        bob.wire.decode(alice.key, frame)
    assert bob.events.find(event) is None


def test_a_publisher_needs_a_certificate_and_a_place_in_the_list(sides: Sides) -> None:
    alice, bob, carol = sides
    words = event_body(keep_event(alice, carol), origin=alice.handle(carol))
    decoded = bob.wire.decode(alice.key, alice.encode(records.EVENT, 1, words))
    assert decoded.missing == {carol.key}
    assert decoded.record is not None
    assert decoded.record[BODY + records.EVENT_ORIGIN] == -1
    event = keep_event(alice, alice)
    frame = alice.encode(records.EVENT, 1, event_body(event))
    frame["words"] = words_of(event_body(event, origin=3))
    with pytest.raises(BadFrame, match="a peer is 3"):
        bob.wire.decode(alice.key, frame)


@pytest.mark.parametrize("how", ["identifier", "content", "point", "longer", "shorter"])
def test_a_changed_event_is_found_out_by_the_first_who_gets_it(sides: Sides, how: str) -> None:
    alice, bob, _ = sides
    event = keep_event(alice, alice)
    good = alice.encode(records.EVENT, 1, event_body(event))
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


def test_the_first_of_an_identifier_counts(sides: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which takes 2^29 tries of whoever publishes both; here every identifier is the same."""
    alice, bob, carol = sides
    monkeypatch.setattr("gossamer.node.peer.frames.wire.identifier", lambda _: 9)
    first, second = sealed_of(alice), encode([alice.key, 2, 1, [7]]) + point_bytes(POINT)
    for side, sealed in ((alice, first), (carol, second)):
        side.meet(bob)
        bob.meet(side)
        side.events.keep(9, sealed)
        record = bob.wire.decode(side.key, side.encode(records.EVENT, 1, event_body(9))).record
        assert (record is None) == (side is carol)
    assert bob.two_contents == [(9, first, second, carol.key)]
    assert bob.events.find(9) == first
