"""Messages and a broker's memory as plain data and back: what hosts send, log and keep.

Made of the shapes that all kinds of brokers share (`brokers.core.shapes`). Who reads
what came from another broker gets a message or a `MalformedMessageError`, whatever was sent: no
shape holds another without a bound, trees are trees, and nobody tells of others' subscriptions.

    >>> from gossamer.protocol.brokers.core.messages import Id
    >>> from gossamer.protocol.brokers.graph.codec import CODEC
    >>> from gossamer.protocol.brokers.graph.messages import Confirm
    >>> CODEC.plain_message(Confirm(Id("B1", 3), 0))
    ['confirm', ['B1', 3], 0]
    >>> CODEC.read_between(['confirm', ['B1', 3], 0])
    Confirm(issue=Id(broker='B1', number=3), group=0)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from gossamer.protocol.brokers.core.codec import (
    COUNT,
    FILTER,
    FLAG,
    ID,
    NAME,
    VALUES,
    Codec,
    Kinds,
    Part,
    Shape,
    many,
    maybe,
    pair,
    same,
    shape,
)
from gossamer.protocol.brokers.core.messages import (
    Id,
    NeighbourDown,
    NeighbourGone,
    Restarted,
    TimerFired,
)
from gossamer.protocol.brokers.core.plain_data import (
    malformed,
    read_name,
    read_whole,
)
from gossamer.protocol.brokers.graph import messages as m
from gossamer.protocol.brokers.graph.link_state import record_of, whole_directive
from gossamer.protocol.brokers.graph.messages import (
    Directive,
    Document,
    Plan,
    Record,
    Report,
    Samples,
    Term,
    Version,
)
from gossamer.protocol.brokers.graph.settings import MAX_SAMPLES
from gossamer.protocol.brokers.graph.state import (
    Coordination,
    InFlight,
    Link,
    Parked,
    State,
)

MAX_BROKERS: Final = 10_000
"""Most brokers of an overlay, and most neighbours of one."""
MAX_TREES: Final = 1_000
"""Most trees of a plan."""
MAX_PLANS: Final = 16
"""Most versions that one directive tells of."""
MAX_INTERESTS: Final = 1_000_000
"""Most subscriptions that a plan groups, or that a broker has."""
MAX_FILTERS: Final = 100_000
"""Most filters of a subscription."""
_MOST: Final = 1e300


def _table(key: Part, value: Part, most: int, expected: str) -> Part:
    """A field that is a mapping: pairs, no key twice."""
    pairs = many(pair(key, value, expected), most)

    def read(data: object, field: str) -> dict[Any, Any]:
        found = pairs.read(data, field)
        held = dict(found)
        if len(held) < len(found):
            raise malformed(field, data, "each of them once")
        return held

    def check(held: object, field: str) -> None:
        if not isinstance(held, Mapping):
            raise malformed(field, held, expected)
        if pairs.check is not None:
            pairs.check(list(held.items()), field)

    return Part(
        lambda held: pairs.plain(held.items()), read, check if pairs.check is not None else None
    )


def _read_broker(data: object, field: str) -> str:
    """A broker's name, or none where nobody is coordinator yet."""
    return "" if data == "" and type(data) is str else read_name(data, field)


def _read_term(data: object, field: str) -> Term:
    if type(data) is not list or len(data) != 2:
        raise malformed(field, data, "a number and a broker's name")
    return Term(COUNT.read(data[0], field), _read_broker(data[1], field))


def _read_version(data: object, field: str) -> Version:
    if type(data) is not list or len(data) != 3:
        raise malformed(field, data, "two numbers and a broker's name between them")
    term, broker, number = data
    return Version(COUNT.read(term, field), _read_broker(broker, field), COUNT.read(number, field))


def _read_cost(data: object, field: str) -> float:
    if type(data) not in (int, float) or not 0 < data <= _MOST:  # type: ignore[operator]
        raise malformed(field, data, "a finite number above 0")
    return float(data)  # type: ignore[arg-type]


def _read_assigned(data: object, field: str) -> tuple[Version, Id, int]:
    if type(data) is not list or len(data) != 3:
        raise malformed(field, data, "a version, a subscription and a tree")
    version, interest, group = data
    return _read_version(version, field), ID.read(interest, field), COUNT.read(group, field)


def _read_sum(data: object, field: str) -> float:
    if type(data) not in (int, float) or not 0 <= data <= _MOST:  # type: ignore[operator]
        raise malformed(field, data, "a finite number from 0 on")
    return float(data)  # type: ignore[arg-type]


