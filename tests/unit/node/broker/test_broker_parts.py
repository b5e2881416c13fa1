"""Parts of a node that is a broker: frames, content, options, and composite subscriptions."""

from __future__ import annotations

import json
from pathlib import Path

import cbor2
import pytest

from gossamer.client.results import ReceivedEvent
from gossamer.command.main import main
from gossamer.node import errors
from gossamer.node.broker import deliveries, wire
from gossamer.node.broker.composites import Content, check_label, check_window
from gossamer.node.broker.deliveries import (
    PART,
    Arrival,
    ClientComposites,
    CompositeSubscription,
    Losses,
    delivery_bytes,
    event_of,
    id_of,
    match_bytes,
    missing_parts,
)
from gossamer.node.broker.families.scot import ScotHost
from gossamer.node.broker.host import Match
from gossamer.node.broker.node import family_of
from gossamer.node.broker.session import read_id
from gossamer.node.broker.wire import OVERLAY_FRAMES, BrokerFrames, encode_parts
from gossamer.node.cli.starting import read_plain_run
from gossamer.node.commands.clients.event_text import (
    line_of_event,
)
from gossamer.node.config.file import load_config, parse_setting
from gossamer.node.errors import RequestError
from gossamer.node.store.broker import QueuedDelivery
from gossamer.node.transport.frames import FrameReader
from gossamer.node.transport.limits import Limits
from gossamer.node.transport.schema import Frame
from gossamer.protocol.brokers import scot
from gossamer.protocol.brokers.core.messages import Id, MalformedMessageError
from gossamer.protocol.brokers.tree import messages
from gossamer.protocol.brokers.tree.codec import CODEC
from gossamer.protocol.content import filters
from gossamer.protocol.content.filters import Publication
from gossamer.protocol.content.filters.composite import parse_composite
from gossamer.protocol.content.schema import FloatAttribute, Schema
from gossamer.protocol.kernel.errors import ConfigError, ContentError, ExpressionError
from support.installed_command import install, refused

# Frames


def parts_of_long_frame(session: int) -> tuple[messages.Frame, list[dict[str, object]]]:
    """A frame, and the parts that it is sent in."""
    wanted = filters.parse('symbol == "' + "x" * 3000 + '" and price > 1')
    told = tuple(messages.Subscription(Id("B", number), wanted) for number in range(200))
    frame, reader = (
        messages.Frame(session, 1, messages.Synchronise((), told)),
        FrameReader(Limits()),
    )
    for part in encode_parts(session, CODEC.plain_between(frame)):
        reader.feed(part)
    found = list(reader)
    for one in found:
        OVERLAY_FRAMES.check(one)
    return frame, found


def test_a_long_message_travels_in_parts_and_those_of_an_earlier_session_are_left_out() -> None:
    frames = BrokerFrames(CODEC.read_between)
    (_, old), (frame, new) = (parts_of_long_frame(n) for n in (5, 6))
    assert len(old) > 2
    for part in (*old[:2], *new[:1], *old[2:], *new[1:-1]):
        assert frames.take(part) is None
    assert frames.take(new[-1]) == frame


def test_what_is_no_message_or_has_no_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for body, words in (
        (b"", "unreadable"),
        (b"\xff", "unreadable"),
        (b"\x83\x01\x02", "unreadable"),
        (cbor2.dumps([1, 2, "packed", []]) + b"\x00", "nothing after the message"),
        (cbor2.dumps([[[[[[[[[[1]]]]]]]]]]), "unreadable"),
        (cbor2.dumps([0] * 100_000), "more values"),
        (cbor2.dumps([1, 2, "packed", [cbor2.CBORTag(1, 1)]]), "unreadable"),
    ):
        part = {"type": "broker", "session": 1, "part": body, "last": True}
        with pytest.raises((errors.BadFrame, MalformedMessageError), match=words):
            BrokerFrames(CODEC.read_between).take(part)
    monkeypatch.setattr(wire, "MESSAGE_BYTES", 1000)
    frames = BrokerFrames(CODEC.read_between)
    part = {"type": "broker", "session": 1, "part": bytes(400), "last": False}
    assert [frames.take(part) for _ in range(2)] == [None, None]
    with pytest.raises(errors.BadFrame, match="at most 1000 bytes in all"):
        frames.take(part)


