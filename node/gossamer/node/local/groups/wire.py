"""What the peers of a group ask each other, and answer: canonical CBOR lists.

What is read here comes from another member of the cluster: whatever is not as it should be raises
ValueError.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from gossamer.node.errors import BadFrame
from gossamer.node.local.frames import event_values_from_wire, values_to_wire
from gossamer.node.local.history import KeptEvent
from gossamer.node.security.identity import decode, encode
from gossamer.node.transport.base import Address
from gossamer.protocol.content.schema import Schema
from gossamer.protocol.content.values import Payload
from gossamer.protocol.kernel.errors import ConfigError, ContentError
from gossamer.protocol.patterns.groups import Report, Round

SERVICE: Final = "group"
HELLO, ROUND, NUDGE, FETCH = range(4)
NOTHING: Final = encode([])
DIGEST_BYTES: Final = 16
MOST_PEERS: Final = 1024
MOST_EVENTS: Final = 1 << 14
_MOST_ADDRESSES: Final = 4

Addresses = Mapping[int, tuple[Address, ...]]


@frozen
class Greeted:
    """What a peer answers to a hello.

    Attributes:
        belongs: whether it is of the group.
        leader: key of the leader that it follows, or is; 0 where it knows none.
        addresses: where that one listens.
    """

    belongs: bool
    leader: int = 0
    addresses: tuple[Address, ...] = ()


def digest_of(name: str, expression: str) -> bytes:
    """What identifies a group: its name and its expression."""
    text = f"{name}\0{expression}".encode()
    return hashlib.blake2b(text, digest_size=DIGEST_BYTES).digest()


# Questions


def hello(digest: bytes, addresses: Iterable[Address]) -> bytes:
    """This peer is of the group, and listens at these addresses."""
    return encode([HELLO, digest, _texts(addresses)])


def announcement(digest: bytes, addresses: Iterable[Address]) -> bytes:
    """The same, to whoever subscribes."""
    return encode([digest, _texts(addresses)])


def round_question(digest: bytes, told: Round, addresses: Addresses) -> bytes:
    """A round of the leader."""
    events = [list(told.offers), list(told.assigned), list(told.done)]
    return encode(
        [ROUND, digest, list(told.epoch), told.serial, _pairs(told.view, addresses), *events]
    )


def nudge(digest: bytes) -> bytes:
    """This peer has something to report."""
    return encode([NUDGE, digest])


def fetch(digest: bytes, event: int) -> bytes:
    """This peer needs an event that it does not keep."""
    return encode([FETCH, digest, event])


# Answers


def hello_answer(leader: int, addresses: Iterable[Address]) -> bytes:
    """Of a peer of the group."""
    return encode([True, leader, _texts(addresses)])


def report(given: Report, addresses: Addresses) -> bytes:
    """The answer to a round."""
    events = [list(given.done), list(given.held), list(given.waiting)]
    return encode([list(given.epoch), *events, given.room, _pairs(given.view, addresses)])


def event_answer(event: KeptEvent) -> bytes:
    """An event that was asked for."""
    payload = event.payload
    more = [] if payload is None else [payload.data, payload.content_type]
    values = values_to_wire(event.values)
    return encode([event.publisher, event.published_at, values, *more])


# Reading


def read_question(body: bytes) -> tuple[int, bytes, list[Any]]:
    """Kind, group and the rest of a question."""
    parts = decode(body)
    if type(parts) is not list or len(parts) < 2 or type(parts[1]) is not bytes:
        raise ValueError("no question about a group")
    return parts[0], parts[1], parts[2:]


def read_announcement(body: bytes) -> tuple[bytes, tuple[Address, ...]]:
    """Group and addresses of who announces itself."""
    digest, texts = typed("no announcement", decode(body), bytes, list)
    return digest, read_addresses(texts)


def read_addresses(texts: object) -> tuple[Address, ...]:
    """Where a peer listens."""
    if not isinstance(texts, list):
        raise ValueError("no addresses")
    try:
        return tuple(Address.parse(text) for text in texts[:_MOST_ADDRESSES])
    except (ConfigError, AttributeError, TypeError) as error:
        raise ValueError("no addresses") from error


def read_round(parts: Sequence[Any]) -> tuple[Round, Addresses]:
    """A leader's round, and where the peers of its view listen."""
    epoch, serial, view, *events = typed("no round", parts, list, int, *[list] * 4)
    addresses = _read_pairs(view)
    return Round(_epoch(epoch), serial, tuple(addresses), *map(_events, events)), addresses


def read_hello_answer(raw: bytes) -> Greeted:
    """What a peer answered to a hello."""
    parts = decode(raw)
    if parts == []:
        return Greeted(False)
    belongs, leader, texts = typed("no answer to a hello", parts, bool, int, list)
    return Greeted(belongs, leader, read_addresses(texts))


def read_report(raw: bytes) -> tuple[Report, Addresses]:
    """What a peer reported, and where the peers that it knows listen."""
    epoch, done, held, waiting, room, view = typed("no report", decode(raw), *[list] * 4, int, list)
    addresses = _read_pairs(view)
    report = Report(
        _epoch(epoch), _events(done), _events(held), _events(waiting), room, tuple(addresses)
    )
    return report, addresses


def read_event(raw: bytes, event: int, schema: Schema) -> KeptEvent | None:
    """An event that was asked for; None where the peer does not keep it either."""
    parts = decode(raw)
    if parts == []:
        return None
    if type(parts) is not list or [type(one) for one in parts] not in (
        [int, float, dict],
        [int, float, dict, bytes, str],
    ):
        raise ValueError("no event")
    publisher, published_at, values, *more = parts
    try:
        exact = event_values_from_wire(schema, values)
        return KeptEvent(event, exact, publisher, published_at, 0, Payload(*more) if more else None)
    except (ContentError, BadFrame, TypeError) as error:
        raise ValueError("no event of this schema") from error


def typed(otherwise: str, parts: Any, *types: type) -> list[Any]:
    """A list whose parts are of just these types; what it is otherwise is in the error."""
    if type(parts) is not list or [type(one) for one in parts] != [*types]:
        raise ValueError(otherwise)
    return parts


def _texts(addresses: Iterable[Address]) -> list[str]:
    return [str(one) for one in addresses][:_MOST_ADDRESSES]


def _pairs(keys: Iterable[int], addresses: Addresses) -> list[object]:
    return [[key, _texts(addresses.get(key, ()))] for key in keys]


def _read_pairs(pairs: Sequence[Any]) -> dict[int, tuple[Address, ...]]:
    if len(pairs) > MOST_PEERS:
        raise ValueError(f"{len(pairs)} peers of a group")
    found = {}
    for pair in pairs:
        key, texts = typed("no peer and its addresses", pair, int, list)
        found[key] = read_addresses(texts)
    return found


def _epoch(parts: Sequence[Any]) -> tuple[int, int]:
    number, leader = typed("no epoch", parts, int, int)
    return number, leader


def _events(parts: Sequence[Any]) -> tuple[int, ...]:
    if len(parts) > MOST_EVENTS or any(type(one) is not int for one in parts):
        raise ValueError("no events")
    return tuple(parts)
