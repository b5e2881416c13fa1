"""The records of the peer protocol: every kind declared once, with its fields and their bounds.

Those that samplers send each other are declared by each sampler, beside its rules.

From here follow the constants that rules use (numbers of kinds, offsets of fields in a body), what
is believed of strangers and where handles stand (`codec`), how large records are, and the page
docs/records.md. Numbers of kinds and the order of words are what peers agree on: they never change.
A test holds the name of every constant equal to the one declared.
"""

from __future__ import annotations

from typing import Final

from gossamer.protocol.peer.record_table.fields import (
    Descriptor,
    Field,
    Handle,
    Interval,
    Limit,
    List,
    PerAttribute,
    Perhaps,
    Sort,
    Table,
    Word,
    offset,
)
from gossamer.protocol.peer.settings.config import MOST_REST_LEVELS
from gossamer.protocol.peer.space.ring import RING_MASK

# An event's identifier times the number of attributes, at most 16, has to fit the ring's 62 bits.
MAX_EVENT: Final = (1 << 58) - 1
# How an event copy travels: greedily to its rendezvous node, on its believed last hop there, down
# a delivery tree, or along successors of the rendezvous node (mode REPLICA + how many are left).
GREEDY, FINAL, TREE, REPLICA = 0, 1, 2, 3
# Times that a range of hashes is cut to sixteenths at most.
LEVELS: Final = 8
LONGEST_PREFIX: Final = 16**LEVELS - 1
# Copies that a peer lists, or asks for, at once; and the parts whose sums it tells.
LISTED_AT_ONCE, PARTS = 64, 16
# Publishers share a log in so many classes, which the first bits of their events' identifiers tell:
# one that has more than its share pushes out no other's copies. They are compared all at once, or
# by class.
PUBLISHER_CLASSES: Final = 60
CLASS_AT: Final = 52
ALL_CLASSES: Final = (1 << PUBLISHER_CLASSES) - 1
BY_CLASS: Final = 1 << PUBLISHER_CLASSES
# Event copies in one offer; there are as many offers as it takes.
OFFERED_AT_ONCE = 256
# Events in one offer to a neighbour on the ring.
OFFERED_ON_RING = 64

TABLE: Final = Table()

# Samplers declare their messages themselves (`sampling`). Most trade views by these two.
SAMPLE_REQUEST: Final = 16
SAMPLE_REPLY: Final = 17