_above: Final = read_whole(-1, MAX_BROKERS)
# A document that has not set out is on no tree: -1.
_GROUP: Final = Part(same, read_whole(-1))
_TERM: Final = Part(list, _read_term)
_VERSION: Final = Part(list, _read_version)
_COST: Final = Part(same, _read_cost)
_FILTERS: Final = many(FILTER, MAX_FILTERS)
_LINKS: Final = _table(NAME, _COST, MAX_BROKERS, "a neighbour and a cost")
_INTERESTS: Final = _table(ID, _FILTERS, MAX_INTERESTS, "a subscription and its filters")
_BROKERS: Final = many(NAME, MAX_BROKERS)
_ONLY: Final = maybe(Part(sorted, lambda data, field: frozenset(_BROKERS.read(data, field))))
_ASSIGNED: Final = Part(lambda one: [list(one[0]), list(one[1]), one[2]], _read_assigned)
_SUM: Final = Part(same, _read_sum)


class _PlanShape(Shape):
    """A plan whose trees are trees of its brokers."""

    def read(self, name: str, data: list[object]) -> Plan:
        """The plan with these fields; raises `MalformedMessageError`."""
        plan: Plan = super().read(name, data)
        count = len(plan.brokers)
        if not count or len(set(plan.brokers)) < count or not plan.trees:
            raise malformed("brokers", data[1], "some brokers, each once, and a tree")
        for tree in plan.trees:
            if not _is_tree(tree, count):
                raise malformed("trees", list(tree), f"a tree of {count} brokers")
        if any(group >= len(plan.trees) for group in plan.groups.values()):
            raise malformed("groups", data[3], f"numbers below {len(plan.trees)}")
        return plan


def _is_tree(above: tuple[int, ...], count: int) -> bool:
    """Whether all brokers but one have one above them, and all lead to that one."""
    if len(above) != count or sum(parent < 0 for parent in above) != 1 or max(above) >= count:
        return False
    joined = {above.index(-1)}
    for broker in range(count):
        way: list[int] = []
        while broker not in joined:
            if len(way) > count:
                return False
            way.append(broker)
            broker = above[broker]
        joined.update(way)
    return True


class _OwnInterests(Shape):
    """LinkStateUpdate in which a broker tells of its own subscriptions only."""

    def read(self, name: str, data: list[object]) -> Any:
        """The update with these fields; raises `MalformedMessageError`."""
        update = super().read(name, data)
        told = update.interests if isinstance(update, m.Record) else [update.interest]
        if any(one.broker != update.broker for one in told):
            raise malformed("interests", data, f"subscriptions at broker {update.broker!r}")
        return update


def _as(kind: type[Shape], made: Shape) -> Shape:
    return kind(made.kind, made.parts)


_TREES: Final = many(many(Part(same, _above), MAX_BROKERS), MAX_TREES)
_GROUPS: Final = _table(ID, COUNT, MAX_INTERESTS, "a subscription and its tree")
_PLAN: Final = _as(_PlanShape, shape(Plan, _VERSION, _BROKERS, _TREES, _GROUPS))
_PLANS: Final = Kinds({"plan": _PLAN}).part
_SAMPLED: Final = Kinds({"sampled": shape(m.Sampled, COUNT, ID, VALUES)}).part

BETWEEN_BROKERS: Final[Mapping[str, Shape]] = {
    "record": _as(_OwnInterests, shape(m.Record, NAME, COUNT, _LINKS, _INTERESTS)),
    "links changed": shape(m.LinksChanged, NAME, COUNT, _LINKS),
    "interest changed": _as(
        _OwnInterests, shape(m.InterestChanged, NAME, COUNT, ID, _FILTERS, _FILTERS)
    ),
    "summary": shape(
        m.Summary, _table(NAME, COUNT, MAX_BROKERS, "a broker and a number"), _TERM, COUNT
    ),
    "directive": shape(
        m.Directive,
        _TERM,
        COUNT,
        _VERSION,
        _VERSION,
        many(_PLANS, MAX_PLANS),
        many(_ASSIGNED, MAX_INTERESTS),
        FLAG,
        FLAG,
    ),
    "report": shape(m.Report, _TERM, NAME, _VERSION, _VERSION, _VERSION, COUNT),
    "samples": shape(m.Samples, _TERM, NAME, many(_SAMPLED, MAX_SAMPLES), COUNT),
    "document": shape(m.Document, ID, ID, _VERSION, _GROUP, VALUES, _ONLY),
    "confirm": shape(m.Confirm, ID, COUNT),
    "return": shape(m.Return, ID, COUNT),
}
"""Shapes of what brokers send each other."""

CODEC: Final = Codec(
    BETWEEN_BROKERS,
    from_host={
        "neighbour up": shape(m.NeighbourUp, NAME, _COST),
        "neighbour down": shape(NeighbourDown, NAME),
        "neighbour gone": shape(NeighbourGone, NAME),
        "planned": shape(m.Planned, COUNT, _PLANS, _SUM, _SUM),
        "timer fired": shape(TimerFired, NAME, COUNT),
        "restarted": shape(Restarted),
    },
)
"""What graph brokers take."""


# A graph broker's memory as plain data, and back: link state, trees, documents in flight.


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
