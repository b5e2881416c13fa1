"""Whom a peer tries to join through, and where."""

from __future__ import annotations

import random
from itertools import count
from typing import Any
from unittest.mock import AsyncMock, Mock

from gossamer.node.discovery.sources import MULTICAST, DiscoveredPeer
from gossamer.node.peer.bootstrap import Bootstrap
from gossamer.node.peer.frames.address_book import AddressBook
from gossamer.node.transport.base.base import Address


def test_news_of_a_known_peer_is_tried_first_and_at_once() -> None:
    book, tried = AddressBook(500, 16, lambda: (), map(float, count()).__next__), list[int]()
    asks: dict[str, Any] = {"draws": random.Random(1), "round_s": 1.0}
    bootstrap = Bootstrap(Mock(), book, AsyncMock(), AsyncMock(), tried.append, **asks)
    old, new = ("10.0.0.7", 7710), ("10.0.1.7", 7710)
    for addresses in ((old,), (old,), (new, old), (new,)):
        bootstrap.add(DiscoveredPeer(7, addresses, MULTICAST))
    assert book.addresses_of(7) == (Address(*new), Address(*old))
    assert tried == [7, 7], "once for each that is new"
