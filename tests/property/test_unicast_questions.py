"""Questions and answers between peers that are none: they are refused, and nothing else happens."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.node.local.groups import wire
from gossamer.node.local.replies import SERVICE as REPLY
from gossamer.node.local.replies import Replies
from gossamer.node.peer.frames.event_authentication import PlainEvents
from gossamer.node.peer.frames.events import EventFormat
from gossamer.node.peer.unicast import last_values
from gossamer.node.peer.unicast.cluster_time import SERVICE as CLOCK
from gossamer.node.peer.unicast.last_values import SERVICE as LAST
from gossamer.node.peer.unicast.messages import REQUEST_TYPE, ReplyTo, enclosed, opened
from gossamer.node.peer.unicast.order import SERVICE as ORDER
from gossamer.node.peer.unicast.order import read_answer
from gossamer.node.security.identity import encode
from gossamer.node.transport.base.base import Address
from gossamer.protocol.content.schema import SchemaVersion
from gossamer.protocol.content.values import Payload
from support.loopback_peer import SCHEMA, LoopbackPeer

PLAIN = st.one_of(
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.binary(max_size=20),
    st.text(max_size=10),
    st.sampled_from(["127.0.0.1:7710", "price > 80"]),
    st.booleans(),
    st.floats(allow_nan=False, width=16),
    st.none(),
)
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=12,
)
# Mostly of the shape that a question has: a list that begins with a small number.
LISTS = st.tuples(st.integers(0, 4), st.lists(VALUES, max_size=7)).map(lambda of: [of[0], *of[1]])
BODIES = st.one_of((VALUES | LISTS).map(encode), st.binary(max_size=40))


@cache
def offered() -> dict[str, Callable[[int, bytes], bytes]]:
    """The services of a peer that keep nothing on the disk."""
    peer = LoopbackPeer()
    Replies(peer)
    form = EventFormat(SchemaVersion.first(SCHEMA))
    sealed_events = last_values.SealedEvents(PlainEvents(2), lambda: form)
    last_values.LastValueKeeper(peer.messages, sealed_events, peer.clock, random.Random(1), 1.0)
    return peer.messages.services


@pytest.mark.parametrize("name", [REPLY, ORDER, LAST, CLOCK])
@given(body=BODIES)
def test_a_service_answers_or_refuses(name: str, body: bytes) -> None:
    with suppress(ValueError):
        assert isinstance(offered()[name](7, body), bytes)


@given(body=BODIES, token=st.text(max_size=40))
def test_what_is_read_is_what_it_should_be_or_refused(body: bytes, token: str) -> None:
    """An envelope that is none is the application's own."""
    for read in (wire.read_announcement, wire.read_hello_answer, wire.read_report, read_answer):
        with suppress(ValueError):
            read(body)
    with suppress(ValueError):
        wire.read_event(body, 1, SCHEMA)
    with suppress(ValueError):
        _, _, parts = wire.read_question(body)
        wire.read_round(parts)
    with suppress(ValueError):
        ReplyTo.from_token(token)
    for content_type, unpack in (
        (REQUEST_TYPE, opened),
        (last_values.LAST_TYPE, last_values.mark_of),
    ):
        payload = Payload(body, content_type)
        content, found = unpack(payload)
        assert found is not None or content == payload


@given(data=st.binary(max_size=50), seconds=st.floats(0.001, 86_400.0))
def test_what_is_enclosed_comes_out_again(data: bytes, seconds: float) -> None:
    reply_to = ReplyTo(5, 6, (Address("127.0.0.1", 7710), Address("::1", 1)), round(seconds, 3))
    assert ReplyTo.from_token(reply_to.to_token()) == reply_to
    for payload in (None, Payload(data), Payload(data, "text/plain")):
        assert opened(enclosed(payload, reply_to)) == (payload, reply_to)
        mark = last_values.LastMark("symbol", round(seconds, 3), is_deleted=True)
        assert last_values.mark_of(last_values.marked(payload, mark)) == (payload, mark)
