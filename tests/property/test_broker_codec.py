"""Messages of brokers as plain data: there and back, and whatever anybody sends."""

from __future__ import annotations

import json
import random
from typing import Any

import cbor2
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.brokers.core import messages as m
from gossamer.protocol.brokers.core.codec import Codec
from gossamer.protocol.brokers.core.effects import Send
from gossamer.protocol.brokers.core.messages import Id, MalformedMessageError, client, neighbour
from gossamer.protocol.brokers.core.plain_data import plain_filter, plain_values
from gossamer.protocol.brokers.graph import messages as g
from gossamer.protocol.brokers.graph.broker import GraphBroker
from gossamer.protocol.brokers.graph.codec import BETWEEN_BROKERS
from gossamer.protocol.brokers.graph.codec import CODEC as GRAPH
from gossamer.protocol.brokers.graph.messages import NO_TERM, NO_VERSION, Term, Version
from gossamer.protocol.brokers.scot.codec import CODEC as SCOT
from gossamer.protocol.brokers.tree import TreeBroker, TreeSettings
from gossamer.protocol.brokers.tree import messages as t
from gossamer.protocol.brokers.tree.codec import CODEC as TREE
from gossamer.protocol.brokers.tree.codec import MAX_HOPS
from gossamer.protocol.brokers.tree.messages import Frame, Publication
from gossamer.protocol.content import filters, grammar, limits
from gossamer.protocol.content.filters import Filter, parse
from gossamer.protocol.kernel import errors
from property import test_scot_codec as scot
from support import draws, tree_brokers
from support.broker_messages import between_brokers, frames, messages, spoilt
from support.plain_index import PlainIndex

TERM, VERSION, INTEREST = Term(3, "b1"), Version(3, "b1", 7), Id("b2", 5)
FILTERS = (parse('price > 80 and symbol startswith "A"'), parse("nokia == true"))
PLAN = g.Plan(VERSION, ("b1", "b2", "b3"), ((-1, 0, 1), (1, 2, -1)), {INTEREST: 1})
SAMPLED = g.Sampled(12, Id("b3", 8), {"price": 81.5, "nokia": True})
MESSAGES = [
    g.Record("b2", 4, {"b1": 1.0, "b3": 2.5}, {INTEREST: FILTERS}),
    g.LinksChanged("b2", 5, {}),
    g.InterestChanged("b2", 6, INTEREST, FILTERS, ()),
    g.Summary({"b1": 3, "b2": 6}, NO_TERM, 0),
    g.Directive(TERM, 2, VERSION, NO_VERSION, (PLAN,), ((VERSION, INTEREST, 0),), True, True),
    g.Report(TERM, "b2", VERSION, VERSION, NO_VERSION, 2),
    g.Samples(TERM, "b3", (SAMPLED,), 1),
    g.Document(Id("b1", 2), Id("b2", 9), VERSION, 1, {"price": 3}, frozenset({"b2", "b3"})),
    g.Document(Id("b1", 2), Id("b1", 2), VERSION, 0, {"text": "ü"}),
    g.Confirm(Id("b1", 2), 0),
    g.Return(Id("b1", 2), 0),
]
FROM_ELSEWHERE = [
    g.NeighbourUp("b1", 2.5),
    m.NeighbourDown("b1"),
    m.NeighbourGone("b1"),
    g.Planned(7, PLAN, 12.5, 14.0),
    m.TimerFired("tick", 2),
    m.Restarted(),
    m.Attach(),
    m.Subscribe("a", FILTERS[0]),
    m.Publish({"price": 3}),
]
CODECS: dict[str, tuple[Codec, st.SearchStrategy[Any], st.SearchStrategy[Any]]] = {
    "tree": (TREE, messages, frames),
    "SCOT": (SCOT, scot.messages, scot.between_brokers),
    "graph": (GRAPH, st.sampled_from([*MESSAGES, *FROM_ELSEWHERE]), st.sampled_from(MESSAGES)),
}
NAMES = ("A", "B", "C")
# Few identifiers, so that frames are about what there is.
few_ids = st.builds(Id, st.sampled_from(NAMES), st.integers(0, 6))