# Fields that several kinds have.
_hops = Word("hops", 0, Limit("hop_limit"), "hops so far")
_progress = Word("progress", -(1 << 63), (1 << 63) - 1, "how near it has come (`routing.progress`)")
_attribute = Word("attribute", 0, Limit("coordinates", -1), "by which it is routed")
_box: tuple[Field, ...] = (
    _attribute,
    PerAttribute(Interval("range of values", "wanted of an attribute")),
)
_sender = Descriptor("the sender's descriptor", 0, of_sender=True)
_link = Descriptor("a link's descriptor", Limit("longest_accepted_age"))
_newcomer = Descriptor("the newcomer's descriptor", 0)
_links = List("links", (_link,), Limit("chosen_links", 1), first=(_sender,))
_install: tuple[Field, ...] = (
    _sender,
    Word(
        "answer wanted",
        0,
        1 + 2 * MOST_REST_LEVELS,
        "1 to acknowledge it, and twice the level at which the sender rests",
    ),
    List("boxes", _box, Limit("boxes_per_neighbour")),
)
_entry: tuple[Field, ...] = (
    Handle("source", "who asks for the box"),
    Word("identifier of the source", 0, RING_MASK),
    *_box,
)
_event_id = Word("event", 0, MAX_EVENT, "its identifier")
_event: tuple[Field, ...] = (
    _event_id,
    _attribute,
    Word("mode", 0, Limit("replicas", REPLICA - 1), "GREEDY, FINAL, TREE, or REPLICA and more"),
    _hops,
    Word(
        "hops in the tree",
        0,
        (1 << 63) - 1,
        "before: how near it has come (`routing.progress`)",
    ),
    Handle("publisher", "one that wants to know when the event is held", may_miss=True),
    PerAttribute(Word("value", 0, RING_MASK, "hashed")),
)
_copies = List("event copies", (Word("event copy", 0, RING_MASK),), OFFERED_AT_ONCE)
_offered = List(
    "events",
    (Word("event copy", 0, RING_MASK), PerAttribute(Word("value", 0, RING_MASK, "hashed"))),
    OFFERED_ON_RING,
)
# A copy that one side of a comparison lacked: an event whose hops nobody counts.
_age = Word("age", 0, RING_MASK, "rounds since it was published")
_repaired = tuple(_age if field is _hops else field for field in _event)
_from = Word("first value", 0, RING_MASK, "of the part of the ring that is compared")
_to = Word("last value", 0, RING_MASK)
_rounds_back = Word("rounds", 0, RING_MASK, "how old the copies are at most")
_level = Word("level", 0, LEVELS, "of the range of hashes: how many sixteenths it is cut to")
_prefix = Word("prefix", 0, LONGEST_PREFIX, "the first bits of these hashes, or an offer's name")
_question = Word("question", 0, 16, "0 which copies, 1 or 16 what the sums of so many parts are")
_classes = Word("classes", 0, BY_CLASS | ALL_CLASSES, "of publishers, as bits; and if by class")
_range = (_from, _to, _rounds_back, _classes, _level, _prefix)
# What is compared: of the copies of a part of the ring those in a box, or all.
_part: tuple[Field, ...] = (
    *_range,
    Word("salt", 0, RING_MASK, "by which the copies are hashed"),
    Word("attribute", -1, Limit("coordinates", -1), "of the copies, -1 any"),
    PerAttribute(Interval("range of values", "wanted of an attribute")),
)
_compare: tuple[Field, ...] = (
    Handle("asker"),
    _progress,
    Word("found", 0, 1, "1 where the one who is to answer is found"),
    _question,
    *_part,
)
_sums = List(
    "sums",
    (Word("copies", 0, RING_MASK), Word("sum", 0, RING_MASK, "of their hashes")),
    PARTS,
)
_compared: tuple[Field, ...] = (*_range, _question, _sums)
_listed: tuple[Field, ...] = (
    *_range,
    List(
        "event copies",
        (
            Word("event copy", 0, RING_MASK),
            _age,
            PerAttribute(Word("value", 0, RING_MASK, "hashed")),
        ),
        LISTED_AT_ONCE,
    ),
)
_holds_entries = Word("holds entries", 0, 1, "whether the newcomer asks for none")
_find_place: tuple[Field, ...] = (_progress, _holds_entries, _newcomer)
_finger: tuple[Field, ...] = (
    Word("level", 0, Limit("finger_levels"), "of the finger; 0 for the farthest ring neighbour"),
    _sender,
    Perhaps(_link),
)
_find_host: tuple[Field, ...] = (
    _progress,
    Word("passed on", 0, 199, "by whom it found no room at: which way, and how many"),
    Word("place", 0, RING_MASK, "at which a host is sought"),
    Descriptor("the guest's descriptor", 0),
)
_find_seat: tuple[Field, ...] = (
    _progress,
    Word("place", 0, RING_MASK, "at which a seat is sought"),
    Descriptor("the seeker's descriptor", 0),
)
_seat_found: tuple[Field, ...] = (
    Word("place", 0, RING_MASK, "at which it is"),
    _links,
    List(
        "fingers",
        (Word("slot", 0, Limit("long_links", -1), "of the finger"), _link),
        Limit("long_links"),
    ),
)
_moved: tuple[Field, ...] = (Word("place", 0, RING_MASK, "that it has left"), _links)
_host_found: tuple[Field, ...] = (Word("place", 0, RING_MASK, "at which it is"), _sender)
_rounds = Word("rounds", 0, RING_MASK)
_peer = Handle("peer")


def _timer(number: int, name: str, meaning: str) -> int:
    return TABLE.declare(Sort.TIMER, number, name, meaning)


def _command(number: int, name: str, meaning: str, *fields: Field) -> int:
    return TABLE.declare(Sort.COMMAND, number, name, meaning, fields)


def _message(
    number: int, name: str, meaning: str, *fields: Field, only_with: str | None = None
) -> int:
    return TABLE.declare(Sort.MESSAGE, number, name, meaning, fields, only_with)


def _effect(number: int, name: str, meaning: str, *fields: Field) -> int:
    return TABLE.declare(Sort.EFFECT, number, name, meaning, fields)


