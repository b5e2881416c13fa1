"""Messages and a SCOT broker's memory as plain data and back, as `core.codec` has it.

A cluster bit vector is a whole number, and so are there at most `MAX_CLUSTERS` clusters on a wire.

    >>> from gossamer.protocol.brokers.core.messages import Id
    >>> from gossamer.protocol.brokers.scot.codec import CODEC
    >>> from gossamer.protocol.brokers.scot.topology import ClusterBitVector
    >>> from gossamer.protocol.brokers.scot.messages import Notification
    >>> data = CODEC.plain_between(Notification(Id("B1", 3), {"x": 5}, ClusterBitVector.of(0, 2)))
    >>> data
    ['notification', ['B1', 3], {'x': 5}, 5]
    >>> CODEC.read_between(data).targets.text(3)
    '101'
    >>> CODEC.read_between(['notification', ['B1', 3], {'x': 5}, -1])
    Traceback (most recent call last):
    ...
    gossamer.protocol.brokers.core.messages.MalformedMessageError: notification: targets is -1, \
expected a whole number from 0 to 4611686018427387903
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from gossamer.protocol.brokers.core.codec import (
    COUNT,
    FILTER,
    FLAG,
    FROM_CLIENT,
    GIVEN_ID,
    ID,
    MAX_STANDING,
    NAME,
    VALUES,
    Codec,
    Kinds,
    Part,
    Shape,
    many,
    maybe,
    same,
    shape,
)
from gossamer.protocol.brokers.core.messages import (
    ClientAcknowledge,
    DumpError,
    Hop,
    Id,
    NeighbourDown,
    NeighbourGone,
    Restarted,
)
from gossamer.protocol.brokers.core.plain_data import malformed, read_name, read_whole
from gossamer.protocol.brokers.scot import messages as m
from gossamer.protocol.brokers.scot.state import State
from gossamer.protocol.brokers.scot.table import Entry
from gossamer.protocol.brokers.scot.take_over_memory import (
    ReplicatedPromises,
    TakeOverMemory,
)
from gossamer.protocol.brokers.scot.topology import (
    MAX_CLUSTERS,
    BrokerLabel,
    ClusterBitVector,
)
from gossamer.protocol.content import filters

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


# A SCOT broker's memory as plain data, and back.
#
# What links are like now is not part of it, nor what waits for an acknowledgement: neighbours have
# sent that again, another way, by the time that a broker is there again.


def dump(state: State) -> dict[str, object]:
    """What a SCOT broker remembers for good besides what all brokers do, as plain data."""
    memory = state.take_over.memory
    return {
        "label": list(state.position.label),
        "neighbours": [[name, *label] for name, label in state.labels.items()],
        "down": sorted(state.down),
        "not_taking_over": sorted(state.not_taking_over),
        "table": [
            [list(one.id), filters.to_text(one.filter), list(one.hop), one.host.bits, one.label]
            for one in state.table
        ],
        "covered": [list(id_) for id_ in sorted(state.covered)],
        "bid_hops": dict(state.bid_hops),
        "bid_numbers": dict(state.bid_numbers),
        "take_over": None if memory is None else _memory_data(memory),
    }


def load(state: State, data: Mapping[str, Any]) -> None:
    """Take up what `dump` made plain data of; raises `DumpError` for a dump of another place."""
    label = BrokerLabel(*data["label"])
    if label != state.position.label:
        raise DumpError(f"it is of {label}, expected {state.position.label}")
    for name, *place in data["neighbours"]:
        there = BrokerLabel(*place)
        if not (state.position.is_primary(there) or state.position.is_secondary(there)):
            expected = "expected all clusters and edges that there were"
            raise DumpError(f"it has a neighbour at {there}, {expected}")
        state.add_neighbour(name, there)
    state.down = set(data["down"])
    # Brokers of earlier versions had neighbours that were set as they were themselves.
    unlike = [] if state.settings.take_over else list(state.labels)
    state.not_taking_over = set(data.get("not_taking_over", unlike))
    for id_, text, hop, bits, known_as in data["table"]:
        host = ClusterBitVector(bits)
        state.table.add(Entry(Id(*id_), filters.parse_written(text), Hop(*hop), host, known_as))
    state.covered = {Id(*id_) for id_ in data["covered"]}
    state.bid_hops, state.bid_numbers = dict(data["bid_hops"]), dict(data["bid_numbers"])
    memory = state.take_over.memory
    if memory is not None and data["take_over"] is not None:
        _load_memory(memory, data["take_over"])
        if not state.settings.take_over:
            _leave_to_host(memory)


def _memory_data(memory: TakeOverMemory) -> dict[str, object]:
    return {
        "next_number": memory.next_number,
        "unacknowledged": _plain(memory.unacknowledged.values()),
        "doubtful": [list(id_) for id_ in sorted(memory.unproven)],
        "seen": [[client, list(id_)] for client, id_ in memory.seen],
        "replicas": [
            [
                cluster,
                _plain(kept.promised.values()),
                _plain(kept.unacknowledged.values()),
                sorted(kept.guests),
            ]
            for cluster, kept in memory.replicas.items()
        ],
        "taken": [
            [cluster, name, [list(id_) for id_ in ids]]
            for cluster, kept in memory.replicas.items()
            for name, ids in kept.taken.items()
        ],
    }


def _plain(held: Iterable[Mapping[Any, object]]) -> list[list[object]]:
    return [CODEC.plain_message(message) for one in held for message in one.values()]


def _leave_to_host(memory: TakeOverMemory) -> None:
    """Forget what the broker's own clients have not taken, which the host keeps as well.

    Not so of guests: that goes back to their brokers.
    """
    for name in memory.unacknowledged.keys() - memory.guests:
        del memory.unacknowledged[name]


def _load_memory(memory: TakeOverMemory, data: Mapping[str, Any]) -> None:
    memory.next_number = data["next_number"]
    for one in map(CODEC.read_message, data["unacknowledged"]):
        memory.unacknowledged.setdefault(one.client, {})[one.notification.id] = one
    # Earlier versions did not cover while they took over.
    memory.doubtful = {Id(*id_) for id_ in data.get("doubtful", ())}
    for client, id_ in data["seen"]:
        memory.note(client, Id(*id_))
    for cluster, promised, unacknowledged, guests in data["replicas"]:
        kept = memory.replicas[cluster] = ReplicatedPromises(guests=set(guests))
        for one in map(CODEC.read_message, promised):
            kept.promised.setdefault(one.client, {})[one.label] = one
        for one in map(CODEC.read_message, unacknowledged):
            kept.unacknowledged.setdefault(one.client, {})[one.notification.id] = one
    for cluster, name, ids in data["taken"]:
        memory.replicas[cluster].taken[name] = dict.fromkeys(Id(*id_) for id_ in ids)