# What clients write


def test_content_may_be_bound_to_the_clusters_schema() -> None:
    bound, free = Content(Schema([FloatAttribute("price", 0, 100)])), Content()
    assert free.filter("[class,eq,'STOCK'],[price,>,80]") is not None
    with pytest.raises(ExpressionError, match="there is no attribute 'class'"):
        bound.filter("[class,eq,'STOCK']")
    with pytest.raises(ExpressionError, match=r"'price' takes a number.*, not the string"):
        bound.filter('price > "high"')
    with pytest.raises(ContentError, match=r"'price' takes a number.*, not the string"):
        bound.publication({"price": "high"})
    assert free.publication({"price": "high", "ok": True}) == {"price": "high", "ok": True}
    with pytest.raises(errors.RequestError, match="values holds"):
        free.publication({"price": ["number", "x"]})


def test_labels_are_short_and_identifiers_a_key_and_a_number() -> None:
    for label in ("", "x" * 65, "a\nb"):
        with pytest.raises(errors.RequestError, match="a label has 1 to 64 printable char"):
            check_label(label)
    assert read_id("00ff:17") == Id("00ff", 17)
    for text in ("", "17", ":17", "00ff:", "00ff:x", "00ff:\N{SUPERSCRIPT TWO}"):
        with pytest.raises(errors.RequestError, match="expected a broker's key"):
            read_id(text)


RUN = ("--role", "broker", "--overlay", "scot", "--clusters", "3")
TREE = ("--edge", "a-b", "--edge", "b-c")


# Options


def configured(*options: str) -> ScotHost:
    _, changes = read_plain_run(["run", "x", *RUN, *options]) or ([], [])
    config = load_config(None, flags=dict(map(parse_setting, changes)), environment={}).config
    found = family_of(config)
    assert isinstance(found, ScotHost)
    return found


def test_options_say_where_a_broker_is_and_what_goes_beyond_the_paper() -> None:
    kind = configured(*TREE, "--region", "b", "--cluster=2", "--set", "scot.routing=static")
    larger = scot.Scot(scot.Factor.path("abc"), scot.Factor.complete(3))
    assert kind.position == larger.position(scot.BrokerLabel("b", 2))
    assert kind.of == scot.ScotSettings(routing="static")
    assert kind.overlay == "3 clusters of a-b b-c, static or dynamic routing"
    names = ("input_queues", "own_threshold", "around_failures", "take_over", "covering")
    chosen = [word for name in names for word in ("--set", f"scot.{name}=true")]
    kind = configured(*TREE, "--region", "b", *chosen)
    assert kind.of == scot.ScotSettings(**dict.fromkeys(names, True))  # type: ignore[arg-type]
    # Overlays are the same however their edges are written, and whatever else brokers differ in.
    other = configured("--edge", "c-b", "--edge", "b-a", "--region", "a")
    assert other.overlay == configured(*TREE, "--region", "c", "--cluster", "1").overlay
    for change, same in (
        ("scot.routing=static", True),
        ("scot.around_failures=true", True),
        ("scot.routing=bid", False),
        ("scot.clusters=4", False),
    ):
        changed = configured(*TREE, "--region", "a", "--set", change)
        assert (other.overlay == changed.overlay) is same, change