SAMPLE_TIMER = _timer(1, "SAMPLE_TIMER", "Trade parts of the random view.")
OVERLAY_TIMER = _timer(2, "OVERLAY_TIMER", "Trade links, and let load shift.")
INSTALL_TIMER = _timer(3, "INSTALL_TIMER", "Renew what is asked for, publish and ask again.")

JOIN = _command(8, "JOIN", "Join through this peer.", _link)
PUBLISH = _command(
    9, "PUBLISH", "Publish an event; of its words, identifier and values are read.", *_event
)
WITHDRAW = _command(10, "WITHDRAW", "Wait for no answer to this event any more.", _event_id)
CATCH_UP = _command(
    11, "CATCH_UP", "What is wanted was so for so many rounds, and some was missed.", _rounds
)
LINK_BROKE = _command(12, "LINK_BROKE", "What was on its way to this peer may be lost.", _peer)
ROUNDS_SKIPPED = _command(13, "ROUNDS_SKIPPED", "This peer missed so many rounds.", _rounds)

TMAN_REQUEST = _message(18, "TMAN_REQUEST", "The sender's links; its receiver answers.", _links)
TMAN_REPLY = _message(19, "TMAN_REPLY", "Links for links.", _links)
INSTALL = _message(20, "INSTALL", "All that the sender asks its receiver for.", *_install)
INSTALL_NEWS = _message(21, "INSTALL_NEWS", "What it asks for beside that.", *_install)
ACKNOWLEDGE = _message(
    22, "ACKNOWLEDGE", "An INSTALL came; who follows the receiver.", _sender, Perhaps(_link)
)
EVENT = _message(23, "EVENT", "A copy of an event on its way.", *_event)
FIND_PLACE = _message(24, "FIND_PLACE", "A lookup of a newcomer's place on the ring.", *_find_place)
PLACE_FOUND = _message(25, "PLACE_FOUND", "The links of who stands at that place.", _links)
LOAD_SHIFTED = _message(26, "LOAD_SHIFTED", "The sender has moved towards its successor.", _sender)
HANDOVER = _message(
    27,
    "HANDOVER",
    "Boxes whose values are the receiver's from now on.",
    List("entries", _entry, Limit("routing_table_entries")),
)
STORED = _message(28, "STORED", "An event is held for one attribute.", _event_id, _attribute)
COMPARE = _message(29, "COMPARE", "What does its receiver have?", *_compare)
COMPARED = _message(30, "COMPARED", "How much that is.", *_compared)
REPAIRED = _message(31, "REPAIRED", "A copy that its receiver lacked.", *_repaired)
REPLAY_OFFER = _message(32, "REPLAY_OFFER", "Events that a new box would have been sent.", _copies)
REPLAY_WANTED = _message(33, "REPLAY_WANTED", "Those of them that were not seen.", _copies)
# From 34 to 41 are HyParView's.
FINGER_REQUEST = _message(
    42,
    "FINGER_REQUEST",
    "Whom the sender has at a level before it, to a finger.",
    *_finger,
    only_with="finger_levels",
)
FINGER_REPLY = _message(
    43,
    "FINGER_REPLY",
    "Whom the finger has at that level after it.",
    *_finger,
    only_with="finger_levels",
)
FIND_HOST = _message(
    44, "FIND_HOST", "A search for a host of the sender's.", *_find_host, only_with="guest_links"
)
HOST_FOUND = _message(
    45, "HOST_FOUND", "The sender is a host now.", *_host_found, only_with="guest_links"
)
FIND_SEAT = _message(
    46, "FIND_SEAT", "A search for a seat of the sender's.", *_find_seat, only_with="move_rounds"
)
SEAT_FOUND = _message(
    47,
    "SEAT_FOUND",
    "The links and fingers of who answers for that place.",
    *_seat_found,
    only_with="move_rounds",
)
# From 48 to 51 are effects.
EVENT_TAKEN = _message(
    53,
    "EVENT_TAKEN",
    "The sender has a copy that came from its receiver, on its way to a rendezvous node.",
    Word("event copy", 0, RING_MASK),
    only_with="acknowledged_hops",
)
LISTED = _message(54, "LISTED", "The copies that the sender has.", *_listed)
LACKING = _message(
    55,
    "LACKING",
    "Those of them that the sender lacks.",
    *_range,
    List("event copies", (Word("event copy", 0, RING_MASK),), LISTED_AT_ONCE),
)
COMPARE_SOON = _message(56, "COMPARE_SOON", "Its receiver may lack something.")
STORED_FOR = _message(
    57,
    "STORED_FOR",
    "An event is held for one attribute, which its publisher is to know.",
    _event_id,
    _attribute,
    Handle("publisher"),
)
MOVED = _message(
    60,
    "MOVED",
    "The sender stands at another place now; whom it stood among at the last.",
    *_moved,
    only_with="move_rounds",
)
RING_OFFER = _message(
    62,
    "RING_OFFER",
    "Events that the sender took in its last round.",
    _offered,
    only_with="ring_offers",
)

