"""Whose the frames are that follow from a record: see `transport.fair_queue`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gossamer.node.peer.frames.address_book import AddressBook
from gossamer.node.peer.frames.core import SELF, Record
from gossamer.node.peer.frames.events import EventMemory
from gossamer.node.peer.frames.frame_types import WORD_BYTES
from gossamer.node.security.sealing import publisher_of
from gossamer.node.transport.base.schema import Frame
from gossamer.node.transport.queues.send_queue import Flow
from gossamer.protocol.kernel.records import BODY, FROM, KIND, UNREACHABLE
from gossamer.protocol.peer.record_table.records import (
    EVENT,
    EVENT_ID,
    EVENT_MESSAGES,
    EVENT_MODE,
    EVENT_ORIGIN,
    PUBLISH,
    REPAIRED,
    REPLAY_WANTED,
    TREE,
)

# Who brought what nobody did who could be held to account for it.
REROUTED: Final = "events that find another way"
REPLAYED: Final = "events that others missed"
# What this peer published before and nobody acknowledged: it gives way to what is new here.
AGAIN: Final = "events published again"
AGAIN_COSTS: Final = 8
# By how much what is new gives way to what is passed on.
NEW_COSTS: Final = 4


def is_new(frame: Frame) -> bool:
    """Whether an event is on its way to its rendezvous node, and its publisher waits for an answer.

    Nobody has been promised anything of it yet: its publisher sends it again if it is not taken.
    One that names no publisher may be promised: whoever took it as its rendezvous node hands it on
    to the peer that turns out to be that, once (`arc_return`).
    """
    mode, origin = (_word(frame, place) for place in (EVENT_MODE, EVENT_ORIGIN))
    return frame["kind"] == EVENT and mode < TREE and origin >= 0


def _word(frame: Frame, place: int) -> int:
    at = place * WORD_BYTES
    return int.from_bytes(frame["words"][at : at + WORD_BYTES], "little", signed=True)


def flow_of_frame(sender: int, frame: Frame) -> Flow:
    """The flow of an event that the peer ``sender`` brings."""
    publisher = publisher_of(frame.get("event", b""))
    return Flow(sender, publisher, NEW_COSTS) if is_new(frame) else Flow(sender, publisher)


class Cause:
    """What a peer takes a record for; says whose the records are that follow.

    Args:
        record: taken by the peer; may be overwritten afterwards.
        book: knows the peers.
        events: knows who published them.
    """

    def __init__(self, record: Record, address_book: AddressBook, events: EventMemory) -> None:
        self._kind = record[KIND]
        self._from = record[FROM]
        self._event = record[BODY + EVENT_ID] if self._kind == EVENT else -1
        self._address_book = address_book
        self._events = events
        self._flow: Flow | None = None

    @property
    def sender(self) -> int:
        """The key of who the record came from."""
        return self._address_book.key_of(self._from)

    def flow_of(self, written: Sequence[int]) -> Flow | None:
        """The flow of a record that follows, None for what is not about events."""
        if self._kind == EVENT:
            if self._flow is None:
                self._flow = Flow(
                    self._address_book.key_of(self._from), self._publisher(self._event)
                )
            return self._flow
        if written[KIND] not in EVENT_MESSAGES or written[KIND] == REPAIRED:
            # Held events come by pages, as they are asked for, and in order: after the last of a
            # page the asker takes it for whole.
            return None
        return self._flow_of_event(written)

    def _flow_of_event(self, written: Sequence[int]) -> Flow:
        own = self._address_book.key_of(SELF)
        if self._kind == PUBLISH:
            return Flow(own, own)
        if self._kind == REPLAY_WANTED:
            return Flow(REPLAYED, self._address_book.key_of(self._from))
        if self._kind >= UNREACHABLE:
            return Flow(REROUTED, self._publisher(written[BODY + EVENT_ID]))
        if written[BODY + EVENT_ORIGIN] == SELF:
            return Flow(AGAIN, own, AGAIN_COSTS)
        return Flow(REPLAYED, self._publisher(written[BODY + EVENT_ID]))

    def _publisher(self, event: int) -> int:
        sealed = self._events.find(event)
        return -1 if sealed is None else publisher_of(sealed)
