"""Records to frames and back.

A frame carries the words of a record's body and a list of peers; in the words every handle is the
place of a peer in that list. Who sends a record and to whom is not in it: the connection says so.
Where descriptors are signed their profiles are not in the words either, but in what was signed.

An event's exact values travel beside its words, which hold hashed ones only, and with them what
proves that they are its publisher's. Its identifier is a hash of all that (`security.sealing`),
which is computed here whenever an event comes in: what does not belong together goes no further.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from functools import lru_cache
from struct import Struct
from typing import Final, NamedTuple

from attrs import define

from gossamer.node.errors import BadFrame, ChangedEvent
from gossamer.node.peer.frames.address_book import AddressBook
from gossamer.node.peer.frames.core import SELF, Record, header
from gossamer.node.peer.frames.descriptor_authentication import (
    AuthenticatedDescriptor,
    Authentication,
)
from gossamer.node.peer.frames.event_frames import KINDS, event_frame
from gossamer.node.peer.frames.events import EventMemory
from gossamer.node.peer.frames.frame_types import WORD_BYTES
from gossamer.node.security.sealing import identifier, publisher_of
from gossamer.node.transport.frames import encode_frame
from gossamer.node.transport.schema import (
    Frame,
)
from gossamer.protocol.kernel.errors import CapacityError
from gossamer.protocol.kernel.records import BODY, KIND
from gossamer.protocol.peer.codec import Codec
from gossamer.protocol.peer.record_table.records import (
    EVENT_ID,
    EVENT_MESSAGES,
    EVENT_ORIGIN,
    EVENT_VALUES,
)
from gossamer.protocol.peer.state.links import AGE_SHIFT, HANDLE_MASK

# Where the point of an event begins in the words of its record.
_POINT_AT: Final = EVENT_VALUES * WORD_BYTES
# Publishers remembered within a round.
MAX_PUBLISHERS: Final = 1024


class Decoded(NamedTuple):
    """What became of a frame.

    Attributes:
        record: None where nothing usable was left of it.
        missing: keys of peers whose certificates would have made more of it.
    """

    record: Record | None
    missing: Set[int] = frozenset()


@define(eq=False, slots=False)
class Wire:
    """Translates between one peer's records and frames.

    Args:
        note_two_contents: told of two events with one identifier: that, the one that is known,
            the other, and the key of who brought it.
    """

    _codec: Codec
    _address_book: AddressBook
    _authentication: Authentication
    _events: EventMemory
    _note_two_contents: Callable[[int, bytes, bytes, int], None] = lambda *_: None

    def __attrs_post_init__(self) -> None:
        self._last_event: tuple[int, Sequence[int], bytes] = (0, (), b"")
        # By their entries, the publishers that were believed in this round.
        self._publishers: dict[bytes, int] = {}

    def new_round(self) -> None:
        """A gossip round begins: whoever is named as a publisher has to be believed anew."""
        self._publishers.clear()

    def encode(self, record: Record, profile: tuple[int, ...]) -> bytes | None:
        """The frame for a record of this peer, whose profile is given.

        None for an event whose values are not remembered any more.
        """
        if record[KIND] in EVENT_MESSAGES:
            return self._encode_event(record[KIND], record[BODY:], profile)
        if record[KIND] in KINDS:
            return event_frame(record[KIND], _pack(record[BODY:]))
        swap = _Outward(self._address_book, self._authentication, profile)
        body = self._codec.rewrite(record[KIND], record[BODY:], swap)
        assert body is not None
        return encode_frame("record", kind=record[KIND], words=_pack(body), peers=swap.entries)

    def _encode_event(self, kind: int, body: list[int], profile: tuple[int, ...]) -> bytes | None:
        # An event goes to one receiver after another, unchanged.
        if self._last_event[0] == kind and self._last_event[1] == body:
            return self._last_event[2]
        sealed = self._events.find(body[EVENT_ID])
        if sealed is None:
            return None
        data = sealed[: -WORD_BYTES * (len(body) - EVENT_VALUES)]
        words, entries = body, list[bytes]()
        if body[EVENT_ORIGIN] >= 0:
            swap = _Outward(self._address_book, self._authentication, profile)
            words, entries = list(body), swap.entries
            words[EVENT_ORIGIN] = swap.peer(body[EVENT_ORIGIN])
        packed = _pack(words)
        frame = event_frame(kind, packed, entries[0] if entries else b"", data)
        self._last_event = (kind, body, frame)
        return frame

    def own_name(self, profile: tuple[int, ...]) -> bytes:
        """This peer, whose profile is given, as lists of peers in frames have it."""
        return self._authentication.own(profile)

    def decode(self, sender: int, frame: Frame) -> Decoded:
        """The record in a frame from the peer ``sender``.

        What cannot be believed is left out and counted.

        Raises:
            RemoteProtocolError: the sender broke a rule, or lies about itself.
            CapacityError: the address book is full.
        """
        words = _unpack(frame["words"])
        kind = frame["kind"]
        source = self._address_book.handle_of(sender)
        if kind in EVENT_MESSAGES:
            return self._decode_event(sender, source, words, frame)
        swap = _Inward(self._address_book, self._authentication, sender, frame["peers"])
        body = self._codec.rewrite(kind, words, swap, profiles=self._authentication.in_words)
        if body is None:
            return Decoded(None, swap.missing)
        record = header(kind, source, body)
        self._codec.check(record)
        return Decoded(record, swap.missing)

    def _decode_event(
        self, sender: int, source: int, words: Sequence[int], frame: Frame
    ) -> Decoded:
        if "event" not in frame:
            raise BadFrame("record", "event", "missing", "the values of the event")
        record = header(frame["kind"], source, words)
        self._codec.check(record)
        sealed = frame["event"] + frame["words"][_POINT_AT:]
        if not self._is_known_as(words[EVENT_ID], sealed, sender):
            return Decoded(None)
        missing: Set[int] = frozenset()
        if words[EVENT_ORIGIN] >= 0:
            record[BODY + EVENT_ORIGIN], missing = self._publisher(sender, words, frame["peers"])
            self._check_origin(record, sealed)
        self._events.keep(words[EVENT_ID], sealed)
        return Decoded(record, missing)

    def _is_known_as(self, event: int, sealed: bytes, sender: int) -> bool:
        """Whether an event is the one of its identifier; not where another has it already.

        Raises:
            ChangedEvent: the identifier is not that of what came.
        """
        known = self._events.find(event)
        if known == sealed:
            return True
        if identifier(sealed) != event:
            found = publisher_of(sealed)
            raise ChangedEvent(event, found, "event", f"{event:016x}", "a hash of all of it")
        if known is not None:
            self._note_two_contents(event, known, sealed, sender)
            return False
        return True

    def _check_origin(self, record: Record, sealed: bytes) -> None:
        """Refuse an event that is to be acknowledged to another peer than its publisher.

        Raises:
            ChangedEvent: it is.
        """
        origin = record[BODY + EVENT_ORIGIN]
        if origin < 0:
            return
        publisher, named = publisher_of(sealed), self._address_book.key_of(origin)
        if publisher != named:
            event = record[BODY + EVENT_ID]
            expected = f"{publisher:016x}"
            raise ChangedEvent(event, publisher, "publisher", f"{named:016x}", expected)

    def publisher_named(self, sender: int, name: bytes) -> tuple[int, Set[int]]:
        """The handle of the publisher that a frame from ``sender`` names, as it is believed.

        Returns that, or -1, and the keys of those whose certificates are missed.

        Raises:
            RemoteProtocolError, CapacityError: as `decode`.
        """
        words = [0] * (EVENT_ORIGIN + 1)
        return self._publisher(sender, words, [name])

    def _publisher(
        self, sender: int, words: Sequence[int], entries: Sequence[bytes]
    ) -> tuple[int, Set[int]]:
        """The handle of an event's publisher and the keys missed to believe it.

        One that is not believed is nobody: it gets no answer, and publishes again.
        """
        place = words[EVENT_ORIGIN]
        entry = entries[place] if place < len(entries) else b""
        key = self._publishers.get(entry)
        if key is not None and key in self._address_book:
            return self._address_book.handle_of(key), frozenset()
        swap = _Inward(self._address_book, self._authentication, sender, entries)
        handle = swap.peer(place)
        if handle is not None and not swap.missing and len(self._publishers) < MAX_PUBLISHERS:
            self._publishers[entry] = self._address_book.key_of(handle)
        return -1 if handle is None else handle, swap.missing

    def encode_greeting(self, profile: tuple[int, ...]) -> bytes:
        """The frame by which this peer introduces itself."""
        told = profile if self._authentication.in_words else ()
        return encode_frame("greeting", peer=self._authentication.own(profile), profile=_pack(told))

    def decode_greeting(self, sender: int, frame: Frame) -> tuple[int, Sequence[int]] | None:
        """Handle and profile of the peer ``sender`` by its greeting; None if it is not believed.

        Raises:
            RemoteProtocolError: it speaks of somebody else.
            CapacityError: the address book is full.
        """
        told = self._authentication.read(frame["peer"], set())
        if told is None or not told.known:
            return None
        if told.key != sender:
            raise BadFrame("greeting", "peer", f"{told.key:016x}", f"{sender:016x}")
        profile = told.profile
        if profile is None:
            profile = _unpack(frame["profile"])
            if len(profile) != self._codec.profile_words:
                expected = f"{self._codec.profile_words} words"
                raise BadFrame("greeting", "profile", f"{len(profile)} words", expected)
        return self._address_book.handle_of(sender), profile


class _Outward:
    """Handles to places in the list of peers."""

    def __init__(
        self, address_book: AddressBook, authentication: Authentication, profile: tuple[int, ...]
    ) -> None:
        self.entries: list[bytes] = []
        self._places: dict[int, int] = {}
        self._address_book = address_book
        self._authentication = authentication
        self._profile = profile

    def peer(self, word: int) -> int:
        place = self._places.get(word)
        if place is None:
            place = self._places[word] = len(self.entries)
            if word == SELF:
                self.entries.append(self._authentication.own(self._profile))
            else:
                self.entries.append(self._authentication.show(self._address_book.key_of(word)))
        return place

    def descriptor(self, words: Sequence[int], _of_sender: bool) -> Sequence[int]:
        head = words[0] & ~HANDLE_MASK | self.peer(words[0] & HANDLE_MASK)
        return [head, *words[1:]] if self._authentication.in_words else [head]


@define(eq=False, slots=False)
class _Inward:
    """Places in the list of peers to handles, believing what can be believed."""

    _address_book: AddressBook
    _authentication: Authentication
    _sender: int
    _entries: Sequence[bytes]

    def __attrs_post_init__(self) -> None:
        self.missing: set[int] = set()
        self._peers_read: dict[int, AuthenticatedDescriptor | None] = {}

    def peer(self, word: int) -> int | None:
        told = self._read(word)
        return None if told is None or not told.known else self._handle_of(told.key)

    def descriptor(self, words: Sequence[int], of_sender: bool) -> Sequence[int] | None:
        age, told = words[0] >> AGE_SHIFT, self._read(words[0] & HANDLE_MASK)
        if of_sender and (told is None or told.key != self._sender):
            found = "not believed" if told is None else f"{told.key:016x}"
            raise BadFrame("record", "descriptor of the sender", found, f"{self._sender:016x}")
        if told is None or not told.known:
            return None
        handle = self._handle_of(told.key)
        if handle is None:
            return None
        profile = words[1:] if told.profile is None else told.profile
        return [age << AGE_SHIFT | handle, *profile]

    def _read(self, place: int) -> AuthenticatedDescriptor | None:
        if not 0 <= place < len(self._entries):
            expected = f"a place in a list of {len(self._entries)} peers"
            raise BadFrame("record", "a peer", str(place), expected)
        if place not in self._peers_read:
            self._peers_read[place] = self._authentication.read(self._entries[place], self.missing)
        return self._peers_read[place]

    def _handle_of(self, key: int) -> int | None:
        try:
            return self._address_book.handle_of(key)
        except CapacityError:
            return None


def _pack(words: Sequence[int]) -> bytes:
    return _words(len(words)).pack(*words)


def _unpack(data: bytes) -> Sequence[int]:
    count, rest = divmod(len(data), WORD_BYTES)
    if rest:
        raise BadFrame("record", "words", f"{len(data)} bytes", f"whole words of {WORD_BYTES}")
    return _words(count).unpack(data)


@lru_cache(256)
def _words(count: int) -> Struct:
    return Struct(f"<{count}q")