@pytest.mark.parametrize("family", CODECS)
@given(data=st.data())
def test_a_message_is_the_same_after_it_was_plain_data(family: str, data: st.DataObject) -> None:
    codec, anything, between = CODECS[family]
    message = data.draw(anything)
    plain = codec.plain_message(message)
    for written in (plain, cbor2.loads(cbor2.dumps(plain)), json.loads(json.dumps(plain))):
        assert codec.read_message(written) == message
    message = data.draw(between)
    assert codec.read_between(codec.plain_between(message)) == message


@pytest.mark.parametrize("family", CODECS)
@given(data=st.data(), seed=st.integers(0, 1 << 32))
def test_spoilt_messages_are_others_or_refused(family: str, data: st.DataObject, seed: int) -> None:
    codec, _, between = CODECS[family]
    try:
        found = codec.read_between(
            spoilt(random.Random(seed), codec.plain_between(data.draw(between)))
        )
    except MalformedMessageError:
        return
    assert codec.read_between(codec.plain_between(found)) == found


def test_every_message_has_a_shape_and_is_tried_here() -> None:
    assert {shape.kind for shape in BETWEEN_BROKERS.values()} == {type(one) for one in MESSAGES}
    for one in [*MESSAGES, *FROM_ELSEWHERE]:
        assert GRAPH.read_message(GRAPH.plain_message(one)) == one
    tried = {type(one) for one in [*MESSAGES, *FROM_ELSEWHERE]}
    # What else clients send is tried with plain brokers.
    assert {shape.kind.__name__ for shape in GRAPH.shapes.values()} - {
        kind.__name__ for kind in tried
    } == {"Detach", "Move", "Advertise", "Unadvertise", "Unsubscribe"}


def test_what_nobody_would_read_is_not_sent() -> None:
    with pytest.raises(errors.ContentError, match="5000 characters, expected at most 4096"):
        plain_values({"a": "x" * 5000})
    with pytest.raises(errors.ContentError, match="backquotes"):
        plain_values({"`": 1})
    with pytest.raises(errors.ContentError, match="has the integer 10000"):
        plain_values({"a": 10**1000 + 1})
    with pytest.raises(errors.ContentError, match="4097 attributes"):
        plain_values(dict.fromkeys(map(str, range(4097)), 1))
    long = Filter.of([grammar.Comparison("a", grammar.Operator.EQUAL, "\x01" * 11_000)])
    with pytest.raises(errors.ContentError, match="characters when written out"):
        plain_filter(long)


def test_values_of_every_size_survive() -> None:
    whole = {"a": 1 << 70, "b": -(1 << 63), "c": 10**300, "d": 1e308, "e": "x" * limits.MAX_STRING}
    message = Publication(Id("B", 1), Id("B", 2), filters.exact_publication(whole))
    data = TREE.plain_between(Frame(1, 1, message))
    assert TREE.read_between(cbor2.loads(cbor2.dumps(data))).message == message
    # A publication from very far can be passed on.
    most = (1 << 63) - 1
    data = [1, 2, "publication", ["B", 1], ["B", 2], {}, most, most]
    far = TREE.read_between(data).message
    assert isinstance(far, Publication)
    assert (far.distance, far.count) == (MAX_HOPS, MAX_HOPS)


# Frames that a neighbour makes up.


def about_few(message: t.BetweenBrokers, draw: st.DataObject) -> t.BetweenBrokers:
    if isinstance(message, t.Packed):
        return t.Packed(tuple(about_few(one, draw) for one in message.messages))  # type: ignore[misc]
    if isinstance(message, t.Synchronise):
        return t.Synchronise(
            tuple(about_few(one, draw) for one in message.advertisements),  # type: ignore[misc]
            tuple(about_few(one, draw) for one in message.subscriptions),  # type: ignore[misc]
        )
    if isinstance(message, t.Publication):
        return evolve(message, id=draw.draw(few_ids), advertisement=draw.draw(few_ids))
    if isinstance(message, t.Unsubscription) and message.critical is not None:
        critical = tuple(one._replace(advertisement=draw.draw(few_ids)) for one in message.critical)
        return evolve(message, id=draw.draw(few_ids), critical=critical)
    if isinstance(message, t.Advertisement | t.Unadvertisement | t.Subscription | t.Unsubscription):
        return evolve(message, id=draw.draw(few_ids))
    return message