def test_what_has_no_place_is_said_in_a_sentence_with_which_the_command_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for options, words in (
        ((*TREE,), "scot.region is '', expected the region of this broker, one of a, b, c"),
        ((*TREE, "--region", "d"), "region of B(d,0) is 'd', expected one of a, b, c"),
        ((*TREE, "--region", "a", "--cluster", "3"), "is 3, expected a number from 0 to 2"),
        ((*TREE, "--edge", "a-c", "--region", "a"), "this edge closes a cycle"),
        (("--edge", "a-b", "--edge", "c-d", "--region", "a"), "no path leads there from 'a'"),
        (("--edge", "ab", "--region", "a"), "scot.edges is 'ab', expected two regions such as"),
        (("--region", "a", "--set", "scot.routing=fast"), "expected one of bid, static, dynamic"),
        (("--region", "a", "--set", "scot.take_over=true"), "around_failures with static or dyn"),
        (("--region", "a", "--set", "scot.threshold=-1"), "expected a number of at least 0"),
        (("--region", "a", "--set", "scot.window_s=0"), "expected a number of seconds"),
    ):
        with pytest.raises((ConfigError, errors.ConfigurationError)) as caught:
            configured(*options)
        assert words in str(caught.value)
    install(tmp_path / "installed", monkeypatch)
    monkeypatch.chdir(tmp_path)
    assert main(["node", "init", "demo", "--peers", "1"]) == 0
    capsys.readouterr()
    told = refused(capsys, "node", "run", "demo", *RUN, *TREE, "--region", "a", "--cluster", "7")
    assert "cluster of B(a,7) is 7, expected a number from 0 to 2" in told


def subscription(text: str) -> CompositeSubscription:
    return CompositeSubscription(text, 10, "m", parse_composite(text))


def arrival(number: int, values: Publication) -> Arrival:
    return Arrival(Id("B", number), values, 1000.0 + number)


def frame_of(delivery: bytes) -> Frame:
    reader = FrameReader(Limits())
    reader.feed(event_of(delivery, 7))
    (frame,) = reader
    return frame


def test_matches_are_told_with_the_labels_of_their_subscriptions() -> None:
    composites = ClientComposites()
    assert composites.step(0, arrival(0, {"a": 1})) == []
    composites.hold("pair", subscription("{a == 1} & {b == 1}"))
    composites.hold("either", subscription("{a == 1} || {b == 1}"))
    first, second = arrival(1, {"a": 1}), arrival(2, {"b": 1})
    found = composites.step(0, first)
    assert [(label, match.publications) for label, match in found] == [("either", (first,))]
    assert composites.waiting == 1
    found = composites.step(5, second)
    expected = {("either", (second,)), ("pair", (first, second))}
    assert {(label, match.publications) for label, match in found} == expected
    held = composites.let_go("pair")
    assert held is not None
    assert held.text == "{a == 1} & {b == 1}"
    assert composites.let_go("pair") is None
    assert composites.step(6, first)[0][0] == "either"
    composites.let_go("either")
    assert composites.waiting == 0


def test_what_is_lost_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliveries, "MOST_WAITING", 2)
    monkeypatch.setattr(deliveries, "MOST_MATCHES", 1)
    composites = ClientComposites()
    composites.hold("pair", subscription("{a == 1} & {b == 1}"))
    for number in range(3):
        composites.step(0, arrival(number, {"a": 1}))
    assert composites.lost == Losses(dropped=1)
    assert len(composites.step(0, arrival(3, {"b": 1}))) == 1
    assert composites.lost == Losses(dropped=2)
    composites.hold("any", subscription("{a == 1} || {a >= 1}"))
    composites.step(20, arrival(4, {"a": 1}))
    assert composites.lost == Losses(dropped=2, cut_short=1)
    assert (bool(composites.lost), bool(Losses())) == (True, False)


def test_equal_filters_are_one_part_and_parts_too_many_and_too_few_are_found() -> None:
    wanted = subscription("{a == 1} & {b == $X} || {a == 1} -> {b == $Y} -> {c == 1}").parts
    labels = first, second, third = [f"{PART}m {number}" for number in range(3)]
    texts = ("a == 1", "present(b)", "c == 1")
    assert wanted == dict(zip(labels, map(filters.parse, texts), strict=True))
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
