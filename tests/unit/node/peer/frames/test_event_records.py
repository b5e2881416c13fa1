"""Records of events to frames and back, and what is found out of events that were changed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from gossamer.node.errors import BadFrame, ChangedEvent
from gossamer.node.peer.frames.core import SELF
from gossamer.node.peer.frames.event_authentication import point_bytes
from gossamer.node.security.encoding import encode
from gossamer.node.security.sealing import identifier
from gossamer.protocol.kernel.errors import MalformedRecordError
from gossamer.protocol.kernel.records import BODY, KIND
from gossamer.protocol.peer.record_table.records import EVENT, EVENT_ORIGIN, RECALLED
from support.wire_sides import Side, Sides, read

POINT = [5, 6]


def sealed_of(publisher: Side, point: Sequence[int] = POINT) -> bytes:
    """An event of ``publisher``."""
    return encode([publisher.key, 1, 1, [7]]) + point_bytes(point)


def event_body(event: int, mode: int = 2, origin: int = -1) -> list[int]:
    body = [event, 0, mode, 1, 1, -1, *POINT]
    body[EVENT_ORIGIN] = origin
    return body


def words_of(body: Sequence[int]) -> bytes:
    return b"".join(word.to_bytes(8, "little", signed=True) for word in body)


def keep_event(side: Side, publisher: Side) -> int:
    """Let one side remember an event of ``publisher``; its identifier."""
    sealed = sealed_of(publisher)
    side.events.keep(identifier(sealed), sealed)
    return identifier(sealed)


def event_frame(alice: Side, body: Sequence[int], to: int = 1) -> bytes:
    """The frame of an event, none if that is forgotten."""
    return alice.wire.encode([BODY + 7, EVENT, to, SELF, *body], ()) or b""


def test_an_event_is_encoded_once_for_all_who_get_it(sides: Sides) -> None:
    alice, bob, _ = sides
    event = keep_event(alice, alice)
    first, second = (event_frame(alice, event_body(event), to) for to in (1, 2))
    assert first is second
    record = bob.taken(alice, read(first))
    assert record[BODY:] == event_body(event)
    assert bob.events.find(event) == sealed_of(alice)
    assert event_frame(alice, event_body(event, mode=1), 2) != first


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
    assert record[BODY + EVENT_ORIGIN] == SELF
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
        return bob.taken(alice, frame)[BODY + EVENT_ORIGIN]

    known = publisher()
    assert bob.address_book.key_of(known) == carol.key
    judged = bob.descriptors.counts.total()
    assert [publisher(), publisher()] == [known, known]
    assert bob.descriptors.counts.total() == judged
    bob.wire.new_round()
    assert publisher() == known
    assert bob.descriptors.counts.total() == judged + 1


def test_who_wants_to_know_travels_with_an_event(sides: Sides) -> None:
    """As who it is, not as a handle; passed on by others too."""
    alice, bob, carol = sides
    words = event_body(keep_event(alice, alice), origin=SELF)
    alice.core.take(alice.core.timer(1))
    frame = alice.encode(EVENT, alice.handle(bob), words)
    assert len(frame["peers"]) == 1
    record = bob.taken(alice, frame)
    assert bob.address_book.key_of(record[BODY + EVENT_ORIGIN]) == alice.key
    assert bob.address_book.addresses_of(alice.key) == alice.authentication.addresses
    carol.meet(bob)
    carol.meet(alice)
    passed_on = bob.encode(EVENT, bob.handle(carol), record[BODY:])
    record = carol.taken(bob, passed_on)
    assert carol.address_book.key_of(record[BODY + EVENT_ORIGIN]) == alice.key


def test_a_publisher_needs_a_certificate_and_a_place_in_the_list(sides: Sides) -> None:
    """It is asked for and otherwise left out."""
    alice, bob, carol = sides
    words = event_body(keep_event(alice, carol), origin=alice.handle(carol))
    decoded = bob.wire.decode(alice.key, alice.encode(EVENT, 1, words))
    assert decoded.missing == {carol.key}
    assert decoded.record is not None
    assert decoded.record[BODY + EVENT_ORIGIN] == -1
    event = keep_event(alice, alice)
    frame = alice.encode(EVENT, 1, event_body(event))
    frame["words"] = words_of(event_body(event, origin=3))
    with pytest.raises(BadFrame, match="a peer is 3"):
        bob.wire.decode(alice.key, frame)


def test_a_recalled_event_brings_its_values(sides: Sides) -> None:
    alice, bob, _ = sides
    event = keep_event(alice, alice)
    record = bob.taken(alice, alice.encode(RECALLED, 1, event_body(event)))
    assert record[KIND] == RECALLED
    assert bob.events.find(event) == sealed_of(alice)


@pytest.mark.parametrize("how", ["identifier", "content", "point", "longer", "shorter"])
def test_a_changed_event_is_found_out_by_the_first_who_gets_it(sides: Sides, how: str) -> None:
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


def test_no_event_is_acknowledged_to_another_than_its_publisher(sides: Sides) -> None:
    alice, bob, _ = sides
    event = keep_event(alice, bob)
    alice.core.take(alice.core.timer(1))
    frame = alice.encode(EVENT, alice.handle(bob), event_body(event, origin=SELF))
    with pytest.raises(ChangedEvent, match=f"publisher is {alice.key:016x}.*{bob.key:016x}"):
        bob.wire.decode(alice.key, frame)
    assert bob.events.find(event) is None


def test_the_first_event_of_an_identifier_counts(
    sides: Sides, monkeypatch: pytest.MonkeyPatch
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