@pytest.mark.parametrize("covering", ["off", "packed", "selective", "incremental"])
@draws.one_in(2)
@given(data=st.data())
def test_made_up_frames_neither_stop_a_broker_nor_go_on(covering: str, data: st.DataObject) -> None:
    made = TreeSettings(covering=covering, retained_publications=5, congested_queue=3)
    broker = TreeBroker("A", made, new_index=PlainIndex)
    broker.handle(0, None, m.NeighbourUp("B"))
    broker.handle(0, None, m.NeighbourUp("C"))
    broker.handle(0, client("ada"), m.Attach())
    broker.handle(0, client("ada"), m.Subscribe("all", filters.parse("present(n)")))
    broker.handle(0, client("ada"), m.Advertise("all", filters.parse("n >= 0 and present(s)")))
    numbers = dict.fromkeys(("B", "C"), 0)
    for step in range(data.draw(st.integers(1, 12))):
        name = data.draw(st.sampled_from(("B", "C")))
        numbers[name] += data.draw(st.integers(0, 2))
        message = about_few(data.draw(between_brokers), data)
        frame = t.Frame(data.draw(st.sampled_from((0, 0, 0, 1))), numbers[name], message)
        for effect in broker.handle(step, neighbour(name), frame):
            if isinstance(effect, Send):
                assert TREE.read_between(TREE.plain_between(effect.message)) == effect.message
    assert TreeBroker.load(broker.dump(), made, new_index=PlainIndex).dump() == broker.dump()


@given(st.lists(st.tuples(st.sampled_from(MESSAGES), st.integers()), min_size=1, max_size=6))
def test_a_broker_survives_a_neighbour_that_says_anything(lies: list[Any]) -> None:
    overlay = tree_brokers.TreeOverlay([("b1", "b2"), ("b2", "b3"), ("b3", "b1")])
    overlay.subscribe("reader", "b3", "price > 0")
    overlay.come_to_rest(2)
    broker = overlay.brokers["b1"]
    for which, seed in lies:
        try:
            message = GRAPH.read_between(spoilt(random.Random(seed), GRAPH.plain_message(which)))
        except MalformedMessageError:
            continue
        for effect in broker.handle(overlay.now, neighbour("b2"), message):
            if isinstance(effect, Send):
                GRAPH.read_between(GRAPH.plain_message(effect.message))
    again = GraphBroker.load(cbor2.loads(cbor2.dumps(broker.dump())), tree_brokers.SETTINGS)
    assert again.dump() == broker.dump()


def directive(**changes: Any) -> list[Any]:
    """One with a plan that is right but for what changes."""
    fields = {
        "version": list(VERSION),
        "brokers": ["b1", "b2", "b3"],
        "trees": [[-1, 0, 1]],
        "groups": [[["b2", 5], 0]],
    }
    plan = ["plan", *(fields | changes).values()]
    return ["directive", list(TERM), 2, list(VERSION), list(NO_VERSION), [plan], [], False, False]


