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

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from gossamer.protocol.brokers.core import codec as c
from gossamer.protocol.brokers.core import messages as core
from gossamer.protocol.brokers.core.codec import Codec, Part, Shape
from gossamer.protocol.brokers.core.messages import Id
from gossamer.protocol.brokers.core.plain_data import malformed, read_name, read_whole
from gossamer.protocol.brokers.graph import messages as m
from gossamer.protocol.brokers.graph.link_state import record_of, whole_directive
from gossamer.protocol.brokers.graph.messages import Term, Version
from gossamer.protocol.brokers.graph.settings import MAX_SAMPLES
from gossamer.protocol.brokers.graph.state import Coordination, InFlight, Link, Parked, State

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
    pairs = c.many(c.row(expected, key, value), most)

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


def _finite(expected: str, fits: Callable[[float], bool]) -> Part:
    """A finite number, as a float."""

    def read(data: object, field: str) -> float:
        if not (type(data) is int or type(data) is float) or not fits(data):
            raise malformed(field, data, expected)
        return float(data)

    return Part(c.same, read)


_above: Final = read_whole(-1, MAX_BROKERS)
# A document that has not set out is on no tree: -1.
_GROUP: Final = Part(c.same, read_whole(-1))
_OFFICE: Final = Part(c.same, _read_broker)
_TERM: Final = c.row("a number and a broker's name", c.COUNT, _OFFICE, kind=Term)
_VERSION: Final = c.row(
    "two numbers and a broker's name between them", c.COUNT, _OFFICE, c.COUNT, kind=Version
)
_COST: Final = _finite("a finite number above 0", lambda number: 0 < number <= _MOST)
_FILTERS: Final = c.many(c.FILTER, MAX_FILTERS)
_LINKS: Final = _table(c.NAME, _COST, MAX_BROKERS, "a neighbour and a cost")
_INTERESTS: Final = _table(c.ID, _FILTERS, MAX_INTERESTS, "a subscription and its filters")
_BROKERS: Final = c.many(c.NAME, MAX_BROKERS)
_ONLY: Final = c.maybe(Part(sorted, lambda data, field: frozenset(_BROKERS.read(data, field))))
_ASSIGNED: Final = c.row("a version, a subscription and a tree", _VERSION, c.ID, c.COUNT)
_SUM: Final = _finite("a finite number from 0 on", lambda number: 0 <= number <= _MOST)


class _PlanShape(Shape):
    """A plan whose trees are trees of its brokers."""

    def read(self, name: str, data: list[object]) -> m.Plan:
        """The plan with these fields; raises `MalformedMessageError`."""
        plan: m.Plan = super().read(name, data)
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


_TREES: Final = c.many(c.many(Part(c.same, _above), MAX_BROKERS), MAX_TREES)
_GROUPS: Final = _table(c.ID, c.COUNT, MAX_INTERESTS, "a subscription and its tree")
_PLAN: Final = _as(_PlanShape, c.shape(m.Plan, _VERSION, _BROKERS, _TREES, _GROUPS))
_PLANS: Final = c.Kinds({"plan": _PLAN}).part
_SAMPLED: Final = c.Kinds({"sampled": c.shape(m.Sampled, c.COUNT, c.ID, c.VALUES)}).part

BETWEEN_BROKERS: Final[Mapping[str, Shape]] = {
    "record": _as(_OwnInterests, c.shape(m.Record, c.NAME, c.COUNT, _LINKS, _INTERESTS)),
    "links changed": c.shape(m.LinksChanged, c.NAME, c.COUNT, _LINKS),
    "interest changed": _as(
        _OwnInterests, c.shape(m.InterestChanged, c.NAME, c.COUNT, c.ID, _FILTERS, _FILTERS)
    ),
    "summary": c.shape(
        m.Summary, _table(c.NAME, c.COUNT, MAX_BROKERS, "a broker and a number"), _TERM, c.COUNT
    ),
    "directive": c.shape(
        m.Directive,
        _TERM,
        c.COUNT,
        _VERSION,
        _VERSION,
        c.many(_PLANS, MAX_PLANS),
        c.many(_ASSIGNED, MAX_INTERESTS),
        c.FLAG,
        c.FLAG,
    ),
    "report": c.shape(m.Report, _TERM, c.NAME, _VERSION, _VERSION, _VERSION, c.COUNT),
    "samples": c.shape(m.Samples, _TERM, c.NAME, c.many(_SAMPLED, MAX_SAMPLES), c.COUNT),
    "document": c.shape(m.Document, c.ID, c.ID, _VERSION, _GROUP, c.VALUES, _ONLY),
    "confirm": c.shape(m.Confirm, c.ID, c.COUNT),
    "return": c.shape(m.Return, c.ID, c.COUNT),
}
"""Shapes of what brokers send each other."""

