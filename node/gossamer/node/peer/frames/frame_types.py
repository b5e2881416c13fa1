"""The frames that nodes send each other once they are connected, with a bound for every field."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar, Final

from gossamer.node.peer.frames.address_book import AddressBook
from gossamer.node.peer.frames.core import SELF, Record
from gossamer.node.peer.frames.descriptor_authentication import (
    KEY_BYTES,
)
from gossamer.node.peer.frames.event_frames import MARK, read_event_frame
from gossamer.node.peer.frames.events import EventMemory
from gossamer.node.security.certificates import NAME_LIMIT
from gossamer.node.security.event_keys import INTRODUCTION_LIMIT, SIGNER_BYTES
from gossamer.node.security.identity import SIGNATURE_BYTES
from gossamer.node.security.revocation import LIST_LIMIT
from gossamer.node.security.schema_document import DOCUMENT_LIMIT
from gossamer.node.security.sealing import MOST_SEAL_BYTES, publisher_of
from gossamer.node.transport.frames import CONTROL_FRAMES, KEY_HIGH
from gossamer.node.transport.schema import (
    Bytes,
    Field,
    Frame,
    FrameTypes,
    Integer,
    ListOf,
    MapOf,
    Number,
    Optional,
    Text,
)
from gossamer.node.transport.send_queue import Flow
from gossamer.protocol.content.limits import MAX_EVENT_BYTES
from gossamer.protocol.kernel.records import BODY, FROM, KIND, UNREACHABLE
from gossamer.protocol.peer.codec import Codec
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

WORD_BYTES: Final = 8
MAX_ENTRY_BYTES: Final = 4224  # a descriptor's content and its signature
CERTIFICATES_AT_ONCE: Final = 64
KEYS_AT_ONCE: Final = 16
MAX_CERTIFICATE_BYTES: Final = 4096
# Of a report: figures and sectors of the ring, of which later versions may have more.
MAX_FIGURES, MAX_SECTORS = 64, 256
MAX_TROUBLE, MAX_TROUBLES = 300, 8

# Which list of revoked peers the sender has, and that list where it was asked for.
REVOCATION_FRAMES: Final[Mapping[str, Mapping[str, Field]]] = MappingProxyType(
    {
        "revocations": {"number": Integer(0, KEY_HIGH), "list": Optional(Bytes(LIST_LIMIT))},
        "revocations wanted": {},
    }
)
# Which version of the schema the sender goes by, and its document where that was asked for.
SCHEMA_FRAMES: Final[Mapping[str, Mapping[str, Field]]] = MappingProxyType(
    {
        "schema": {"number": Integer(0, KEY_HIGH), "document": Optional(Bytes(DOCUMENT_LIMIT))},
        "schema wanted": {},
    }
)
# What a member says of itself to one that looks at the cluster, see `ClusterReports`.
REPORT_FRAMES: Final[Mapping[str, Mapping[str, Field]]] = MappingProxyType(
    {
        "report wanted": {"number": Integer(0, KEY_HIGH)},
        "report": {
            "number": Integer(0, KEY_HIGH),
            "figures": MapOf(Number(), MAX_FIGURES),
            "wanted": ListOf(Integer(0, 1 << 31), MAX_SECTORS),
            "troubles": ListOf(Text(MAX_TROUBLE), MAX_TROUBLES),
        },
    }
)
# A peer asks for a new certificate, see `gossamer.node.security.renewal`; and what a peer's
# certificate, and the authority's, are from now on.
_CERTIFICATE: Final = Bytes(MAX_CERTIFICATE_BYTES)
RENEWAL_FRAMES: Final[Mapping[str, Mapping[str, Field]]] = MappingProxyType(
    {
        "renewal wanted": {
            "certificate": _CERTIFICATE,
            "signature": Bytes(SIGNATURE_BYTES, SIGNATURE_BYTES),
            "name": Optional(Text(NAME_LIMIT)),
        },
        "renewed": {"certificate": _CERTIFICATE, "authority": _CERTIFICATE},
    }
)
# A question of one peer to another, past the overlay, and its answer; without a body the peer that
# was asked does not offer the service.
_MESSAGE_NUMBER: Final = Integer(0, 1 << 53)
_MESSAGE_BODY: Final = Bytes(1 << 17)
MESSAGE_FRAMES: Final[Mapping[str, Mapping[str, Field]]] = MappingProxyType(
    {
        "question": {"service": Text(16), "number": _MESSAGE_NUMBER, "body": _MESSAGE_BODY},
        "answer": {"number": _MESSAGE_NUMBER, "body": Optional(_MESSAGE_BODY)},
    }
)
# How a publisher proves whose key its events are signed by.
PUBLISHER_FRAMES: Final[Mapping[str, Mapping[str, Field]]] = MappingProxyType(
    {
        "publishers": {"introductions": ListOf(Bytes(INTRODUCTION_LIMIT, 1), KEYS_AT_ONCE)},
        "publishers wanted": {"signers": ListOf(Bytes(SIGNER_BYTES, SIGNER_BYTES), KEYS_AT_ONCE)},
    }
)


class FrameService:
    """Takes the frames of some types from connected peers.

    Attributes:
        frames: those types.
    """

    frames: ClassVar[Collection[str]]

    def receive(self, sender: int, frame: Frame) -> None:
        """Take a frame from the peer ``sender``.

        Raises:
            RemoteProtocolError: the peer broke a rule, and is to be cut.
        """
        raise NotImplementedError

    def greet(self, key: int) -> None:
        """Say to a peer that is connected what it may not know yet."""

    def forget(self, key: int) -> None:
        """A peer is connected no more."""

    def new_round(self) -> None:
        """A gossip round begins."""

    @property
    def waits(self) -> bool:
        """Whether something waits for the next rounds."""
        return False


def frame_types(codec: Codec) -> FrameTypes:
    """The frames that nodes send each other once they are connected."""
    return CONTROL_FRAMES.extended(
        {
            **REVOCATION_FRAMES,
            **SCHEMA_FRAMES,
            **RENEWAL_FRAMES,
            **REPORT_FRAMES,
            **MESSAGE_FRAMES,
            **PUBLISHER_FRAMES,
        }
    ).extended(
        {
            "record": {
                "kind": Integer(min(codec.kinds), max(codec.kinds)),
                "words": Bytes(1 << 28),
                "peers": ListOf(Bytes(MAX_ENTRY_BYTES, KEY_BYTES), codec.most_references),
                "event": Optional(Bytes(MAX_EVENT_BYTES + MOST_SEAL_BYTES)),
            },
            # The first frame on a connection: who this peer is, as in a descriptor.
            "greeting": {
                "peer": Bytes(MAX_ENTRY_BYTES, KEY_BYTES),
                "profile": Bytes(codec.profile_words * WORD_BYTES),
            },
            "certificates wanted": {"keys": ListOf(Integer(0, KEY_HIGH), CERTIFICATES_AT_ONCE)},
            "certificates": {
                "certificates": ListOf(Bytes(MAX_CERTIFICATE_BYTES), CERTIFICATES_AT_ONCE)
            },
        },
        {MARK: read_event_frame},
    )


# Whose the frames are that follow from a record: see `transport.fair_queue`.


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