DELIVER = _effect(
    48,
    "DELIVER",
    "An event for the application.",
    _event_id,
    _hops,
    Word("hops in the tree", 0, Limit("hop_limit")),
)
PUBLISHED = _effect(49, "PUBLISHED", "All who answer for an event hold it.", _event_id)
NOT_PUBLISHED = _effect(50, "NOT_PUBLISHED", "There was no room to wait for that.", _event_id)
HELD = _effect(51, "HELD", "This peer holds an event for those who are away.", _event_id)

# Those that carry an event.
EVENT_MESSAGES = tuple(
    kind.number
    for kind in TABLE
    if kind.sort is Sort.MESSAGE and kind.fields in (_event, _repaired)
)

# Where the words of an event stand in the body of a record that carries one.
EVENT_ID = offset(_event, "event")
EVENT_ATTRIBUTE = offset(_event, "attribute")
EVENT_MODE = offset(_event, "mode")
EVENT_HOPS = offset(_event, "hops")
EVENT_TREE_HOPS = offset(_event, "hops in the tree")
EVENT_PROGRESS = EVENT_TREE_HOPS
EVENT_ORIGIN = offset(_event, "publisher")
EVENT_VALUES = offset(_event, "value")

# Of a FIND_PLACE.
PLACE_PROGRESS = offset(_find_place, "progress")
HOLDS_ENTRIES = offset(_find_place, "holds entries")
DESCRIPTOR = offset(_find_place, "the newcomer's descriptor")

# Of an exchange of fingers.
FINGER_LEVEL = offset(_finger, "level")
FINGER_DESCRIPTORS = offset(_finger, "the sender's descriptor")

# Of a search for a host, and of its answer.
SEARCH_PROGRESS = offset(_find_host, "progress")
PASSED_ON = offset(_find_host, "passed on")
SEARCH_TARGET = offset(_find_host, "place")
SEARCH_DESCRIPTOR = offset(_find_host, "the guest's descriptor")
HOST_TARGET = offset(_host_found, "place")

# Of a search for a seat, of its answer, and of the news of a move.
SEAT_PROGRESS = offset(_find_seat, "progress")
SEAT_TARGET = offset(_find_seat, "place")
SEAT_DESCRIPTOR = offset(_find_seat, "the seeker's descriptor")
SEAT_PLACE = offset(_seat_found, "place")
SEAT_LINKS = offset(_seat_found, "links")
LEFT_PLACE = offset(_moved, "place")
LEFT_LINKS = offset(_moved, "links")

# Of a comparison: of what is compared, of a question and of its answers.
EVENT_AGE = offset(_repaired, "age")
COMPARED_FROM = offset(_part, "first value")
COMPARED_TO = offset(_part, "last value")
COMPARED_ROUNDS = offset(_part, "rounds")
COMPARED_CLASSES = offset(_part, "classes")
COMPARED_LEVEL = offset(_part, "level")
COMPARED_PREFIX = offset(_part, "prefix")
COMPARED_SALT = offset(_part, "salt")
COMPARED_BOX = offset(_part, "attribute")
ASKER = offset(_compare, "asker")
COMPARE_PROGRESS = offset(_compare, "progress")
IS_FOUND = offset(_compare, "found")
QUESTION_ASKED = offset(_compare, "question")
COMPARED_PART = offset(_compare, "first value")
QUESTION_ANSWERED = offset(_compared, "question")
SUMS = offset(_compared, "sums")
LISTED_COPIES = offset(_listed, "event copies")
