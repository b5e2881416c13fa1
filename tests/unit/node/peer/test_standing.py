"""How a peer stands in its cluster, and that its log says so."""

from __future__ import annotations

import logging

import pytest
import trio

from gossamer.node.peer.membership.status import Standing
from support.transport_peers import on_jumping_clock


@on_jumping_clock
async def test_troubles_are_told_when_they_come_each_minute_and_at_their_end(
    caplog: pytest.LogCaptureFixture, nursery: trio.Nursery
) -> None:
    caplog.set_level(logging.INFO)
    alone = False
    standing = Standing(reaches_nobody=lambda: alone)
    nursery.start_soon(standing.tell)
    await trio.sleep(600)
    assert caplog.messages == []
    alone = True
    await trio.sleep(10)
    assert caplog.messages == ["trouble"]
    await trio.sleep(180)
    assert len(caplog.messages) == 4
    alone = False
    await trio.sleep(10)
    assert caplog.messages[4:] == ["trouble is over"]
    nursery.cancel_scope.cancel()
