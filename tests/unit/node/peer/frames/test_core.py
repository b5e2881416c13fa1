"""A peer's protocol state as its host drives it, and handles that keep their meaning."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from itertools import count

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.node.peer.frames.address_book import MAX_ADDRESSES, AddressBook
from gossamer.node.peer.frames.core import SELF, WORTH_ARRAYS, Core
from gossamer.node.security.sealing import ID_BITS
from gossamer.node.transport.base import Address
from gossamer.protocol.kernel.errors import CapacityError
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.settings.presets import kindred
from gossamer.protocol.peer.space.hashing import RING_SIZE

EVENTS = 2 * WORTH_ARRAYS


@pytest.mark.parametrize("by_key", [True, False])
@pytest.mark.parametrize("attributes", [1, 2, 3])
@given(data=st.data())
def test_points_of_many_are_as_of_each(attributes: int, by_key: bool, data: st.DataObject) -> None:
    plain = attrs.evolve(Settings(), attributes=attributes)
    core = Core(kindred(100, attributes=attributes) if by_key else plain, key=7)
    hashed = st.lists(st.integers(0, RING_SIZE - 1), min_size=attributes, max_size=attributes)
    values = data.draw(st.lists(hashed, max_size=EVENTS))
    draw = st.integers(0, (1 << ID_BITS) - 1)
    draws = data.draw(st.lists(draw, min_size=len(values), max_size=len(values)))
    one_by_one = [list(core.point_of(*one)) for one in zip(values, draws, strict=True)]
    together = core.points_of(values, draws)
    assert [list(point) for point in together] == one_by_one
    assert all(type(word) is int for point in together for word in point)


# The address book


def book_of(capacity: int, held: Collection[int] = ()) -> AddressBook:
    """That of peer 500, to which each look at the clock shows a later second."""
    book = AddressBook(500, capacity, partial(next, count(1.0)))
    book.keep(lambda: held)
    return book


def test_the_owner_is_handle_zero_and_nothing_is_no_news_about_addresses() -> None:
    address_book = book_of(4)
    assert address_book.handle_of(500) == SELF
    assert [address_book.handle_of(key) for key in (7, 8, 7)] == [1, 2, 1]
    assert address_book.key_of(2) == 8
    assert [entry.key for entry in address_book] == [7, 8]
    assert address_book.addresses_of(7) == ()
    address_book.learn(7, [Address("10.0.0.1", 1)], "seven")
    address_book.learn(7, [])
    assert address_book.addresses_of(7) == (Address("10.0.0.1", 1),)
    address_book.learn(7, [Address("10.0.0.2", 1)])
    address_book.learn(7, [Address("10.0.0.3", 1), Address("10.0.0.2", 1)])
    hosts = [address.host for address in address_book.addresses_of(7)]
    assert hosts == ["10.0.0.3", "10.0.0.2", "10.0.0.1"]
    address_book.learn(7, [Address("10.0.0.1", port) for port in range(1, 100)])
    assert len(address_book.addresses_of(7)) == MAX_ADDRESSES
    assert [entry.name for entry in address_book] == ["seven", ""]


def test_a_full_book_forgets_whom_nobody_remembers_and_gives_no_old_number_away() -> None:
    address_book = book_of(4, {2})
    for key in (7, 8, 9):
        address_book.learn(key, [])
    assert address_book.handle_of(10) == 4
    assert 7 not in address_book
    assert address_book.key_of(2) == 8
    assert address_book.handle_of(7) not in (1, 2)


def test_a_book_full_of_those_who_are_needed_takes_nobody_in() -> None:
    """Nor of those whose handles were just given out, until these are settled.

    A record names many peers before the protocol remembers any of them.
    """
    address_book = book_of(3, {1, 2})
    for key in (7, 8):
        address_book.learn(key, [])
    with pytest.raises(CapacityError, match="address book is full at 3"):
        address_book.handle_of(9)
    assert 9 not in address_book
    assert address_book.key_of(1) == 7
    address_book = book_of(3)
    first, second = address_book.handle_of(7), address_book.handle_of(8)
    with pytest.raises(CapacityError):
        address_book.handle_of(9)
    assert (address_book.key_of(first), address_book.key_of(second)) == (7, 8)
    address_book.settle()
    assert address_book.key_of(address_book.handle_of(9)) == 9


@given(keys=st.lists(st.integers(0, 30), max_size=120), kept=st.integers(0, 4))
def test_held_handles_never_change_their_meaning(keys: list[int], kept: int) -> None:
    held: dict[int, int] = {}
    address_book = book_of(8, held)
    for key in keys:
        handle = address_book.handle_of(key)
        if len(held) < kept:
            held[handle] = key
        address_book.settle()
        assert address_book.key_of(handle) == key
        assert all(address_book.key_of(one) == owner for one, owner in held.items())
        assert len(address_book) <= 8
