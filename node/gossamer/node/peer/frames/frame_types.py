"""The frames that nodes send each other once they are connected, with a bound for every field."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import ClassVar, Final

from gossamer.node.peer.frames.descriptor_authentication import (
    KEY_BYTES,
)
from gossamer.node.peer.frames.event_frames import MARK, read_event_frame
from gossamer.node.security.certificates import NAME_LIMIT
from gossamer.node.security.event_keys import INTRODUCTION_LIMIT, SIGNER_BYTES
from gossamer.node.security.identity import SIGNATURE_BYTES
from gossamer.node.security.revocation import LIST_LIMIT
from gossamer.node.security.schema_document import DOCUMENT_LIMIT
from gossamer.node.security.sealing import MOST_SEAL_BYTES
from gossamer.node.transport.base.frames import CONTROL_FRAMES, KEY_HIGH
from gossamer.node.transport.base.schema import (
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
from gossamer.protocol.content.limits import MAX_EVENT_BYTES
from gossamer.protocol.peer.codec import Codec

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
