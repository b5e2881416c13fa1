"""Events as they travel: sealed, so that nobody but their publisher can have made them.

    content     its publisher's key, time, version of the schema, values, payload
    draw        8 bytes drawn for it, so that no two events are alike
    path        of its leaf in a tree of hashes: 32 bytes a level, 0 to 6 levels
    place       which leaf, and how many levels: a byte each
    signer      8 bytes: which key
    signature   256 bytes: of the root
    point       where it is on the ring, 8 bytes a coordinate

Without certificates there are content, draw and point alone. The point, by which it is routed and
matched on its way, travels as words of its record.

**The identifier is a hash of all of this.** Whatever is changed, signature included, makes another
event of it: no event can come before another under its identifier, be remembered, held or
acknowledged in its place. Whoever takes an event from another peer computes the hash, in a
microsecond; whether the signature is right is for those to verify who hand it to an application.
An identifier has 58 bits. The first 6 tell the class of the publisher, by which logs are shared
(`gossamer.protocol.peer.rendezvous.event_log`), so that a flood under one name is told from other
names without reading events; 52 are of the hash: to make a second event of a given one takes 2^52
tries. Who wants two events of its own with one identifier needs some 2^26.

What a peer publishes within a few milliseconds shares a signature, of the root of a Merkle
tree (Merkle, "A digital signature based on a conventional encryption function", 1988) whose leaves
are the hashes of content, draw and point. One event alone is its own root. Leaves and inner nodes
are hashed in different ways, so that none can be taken for the other. RSA signatures of this form
are unique: nobody but the signer can make another seal for the same content.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Final, NamedTuple

from gossamer.node.security.certificates import Authority
from gossamer.node.security.event_keys import (
    EVENT_SIGNATURE_BYTES,
    SIGNER_BYTES,
    EventKey,
)
from gossamer.protocol.peer.record_table.records import CLASS_AT, PUBLISHER_CLASSES

DRAW_BYTES: Final = 8
ID_BITS: Final = 58
MOST_LEVELS: Final = 6
# Events that share a signature, at most.
MOST_SHARING: Final = 1 << MOST_LEVELS
_HASH_BYTES: Final = 32
_PLACE_BYTES: Final = 2
_END_BYTES: Final = _PLACE_BYTES + SIGNER_BYTES + EVENT_SIGNATURE_BYTES
# By how much a sealed event is longer than content and point.
MOST_SEAL_BYTES: Final = DRAW_BYTES + MOST_LEVELS * _HASH_BYTES + _END_BYTES

_NO_LEAF: Final = bytes(_HASH_BYTES)
# Hashes of nothing yet; to copy one takes a third of the time that making one does.
_LEAF: Final = blake2b(digest_size=_HASH_BYTES, person=b"gossamer leaf")
_INNER: Final = blake2b(digest_size=_HASH_BYTES, person=b"gossamer node")
_EVENT: Final = blake2b(digest_size=8, person=b"gossamer event")


def identifier(sealed: bytes) -> int:
    """The identifier of an event: the class of its publisher, and bits of a hash of all of it."""
    made = _EVENT.copy()
    made.update(sealed)
    hashed = int.from_bytes(made.digest(), "big") >> (64 - CLASS_AT)
    return class_of_publisher(publisher_of(sealed)) << CLASS_AT | hashed


@lru_cache(maxsize=4096)
def class_of_publisher(key: int) -> int:
    """The class of publishers that a permanent key is of; 0 for none (-1)."""
    if key < 0:
        return 0
    hashed = blake2b(key.to_bytes(8, "big"), digest_size=8, person=b"gossamer class")
    return int.from_bytes(hashed.digest(), "big") % PUBLISHER_CLASSES


# An event's bytes are a short list, and the first is a key: by its first byte, how many follow.
_LISTS: Final = range(0x81, 0x98)
_KEY_SIZES: Final = {0x1B: 8, 0x1A: 4, 0x19: 2, 0x18: 1}
_SMALL_KEYS: Final = range(0x18)


def publisher_of(data: bytes) -> int:
    """The key of the publisher that an event's bytes name, without reading the rest.

    -1 where they name none.
    """
    if len(data) < 2 or data[0] not in _LISTS:
        return -1
    size = _KEY_SIZES.get(data[1], 0)
    if size == 0:
        return data[1] if data[1] in _SMALL_KEYS else -1
    return int.from_bytes(data[2 : 2 + size], "big") if len(data) >= 2 + size else -1


class Proof(NamedTuple):
    """What a sealed event says of who signed it.

    Attributes:
        content: of the event.
        signer: which key.
        statement: what is signed: the key's name and the root.
        signature: of that.
        is_shared: whether other events have the same one.
    """

    content: bytes
    signer: bytes
    statement: bytes
    signature: bytes
    is_shared: bool


class Seal:
    """How events of one cluster are sealed and opened.

    Args:
        coordinates: words of a point.
    """

    def __init__(self, coordinates: int) -> None:
        self._point_bytes = 8 * coordinates

    def leaf(self, content: bytes, draw: bytes, point: bytes) -> bytes:
        """The hash of an event that its signature is about."""
        made = _LEAF.copy()
        made.update(content + draw + point)
        return made.digest()

    def close(self, content: bytes, draw: bytes, point: bytes, proof: bytes = b"") -> bytes:
        """A sealed event; ``proof`` is one of `sign`, nothing without certificates."""
        return b"".join((content, draw, proof, point))

    def open_unsigned(self, sealed: bytes) -> bytes:
        """The content of an event of a cluster without certificates.

        Raises:
            ValueError: it is too short for one.
        """
        end = len(sealed) - self._point_bytes - DRAW_BYTES
        if end <= 0:
            raise ValueError("too short for an event")
        return sealed[:end]

    def signer_of(self, sealed: bytes) -> bytes:
        """Which key a sealed event names; something of no use where it is too short."""
        end = len(sealed) - self._point_bytes - EVENT_SIGNATURE_BYTES
        return sealed[max(0, end - SIGNER_BYTES) : max(0, end)]

    def open(self, sealed: bytes) -> Proof:
        """What a sealed event says; whether that is true is for its publisher's key to tell.

        Raises:
            ValueError: it is not laid out as one.
        """
        end = len(sealed) - self._point_bytes
        signature_at = end - EVENT_SIGNATURE_BYTES
        signer_at = signature_at - SIGNER_BYTES
        place_at = signer_at - _PLACE_BYTES
        if place_at < DRAW_BYTES:
            raise ValueError("too short for a signed event")
        number, levels = sealed[place_at], sealed[place_at + 1]
        path_at = place_at - levels * _HASH_BYTES
        if levels > MOST_LEVELS or number >> levels or path_at <= DRAW_BYTES:
            raise ValueError("no place in a tree")
        content, draw = sealed[: path_at - DRAW_BYTES], sealed[path_at - DRAW_BYTES : path_at]
        root = _climb(self.leaf(content, draw, sealed[end:]), number, sealed[path_at:place_at])
        signer = sealed[signer_at:signature_at]
        return Proof(content, signer, signer + root, sealed[signature_at:end], levels > 0)


def sign(authority: Authority, key: EventKey, leaves: Sequence[bytes]) -> list[bytes]:
    """The proofs of events with these ``leaves``, at most `MOST_SHARING`, by one signature."""
    levels = (len(leaves) - 1).bit_length()
    tree = [[*leaves, *[_NO_LEAF] * ((1 << levels) - len(leaves))]]
    while len(tree[-1]) > 1:
        below = tree[-1]
        tree.append([_inner(below[i] + below[i + 1]) for i in range(0, len(below), 2)])
    signature = key.sign(authority, key.signer + tree[-1][0])
    proofs = []
    for number in range(len(leaves)):
        path = [nodes[(number >> level) ^ 1] for level, nodes in enumerate(tree[:-1])]
        proofs.append(b"".join((*path, bytes((number, levels)), key.signer, signature)))
    return proofs


def _climb(node: bytes, number: int, path: bytes) -> bytes:
    """The root above a leaf, by the nodes beside its path."""
    for at in range(0, len(path), _HASH_BYTES):
        beside = path[at : at + _HASH_BYTES]
        node = _inner(beside + node if number & 1 else node + beside)
        number >>= 1
    return node


# Events that share a signature share nodes, too: most are computed once for many of them.
@lru_cache(maxsize=8 * MOST_SHARING)
def _inner(children: bytes) -> bytes:
    made = _INNER.copy()
    made.update(children)
    return made.digest()
