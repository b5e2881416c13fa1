"""Messages of brokers survive being plain data, and hostile data is refused and nothing else."""

from __future__ import annotations

import json
import random

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.brokers.core.errors import MalformedMessageError
from gossamer.protocol.brokers.core.identifiers import Id
from gossamer.protocol.brokers.core.plain import MAX_VALUE, plain_filter, plain_values
from gossamer.protocol.brokers.tree import codec
from gossamer.protocol.brokers.tree.memory.messages import Frame, Message, Publication
from gossamer.protocol.content import filters
from gossamer.protocol.content.errors import ContentError
from gossamer.protocol.content.filters import Filter
from gossamer.protocol.content.operators import Comparison, Operator
from support.broker_messages import frames, messages, spoilt


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
