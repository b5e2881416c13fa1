"""Messages of SCOT brokers as plain data and back, as `brokers.tree.codec` has it.

A cluster bit vector is a whole number, and so are there at most `MAX_CLUSTERS` clusters on a wire.

    >>> from gossamer.protocol.brokers.core.identifiers import Id
    >>> from gossamer.protocol.brokers.scot import codec
    >>> from gossamer.protocol.brokers.scot.overlay.labels import ClusterBitVector
    >>> from gossamer.protocol.brokers.scot.memory.messages import Notification
    >>> data = codec.plain_between(Notification(Id("B1", 3), {"x": 5}, ClusterBitVector.of(0, 2)))
    >>> data
    ['notification', ['B1', 3], {'x': 5}, 5]
    >>> codec.read_between(data).targets.text(3)
    '101'
    >>> codec.read_between(['notification', ['B1', 3], {'x': 5}, -1])
    Traceback (most recent call last):
    ...
    gossamer.protocol.brokers.core.errors.MalformedMessageError: notification: targets is -1, \
expected a whole number from 0 to 4611686018427387903
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gossamer.protocol.brokers.core import client_codec
from gossamer.protocol.brokers.core.client_codec import FROM_CLIENT, MAX_STANDING
from gossamer.protocol.brokers.core.plain import malformed, read_name, read_whole
from gossamer.protocol.brokers.core.shapes import (
    COUNT,
    FILTER,
    FLAG,
    GIVEN_ID,
    ID,
    NAME,
    VALUES,
    Kinds,
    Part,
    Shape,
    many,
    same,
    shape,
)
from gossamer.protocol.brokers.scot.memory import messages as m
from gossamer.protocol.brokers.scot.overlay.labels import BrokerLabel, ClusterBitVector

MAX_CLUSTERS: Final = 62
"""Clusters whose vector is a whole number of 64 bits."""
MAX_BIDS: Final = 100_000
"""Most brokers that a notification names."""

MAX_PATH: Final = 3
"""Brokers that a relayed subscription still goes to."""

_read_bits: Final = read_whole(0, (1 << MAX_CLUSTERS) - 1)
_read_cluster: Final = read_whole(0, MAX_CLUSTERS - 1)


def _read_label(data: object, field: str) -> BrokerLabel:
    if type(data) is not list or len(data) != 2:
        raise malformed(field, data, "a region and a cluster")
    return BrokerLabel(read_name(data[0], field), _read_cluster(data[1], field))


_VECTOR: Final = Part(
    lambda one: one.bits, lambda data, field: ClusterBitVector(_read_bits(data, field))
)
_CLUSTER: Final = Part(same, _read_cluster)
_PLACE: Final = Part(list, _read_label)
_LABELS: Final = many(NAME, MAX_STANDING)


def _one(name: str, one: Shape) -> Part:
    return Kinds({name: one}).part


_SUBSCRIPTION: Final = shape(m.Subscription, ID, FILTER, _VECTOR)
_UNSUBSCRIPTION: Final = shape(m.Unsubscription, ID)
_NOTIFICATION: Final = shape(m.Notification, ID, VALUES, _VECTOR)
_CARRIED: Final = _one("notification", _NOTIFICATION)
_OWED: Final = shape(m.Owed, NAME, _CARRIED, _LABELS)
_PROMISED: Final = shape(m.Promised, NAME, NAME, ID, FILTER)
_ALL_PROMISED: Final = many(_one("promised", _PROMISED), MAX_STANDING)
_ALL_OWED: Final = many(_one("owed", _OWED), MAX_STANDING)

_TRACKED: Final = {
    "subscription": _SUBSCRIPTION,
    "unsubscription": _UNSUBSCRIPTION,
    "notification": _NOTIFICATION,
    "detour": shape(m.Detour, _CARRIED, _CLUSTER),
    "bypass": shape(m.Bypass, _CARRIED, _CLUSTER, NAME, NAME),
    "relay": shape(
        m.Relay,
        Kinds({"subscription": _SUBSCRIPTION, "unsubscription": _UNSUBSCRIPTION}).part,
        _PLACE,
        many(_PLACE, MAX_PATH),
    ),
    "stead": shape(m.ProxyNotification, _CARRIED, _CLUSTER),
    "promised": _PROMISED,
    "taken back": shape(m.TakenBack, NAME, NAME),
    "owed": _OWED,
    "taken": shape(m.Taken, NAME, many(ID, MAX_STANDING)),
    "gone": shape(m.Gone, NAME),
    "hand back": shape(m.HandBack, NAME, many(ID, MAX_STANDING), _ALL_PROMISED, _ALL_OWED),
}

BETWEEN_BROKERS: Final[Mapping[str, Shape]] = {
    **_TRACKED,
    "synchronise": shape(
        m.Synchronise, many(_one("subscription", _SUBSCRIPTION), MAX_STANDING), FLAG, FLAG
    ),
    "numbered": shape(m.Numbered, COUNT, Kinds(_TRACKED).part),
    "acknowledge": shape(m.Acknowledge, COUNT, FLAG),
    "replica": shape(m.Replica, _ALL_PROMISED, _ALL_OWED),
    "bid subscription": shape(m.BidSubscription, ID, FILTER),
    "bid unsubscription": shape(m.BidUnsubscription, ID),
    "bid notification": shape(m.BidNotification, ID, VALUES, many(NAME, MAX_BIDS)),
}
"""Shapes of what brokers send each other."""

_TAKEN: Final = {**FROM_CLIENT, "took": shape(m.Took, many(GIVEN_ID, MAX_STANDING))}
SHAPES: Final[Mapping[str, Shape]] = {
    **BETWEEN_BROKERS,
    **_TAKEN,
    "neighbour up": shape(m.NeighbourUp, NAME, _PLACE, FLAG),
    "neighbour down": shape(m.NeighbourDown, NAME),
    "neighbour gone": shape(m.NeighbourGone, NAME),
    "restarted": shape(m.Restarted),
    "waited enough": shape(m.WaitedEnough),
    "window ended": shape(
        m.WindowEnded,
        many(_one("queue", shape(m.QueueReport, NAME, COUNT, COUNT, COUNT)), MAX_STANDING),
    ),
}
"""Shapes of everything that `ScotBroker.handle` takes."""

_BETWEEN_BROKERS: Final = Kinds(BETWEEN_BROKERS)
_FROM_CLIENT: Final = Kinds(_TAKEN)
_SHAPES: Final = Kinds(SHAPES)


def plain_between(message: m.BetweenBrokers) -> list[object]:
    """A message between brokers as plain data; raises `ContentError` for what nobody would read."""
    return _BETWEEN_BROKERS.plain(message)


def read_between(data: object) -> Any:
    """The message that came from another broker; raises `MalformedMessageError`."""
    return _BETWEEN_BROKERS.read(data, "message")


def check_between(message: m.BetweenBrokers) -> None:
    """As `gossamer.protocol.brokers.tree.codec.check_between`."""
    _BETWEEN_BROKERS.check(message)


def check_from_client(client: str, message: m.FromClient) -> None:
    """As `core.client_codec.check_from_client`."""
    client_codec.check_from_client(client, message, _FROM_CLIENT)


def plain_message(message: m.Message) -> list[object]:
    """Whatever `ScotBroker.handle` takes, as plain data; raises as `plain_between` does."""
    return _SHAPES.plain(message)


def read_message(data: object) -> Any:
    """What `plain_message` made plain data of; raises `MalformedMessageError`."""
    return _SHAPES.read(data, "message")
