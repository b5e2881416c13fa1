"""What the client costs a program, how values travel, and events that come again."""

from __future__ import annotations

import math
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import anyio
import attrs
import numpy as np
import pytest

import gossamer.client
from gossamer.client import UnusableValueError
from gossamer.client.client import _batches
from gossamer.client.errors import TransportBroken
from gossamer.client.frames import BROKER, PEER, Frame, PlainValues, encode_frame
from gossamer.client.link import Introduction, Link, LocalAddress
from gossamer.client.results import ReceivedEvent
from gossamer.client.session import Session
from gossamer.protocol.content.limits import FRAME_BYTES, MAX_EVENTS

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
LARGE = 3**100


def values_of(role: str) -> PlainValues:
    values = PlainValues()
    schema = '{"day": {"type": "date"}, "text": {"type": "string"}}' if role == PEER else ""
    values.adopt({"schema": schema, "role": role})
    return values


@pytest.mark.parametrize("role", [PEER, BROKER])
@pytest.mark.parametrize(
    ("value", "comes_as"),
    [
        *((number, number) for number in (7, -(1 << 63), LARGE, 0.25, True)),
        (Decimal("0.1"), Fraction(1, 10)),
        (Fraction(1, 3), Fraction(1, 3)),
        (np.int64(7), 7),
        (np.float64(0.5), 0.5),
        (NOON, NOON),
        (NOON.replace(tzinfo=None), NOON),
        (NOON.astimezone(timezone(timedelta(hours=5))), NOON),
        (date(2026, 11, 20), datetime(2026, 11, 20, tzinfo=UTC)),
    ],
)
def test_values_come_as_they_went_or_in_utc(role: str, value: object, comes_as: object) -> None:
    """But a text that looks like a date is none."""
    values = values_of(role)
    name = "day" if isinstance(value, date) else "price"
    found = values.from_wire(values.to_wire({name: value, "text": "2026-11-20"}))
    assert found == {name: comes_as, "text": "2026-11-20"}
    assert type(found[name]) is type(comes_as)


@pytest.mark.parametrize("value", [None, math.nan, math.inf, Decimal("1e9999"), [1], b"x", 1j])
def test_what_no_event_can_have_is_named(value: object) -> None:
    with pytest.raises(UnusableValueError, match=r"attribute 'price' is .* expected a finite"):
        values_of(PEER).to_wire({"price": value})


@pytest.mark.parametrize("length", [1, 4000])
def test_batches_fit_into_requests(length: int) -> None:
    events = [{"text": "x" * length, "price": float(number)} for number in range(700)]
    batches = list(_batches(iter(events)))
    assert [event for batch in batches for event in batch] == events
    for batch in batches:
        assert 0 < len(batch) <= MAX_EVENTS
        assert len(encode_frame("publish_many", number=1, events=batch)) < FRAME_BYTES


@attrs.define
class NewLink:
    """A connection over which subscriptions are being asked for again."""

    is_broken: bool = False
    settled: list[str] = attrs.field(factory=list)

    async def tell(self, kind: str, **fields: Any) -> None:
        assert kind == "settle"
        if self.is_broken:
            raise TransportBroken("the node", "it ended")
        self.settled.append(fields["id"])


def nowhere() -> LocalAddress:
    raise AssertionError("nothing is to be connected to")


def frame_of(event_id: str, position: int) -> Frame:
    fields: dict[str, Any] = {"values": {}, "publisher": "1", "published_at": 0.0}
    return {"type": "event", "id": event_id, "position": position, "subscriptions": [], **fields}


@pytest.mark.parametrize("is_broken", [False, True])
def test_what_is_settled_and_comes_again_is_settled_anew(tmp_path: Path, is_broken: bool) -> None:
    async def main() -> None:
        session = Session(tmp_path, nowhere, PlainValues(), Introduction("ada"), None, 1.0, None)
        link = NewLink(is_broken)
        taken = cast(Link, link)
        with session.events, session._send, session._take, session._taken:
            await session.take_event(taken, frame_of("a", 1))
            await session.take_event(taken, frame_of("b", 2))
            # While there is no connection.
            await session.settle(ReceivedEvent("a", {}, "1", 0.0, (), 1))
            assert link.settled == []
            await session.take_event(taken, frame_of("a", 1))
            await session.take_event(taken, frame_of("b", 2))
            assert link.settled == ([] if is_broken else ["a"])

    anyio.run(main)


PROBE = f"""
import sys
sys.path[:0] = {sys.path!r}
from gossamer.client import connect, open_client
print(*sys.modules)
"""


def test_the_client_loads_neither_the_protocol_nor_the_node_nor_an_event_loop() -> None:
    """How long that takes says a bench."""
    run = subprocess.run([sys.executable, "-c", PROBE], check=True, capture_output=True, text=True)
    modules = set(run.stdout.split())
    parts = {name for name in modules if name.startswith("gossamer.")}
    assert "gossamer.client.client" in parts
    others = {name for name in parts if not name.startswith("gossamer.client")}
    assert others == {
        "gossamer.command",
        "gossamer.command.extras",
        "gossamer.protocol",
        "gossamer.protocol.content",
        "gossamer.protocol.content.limits",
    }
    assert modules.isdisjoint({"asyncio", "trio", "numpy", "numba", "cryptography"})


def test_what_the_client_offers_is_there() -> None:
    for name in gossamer.client.__all__:
        assert getattr(gossamer.client, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'open_clint'"):
        _ = gossamer.client.open_clint