CODEC: Final = Codec(
    BETWEEN_BROKERS,
    from_host={
        "neighbour up": c.shape(m.NeighbourUp, c.NAME, _COST),
        "neighbour down": c.shape(core.NeighbourDown, c.NAME),
        "neighbour gone": c.shape(core.NeighbourGone, c.NAME),
        "planned": c.shape(m.Planned, c.COUNT, _PLANS, _SUM, _SUM),
        "timer fired": c.shape(core.TimerFired, c.NAME, c.COUNT),
        "restarted": c.shape(core.Restarted),
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
            [CODEC.plain_message(one.document), one.hop, _ONLY.plain(one.targets)]
            for one in state.parked
        ],
        "delivered": [[list(id_), sorted(names)] for id_, names in state.delivered.items()],
        "samples": CODEC.plain_message(m.Samples(state.term, state.name, tuple(state.samples))),
        "samples_sent": state.samples_sent,
        "coordination": None
        if state.coordination is None
        else _coordination_data(state, state.coordination),
    }


def load(state: State, data: Mapping[str, Any]) -> None:
    """Take up what `dump` made plain data of, in a state that has clients and nothing else."""
    for plain in data["records"]:
        record = _read(m.Record, plain)
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
        state.parked.append(Parked(_read(m.Document, plain), hop, _ONLY.read(targets, "targets")))
    for id_, names in data["delivered"]:
        state.delivered[Id(*id_)] = set(names)
    state.samples.extend(_read(m.Samples, data["samples"]).documents)
    state.samples_sent = data["samples_sent"]
    if data["coordination"] is not None:
        state.coordination = _coordination(state.term, data["coordination"])


def _load_directive(state: State, data: Mapping[str, Any]) -> None:
    directive = _read(m.Directive, data["directive"])
    state.term, state.number = directive.term, directive.number
    for plan in directive.plans:
        state.versions.hold(plan)
    state.versions.using, state.versions.oldest = directive.using, directive.oldest
    if data["reported"] is not None:
        state.reported = _read(m.Report, data["reported"])


def _in_flight_data(one: InFlight) -> list[object]:
    pending = [[name, sorted(targets)] for name, targets in one.pending.items()]
    return [CODEC.plain_message(one.document), one.source, pending]


def _in_flight(data: list[Any]) -> InFlight:
    document, source, pending = data
    held = {name: frozenset(targets) for name, targets in pending}
    return InFlight(_read(m.Document, document), source, held)


def _read(kind: type[T], data: object) -> T:
    """A message of a class; raises `TypeError` for another, and as the codec does."""
    found = CODEC.read_message(data)
    if not isinstance(found, kind):
        raise TypeError(f"a {type(found).__name__}, expected a {kind.__name__}")
    return found


def _coordination_data(state: State, coordination: Coordination) -> dict[str, object]:
    return {
        "phase": coordination.phase,
        "version": list(coordination.version),
        "question": coordination.question,
        "forced": coordination.forced,
        "planned_at": coordination.planned_at,
        "reports": [CODEC.plain_message(one) for one in coordination.reports.values()],
        "samples": CODEC.plain_message(
            m.Samples(coordination.term, state.name, tuple(coordination.samples.values()))
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
        report = _read(m.Report, plain)
        coordination.reports[report.broker] = report
    for one in _read(m.Samples, data["samples"]).documents:
        coordination.samples[one.id] = one
    return coordination
