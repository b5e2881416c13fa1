"""What clients of a broker get, as it is kept on the disk, and as frames."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import cbor2
import trio
from attrs import define, field, frozen

from gossamer.node.broker.host import Match, id_text
from gossamer.node.store.broker import QueuedDelivery
from gossamer.node.transport.frames import encode_frame
from gossamer.protocol.brokers.core.effects import Deliver
from gossamer.protocol.brokers.core.messages import Id
from gossamer.protocol.brokers.core.plain_data import plain_values
from gossamer.protocol.content.filters import Filter, Publication
from gossamer.protocol.content.filters.composite import Composite
from gossamer.protocol.content.matching.composite_matcher import CompositeMatch, CompositeMatcher

# Begins what is kept of a match, where a publication has its identifier.
_MATCH: Final = "match"
_MATCH_ID_BYTES: Final = 12


@frozen(eq=False)
class Arrival:
    """A publication that came for a composite subscription, and the Unix time then."""

    id: Id
    values: Publication
    at: float


def delivery_bytes(effect: Deliver | Match, now: float) -> bytes:
    """What a client gets of a delivery, at the Unix time ``now``."""
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


# The composite subscriptions of one client of a broker, and what waits for others to match with.
#
# The broker itself knows none of them: the client is subscribed to each different filter of their
# parts, under labels of their own, and what is delivered for those goes through a matcher. What
# waits in it is in memory only.

MOST_WAITING: Final = 10_000
"""Publications of a client that wait for others, each counted for every filter that it matches."""
MOST_MATCHES: Final = 100
"""Matches of a client that one publication may bring about."""

PART: Final = "~part "
"""Begins the labels of parts; no client may choose such a label."""


@frozen
class CompositeSubscription:
    """A composite subscription of a client.

    Attributes:
        text: as the client wrote it.
        within_s: seconds in which publications have to come to match together.
        mark: tells its parts from those of other subscriptions.
        composite: what the text says.
    """

    text: str
    within_s: float
    mark: str
    composite: Composite

    @property
    def parts(self) -> dict[str, Filter]:
        """The different filters of its parts, by the labels under which the client has them."""
        wanted = dict.fromkeys(
            part.filter for parts in self.composite.alternatives for part in parts
        )
        return {f"{PART}{self.mark} {number}": one for number, one in enumerate(wanted)}


@define
class Losses:
    """What one or all clients missed, as too much would have to be kept or sent.

    Attributes:
        dropped: publications that waited and had to make room.
        cut_short: how often a publication brought about more matches than were looked for.
        too_long: matches that no frame can hold.
    """

    dropped: int = 0
    cut_short: int = 0
    too_long: int = 0

    def __bool__(self) -> bool:
        return bool(self.dropped or self.cut_short or self.too_long)

    def add(self, other: Losses) -> None:
        """Count another's as well."""
        self.dropped += other.dropped
        self.cut_short += other.cut_short
        self.too_long += other.too_long


@define(eq=False)
class ClientComposites:
    """The composite subscriptions of one client.

    Attributes:
        held: by label.
        lock: held by whoever changes them.
        lost: what it missed since somebody looked.
        unreported: what it missed since that was logged.
        reported_at: when that was.
    """

    held: dict[str, CompositeSubscription] = field(factory=dict)
    lock: trio.Lock = field(factory=trio.Lock)
    lost: Losses = field(factory=Losses)
    unreported: Losses = field(factory=Losses)
    reported_at: float = float("-inf")
    _matcher: CompositeMatcher | None = None
    _ids: dict[str, int] = field(factory=dict)
    _labels: dict[int, str] = field(factory=dict)

    @property
    def waiting(self) -> int:
        """Publications that wait, each counted for every filter that it matched."""
        return 0 if self._matcher is None else self._matcher.waiting

    def hold(self, label: str, one: CompositeSubscription) -> None:
        """Match another one from now on; ``label`` has none."""
        if self._matcher is None:
            self._matcher = CompositeMatcher(most_waiting=MOST_WAITING, most_matches=MOST_MATCHES)
        self.held[label] = one
        self._ids[label] = self._matcher.add(one.composite, one.within_s)
        self._labels[self._ids[label]] = label

    def let_go(self, label: str) -> CompositeSubscription | None:
        """Match one no longer; returns it, None if there is none."""
        held = self.held.pop(label, None)
        if held is not None:
            assert self._matcher is not None
            id_ = self._ids.pop(label)
            del self._labels[id_]
            self._matcher.remove(id_)
        return held

    def step(self, now: float, arrival: Arrival) -> list[tuple[str, CompositeMatch]]:
        """Take a publication; returns the matches that it completes, with their labels.

        ``now`` is of a clock that never goes back, in seconds.
        """
        matcher = self._matcher
        if matcher is None or not self.held:
            return []
        dropped, cut_short = matcher.dropped, matcher.cut_short
        found = matcher.step(now, arrival.values, arrival)
        self.lost.dropped += matcher.dropped - dropped
        self.lost.cut_short += matcher.cut_short - cut_short
        return [(self._labels[match.id], match) for match in found]


def missing_parts(
    held: Mapping[str, Filter], wanted: Mapping[str, Filter]
) -> tuple[list[str], dict[str, Filter]]:
    """Labels of parts that a client has and should not, and parts that it should have and has not.

    Args:
        held: its subscriptions.
        wanted: all parts of its composite subscriptions.
    """
    surplus = [
        label for label, one in held.items() if label.startswith(PART) and wanted.get(label) != one
    ]
    return surplus, {label: one for label, one in wanted.items() if held.get(label) != one}
