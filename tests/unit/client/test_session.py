"""What a session does with events that come again."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import anyio
import attrs
import pytest

from gossamer.client.address import LocalAddress
from gossamer.client.errors import TransportBroken
from gossamer.client.frames import Frame
from gossamer.client.link import Introduction, Link
from gossamer.client.results import ReceivedEvent
from gossamer.client.session import Session
from gossamer.client.values import PlainValues


@attrs.define
class NewLink:
    """A connection over which subscriptions are being asked for again."""

    is_broken: bool = False
    settled: list[str] = attrs.field(factory=list)

    async def settle(self, event_id: str) -> None:
        if self.is_broken:
            raise TransportBroken("the node", "it ended")
        self.settled.append(event_id)


def make_session(folder: Path) -> Session[PlainValues]:
    def find() -> LocalAddress:
        raise AssertionError("nothing is to be connected to")

    return Session(folder, find, PlainValues(), Introduction("ada"), None, 1.0, None)


def frame_of(event_id: str, position: int) -> Frame:
    fields: dict[str, Any] = {"values": {}, "publisher": "1", "published_at": 0.0}
    return {"type": "event", "id": event_id, "position": position, "subscriptions": [], **fields}


def event_of(event_id: str, position: int) -> ReceivedEvent:
    return ReceivedEvent(event_id, {}, "1", 0.0, (), position)


@pytest.mark.parametrize("is_broken", [False, True])
def test_what_is_settled_and_comes_again_is_settled_over_the_connection_it_came_by(
    tmp_path: Path, is_broken: bool
) -> None:
    async def main() -> None:
        session, link = make_session(tmp_path), NewLink(is_broken)
        taken = cast(Link, link)
        with session.events, session._send, session._take, session._taken:
            await session.take_event(taken, frame_of("a", 1))
            await session.take_event(taken, frame_of("b", 2))
            await session.settle(event_of("a", 1))  # while there is no connection
            assert link.settled == []
            await session.take_event(taken, frame_of("a", 1))
            await session.take_event(taken, frame_of("b", 2))
            assert link.settled == ([] if is_broken else ["a"])

    anyio.run(main)
