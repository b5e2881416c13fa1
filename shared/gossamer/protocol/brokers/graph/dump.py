"""A graph broker's memory as plain data, and back: link state, trees, documents in flight."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from gossamer.protocol.brokers.core.identifiers import Id
from gossamer.protocol.brokers.graph.codec import CODEC
from gossamer.protocol.brokers.graph.memory.messages import (
    Directive,
    Document,
    Record,
    Report,
    Samples,
    Term,
    Version,
)
from gossamer.protocol.brokers.graph.memory.state import (
    Coordination,
    InFlight,
    Link,
    Parked,
    State,
)
from gossamer.protocol.brokers.graph.routing.directives import whole_directive
from gossamer.protocol.brokers.graph.routing.link_state import record_of

T = TypeVar("T")


def dump(state: State) -> dict[str, object]:
    """What a graph broker remembers besides what all brokers do, as plain data."""
    topology = state.topology
    return {
        "records": [CODEC.plain_message(record_of(state, name)) for name in topology.numbers],
        "lost": dict(topology.lost),
        "directive": CODEC.plain_message(whole_directive(state)),
        "reported": None if state.reported is None else CODEC.plain_message(state.reported),
        "links": [[one.name, one.cost, one.up, one.ready] for one in state.links.values()],
        "in_flight": [_in_flight_data(one) for one in state.in_flight.values()],
        "parked": [
            [CODEC.plain_message(one.document), one.hop, _plain_targets(one.targets)]
            for one in state.parked
        ],
        "delivered": [[list(id_), sorted(names)] for id_, names in state.delivered.items()],
        "samples": CODEC.plain_message(Samples(state.term, state.name, tuple(state.samples))),
        "samples_sent": state.samples_sent,
        "coordination": None
        if state.coordination is None
        else _coordination_data(state, state.coordination),
    }


def load(state: State, data: Mapping[str, Any]) -> None:
    """Take up what `dump` made plain data of, in a state that has clients and nothing else."""
    for plain in data["records"]:
        record = _read(Record, plain)
        state.topology.numbers[record.broker] = record.number
        state.topology.set_links(record.broker, record.links, 0)
        state.interests.replace(record.broker, record.interests)
    state.update_number = state.topology.numbers[state.name]
    state.topology.lost = dict(data["lost"])
    _load_directive(state, data)
    state.links = {name: Link(name, *rest) for name, *rest in data["links"]}
    state.hosted = {session.interest: session for session in state.clients.values()}
    for plain in data["in_flight"]:
        one = _in_flight(plain)
        if (one.document.issue, one.document.group) in state.in_flight:
            raise ValueError(f"document {one.document.issue} is in flight twice on one tree")
        state.take_in_flight(one)
    for plain, hop, targets in data["parked"]:
        state.parked.append(Parked(_read(Document, plain), hop, _targets(targets)))
    for id_, names in data["delivered"]:
        state.delivered[Id(*id_)] = set(names)
    state.samples.extend(_read(Samples, data["samples"]).documents)
    state.samples_sent = data["samples_sent"]
    if data["coordination"] is not None:
        state.coordination = _coordination(state.term, data["coordination"])


def _load_directive(state: State, data: Mapping[str, Any]) -> None:
    directive = _read(Directive, data["directive"])
    state.term, state.number = directive.term, directive.number
    for plan in directive.plans:
        state.versions.hold(plan)
    state.versions.using, state.versions.oldest = directive.using, directive.oldest
    if data["reported"] is not None:
        state.reported = _read(Report, data["reported"])


def _in_flight_data(one: InFlight) -> list[object]:
    pending = [[name, sorted(targets)] for name, targets in one.pending.items()]
    return [CODEC.plain_message(one.document), one.source, pending]


def _in_flight(data: list[Any]) -> InFlight:
    document, source, pending = data
    held = {name: frozenset(targets) for name, targets in pending}
    return InFlight(_read(Document, document), source, held)


def _read(kind: type[T], data: object) -> T:
    """A message of a class; raises `TypeError` for another, and as the codec does."""
    found = CODEC.read_message(data)
    if not isinstance(found, kind):
        raise TypeError(f"a {type(found).__name__}, expected a {kind.__name__}")
    return found


def _plain_targets(targets: frozenset[str] | None) -> list[str] | None:
    return None if targets is None else sorted(targets)


def _targets(data: list[str] | None) -> frozenset[str] | None:
    return None if data is None else frozenset(data)


def _coordination_data(state: State, coordination: Coordination) -> dict[str, object]:
    return {
        "phase": coordination.phase,
        "version": list(coordination.version),
        "question": coordination.question,
        "forced": coordination.forced,
        "planned_at": coordination.planned_at,
        "reports": [CODEC.plain_message(one) for one in coordination.reports.values()],
        "samples": CODEC.plain_message(
            Samples(coordination.term, state.name, tuple(coordination.samples.values()))
        ),
    }


def _coordination(term: Term, data: dict[str, Any]) -> Coordination:
    coordination = Coordination(
        term=term,
        phase=data["phase"],
        version=Version(*data["version"]),
        question=data["question"],
        forced=data["forced"],
        planned_at=data["planned_at"],
    )
    for plain in data["reports"]:
        report = _read(Report, plain)
        coordination.reports[report.broker] = report
    for one in _read(Samples, data["samples"]).documents:
        coordination.samples[one.id] = one
    return coordination
