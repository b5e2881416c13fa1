"""A SCOT broker's memory as plain data, and back.

What links are like now is not part of it, nor what waits for an acknowledgement: neighbours have
sent that again, another way, by the time that a broker is there again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gossamer.protocol.brokers.core.errors import DumpError
from gossamer.protocol.brokers.core.identifiers import Hop, Id
from gossamer.protocol.brokers.scot.codec import CODEC
from gossamer.protocol.brokers.scot.memory.state import State
from gossamer.protocol.brokers.scot.memory.table import Entry
from gossamer.protocol.brokers.scot.memory.take_over_memory import (
    ReplicatedPromises,
    TakeOverMemory,
)
from gossamer.protocol.brokers.scot.overlay.labels import BrokerLabel, ClusterBitVector
from gossamer.protocol.content import filters


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
