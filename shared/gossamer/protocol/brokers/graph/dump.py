"""A broker's memory as plain data (see `codec`), and back.

What follows from the rest is worked out again. A loaded broker goes on exactly as the one that was
dumped.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from attrs import asdict

from gossamer.protocol.brokers.core.errors import DumpError, MalformedMessageError
from gossamer.protocol.brokers.core.identifiers import Id
from gossamer.protocol.brokers.core.index import NewIndex
from gossamer.protocol.brokers.core.timers import Timer
from gossamer.protocol.brokers.graph.codec import plain_message, read_message
from gossamer.protocol.brokers.graph.memory.counters import Counters
from gossamer.protocol.brokers.graph.memory.interests import InterestTable
from gossamer.protocol.brokers.graph.memory.messages import (
    Directive,
    Document,
    Record,
    Report,
    Samples,
    Term,
    Version,
)
from gossamer.protocol.brokers.graph.memory.settings import GraphSettings
from gossamer.protocol.brokers.graph.memory.state import (
    Coordination,
    InFlight,
    Link,
    Parked,
    Session,
    State,
)
from gossamer.protocol.brokers.graph.routing.directives import whole_directive
from gossamer.protocol.brokers.graph.routing.link_state import record_of
from gossamer.protocol.content import filters
from gossamer.protocol.content.filters import Filter
from gossamer.protocol.kernel.errors import LocalProtocolError

_FORMAT: Final = 1


def dump(state: State) -> dict[str, object]:
    """Everything that a broker remembers, as plain data."""
    topology = state.topology
    return {
        "format": _FORMAT,
        "name": state.name,
        "next_number": state.next_number,
        "records": [plain_message(record_of(state, name)) for name in topology.numbers],
        "lost": dict(topology.lost),
        "directive": plain_message(whole_directive(state)),
        "reported": None if state.reported is None else plain_message(state.reported),
        "links": [[one.name, one.cost, one.up, one.ready] for one in state.links.values()],
        "clients": [_session_data(one) for one in state.clients.values()],
        "timers": [[name, timer.token, timer.at] for name, timer in state.timers.items()],
        "in_flight": [_in_flight_data(one) for one in state.in_flight.values()],
        "parked": [
            [plain_message(one.document), one.hop, _plain_targets(one.targets)]
            for one in state.parked
        ],
        "delivered": [[list(id_), sorted(names)] for id_, names in state.delivered.items()],
        "samples": plain_message(Samples(state.term, state.name, tuple(state.samples))),
        "samples_sent": state.samples_sent,
        "coordination": None
        if state.coordination is None
        else _coordination_data(state, state.coordination),
        "counters": asdict(state.counters),
    }


def load(data: dict[str, Any], settings: GraphSettings, new_index: NewIndex) -> State:
    """The state that was dumped; raises `DumpError` for what is no dump."""
    try:
        if data["format"] != _FORMAT:
            raise DumpError(f"its format is {data['format']!r}, expected {_FORMAT}")
        return _load(data, settings, new_index)
    except (
        *(AssertionError, KeyError, TypeError, ValueError),
        *(LocalProtocolError, MalformedMessageError),
    ) as error:
        if isinstance(error, DumpError):
            raise
        raise DumpError(f"{type(error).__name__}: {error}") from error


def _load(data: dict[str, Any], settings: GraphSettings, new_index: NewIndex) -> State:
    state = State.empty(data["name"], settings, InterestTable(new_index), 0)
    state.next_number = data["next_number"]
    for plain in data["records"]:
        record = read_message(plain)
        assert isinstance(record, Record)
        state.topology.numbers[record.broker] = record.number
        state.topology.set_links(record.broker, record.links, 0)
        state.interests.replace(record.broker, record.interests)
    state.news_number = state.topology.numbers[state.name]
    state.topology.lost = dict(data["lost"])
    _load_directive(state, data)
    state.links = {name: Link(name, *rest) for name, *rest in data["links"]}
    for plain in data["clients"]:
        session = _session(plain)
        state.clients[session.name] = state.hosted[session.interest] = session
    state.timers = {name: Timer(token, at) for name, token, at in data["timers"]}
    for plain in data["in_flight"]:
        state.take_in_flight(_in_flight(plain))
    for plain, hop, targets in data["parked"]:
        state.parked.append(Parked(_document(plain), hop, _targets(targets)))
    for id_, names in data["delivered"]:
        state.delivered[Id(*id_)] = set(names)
    state.samples.extend(_samples(data["samples"]))
    state.samples_sent = data["samples_sent"]
    if data["coordination"] is not None:
        state.coordination = _coordination(state.term, data["coordination"])
    state.counters = Counters(**data["counters"])
    assert state.under_way == Counter(
        in_flight.document.version for in_flight in state.in_flight.values()
    )
    return state


def _load_directive(state: State, data: dict[str, Any]) -> None:
    directive = read_message(data["directive"])
    assert isinstance(directive, Directive)
    state.term, state.number = directive.term, directive.number
    for plan in directive.plans:
        state.versions.hold(plan)
    state.versions.using, state.versions.oldest = directive.using, directive.oldest
    if data["reported"] is not None:
        reported = read_message(data["reported"])
        assert isinstance(reported, Report)
        state.reported = reported


def _session_data(one: Session) -> list[object]:
    return [one.name, list(one.interest), _labels(one.subscriptions), _labels(one.advertisements)]


def _session(data: list[Any]) -> Session:
    name, interest, subscriptions, advertisements = data
    return Session(name, Id(*interest), _filters(subscriptions), _filters(advertisements))


def _labels(held: dict[str, Filter]) -> dict[str, str]:
    return {label: filters.to_text(one) for label, one in held.items()}


def _filters(held: dict[str, str]) -> dict[str, Filter]:
    return {label: filters.parse_written(text) for label, text in held.items()}


def _in_flight_data(one: InFlight) -> list[object]:
    pending = [[name, sorted(targets)] for name, targets in one.pending.items()]
    return [plain_message(one.document), one.source, pending]


def _in_flight(data: list[Any]) -> InFlight:
    document, source, pending = data
    held = {name: frozenset(targets) for name, targets in pending}
    return InFlight(_document(document), source, held)


def _document(data: object) -> Document:
    found = read_message(data)
    assert isinstance(found, Document)
    return found


def _samples(data: object) -> tuple[Any, ...]:
    found = read_message(data)
    assert isinstance(found, Samples)
    return found.documents


def _plain_targets(targets: frozenset[str] | None) -> list[str] | None:
    return None if targets is None else sorted(targets)


def _targets(data: list[str] | None) -> frozenset[str] | None:
    return None if data is None else frozenset(data)


def _coordination_data(state: State, coordination: Coordination) -> dict[str, object]:
    return {
        "number": coordination.number,
        "phase": coordination.phase,
        "version": list(coordination.version),
        "question": coordination.question,
        "forced": coordination.forced,
        "planned_at": coordination.planned_at,
        "reports": [plain_message(one) for one in coordination.reports.values()],
        "samples": plain_message(
            Samples(coordination.term, state.name, tuple(coordination.samples.values()))
        ),
    }


def _coordination(term: Term, data: dict[str, Any]) -> Coordination:
    coordination = Coordination(
        term=term,
        number=data["number"],
        phase=data["phase"],
        version=Version(*data["version"]),
        question=data["question"],
        forced=data["forced"],
        planned_at=data["planned_at"],
    )
    for plain in data["reports"]:
        report = read_message(plain)
        assert isinstance(report, Report)
        coordination.reports[report.broker] = report
    for one in _samples(data["samples"]):
        coordination.samples[one.id] = one
    return coordination
