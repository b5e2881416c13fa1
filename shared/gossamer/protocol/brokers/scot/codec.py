"""Messages of SCOT brokers as plain data and back, as `core.codec` has it.

A cluster bit vector is a whole number, and so are there at most `MAX_CLUSTERS` clusters on a wire.

    >>> from gossamer.protocol.brokers.core.identifiers import Id
    >>> from gossamer.protocol.brokers.scot.codec import CODEC
    >>> from gossamer.protocol.brokers.scot.overlay.labels import ClusterBitVector
    >>> from gossamer.protocol.brokers.scot.memory.messages import Notification
    >>> data = CODEC.plain_between(Notification(Id("B1", 3), {"x": 5}, ClusterBitVector.of(0, 2)))
    >>> data
    ['notification', ['B1', 3], {'x': 5}, 5]
    >>> CODEC.read_between(data).targets.text(3)
    '101'
    >>> CODEC.read_between(['notification', ['B1', 3], {'x': 5}, -1])
    Traceback (most recent call last):
    ...
    gossamer.protocol.brokers.core.errors.MalformedMessageError: notification: targets is -1, \
expected a whole number from 0 to 4611686018427387903
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gossamer.protocol.brokers.core.codec import FROM_CLIENT, MAX_STANDING, Codec
from gossamer.protocol.brokers.core.messages import (
    ClientAcknowledge,
    NeighbourDown,
    NeighbourGone,
    Restarted,
)
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
    maybe,
    same,
    shape,
)
from gossamer.protocol.brokers.scot.memory import messages as m
from gossamer.protocol.brokers.scot.overlay.labels import (
    MAX_CLUSTERS,
    BrokerLabel,
    ClusterBitVector,
)

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
_PROXY: Final = shape(m.ProxyNotification, _CARRIED, _CLUSTER)
_UNACKNOWLEDGED: Final = shape(m.UnacknowledgedDelivery, NAME, _CARRIED, _LABELS)
_PROMISED: Final = shape(m.Promised, NAME, NAME, ID, FILTER)
_ALL_PROMISED: Final = many(_one("promised", _PROMISED), MAX_STANDING)
_ALL_UNACKNOWLEDGED: Final = many(_one("unacknowledged", _UNACKNOWLEDGED), MAX_STANDING)

_INPUT_QUEUE: Final = shape(m.InputQueue, COUNT, COUNT, COUNT)

_TRACKED: Final = {
    "subscription": _SUBSCRIPTION,
    "unsubscription": _UNSUBSCRIPTION,
    "notification": _NOTIFICATION,
    "detour": shape(m.Detour, _CARRIED, _CLUSTER),
    "bypass": shape(m.Bypass, _CARRIED, _CLUSTER, NAME, NAME),
    "relay": shape(
        m.Relay,
        Kinds(
            {
                "subscription": _SUBSCRIPTION,
                "unsubscription": _UNSUBSCRIPTION,
                "proxy notification": _PROXY,
            }
        ).part,
        _PLACE,
        many(_PLACE, MAX_PATH),
    ),
    "proxy notification": _PROXY,
    "promised": _PROMISED,
    "taken back": shape(m.TakenBack, NAME, NAME),
    "unacknowledged": _UNACKNOWLEDGED,
    "taken": shape(m.Taken, NAME, many(ID, MAX_STANDING)),
    "client left": shape(m.ClientLeft, NAME),
    "hand back": shape(
        m.HandBack, NAME, many(ID, MAX_STANDING), _ALL_PROMISED, _ALL_UNACKNOWLEDGED
    ),
}

BETWEEN_BROKERS: Final[Mapping[str, Shape]] = {
    **_TRACKED,
    "synchronise": shape(
        m.Synchronise, many(_one("subscription", _SUBSCRIPTION), MAX_STANDING), FLAG, FLAG
    ),
    "input queue": _INPUT_QUEUE,
    "numbered": shape(m.Numbered, COUNT, Kinds(_TRACKED).part),
    "acknowledge": shape(m.Acknowledge, COUNT, FLAG),
    "replica": shape(m.Replica, _ALL_PROMISED, _ALL_UNACKNOWLEDGED),
    "no backup": shape(m.NoBackup),
    "bid subscription": shape(m.BidSubscription, ID, FILTER),
    "bid unsubscription": shape(m.BidUnsubscription, ID),
    "bid notification": shape(m.BidNotification, ID, VALUES, many(NAME, MAX_BIDS)),
}
"""Shapes of what brokers send each other."""

CODEC: Final = Codec(
    BETWEEN_BROKERS,
    from_client={
        **FROM_CLIENT,
        "acknowledge publications": shape(ClientAcknowledge, many(GIVEN_ID, MAX_STANDING)),
    },
    from_host={
        "neighbour up": shape(m.NeighbourUp, NAME, _PLACE, FLAG),
        "neighbour announced": shape(m.NeighbourAnnounced, NAME, _PLACE, FLAG, FLAG),
        "neighbour down": shape(NeighbourDown, NAME),
        "neighbour gone": shape(NeighbourGone, NAME),
        "overlay grown": shape(m.OverlayGrown, COUNT, many(NAME, MAX_STANDING)),
        "restarted": shape(Restarted),
        "waited enough": shape(m.WaitedEnough),
        "window ended": shape(
            m.WindowEnded,
            many(_one("queue", shape(m.QueueReport, NAME, COUNT, COUNT, COUNT)), MAX_STANDING),
            maybe(_one("input queue", _INPUT_QUEUE)),
        ),
    },
)
"""What SCOT brokers take."""
