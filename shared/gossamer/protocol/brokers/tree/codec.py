"""Messages and a broker's memory as plain data and back: what hosts send, log and keep.

A message is a list: its kind, then its fields in the order in which its class names them (`SHAPES`;
`codec` and `plain_data` of `core` say what fields are made of). A frame begins with session and
number. Who reads a frame that came from another broker gets a frame or a `MalformedMessageError`,
whatever was sent: no shape holds another without a bound, and nothing is made that the data does
not pay for.

    >>> from gossamer.protocol.brokers.tree import messages
    >>> from gossamer.protocol.brokers.tree import codec
    >>> from gossamer.protocol.brokers.core.messages import Id
    >>> data = codec.plain_frame(messages.Frame(1, 7, messages.Unadvertisement(Id("B1", 3))))
    >>> data
    [1, 7, 'unadvertisement', ['B1', 3]]
    >>> codec.read_frame(data)
    Frame(session=1, number=7, message=Unadvertisement(id=Id(broker='B1', number=3)))
    >>> codec.read_frame([1, 7, 'unadvertisement', ['B1', -3]])
    Traceback (most recent call last):
    ...
    gossamer.protocol.brokers.core.messages.MalformedMessageError: unadvertisement: id is -3, \
expected a whole number from 0 to 9223372036854775807
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

from gossamer.protocol.brokers.core import codec as c
from gossamer.protocol.brokers.core import plain_data
from gossamer.protocol.brokers.core.codec import Codec, Part, Shape
from gossamer.protocol.brokers.core.messages import Hop, Id, MalformedMessageError
from gossamer.protocol.brokers.core.plain_data import malformed
from gossamer.protocol.brokers.tree import messages as m
from gossamer.protocol.brokers.tree.advertisements import Offer
from gossamer.protocol.brokers.tree.messages import CriticalDistance, Frame, Publication
from gossamer.protocol.brokers.tree.settings import Record, TreeSettings
from gossamer.protocol.brokers.tree.state import Link, Retained, Sent, State
from gossamer.protocol.brokers.tree.tables import Entry, SubscriptionTable
from gossamer.protocol.content import filters
from gossamer.protocol.content.filters import Filter

MAX_TUPLES: Final = 100_000
"""Most critical distances of an unsubscription."""
MAX_HOPS: Final = 1 << 31
"""Larger counts of hops are read as this one, so that adding to them makes no frame malformed."""


def _read_critical(data: object, field: str) -> CriticalDistance:
    if type(data) is not list or len(data) != 2 or type(data[1]) is not list or not data[1]:
        raise malformed(field, data, "an advertisement and its distances")
    return CriticalDistance(plain_data.read_id(data[0], field), _distances(data[1], field))


def _read_hops(data: object, field: str) -> int:
    return max(-MAX_HOPS, min(int(_any_hops(data, field)), MAX_HOPS))


_any_hops: Final = plain_data.read_whole(-plain_data.WHOLE, plain_data.WHOLE - 1)
_distances: Final = plain_data.read_list(_read_hops, 2)

_PASSED: Final = Part(c.same, lambda data, field: _read_hops(c.COUNT.read(data, field), field))
_TUPLES: Final = c.maybe(
    c.many(Part(lambda one: [list(one[0]), list(one[1])], _read_critical), MAX_TUPLES)
)

_INNER: Final = {
    "subscription": c.shape(m.Subscription, c.ID, c.FILTER, c.FLAG),
    "unsubscription": c.shape(m.Unsubscription, c.ID, _TUPLES, c.FLAG),
}
_ADVERTISEMENT: Final = c.shape(m.Advertisement, c.ID, c.FILTER)

BETWEEN_BROKERS: Final[Mapping[str, Shape]] = {
    **_INNER,
    "advertisement": _ADVERTISEMENT,
    "unadvertisement": c.shape(m.Unadvertisement, c.ID),
    "settled": c.shape(m.Settled, c.ID),
    "publication": c.shape(m.Publication, c.ID, c.ID, c.VALUES, _PASSED, _PASSED),
    "packed": c.shape(m.Packed, c.many(c.Kinds(_INNER).part, c.MAX_STANDING)),
    "synchronise": c.shape(
        m.Synchronise,
        c.many(c.Kinds({"advertisement": _ADVERTISEMENT}).part, c.MAX_STANDING),
        c.many(c.Kinds({"subscription": _INNER["subscription"]}).part, c.MAX_STANDING),
    ),
    "synchronise request": c.shape(m.SynchroniseRequest),
    "acknowledge": c.shape(m.Acknowledge, c.COUNT, c.COUNT),
}
"""Shapes of what brokers send each other."""

_BETWEEN_BROKERS: Final = c.Kinds(BETWEEN_BROKERS)
check_content: Final = _BETWEEN_BROKERS.check
"""`Codec.check_between` of what is in a frame."""


class _FrameCodec(Codec):
    """Messages of tree brokers, which come over links in frames: session, number, message."""

    def plain_between(self, frame: Frame) -> list[object]:
        return plain_frame(frame)

    def read_between(self, data: object) -> Frame:
        return read_frame(data)


CODEC: Final = _FrameCodec(
    {"frame": c.shape(m.Frame, c.COUNT, c.COUNT, _BETWEEN_BROKERS.part)}, inside=BETWEEN_BROKERS
)
"""What tree brokers take."""


def plain_frame(frame: Frame) -> list[object]:
    """A frame as plain data; raises `ContentError` for content that nobody would read."""
    return [frame.session, frame.number, *_BETWEEN_BROKERS.plain(frame.message)]


def read_frame(data: object) -> Frame:
    """The frame that came as plain data; raises `MalformedMessageError`."""
    if type(data) is not list or len(data) < 3:
        expected = "a session, a number and a message"
        raise MalformedMessageError(plain_data.UNNAMED, "content", plain_data.shown(data), expected)
    session, number = c.COUNT.read(data[0], "session"), c.COUNT.read(data[1], "number")
    return Frame(session, number, _BETWEEN_BROKERS.read(data[2:], "message"))


# A tree broker's memory as plain data, and back: tables, links and statistics.
#
# What follows from the rest (indexes, and where a subscription's advertisements are) is worked out
# again.

Read = Callable[[str], Filter]
Write = Callable[[Filter], str]
"""Make a filter of its text, and the other way round."""


def dump(state: State) -> dict[str, object]:
    """What a tree broker remembers besides what all brokers do, as plain data."""
    write = cache(filters.to_text)  # most filters are in several tables
    return {
        "next_order": state.subscriptions.next_order,
        "queue": state.queue,
        "last_publications": dict(state.last_publications),
        "advertisements": [
            [*_entry_data(one, write), sorted(one.unsettled)] for one in state.advertisements
        ],
        "subscriptions": [
            [*_entry_data(one, write), one.order, one.held] for one in state.subscriptions
        ],
        "links": [_link_data(link, write) for link in state.links_in_order()],
        "held": [
            [list(id_), [[list(one.advertisement), list(one.distances)] for one in critical]]
            for id_, critical in state.held.items()
        ],
        "statistics": [
            [list(id_), row.time, list(row.advertisement), row.distance, row.count]
            for id_, row in state.statistics.rows()
        ],
    }


def _entry_data(one: Offer | Entry, write: Write) -> list[object]:
    return [list(one.id), write(one.filter), list(one.hop), one.label]


def load(state: State, data: Mapping[str, Any]) -> None:
    """Take up what `dump` made plain data of, in a state with empty tables."""
    read = cache(filters.parse_written)  # most filters are in several tables
    state.queue = data["queue"]
    state.last_publications = dict(data["last_publications"])
    for link_data in data["links"]:
        state.marks.assign(link_data["name"])
        state.links[link_data["name"]] = _link(link_data, state.subscriptions, state.settings, read)
    # Dumps of earlier versions do not say which neighbours are unsettled.
    for id_, text, hop, label, *unsettled in data["advertisements"]:
        offer = state.advertisements.add(Id(*id_), read(text), Hop(*hop), label)
        offer.unsettled.update(*unsettled)
    _load_subscriptions(state, data, read)
    state.held = {
        Id(*id_): tuple(CriticalDistance(Id(*one), tuple(far)) for one, far in critical)
        for id_, critical in data["held"]
    }
    for id_, time, advertisement, distance, count in data["statistics"]:
        state.statistics.record(Id(*id_), Record(time, Id(*advertisement), distance, count))


def _load_subscriptions(state: State, data: Mapping[str, Any], read: Read) -> None:
    for id_, text, hop, label, order, held in data["subscriptions"]:
        entry = state.subscriptions.add(Id(*id_), read(text), Hop(*hop), label)
        entry.order, entry.held = order, held
        directions = state.advertisements.directions(entry.filter)
        entry.towards = {name for name in directions if name != entry.hop.name}
        if entry.hop.is_client:
            entry.towards = set(directions)
    state.subscriptions.next_order = data["next_order"]


def _link_data(link: Link, write: Write) -> dict[str, object]:
    return {
        "name": link.name,
        "up": link.up,
        "out": [link.out_session, link.out_number],
        "in": [link.in_session, link.in_number],
        "unacknowledged": link.unacknowledged,
        "batch": None if link.batch is None else list(link.batch),
        "window": link.window,
        "sent": [[list(id_), write(link.sent.filter_of(id_))] for id_ in link.sent],
        "quenched": [
            [list(covered), list(id_)]
            for id_ in link.sent
            for covered in link.sent.quenched_by(id_)
        ],
        "aggregates": [
            [list(one.id), one.arrivals, one.false_positives]
            for one in link.sent.aggregates.values()
        ],
        "retained": [
            [
                BETWEEN_BROKERS["publication"].plain(one.publication),
                write(one.advertised),
                one.session,
                one.number,
            ]
            for one in link.retained
        ],
    }


def _link(
    data: dict[str, Any], table: SubscriptionTable, settings: TreeSettings, read: Read
) -> Link:
    sent = Sent(data["name"], table, settings.rules.quench)
    for id_, text in data["sent"]:
        sent.add(Id(*id_), read(text))
    for covered, id_ in data["quenched"]:
        sent.hang(Id(*covered), Id(*id_))
    for id_, arrivals, false_positives in data["aggregates"]:
        sent.preserve(Id(*id_))
        aggregate = sent.aggregates[Id(*id_)]
        aggregate.arrivals, aggregate.false_positives = arrivals, false_positives
    retained = (
        Retained(_publication(publication), read(text), session, number)
        for publication, text, session, number in data["retained"]
    )
    # Dumps of earlier versions have neither of the last two.
    batch, window = data.get("batch"), data.get("window", 0)
    (out_session, out_number), (in_session, in_number) = data["out"], data["in"]
    return Link(
        name=data["name"],
        sent=sent,
        up=data["up"],
        out_session=out_session,
        out_number=out_number,
        in_session=in_session,
        in_number=in_number,
        retained=deque(retained),
        unacknowledged=data["unacknowledged"],
        batch=None if batch is None else tuple(batch),
        window=window,
    )


def _publication(data: list[Any]) -> Publication:
    id_, advertisement, values, distance, count = data
    found = plain_data.read_values(values, "values")
    return Publication(Id(*id_), Id(*advertisement), found, distance, count)
