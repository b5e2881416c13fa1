"""Requests that are too large, or no text: each fails by itself, and says why."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import trio

from gossamer.client import (
    Client,
    Fate,
    NodeError,
    Payload,
    RefusedByNodeError,
    UnusableValueError,
    open_client,
)
from gossamer.command.main import main
from gossamer.node.commands.clients.publishing import publish_lines
from gossamer.node.local.frames import VERSION, values_from_wire, values_to_wire
from gossamer.node.peer.frames.events import EventFormat
from gossamer.node.transport.base.frames import FrameReader, encode_frame
from gossamer.node.transport.base.limits import Limits
from gossamer.node.transport.base.schema import Frame
from gossamer.protocol.content.schema import Schema, SchemaVersion
from support.local_nodes import LocalNode
from support.loopback_peer import quote
from support.threaded_node import threaded_node
from support.waiting import PATIENCE_S

LONG = "x" * 4097
HALF = "half \ud800"
BAD = "BadFrame"


Ask = Callable[[Client], Awaitable[object]]


def publish(values: dict[str, object], **options: Any) -> Ask:
    return lambda client: client.publish(values, **options)


def subscribe(expression: str, **options: Any) -> Ask:
    async def ask(client: Client) -> None:
        async with client.subscribe(expression, **options):
            pass

    return ask


TYPE = Payload(b"", "a/" + 126 * "b")
TOO_MUCH: dict[str, tuple[Ask, type[NodeError], str]] = {
    "string": (publish({"symbol": LONG}), UnusableValueError, "4097 .* expected at most 4096"),
    "digits": (publish({"price": 10**1000}), UnusableValueError, "'price' .* at most 1000 digits"),
    "exponent": (publish({"price": Decimal("1e-2001")}), UnusableValueError, "'price'"),
    "name": (publish({"y" * 65: 1}), UnusableValueError, "no name, expected a text of at most 64"),
    "attributes": (
        publish({f"a{number}": 1 for number in range(32)}),
        UnusableValueError,
        "one of 32, expected at most 31",
    ),
    "content type": (publish(quote(1), payload=TYPE), UnusableValueError, "of 128 characters"),
    "group": (
        subscribe("price > 1", group="g" * 65),
        RefusedByNodeError,
        "group is 'g.* expected text of at most 64 characters",
    ),
    "expression": (
        subscribe("price > " + 8192 * "1"),
        RefusedByNodeError,
        "expression is .* expected text of at most 8192 characters",
    ),
    "half a value": (publish({"symbol": HALF}), UnusableValueError, "no lone surrogates"),
    "half an expression": (subscribe(f'symbol == "{HALF}"'), UnusableValueError, r"half \\ud800"),
    "half a name": (subscribe("price > 1", name=HALF), UnusableValueError, "lone surrogates"),
}


@pytest.mark.parametrize("what", TOO_MUCH)
async def test_a_request_that_is_too_much_fails_alone(node: LocalNode, what: str) -> None:
    ask, error, words = TOO_MUCH[what]
    async with node.running(), open_client(node.folder) as client, trio.open_nursery() as others:
        for _ in range(3):
            others.start_soon(publish(quote(1)), client)
        with pytest.raises(error, match=words):
            await ask(client)
    assert len(node.peer.published) == 3


async def test_one_bad_event_of_many_fails_alone(node: LocalNode) -> None:
    bad = ({"symbol": LONG}, {"price": Decimal("1e-2001")}, {"symbol": HALF}, {"z" * 65: 1})
    async with node.running(), open_client(node.folder) as client:
        outcomes = await client.publish_each([quote(1), *bad, quote(2)])
    fates = [one.fate for one in outcomes]
    assert fates == [Fate.ACKNOWLEDGED, *[Fate.REFUSED] * len(bad), Fate.ACKNOWLEDGED]


NO_FRACTION = ("numerator and denominator", "RequestError")


@pytest.mark.parametrize(
    ("kind", "fields", "words", "cause"),
    [
        ("publish", {"values": {"symbol": LONG}}, "text of at most 4096", BAD),
        ("publish", {"values": {"price": ["1", "0" * 1002]}}, "text of at most 1001", BAD),
        ("publish", {"values": {"price": ["1", "0"]}}, *NO_FRACTION),
        ("publish", {"values": {"price": ["1"]}}, *NO_FRACTION),
        ("publish", {"values": {"price": ["a", "1"]}}, *NO_FRACTION),
        ("publish", {"values": {"price": ["1" * 400, "x"]}}, *NO_FRACTION),
        ("publish", {"values": {str(n): 1 for n in range(32)}}, "at most 31 entries", BAD),
        ("publish", {"values": quote(1), "content_type": "t" * 128, "payload": b""}, "127", BAD),
        ("publish", {"values": quote(1), "colour": "red"}, "a field is 'colour'", BAD),
        ("publish", {}, "values is missing", BAD),
        ("publish_many", {"events": [{}] * 257}, "at most 256 entries", BAD),
        ("subscribe", {"id": "x" * 65, "expression": ""}, "text of at most 64", BAD),
        ("subscribe", {"id": "x", "expression": 8193 * " "}, "text of at most 8192", BAD),
    ],
)
async def test_a_node_refuses_a_request_that_is_none_and_goes_on(
    node: LocalNode, kind: str, fields: dict[str, object], words: str, cause: str
) -> None:
    path, reader = node.address.path, FrameReader(Limits())
    assert path is not None
    async with node.running(), await trio.open_unix_socket(path) as stream:
        await stream.send_all(
            encode_frame("attach", version=VERSION, software="test")
            + encode_frame(kind, number=1, **fields)
            + encode_frame("status", number=2)
        )
        found: list[Frame] = []
        with trio.fail_after(PATIENCE_S):
            while len(found) < 3:
                reader.feed(await stream.receive_some(65536))
                found += list(reader)
    assert [(one["type"], one.get("number")) for one in found[1:]] == [("refused", 1), ("done", 2)]
    assert found[1]["cause"] == cause
    assert words in found[1]["reason"]
    assert node.counts.refused == {cause: 1}


def test_a_bad_line_is_named_and_the_others_are_published(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    lines = [quote(1), {"symbol": LONG}, quote(2), {"price": "1/" + 1001 * "7"}, quote(3)]
    source = tmp_path / "events.jsonl"
    source.write_text("\n".join(map(json.dumps, lines)))
    with threaded_node(tmp_path) as node:
        code, _ = publish_lines(node.node.folder, str(source))
    printed = capfd.readouterr()
    assert code == 2
    assert sorted(line.split()[0] for line in printed.out.splitlines()) == ["1", "3", "5"]
    assert all(f"line {number}" in printed.err for number in (2, 4))


def test_numbers_of_many_digits_are_published_as_they_are() -> None:
    schema = Schema.from_mapping({"x": {"type": "float", "minimum": 0, "maximum": 10}})
    value = Fraction(3 * 10**998 + 1, 10**999)
    made = EventFormat(SchemaVersion.first(schema))
    assert made.from_bytes(1, made.to_bytes({"x": value}, 7, 0.0)).values == {"x": value}
    assert values_from_wire(schema, values_to_wire({"x": value})) == {"x": value}


@pytest.mark.parametrize("command", [["sub"], ["node", "init"], ["nonsense"]])
def test_an_argument_that_is_no_text_is_one_sentence(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, os.fsdecode(b"Z\xfcrich")]) == 2
    assert capsys.readouterr().err == (
        "gossamer: the argument 'Z\\udcfcrich' is no text, expected UTF-8 (see 'locale')\n"
    )
