"""Messages of brokers survive being plain data, and hostile data is refused and nothing else."""

from __future__ import annotations

import json
import random

import cbor2
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.brokers.core import messages as m
from gossamer.protocol.brokers.core.effects import Send
from gossamer.protocol.brokers.core.errors import MalformedMessageError
from gossamer.protocol.brokers.core.identifiers import Id, client, neighbour
from gossamer.protocol.brokers.core.plain import MAX_VALUE, plain_filter, plain_values
from gossamer.protocol.brokers.tree import TreeBroker, TreeSettings, codec
from gossamer.protocol.brokers.tree.codec import plain_frame, read_frame
from gossamer.protocol.brokers.tree.memory import messages as t
from gossamer.protocol.brokers.tree.memory.messages import Frame, Message, Publication
from gossamer.protocol.content import filters
from gossamer.protocol.content.errors import ContentError
from gossamer.protocol.content.filters import Filter
from gossamer.protocol.content.operators import Comparison, Operator
from support.broker_messages import between_brokers, frames, messages, spoilt
from support.draws import one_in
from support.plain_index import PlainIndex


@given(messages)
def test_a_message_is_the_same_after_it_was_plain_data(message: Message) -> None:
    data = codec.CODEC.plain_message(message)
    assert codec.CODEC.read_message(data) == message
    assert codec.CODEC.read_message(cbor2.loads(cbor2.dumps(data))) == message
    assert codec.CODEC.read_message(json.loads(json.dumps(data))) == message


@given(frames)
def test_a_frame_is_the_same_after_it_was_plain_data(frame: Frame) -> None:
    assert codec.read_frame(codec.plain_frame(frame)) == frame


@given(frames, st.integers(0, 1 << 32))
def test_a_spoilt_frame_is_another_frame_or_refused(frame: Frame, seed: int) -> None:
    data = spoilt(random.Random(seed), codec.plain_frame(frame))
    try:
        found = codec.read_frame(data)
    except MalformedMessageError:
        return
    assert codec.read_frame(codec.plain_frame(found)) == found


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
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
            [1, 2, "advertisement", ["B", 1], "price >"],
            "advertisement: filter is 'price >', expected a filter (expected a number",
        ),
        (
            [1, 2, "advertisement", ["B", 1], "not " * 1000 + "a > 1"],
            "expected a filter (expected at most 64 'not' in a row",
        ),
        (
            [1, 2, "publication", ["B", 1], ["B", 2], {"`": 1}, 0, 0],
            "publication: values is '`', expected the name of an attribute",
        ),
        (
            [1, 2, "publication", ["B", 1], ["B", 2], {"a": "x" * 5000}, 0, 0],
            "expected at most 4096 characters",
        ),
        (
            [1, 2, "unsubscription", ["B", 1], [[["B", 1], []]], False],
            "unsubscription: critical is a list of 2, expected an advertisement and its distances",
        ),
    ],
)
def test_what_is_wrong_with_a_frame_is_said_in_a_sentence(data: object, sentence: str) -> None:
    with pytest.raises(MalformedMessageError) as caught:
        codec.read_frame(data)
    assert sentence in str(caught.value)


def test_what_nobody_would_read_is_not_sent() -> None:
    with pytest.raises(ContentError, match="5000 characters, expected at most 4096"):
        plain_values({"a": "x" * 5000})
    with pytest.raises(ContentError, match="backquotes"):
        plain_values({"`": 1})
    with pytest.raises(ContentError, match="has the integer 10000"):
        plain_values({"a": 10**1000 + 1})
    with pytest.raises(ContentError, match="4097 attributes"):
        plain_values(dict.fromkeys(map(str, range(4097)), 1))
    long = Filter.of([Comparison("a", Operator.EQUAL, "\x01" * 11_000)])
    with pytest.raises(ContentError, match="characters when written out"):
        plain_filter(long)


def test_values_of_every_size_survive() -> None:
    whole = {"a": 1 << 70, "b": -(1 << 63), "c": 10**300, "d": 1e308, "e": "x" * MAX_VALUE}
    values = filters.exact_publication(whole)
    message = Publication(Id("B", 1), Id("B", 2), values)
    data = codec.plain_frame(Frame(1, 1, message))
    assert codec.read_frame(cbor2.loads(cbor2.dumps(data))).message == message


def test_a_publication_from_very_far_can_be_passed_on() -> None:
    most = (1 << 63) - 1
    data = [1, 2, "publication", ["B", 1], ["B", 2], {}, most, most]
    message = codec.read_frame(data).message
    assert isinstance(message, Publication)
    assert (message.distance, message.count) == (codec.MAX_HOPS, codec.MAX_HOPS)


# Frames that a neighbour makes up.


NAMES = ("A", "B", "C")
# Few identifiers, so that frames are about what there is.
few_ids = st.builds(Id, st.sampled_from(NAMES), st.integers(0, 6))


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
        critical = tuple(evolve_tuple(one, draw) for one in message.critical)
        return evolve(message, id=draw.draw(few_ids), critical=critical)
    if isinstance(message, t.Advertisement | t.Unadvertisement | t.Subscription | t.Unsubscription):
        return evolve(message, id=draw.draw(few_ids))
    return message


def evolve_tuple(one: t.CriticalDistance, draw: st.DataObject) -> t.CriticalDistance:
    return one._replace(advertisement=draw.draw(few_ids))


@pytest.mark.parametrize("covering", ["off", "packed", "selective", "incremental"])
@one_in(2)
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
        effects = broker.handle(step, neighbour(name), frame)
        for effect in effects:
            if isinstance(effect, Send):
                assert read_frame(plain_frame(effect.message)) == effect.message
    again = TreeBroker.load(broker.dump(), made, new_index=PlainIndex)
    assert again.dump() == broker.dump()
