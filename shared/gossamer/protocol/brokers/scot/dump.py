"""A SCOT broker's memory as plain data, and back.

What links are like now is not part of it, nor what waits for an acknowledgement: neighbours have
sent that again, another way, by the time that a broker is there again.
"""

from __future__ import annotations

from typing import Any, Final

from attrs import asdict

from gossamer.protocol.brokers.core.errors import DumpError, MalformedMessageError
from gossamer.protocol.brokers.core.identifiers import INCARNATION_BITS, Hop, Id
from gossamer.protocol.brokers.core.index import NewIndex
from gossamer.protocol.brokers.scot.codec import plain_message, read_message
from gossamer.protocol.brokers.scot.memory.catalogue import Catalogue
from gossamer.protocol.brokers.scot.memory.congestion import LinkStatusTable
from gossamer.protocol.brokers.scot.memory.counters import Counters
from gossamer.protocol.brokers.scot.memory.keeping import Keeping, Kept
from gossamer.protocol.brokers.scot.memory.settings import ScotSettings
from gossamer.protocol.brokers.scot.memory.state import Session, State
from gossamer.protocol.brokers.scot.memory.table import Entry, RoutingTable
from gossamer.protocol.brokers.scot.overlay.labels import BrokerLabel, ClusterBitVector
from gossamer.protocol.brokers.scot.overlay.topology import Position
from gossamer.protocol.content import filters
from gossamer.protocol.kernel.errors import LocalProtocolError

_FORMAT: Final = 1


def empty(
    name: str, position: Position, settings: ScotSettings, catalogue: Catalogue, incarnation: int
) -> State:
    """The memory of a broker that has seen nothing."""
    first = incarnation << INCARNATION_BITS
    return State(
        name=name,
        position=position,
        settings=settings,
        table=RoutingTable(catalogue),
        next_number=first,
        links=LinkStatusTable(settings.threshold),
        keeping=Keeping(first) if settings.take_over else None,
        returned=incarnation > 0,
    )


def dump(state: State) -> dict[str, object]:
    """Everything that a broker remembers for good, as plain data."""
    return {
        "format": _FORMAT,
        "name": state.name,
        "label": list(state.position.label),
        "next_number": state.next_number,
        "neighbours": [[name, *label] for name, label in state.labels.items()],
        "down": sorted(state.down),
        "table": [
            [list(one.id), filters.to_text(one.filter), list(one.hop), one.host.bits, one.label]
            for one in state.table
        ],
        "covered": [list(id_) for id_ in sorted(state.covered)],
        "clients": [
            [
                session.name,
                {label: list(id_) for label, id_ in session.subscriptions.items()},
                {label: filters.to_text(one) for label, one in session.advertisements.items()},
            ]
            for session in state.clients.values()
        ],
        "bid_hops": dict(state.bid_hops),
        "bid_numbers": dict(state.bid_numbers),
        "counters": {**asdict(state.counters), "cases": sorted(state.counters.cases.items())},
        "keeping": None if state.keeping is None else _keeping_data(state.keeping),
    }


def load(
    data: dict[str, Any], position: Position, settings: ScotSettings, new_index: NewIndex
) -> State:
    """The state that was dumped; raises `DumpError` for what is no dump of a broker here."""
    try:
        if data["format"] != _FORMAT:
            raise DumpError(f"its format is {data['format']!r}, expected {_FORMAT}")
        label = BrokerLabel(*data["label"])
        if label != position.label:
            raise DumpError(f"it is of {label}, expected {position.label}")
        return _load(data, position, settings, new_index)
    except (KeyError, TypeError, ValueError, LocalProtocolError, MalformedMessageError) as error:
        if isinstance(error, DumpError):
            raise
        raise DumpError(f"{type(error).__name__}: {error}") from error


def _load(
    data: dict[str, Any], position: Position, settings: ScotSettings, new_index: NewIndex
) -> State:
    state = empty(data["name"], position, settings, Catalogue(new_index), 0)
    state.next_number = data["next_number"]
    for name, *label in data["neighbours"]:
        state.add_neighbour(name, BrokerLabel(*label))
    state.down = set(data["down"])
    for id_, text, hop, bits, label in data["table"]:
        host = ClusterBitVector(bits)
        state.table.add(Entry(Id(*id_), filters.parse_written(text), Hop(*hop), host, label))
    state.covered = {Id(*id_) for id_ in data["covered"]}
    for name, subscriptions, advertisements in data["clients"]:
        state.clients[name] = Session(
            name,
            {label: Id(*id_) for label, id_ in subscriptions.items()},
            {label: filters.parse_written(text) for label, text in advertisements.items()},
        )
    state.bid_hops, state.bid_numbers = dict(data["bid_hops"]), dict(data["bid_numbers"])
    counters = dict(data["counters"])
    state.counters = Counters(**{**counters, "cases": dict(map(tuple, counters["cases"]))})
    if state.keeping is not None and data["keeping"] is not None:
        state.keeping = _keeping(data["keeping"])
    return state


def _keeping_data(keeping: Keeping) -> dict[str, object]:
    return {
        "next_number": keeping.next_number,
        "owed": [plain_message(one) for owed in keeping.owed.values() for one in owed.values()],
        "seen": [[client, list(id_)] for client, id_ in keeping.seen],
        "replicas": [
            [
                cluster,
                [plain_message(o) for one in kept.promised.values() for o in one.values()],
                [plain_message(o) for one in kept.owed.values() for o in one.values()],
                sorted(kept.guests),
            ]
            for cluster, kept in keeping.replicas.items()
        ],
        "taken": [
            [cluster, name, [list(id_) for id_ in ids]]
            for cluster, kept in keeping.replicas.items()
            for name, ids in kept.taken.items()
        ],
    }


def _keeping(data: dict[str, Any]) -> Keeping:
    keeping = Keeping(data["next_number"])
    for one in map(read_message, data["owed"]):
        keeping.owed.setdefault(one.client, {})[one.notification.id] = one
    for client, id_ in data["seen"]:
        keeping.note(client, Id(*id_))
    for cluster, promised, owed, guests in data["replicas"]:
        kept = keeping.replicas[cluster] = Kept(guests=set(guests))
        for one in map(read_message, promised):
            kept.promised.setdefault(one.client, {})[one.label] = one
        for one in map(read_message, owed):
            kept.owed.setdefault(one.client, {})[one.notification.id] = one
    for cluster, name, ids in data.get("taken", []):
        keeping.replicas[cluster].taken[name] = dict.fromkeys(Id(*id_) for id_ in ids)
    return keeping