ID = ["B", 1]
EMPTY = ["notification", ID, {}, 0]
REFUSED: dict[str, list[tuple[Any, str]]] = {
    "tree": [
        (7, "frame: content is 7, expected a session, a number and a message"),
        ([1, 2], "frame: content is a list of 2, expected a session, a number and a message"),
        ([-1, 2, "packed", []], "frame: session is -1, expected a whole number from 0 to"),
        ([1, 2, "detach"], "frame: message is 'detach', expected one of subscription, unsub"),
        ([1, 2, "frame", 1, 2, ["move"]], "frame: message is 'frame', expected one of"),
        ([1, 2, "packed", [["packed", []]]], "packed: messages is 'packed', expected one of subs"),
        ([1, 2, "acknowledge", 1], "acknowledge: length is 1 fields, expected 2 fields"),
        ([1, 2, "acknowledge", True, 1], "acknowledge: session is True, expected a whole number"),
        ([1, 2, "unadvertisement", ["", 1]], "unadvertisement: id is '', expected 1 to 64 print"),
        (
            [1, 2, "advertisement", ID, "price >"],
            "advertisement: filter is 'price >', expected a filter (expected a number",
        ),
        (
            [1, 2, "advertisement", ID, "not " * 1000 + "a > 1"],
            "expected a filter (expected at most 64 'not' in a row",
        ),
        (
            [1, 2, "publication", ID, ["B", 2], {"`": 1}, 0, 0],
            "publication: values is '`', expected the name of an attribute",
        ),
        (
            [1, 2, "publication", ID, ["B", 2], {"a": "x" * 5000}, 0, 0],
            "expected at most 4096 characters",
        ),
        (
            [1, 2, "unsubscription", ID, [[ID, []]], False],
            "unsubscription: critical is a list of 2, expected an advertisement and its",
        ),
    ],
    "SCOT": [
        (7, "message is 7, expected a list that begins with the kind of a message"),
        (["attach", [], []], "message is 'attach', expected one of subscription, unsubscr"),
        (
            ["notification", ID, {}, 1 << 62],
            "targets is 4611686018427387904, expected a whole number from 0 to",
        ),
        (
            ["numbered", 1, ["numbered", 2, ["gone", "ada"]]],
            "numbered: message is 'numbered', expected one of subscription",
        ),
        (["detour", ["gone", "x"], 1], "detour: notification is 'gone', expected one of notif"),
        (["acknowledge", 1, 1], "acknowledge: safe is 1, expected true or false"),
        (["proxy notification", EMPTY, 62], "cluster is 62, expected a whole"),
        (["bypass", EMPTY, 1, "", "b"], "region is '', expected 1 to"),
    ],
    "graph": [
        (["record", "b2", 1, [], [[["b1", 5], ["x == 1"]]]], "subscriptions at broker 'b2'"),
        (["interest changed", "b2", 1, ["b1", 5], [], []], "subscriptions at broker 'b2'"),
        (["links changed", "b2", 1, [["b1", 0]]], "a finite number above 0"),
        (["links changed", "b2", 1, [["b1", float("nan")]]], "a finite number above 0"),
        (["report", [1, "x" * 65], "b", [0, "", 0], [0, "", 0], [0, "", 0], 0], "printable"),
        (["confirm", ["b1", 3]], "expected 2 fields"),
        (directive(trees=[[-1, 2, 1]]), "expected a tree of 3 brokers"),
        (directive(trees=[[-1, -1, 0]]), "expected a tree of 3 brokers"),
        (directive(trees=[[-1, 0]]), "expected a tree of 3 brokers"),
        (directive(trees=[[-1, 0, 3]]), "expected a tree of 3 brokers"),
        (directive(trees=[]), "expected some brokers, each once, and a tree"),
        (directive(brokers=["b1", "b1", "b3"]), "expected some brokers, each once, and a tree"),
        (directive(groups=[[["b2", 5], 1]]), "expected numbers below 1"),
        (directive(groups=[[["b2", 5], 0], [["b2", 5], 0]]), "expected each of them once"),
        (["planned", 1, [], 0, 0], "expected one of record, links changed"),
    ],
}


@pytest.mark.parametrize(
    ("family", "data", "sentence"),
    [(family, *case) for family, cases in REFUSED.items() for case in cases],
)
def test_what_is_wrong_is_said_in_a_sentence(family: str, data: object, sentence: str) -> None:
    assert GRAPH.read_between(directive()) is not None
    with pytest.raises(MalformedMessageError) as caught:
        CODECS[family][0].read_between(data)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
