"""Whatever clients and neighbours say, a broker goes on, and its dump brings back what it keeps."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

import cbor2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gossamer.protocol.brokers.core import messages as m
from gossamer.protocol.brokers.core.messages import ClientAcknowledge, Hop, Id, client, neighbour
from gossamer.protocol.brokers.graph import messages as g
from gossamer.protocol.brokers.graph.messages import NO_TERM, NO_VERSION
from gossamer.protocol.brokers.graph.settings import MAX_SAMPLES, GraphSettings
from gossamer.protocol.brokers.scot import messages as scot
from gossamer.protocol.brokers.scot.topology import ClusterBitVector
from gossamer.protocol.brokers.tree import TreeBroker
from gossamer.protocol.brokers.tree import messages as t
from gossamer.protocol.content.filters import Filter, constraint, parse
from gossamer.protocol.content.grammar import Comparison, Operator
from gossamer.protocol.content.values import Kind
from gossamer.protocol.kernel.errors import ConfigError, ContentError
from support import broker_families, filter_strategies

ODD = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
EQUAL = Operator.EQUAL
# Hypothesis writes out what it draws, and Python no more than 4,300 digits.
HUGE = 10**4200
NUMBERS: tuple[Any, ...] = (
    *(0, -1, 2**63, -(2**63), 2**64 + 1, 10**1000 - 1, 10**1000, -(10**1000), HUGE, 0.5, -0.0),
    *(math.nan, math.inf, -math.inf, 5e-324, 1.7976931348623157e308, True, False),
    *(Fraction(1, 3), Fraction(1, 10**999), Fraction(1, 10**1000), Fraction(HUGE, 3)),
    *(Decimal("1e300"), Decimal("1e999999999"), Decimal("1e-999999999"), Decimal("nan")),
)
TEXTS = (
    *("", "a", "\x00", "\x01" * 600, "\x01" * 1000, "\ud800", "x" * 4096, "x" * 4097),
    *('"' * 2100, "\U0010ffff", "\\", "\n", "`", "[a]", "$X", "e\u0301"),
)
OTHERS: tuple[Any, ...] = (
    *(None, b"", [], [1], {}, (), object(), datetime(1, 1, 1, tzinfo=UTC), datetime.max),
    *([[HUGE]], {"a": HUGE}, ...),
)
anything = st.sampled_from((*NUMBERS, *TEXTS, *OTHERS)) | st.integers() | st.text(max_size=5)
names = st.sampled_from(
    ("a", "b", "in", "present", "", " ", "`", "\ud800", "x" * 65, "x" * 5000, "ü")
)
odd_names = names | anything.filter(lambda one: getattr(type(one), "__hash__", None) is not None)
labels: st.SearchStrategy[Any] = st.sampled_from(
    ("one", "two", "", "\n", "x" * 65, "\ud800", 5, None, [], HUGE)
)
FIVE, NONE, LIST = cast(Any, ({5: 1}, None, []))
MANY = dict.fromkeys(map(str, range(257)), 1)


def made(comparisons: list[Comparison]) -> Filter | None:
    try:
        return Filter.of(comparisons)
    except (ContentError, TypeError):  # the latter for names that are no texts
        return None


LONG = [
    Filter.from_constraints({f"a{number}": constraint.PRESENT for number in range(4096)}),
    Filter.from_constraints({f"a{number}": constraint.PRESENT for number in range(4097)}),
    Filter.from_constraints({f"a{number}": constraint.PRESENT for number in range(5000)}),
    Filter.of([Comparison("s", EQUAL, "\x01" * 11_000)]),
    Filter.of([Comparison("s", EQUAL, "\x01" * 600)]),
    Filter.of([Comparison("s", Operator.NOT_EQUAL, str(n)) for n in range(300)]),
    Filter((("x", constraint.Constraint(Kind.NUMBER, (HUGE, 0), (HUGE, 1))),)),
]
BEYOND = Filter((("x", constraint.Constraint(Kind.NUMBER, (10**5000, 0), (10**5000, 1))),))
equalities = st.lists(
    st.builds(Comparison, names | st.just(5), st.just(EQUAL), anything), max_size=3
)
wanted: st.SearchStrategy[Any] = (
    st.sampled_from(LONG)
    | filter_strategies.filters(most=3)
    | equalities.map(made).filter(lambda one: one is not None)
    | st.sampled_from([None, "x > 5", 5, {}])
)
values = st.dictionaries(odd_names, anything, max_size=3) | st.sampled_from(
    [
        *({}, {"x": HUGE}, {"x": "\x01" * 4096}, dict.fromkeys(map(str, range(256)), 1)),
        *(dict.fromkeys(map(str, range(257)), 1), None, 5, [("x", 1)], "x", {"x": 1}),
    ]
)
asked = st.lists(st.tuples(labels, wanted), max_size=2).map(tuple) | st.sampled_from(
    (None, 5, "ab", ((),), (("one",),), ("ab",), tuple((str(n), parse("x > 5")) for n in range(3)))
)
ids: st.SearchStrategy[Any] = st.sampled_from(
    (Id("A", 1), Id("B", 1), Id("", -1), Id("A", 10**30), ("A",), None, [], "A")
)
from_clients = st.one_of(
    st.builds(m.Attach, asked, asked),
    st.just(m.Attach()),
    st.builds(m.Subscribe, labels, wanted),
    st.builds(m.Advertise, labels, wanted),
    st.builds(m.Unsubscribe, labels),
    st.builds(m.Unadvertise, labels),
    st.builds(m.Publish, values),
    st.builds(ClientAcknowledge, st.lists(ids, max_size=2).map(tuple)),
    st.sampled_from((m.Detach(), m.Move(), None, 5, "attach")),
)
who: st.SearchStrategy[Any] = st.sampled_from(("ann", "bob", "", "\ud800", "\n", "x" * 65, None, 5))
from_client = st.tuples(who.map(client), from_clients)
EVERYTHING = parse("present(x)")
PLAIN_ID, OTHER = Id("B", 1), Id("B", 2)
just, some = st.just, st.tuples


def tree_messages() -> st.SearchStrategy[Any]:
    """What a neighbour in an overlay without cycles may send, numbered by `play`."""
    subscription = st.builds(t.Subscription, just(OTHER), wanted)
    advertisement = st.builds(t.Advertisement, just(PLAIN_ID), wanted)
    return st.one_of(
        subscription,
        advertisement,
        st.builds(t.Publication, just(PLAIN_ID), just(PLAIN_ID), values),
        st.builds(t.Packed, some(subscription)),
        st.builds(t.Synchronise, some(advertisement), some(subscription)),
        just(t.Advertisement(PLAIN_ID, EVERYTHING)),
    )


def scot_messages() -> st.SearchStrategy[Any]:
    there = just(ClusterBitVector.of(1))
    subscription = st.builds(scot.Subscription, just(OTHER), wanted, there)
    notification = st.builds(scot.Notification, just(PLAIN_ID), values, there)
    return st.one_of(
        subscription,
        notification,
        st.builds(scot.Synchronise, some(subscription), st.booleans()),
        st.builds(scot.Numbered, st.integers(1, 9), subscription | notification),
        st.builds(scot.Promised, just("ann"), just("one"), just(OTHER), wanted),
        st.builds(scot.UnacknowledgedDelivery, just("ann"), notification, just(("one",))),
    )


def graph_messages() -> st.SearchStrategy[Any]:
    id_, number, told = just(PLAIN_ID), st.integers(1, 4), st.lists(wanted, max_size=2).map(tuple)
    interests = st.dictionaries(just(OTHER), told, max_size=1)
    sampled = some(st.builds(g.Sampled, just(1), id_, values))
    return st.one_of(
        st.builds(g.Record, just("C"), number, just({"A": 1.0}), interests),
        st.builds(g.InterestChanged, just("C"), number, just(OTHER), told, just(())),
        st.builds(g.Document, id_, id_, just(NO_VERSION), just(-1), values),
        st.builds(g.Samples, just(NO_TERM), just("C"), sampled),
    )


FROM_BROKERS = {
    "tree": tree_messages(),
    "SCOT that takes over": scot_messages(),
    "graph": graph_messages(),
}


def play(made: Any, steps: list[tuple[Hop, Any]]) -> None:
    """Let a broker hear all that; what is refused is counted, and nothing is raised."""
    number = 0
    for now, (source, message) in enumerate(steps, start=1):
        before = made.counters.refused
        if isinstance(made, TreeBroker) and source == neighbour("C"):
            number += 1
            # The first one of a session has to be what begins it.
            begins = number == 1
            message = t.Frame(1, number, t.Synchronise((), ()) if begins else message)
        effects = made.handle(now, source, message)
        refusals = [one for one in effects if type(one).__name__ == "Refuse"]
        assert len(refusals) <= 1
        assert made.counters.refused - before == len(refusals)
        for one in refusals:
            assert len(str(one.error)) < 10_000
            str(one.error).encode(errors="backslashreplace")


@pytest.mark.parametrize("family", FROM_BROKERS)
@given(data=st.data())
@ODD
def test_what_is_handled_is_dumped_and_loaded_again(family: str, data: st.DataObject) -> None:
    one = broker_families.FAMILIES[family]
    from_neighbour = st.tuples(st.just(neighbour("C")), FROM_BROKERS[family])
    steps = data.draw(st.lists(from_client | from_neighbour, max_size=8))
    attached = [(client("ann"), m.Attach()), (client("ann"), m.Advertise("all", EVERYTHING))]
    made = one.broker()
    play(made, attached + steps)
    dumped = made.dump()
    assert one.load(cbor2.loads(cbor2.dumps(dumped))).dump() == dumped


@pytest.mark.parametrize("family", FROM_BROKERS)
@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (m.Publish({"x": 10**5000}), "attribute 'x' takes a number, string, date or boolean, not"),
        (m.Publish({"x": 10**1000}), "not the integer 1000"),
        (m.Publish({"x": math.nan}), "not the number nan"),
        (m.Publish({"x": "\ud800"}), "not the string"),
        (m.Publish({"x": "x" * 4097}), "has 4097 characters, expected at most 4096"),
        (m.Publish(FIVE), "publish: values is 5, expected the name of an attribute"),
        (m.Publish({"\ud800": 1}), "expected the name of an attribute"),
        (m.Publish(MANY), "257 attributes, expected at most 256"),
        (m.Subscribe("s", LONG[3]), "the filter has 66007 characters when written out"),
        (m.Subscribe("s", LONG[1]), "the filter has 4097 comparisons when written out"),
        (m.Subscribe("s", BEYOND), "not the integer of more than 1000 digits"),
        (m.Subscribe("s", NONE), "subscribe: filter is None, expected a filter"),
        (m.Subscribe(LIST, EVERYTHING), "subscribe: label is a list of 0, expected 1 to 64"),
        (m.Advertise("a", LONG[3]), "the filter has 66007 characters when written out"),
    ],
    ids=lambda one: one[:40] if isinstance(one, str) else type(one).__name__,
)
def test_what_could_not_be_read_again_is_refused(family: str, message: Any, sentence: str) -> None:
    made = broker_families.FAMILIES[family].broker()
    made.handle(0, client("ann"), m.Attach())
    before = made.dump()
    (refusal,) = made.handle(1, client("ann"), message)
    assert sentence in str(refusal.error)
    after = made.dump()
    assert after["counters"].pop("refused") == before["counters"].pop("refused") + 1
    assert after == before


@pytest.mark.parametrize("family", FROM_BROKERS)
def test_clients_with_odd_names_are_refused(family: str) -> None:
    made = broker_families.FAMILIES[family].broker()
    for name in ("", "\n", "\ud800", "x" * 65):
        (refusal,) = made.handle(0, client(name), m.Attach())
        assert "attach" in str(refusal.error) or "client is" in str(refusal.error)
    assert made.counters.refused == 4
    assert not made.clients()


@pytest.mark.parametrize("name", ["kept", "samples"])
def test_a_graph_keeps_no_more_samples_than_a_message_tells(name: str) -> None:
    GraphSettings(**{name: MAX_SAMPLES})  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=f"{name} is 10001, expected at most 10000"):
        GraphSettings(**{name: MAX_SAMPLES + 1})  # type: ignore[arg-type]


def test_a_graph_takes_as_many_filters_as_a_message_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gossamer.protocol.brokers.graph.broker.MAX_FILTERS", 2)
    broker = broker_families.FAMILIES["graph"].broker()
    wanted = [(str(number), parse(f"a == {number}")) for number in range(3)]

    def refused(name: str, message: Any) -> bool:
        effects = broker.handle(0, client(name), message)
        return any("more than 2 different filters" in str(one) for one in effects)

    assert refused("a", m.Attach(tuple(wanted), ()))
    assert not refused("a", m.Attach(tuple(wanted[:2]), ()))
    assert not refused("a", m.Subscribe("again", wanted[0][1]))
    assert refused("a", m.Subscribe(*wanted[2]))
    assert broker_families.FAMILIES["graph"].load(broker.dump()).dump() == broker.dump()
