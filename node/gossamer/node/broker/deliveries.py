"""What clients of a broker get, as it is kept on the disk, and as frames."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final

import cbor2
from attrs import frozen

from gossamer.node.broker.contract.host import id_text
from gossamer.node.broker.contract.matches import Match
from gossamer.node.store.broker import QueuedDelivery
from gossamer.node.transport.base.frames import encode_frame
from gossamer.protocol.brokers.core.effects import Deliver
from gossamer.protocol.brokers.core.messages import Id
from gossamer.protocol.brokers.core.plain_data import plain_values
from gossamer.protocol.content.filters import Publication

# Begins what is kept of a match, where a publication has its identifier.
_MATCH: Final = "match"
_MATCH_ID_BYTES: Final = 12


@frozen(eq=False)
class Arrival:
    """A publication that came for a composite subscription.

    Attributes:
        id: of the publication.
        values: what was published.
        at: Unix seconds, when it came.
    """

    id: Id
    values: Publication
    at: float


def delivery_bytes(effect: Deliver | Match, now: float) -> bytes:
    """What a client gets of a delivery.

    Args:
        effect: the delivery.
        now: Unix seconds.
    """
    if isinstance(effect, Match):
        return effect.body
    publication = effect.publication
    return cbor2.dumps(
        [list(publication.id), plain_values(publication.values), now, list(effect.labels)]
    )


def match_bytes(label: str, alternative: int, parts: Sequence[Arrival], now: float) -> bytes:
    """What a client gets of a match.

    Args:
        label: of its composite subscription.
        alternative: which of its alternatives it is, from 0.
        parts: the publication for each part.
        now: Unix seconds.
    """
    plain = [[*one.id, plain_values(one.values), one.at] for one in parts]
    return cbor2.dumps([_MATCH, label, alternative, plain, now])


def id_of(delivery: QueuedDelivery) -> Id | None:
    """The identifier of the publication that is delivered; None of a match."""
    first = cbor2.loads(delivery.body)[0]
    return None if first == _MATCH else Id(*first)


def event_of(delivery: bytes, position: int) -> bytes:
    """A delivery as the frame that its client gets."""
    content = cbor2.loads(delivery)
    if content[0] == _MATCH:
        return _match_frame(content, position)
    (broker, number), values, at, labels = content
    return encode_frame(
        "event",
        position=position,
        id=id_text(Id(broker, number)),
        values=values,
        publisher=broker,
        published_at=at,
        subscriptions=labels,
    )


def _match_frame(content: list[Any], position: int) -> bytes:
    _, label, alternative, parts, now = content
    ids = [id_text(Id(broker, number)) for broker, number, _, _ in parts]
    # The same publications match a part of a subscription once: so this is no other match's.
    name = hashlib.sha256(cbor2.dumps([label, alternative, ids])).digest()[:_MATCH_ID_BYTES]
    return encode_frame(
        "match",
        position=position,
        id=f"match-{name.hex()}",
        published_at=now,
        subscriptions=[label],
        alternative=alternative,
        events=[
            {"id": id_, "values": values, "publisher": broker, "published_at": at}
            for id_, (broker, _, values, at) in zip(ids, parts, strict=True)
        ],
    )
