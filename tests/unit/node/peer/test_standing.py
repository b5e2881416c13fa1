"""Through whom a peer joins its cluster, how it stands there, and that its log says so."""

from __future__ import annotations

import logging
import random
import re
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest
import trio

from gossamer.node.config.node import NodeConfig
from gossamer.node.discovery.sources import MULTICAST, DiscoveredPeer
from gossamer.node.errors import AddressGone, PeerRevoked
from gossamer.node.monitoring.metrics import TROUBLES
from gossamer.node.peer.bootstrap import Bootstrap
from gossamer.node.peer.frames.address_book import AddressBook
from gossamer.node.peer.membership.status import Standing
from gossamer.node.peer.peer import advertised
from gossamer.node.transport.base.base import Address
from support.checkout import ROOT
from support.memory_peers import address_of, memory_peers
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


def test_every_kind_of_trouble_has_a_rule_that_warns_of_it() -> None:
    rules = (ROOT / "deploy" / "alerts.yaml").read_text(encoding="utf-8")
    assert re.findall(r'expr: gossamer_trouble\{kind="(\w+)"\} == 1', rules) == list(TROUBLES)
    assert rules.count("- alert: ") == rules.count("severity: ") == len(TROUBLES)
    standing = Standing(key=1)
    assert standing.counts() == dict.fromkeys(TROUBLES, 0)
    standing.ask("disk", lambda: "")
    standing.ask("disk", lambda: "the disk is full")
    assert standing.counts() == {**dict.fromkeys(TROUBLES, 0), "disk": 1}
    assert standing.troubles() == ("the disk is full",)
    standing.revoked = True
    assert standing.troubles() == (str(PeerRevoked(1)), "the disk is full"), "the worst first"


@on_jumping_clock
async def test_a_peer_whose_address_is_gone_says_so_until_it_is_back(tmp_path: Path) -> None:
    async with memory_peers(tmp_path, 1) as crowd:
        peer = crowd.peers[1]
        crowd.lost = AddressGone("192.0.2.7")
        await trio.sleep(10)
        assert peer.standing.by_kind() == {"address": str(crowd.lost)}
        assert str(address_of(1)) in map(str, peer.addresses)
        crowd.lost = None
        await trio.sleep(10)
        assert peer.standing.by_kind() == {}


def test_an_address_that_no_interface_has_is_named() -> None:
    loopback = Address("127.0.0.1", 1)
    assert list(advertised(NodeConfig(), [loopback])) == [loopback]
    with pytest.raises(AddressGone, match=r"does not have the address '192\.0\.2\.7' any more"):
        advertised(NodeConfig(), [loopback, Address("192.0.2.7", 1)])


def test_news_of_a_known_peer_is_tried_first_and_at_once() -> None:
    book, tried = AddressBook(500, 16, lambda: (), map(float, count()).__next__), list[int]()
    asks: dict[str, Any] = {"draws": random.Random(1), "round_s": 1.0}
    bootstrap = Bootstrap(Mock(), book, AsyncMock(), AsyncMock(), tried.append, **asks)
    old, new = ("10.0.0.7", 7710), ("10.0.1.7", 7710)
    for addresses in ((old,), (old,), (new, old), (new,)):
        bootstrap.add(DiscoveredPeer(7, addresses, MULTICAST))
    assert book.addresses_of(7) == (Address(*new), Address(*old))
    assert tried == [7, 7], "once for each that is new"
