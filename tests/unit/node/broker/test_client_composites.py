"""Composite subscriptions of a broker's clients: parts and matches, as sent and as printed."""

from __future__ import annotations

import json

import pytest

from gossamer.client.results import ReceivedEvent
from gossamer.node.broker import client_composites
from gossamer.node.broker.client_composites import (
    PART,
    ClientComposites,
    CompositeSubscription,
    Losses,
    missing_parts,
)
from gossamer.node.broker.composites import check_window
from gossamer.node.broker.contract.matches import Match
from gossamer.node.broker.deliveries import Arrival, delivery_bytes, event_of, id_of, match_bytes
from gossamer.node.commands.clients.event_text import line_of_event
from gossamer.node.errors import RequestError
from gossamer.node.store.broker import QueuedDelivery
from gossamer.node.transport.base.frames import FrameReader
from gossamer.node.transport.base.limits import Limits
from gossamer.node.transport.base.schema import Frame
from gossamer.protocol.brokers.core.messages import Id
from gossamer.protocol.content import filters
from gossamer.protocol.content.filters import Publication
from gossamer.protocol.content.filters.composite import parse_composite


def subscription(text: str, within_s: float = 10, mark: str = "m") -> CompositeSubscription:
    return CompositeSubscription(text, within_s, mark, parse_composite(text))


def arrival(number: int, values: Publication) -> Arrival:
    return Arrival(Id("B", number), values, 1000.0 + number)


def frame_of(delivery: bytes) -> Frame:
    reader = FrameReader(Limits())
    reader.feed(event_of(delivery, 7))
    frame = reader.next_frame()
    assert frame is not None
    return frame


def test_matches_are_told_with_the_labels_of_their_subscriptions() -> None:
    client = ClientComposites()
    assert client.step(0, arrival(0, {"a": 1})) == []
    client.hold("pair", subscription("{a == 1} & {b == 1}"))
    client.hold("either", subscription("{a == 1} || {b == 1}"))
    first, second = arrival(1, {"a": 1}), arrival(2, {"b": 1})
    found = client.step(0, first)
    assert [(label, match.publications) for label, match in found] == [("either", (first,))]
    assert client.waiting == 1
    found = client.step(5, second)
    assert {(label, match.publications) for label, match in found} == {
        ("either", (second,)),
        ("pair", (first, second)),
    }
    held = client.let_go("pair")
    assert held is not None
    assert held.text == "{a == 1} & {b == 1}"
    assert client.let_go("pair") is None
    assert client.step(6, first)[0][0] == "either"
    client.let_go("either")
    assert client.waiting == 0


def test_what_is_lost_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_composites, "MOST_WAITING", 2)
    monkeypatch.setattr(client_composites, "MOST_MATCHES", 1)
    client = ClientComposites()
    client.hold("pair", subscription("{a == 1} & {b == 1}"))
    for number in range(3):
        client.step(0, arrival(number, {"a": 1}))
    assert client.lost == Losses(dropped=1)
    assert len(client.step(0, arrival(3, {"b": 1}))) == 1
    assert client.lost == Losses(dropped=2)
    client.hold("any", subscription("{a == 1} || {a >= 1}"))
    client.step(20, arrival(4, {"a": 1}))
    assert client.lost == Losses(dropped=2, cut_short=1)
    assert client.lost
    assert not Losses()


def test_equal_filters_are_one_part_and_parts_too_many_and_too_few_are_found() -> None:
    one = subscription("{a == 1} & {b == $X} || {a == 1} -> {b == $Y} -> {c == 1}", mark="m")
    wanted = one.parts
    first, second, third = (f"{PART}m {number}" for number in range(3))
    assert wanted == {
        first: filters.parse("a == 1"),
        second: filters.parse("present(b)"),
        third: filters.parse("c == 1"),
    }
    held = {
        "own": filters.parse("x > 1"),
        first: wanted[first],
        second: filters.parse("b == 2"),
        f"{PART}old 0": filters.parse("a == 1"),
    }
    surplus, absent = missing_parts(held, wanted)
    assert surplus == [second, f"{PART}old 0"]
    assert absent == {label: wanted[label] for label in (second, third)}


def test_a_match_is_one_frame_and_one_line() -> None:
    parts = [arrival(1, {"a": 1, "s": "é"}), arrival(2, {"b": 2.5})]
    body = match_bytes("pair", 1, parts, 2000.0)
    assert delivery_bytes(Match("ada", body), 0) == body
    assert id_of(QueuedDelivery("ada", body)) is None
    frame = frame_of(body)
    others = [match_bytes("other", 1, parts, 1), match_bytes("pair", 0, parts, 1)]
    others.append(match_bytes("pair", 1, parts[::-1], 1))
    assert len({frame["id"], *(frame_of(one)["id"] for one in others)}) == 4
    assert frame_of(match_bytes("pair", 1, parts, 1))["id"] == frame["id"]
    events = [
        {"id": "B:1", "values": {"a": 1, "s": "é"}, "publisher": "B", "published_at": 1001.0},
        {"id": "B:2", "values": {"b": 2.5}, "publisher": "B", "published_at": 1002.0},
    ]
    told = {"id": frame["id"], "published_at": 2000.0}
    of_pair = {"position": 7, "subscriptions": ["pair"], "alternative": 1, "events": events}
    assert frame == {"type": "match", **told, **of_pair}
    received = [
        ReceivedEvent(one["id"], one["values"], "B", one["published_at"], ("pair",), 0)
        for one in frame["events"]
    ]
    event = ReceivedEvent(frame["id"], {}, "", 2000.0, ("pair",), 7, match=tuple(received))
    assert json.loads(line_of_event(event, {"more": 1})) == {**told, "match": events, "more": 1}


def test_braces_and_a_window_go_together() -> None:
    check_window(" {a == 1}", 5.0)
    check_window("a == 1", None)
    with pytest.raises(RequestError, match="needs a window in seconds"):
        check_window("{a == 1}", None)
    with pytest.raises(RequestError, match="only a composite subscription has a window"):
        check_window("a == 1", 5.0)
