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

from gossamer.protocol.brokers.core import codec as c
from gossamer.protocol.brokers.core import messages as core
from gossamer.protocol.brokers.core.codec import Codec, Part, Shape
from gossamer.protocol.brokers.core.messages import Hop, Id
from gossamer.protocol.brokers.core.plain_data import read_whole
from gossamer.protocol.brokers.scot import messages as m
from gossamer.protocol.brokers.scot.state import State
from gossamer.protocol.brokers.scot.table import Entry
from gossamer.protocol.brokers.scot.take_over_memory import ReplicatedPromises, TakeOverMemory
from gossamer.protocol.brokers.scot.topology import MAX_CLUSTERS, BrokerLabel, ClusterBitVector
from gossamer.protocol.content import filters

MAX_BIDS: Final = 100_000
"""Most brokers that a notification names."""

MAX_PATH: Final = 3
"""Brokers that a relayed subscription still goes to."""

_read_bits: Final = read_whole(0, (1 << MAX_CLUSTERS) - 1)

_VECTOR: Final = Part(
    lambda one: one.bits, lambda data, field: ClusterBitVector(_read_bits(data, field))
)
_CLUSTER: Final = Part(c.same, read_whole(0, MAX_CLUSTERS - 1))
_PLACE: Final = c.row("a region and a cluster", c.NAME, _CLUSTER, kind=BrokerLabel)
_LABELS: Final = c.many(c.NAME, c.MAX_STANDING)


def _one(name: str, one: Shape) -> Part:
    return c.Kinds({name: one}).part


_SUBSCRIPTION: Final = c.shape(m.Subscription, c.ID, c.FILTER, _VECTOR)
_UNSUBSCRIPTION: Final = c.shape(m.Unsubscription, c.ID)
_NOTIFICATION: Final = c.shape(m.Notification, c.ID, c.VALUES, _VECTOR)
_CARRIED: Final = _one("notification", _NOTIFICATION)
_PROXY: Final = c.shape(m.ProxyNotification, _CARRIED, _CLUSTER)
_UNACKNOWLEDGED: Final = c.shape(m.UnacknowledgedDelivery, c.NAME, _CARRIED, _LABELS)
_PROMISED: Final = c.shape(m.Promised, c.NAME, c.NAME, c.ID, c.FILTER)
_ALL_PROMISED: Final = c.many(_one("promised", _PROMISED), c.MAX_STANDING)
_ALL_UNACKNOWLEDGED: Final = c.many(_one("unacknowledged", _UNACKNOWLEDGED), c.MAX_STANDING)

_INPUT_QUEUE: Final = c.shape(m.InputQueue, c.COUNT, c.COUNT, c.COUNT)

_TRACKED: Final = {
    "subscription": _SUBSCRIPTION,
    "unsubscription": _UNSUBSCRIPTION,
    "notification": _NOTIFICATION,
    "detour": c.shape(m.Detour, _CARRIED, _CLUSTER),
    "bypass": c.shape(m.Bypass, _CARRIED, _CLUSTER, c.NAME, c.NAME),
    "relay": c.shape(
        m.Relay,
        c.Kinds(
            {
                "subscription": _SUBSCRIPTION,
                "unsubscription": _UNSUBSCRIPTION,
                "proxy notification": _PROXY,
            }
        ).part,
        _PLACE,
        c.many(_PLACE, MAX_PATH),
    ),
    "proxy notification": _PROXY,
    "promised": _PROMISED,
    "taken back": c.shape(m.TakenBack, c.NAME, c.NAME),
    "unacknowledged": _UNACKNOWLEDGED,
    "taken": c.shape(m.Taken, c.NAME, c.many(c.ID, c.MAX_STANDING)),
    "client left": c.shape(m.ClientLeft, c.NAME),
    "hand back": c.shape(
        m.HandBack, c.NAME, c.many(c.ID, c.MAX_STANDING), _ALL_PROMISED, _ALL_UNACKNOWLEDGED
    ),
}

BETWEEN_BROKERS: Final[Mapping[str, Shape]] = {
    **_TRACKED,
    "synchronise": c.shape(
        m.Synchronise, c.many(_one("subscription", _SUBSCRIPTION), c.MAX_STANDING), c.FLAG, c.FLAG
    ),
    "input queue": _INPUT_QUEUE,
    "numbered": c.shape(m.Numbered, c.COUNT, c.Kinds(_TRACKED).part),
    "acknowledge": c.shape(m.Acknowledge, c.COUNT, c.FLAG),
    "replica": c.shape(m.Replica, _ALL_PROMISED, _ALL_UNACKNOWLEDGED),
    "no backup": c.shape(m.NoBackup),
    "bid subscription": c.shape(m.BidSubscription, c.ID, c.FILTER),
    "bid unsubscription": c.shape(m.BidUnsubscription, c.ID),
    "bid notification": c.shape(m.BidNotification, c.ID, c.VALUES, c.many(c.NAME, MAX_BIDS)),
}
"""Shapes of what brokers send each other."""

CODEC: Final = Codec(
    BETWEEN_BROKERS,
    from_client={
        **c.FROM_CLIENT,
        "acknowledge publications": c.shape(
            core.ClientAcknowledge, c.many(c.GIVEN_ID, c.MAX_STANDING)
        ),
    },
    from_host={
        "neighbour up": c.shape(m.NeighbourUp, c.NAME, _PLACE, c.FLAG),
        "neighbour announced": c.shape(m.NeighbourAnnounced, c.NAME, _PLACE, c.FLAG, c.FLAG),
        "neighbour down": c.shape(core.NeighbourDown, c.NAME),
        "neighbour gone": c.shape(core.NeighbourGone, c.NAME),
        "overlay grown": c.shape(m.OverlayGrown, c.COUNT, c.many(c.NAME, c.MAX_STANDING)),
        "restarted": c.shape(core.Restarted),
        "waited enough": c.shape(m.WaitedEnough),
        "window ended": c.shape(
            m.WindowEnded,
            c.many(
                _one("queue", c.shape(m.QueueReport, c.NAME, c.COUNT, c.COUNT, c.COUNT)),
                c.MAX_STANDING,
            ),
            c.maybe(_one("input queue", _INPUT_QUEUE)),
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
        raise core.DumpError(f"it is of {label}, expected {state.position.label}")
    for name, *place in data["neighbours"]:
        there = BrokerLabel(*place)
        if not (state.position.is_primary(there) or state.position.is_secondary(there)):
            expected = "expected all clusters and edges that there were"
            raise core.DumpError(f"it has a neighbour at {there}, {expected}")
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
