"""Messages between brokers of a graph as plain data: there and back, and whatever anybody sends."""

from __future__ import annotations

from typing import Any

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.brokers.core import messages
from gossamer.protocol.brokers.core.effects import Send
from gossamer.protocol.brokers.core.errors import MalformedMessageError
from gossamer.protocol.brokers.core.identifiers import Id, neighbour
from gossamer.protocol.brokers.graph.broker import GraphBroker
from gossamer.protocol.brokers.graph.codec import BETWEEN_BROKERS, CODEC
from gossamer.protocol.brokers.graph.memory import messages as m
from gossamer.protocol.brokers.graph.memory.messages import NO_TERM, NO_VERSION, Term, Version
from gossamer.protocol.content.filters import parse
from support.tree_brokers import SETTINGS, TreeOverlay

TERM, VERSION, INTEREST = Term(3, "b1"), Version(3, "b1", 7), Id("b2", 5)
FILTERS = (parse('price > 80 and symbol startswith "A"'), parse("nokia == true"))
PLAN = m.Plan(VERSION, ("b1", "b2", "b3"), ((-1, 0, 1), (1, 2, -1)), {INTEREST: 1})
SAMPLED = m.Sampled(12, Id("b3", 8), {"price": 81.5, "nokia": True})
MESSAGES = [
    m.Record("b2", 4, {"b1": 1.0, "b3": 2.5}, {INTEREST: FILTERS}),
    m.LinksChanged("b2", 5, {}),
    m.InterestChanged("b2", 6, INTEREST, FILTERS, ()),
    m.Summary({"b1": 3, "b2": 6}, NO_TERM, 0),
    m.Directive(TERM, 2, VERSION, NO_VERSION, (PLAN,), ((VERSION, INTEREST, 0),), True, True),
    m.Report(TERM, "b2", VERSION, VERSION, NO_VERSION, 2),
    m.Samples(TERM, "b3", (SAMPLED,), 1),
    m.Document(Id("b1", 2), Id("b2", 9), VERSION, 1, {"price": 3}, frozenset({"b2", "b3"})),
    m.Document(Id("b1", 2), Id("b1", 2), VERSION, 0, {"text": "ü"}),
    m.Confirm(Id("b1", 2), 0),
    m.Return(Id("b1", 2), 0),
]
FROM_ELSEWHERE = [
    m.NeighbourUp("b1", 2.5),
    messages.NeighbourDown("b1"),
    messages.NeighbourGone("b1"),
    m.Planned(7, PLAN, 12.5, 14.0),
    messages.TimerFired("tick", 2),
    messages.Restarted(),
    messages.Attach(),
    messages.Subscribe("a", FILTERS[0]),
    messages.Publish({"price": 3}),
]


@pytest.mark.parametrize(
    "message", [*MESSAGES, *FROM_ELSEWHERE], ids=lambda one: type(one).__name__
)
def test_what_was_written_is_read_again(message: Any) -> None:
    data = cbor2.loads(cbor2.dumps(CODEC.plain_message(message)))
    assert CODEC.read_message(data) == message
    if message in MESSAGES:
        assert CODEC.read_between(data) == message


def test_every_message_has_a_shape_and_is_tried_here() -> None:
    assert {shape.kind for shape in BETWEEN_BROKERS.values()} == {type(one) for one in MESSAGES}
    tried = {type(one) for one in [*MESSAGES, *FROM_ELSEWHERE]}
    # What else clients send is tried with plain brokers.
    assert {shape.kind.__name__ for shape in CODEC.shapes.values()} - {
        kind.__name__ for kind in tried
    } == {"Detach", "Move", "Advertise", "Unadvertise", "Unsubscribe"}


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 70), 1 << 70)
    | st.floats()
    | st.text(max_size=8)
    | st.binary(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(data=PLAIN)
def test_anything_is_a_message_or_malformed(data: Any) -> None:
    try:
        CODEC.read_between(data)
    except MalformedMessageError:
        return
    raise AssertionError(f"{data!r} was taken for a message")


@given(which=st.sampled_from(MESSAGES), place=st.integers(0, 30), put=PLAIN)
def test_a_message_with_a_part_replaced_is_read_or_refused(
    which: Any, place: int, put: Any
) -> None:
    changed = _put(CODEC.plain_message(which), [place], put)
    try:
        again = CODEC.plain_message(CODEC.read_between(changed))
    except MalformedMessageError:
        return
    assert CODEC.read_between(again) is not None


@given(
    lies=st.lists(
        st.tuples(st.sampled_from(MESSAGES), st.integers(0, 30), PLAIN), min_size=1, max_size=6
    )
)
def test_a_broker_survives_a_neighbour_that_says_anything(lies: list[Any]) -> None:
    overlay = TreeOverlay([("b1", "b2"), ("b2", "b3"), ("b3", "b1")])
    overlay.subscribe("reader", "b3", "price > 0")
    overlay.come_to_rest(2)
    broker = overlay.brokers["b1"]
    for which, place, put in lies:
        try:
            message = CODEC.read_between(_put(CODEC.plain_message(which), [place], put))
        except MalformedMessageError:
            continue
        for effect in broker.handle(overlay.now, neighbour("b2"), message):
            if isinstance(effect, Send):
                CODEC.read_between(CODEC.plain_message(effect.message))
    again = GraphBroker.load(cbor2.loads(cbor2.dumps(broker.dump())), SETTINGS)
    assert again.dump() == broker.dump()


def _put(data: Any, countdown: list[int], put: Any) -> Any:
    if countdown[0] == 0:
        countdown[0] = -1
        return put
    countdown[0] -= 1
    if isinstance(data, list):
        return [_put(one, countdown, put) if countdown[0] >= 0 else one for one in data]
    return data


def broken(**changes: Any) -> list[Any]:
    fields = {
        "version": list(VERSION),
        "brokers": ["b1", "b2", "b3"],
        "trees": [[-1, 0, 1]],
        "groups": [[["b2", 5], 0]],
    }
    plan = ["plan", *(fields | changes).values()]
    return ["directive", list(TERM), 2, list(VERSION), list(NO_VERSION), [plan], [], False, False]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"trees": [[-1, 2, 1]]}, "expected a tree of 3 brokers"),
        ({"trees": [[-1, -1, 0]]}, "expected a tree of 3 brokers"),
        ({"trees": [[-1, 0]]}, "expected a tree of 3 brokers"),
        ({"trees": [[-1, 0, 3]]}, "expected a tree of 3 brokers"),
        ({"trees": []}, "expected some brokers, each once, and a tree"),
        ({"brokers": ["b1", "b1", "b3"]}, "expected some brokers, each once, and a tree"),
        ({"groups": [[["b2", 5], 1]]}, "expected numbers below 1"),
        ({"groups": [[["b2", 5], 0], [["b2", 5], 0]]}, "expected each of them once"),
    ],
)
def test_a_plan_without_trees_is_refused(changes: dict[str, Any], words: str) -> None:
    assert CODEC.read_between(broken()) is not None
    with pytest.raises(MalformedMessageError, match=words):
        CODEC.read_between(broken(**changes))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (["record", "b2", 1, [], [[["b1", 5], ["x == 1"]]]], "subscriptions at broker 'b2'"),
        (["interest changed", "b2", 1, ["b1", 5], [], []], "subscriptions at broker 'b2'"),
        (["links changed", "b2", 1, [["b1", 0]]], "a finite number above 0"),
        (["links changed", "b2", 1, [["b1", float("nan")]]], "a finite number above 0"),
        (["report", [1, "x" * 65], "b", [0, "", 0], [0, "", 0], [0, "", 0], 0], "printable"),
        (["confirm", ["b1", 3]], "expected 2 fields"),
        (["planned", 1, [], 0, 0], "expected one of record, links changed"),
    ],
)
def test_news_that_cannot_be_are_refused_in_one_sentence(data: list[Any], words: str) -> None:
    with pytest.raises(MalformedMessageError, match=words) as found:
        CODEC.read_between(data)
    assert "\n" not in str(found.value)
