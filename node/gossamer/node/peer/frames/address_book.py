"""The address book: which small number stands for which peer, and where that peer listens.

Rules know peers by handles, the wire by permanent keys. A handle keeps its meaning for as long as
anybody here may remember it; the book forgets only peers that nobody remembers, and takes new
numbers before old ones, so that one that was forgotten comes back last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import attrs

from gossamer.node.peer.frames.core import SELF
from gossamer.node.security.identity import key_text
from gossamer.node.transport.base import Address
from gossamer.protocol.kernel.errors import CapacityError
from gossamer.protocol.peer.state.links import HANDLE_MASK

# Addresses kept of one peer: as many as a descriptor may hold.
MAX_ADDRESSES: Final = 16


@attrs.define(eq=False)
class Entry:
    """What is known of a peer.

    Attributes:
        key: its permanent key.
        handle: what rules know it by.
        addresses: where it listens or did, those told last first.
        name: what it calls itself, "" if nothing is known.
        heard_at: when it was last heard of, by the book's clock; None if never.
    """

    key: int
    handle: int
    addresses: tuple[Address, ...] = ()
    name: str = ""
    heard_at: float | None = None


class AddressBook:
    """The peers known, this one included, at most ``capacity``."""

    def __init__(
        self,
        key: int,
        capacity: int,
        clock: Callable[[], float],
    ) -> None:
        """A book that knows its owner only.

        Args:
            key: the owner's permanent key.
            capacity: peers kept.
            clock: seconds, never going back.
        """
        self._capacity = capacity
        self._held: list[Callable[[], Iterable[int]]] = []
        self._clock = clock
        self._by_key: dict[int, Entry] = {}
        self._by_handle: dict[int, Entry] = {}
        self._next = SELF
        self._recent: set[int] = set()
        self._add(key)

    def keep(self, held: Callable[[], Iterable[int]]) -> None:
        """Let those handles keep their meaning that ``held`` gives when there is no room."""
        self._held.append(held)

    def __len__(self) -> int:
        return len(self._by_key)

    def __iter__(self) -> Iterator[Entry]:
        """Every peer but the owner."""
        return iter([entry for entry in self._by_key.values() if entry.handle != SELF])

    def __contains__(self, key: object) -> bool:
        return key in self._by_key

    def handle_of(self, key: int) -> int:
        """The handle of peer ``key``, which is entered if it is new; good at least until `settle`.

        Raises:
            CapacityError: the book is full of peers that are all remembered by somebody.
        """
        entry = self._by_key.get(key) or self._add(key)
        self._recent.add(entry.handle)
        return entry.handle

    def key_of(self, handle: int) -> int:
        """The permanent key of a peer that the book knows."""
        return self._by_handle[handle].key

    def find(self, key: int) -> Entry | None:
        """What is known of peer ``key``."""
        return self._by_key.get(key)

    def text_of(self, key: int) -> str:
        """Peer ``key`` for people, by its name where that is known."""
        entry = self._by_key.get(key)
        return f"{entry.name} ({key_text(key)})" if entry and entry.name else key_text(key)

    def heard_s(self, key: int) -> float | None:
        """Seconds since peer ``key`` was last heard of; None if it never was."""
        entry = self._by_key.get(key)
        heard_at = None if entry is None else entry.heard_at
        return None if heard_at is None else self._clock() - heard_at

    def addresses_of(self, key: int) -> Sequence[Address]:
        """Where peer ``key`` listens, as far as is known."""
        entry = self._by_key.get(key)
        return () if entry is None else entry.addresses

    def learn(self, key: int, addresses: Iterable[Address], name: str = "") -> Entry:
        """Note where peer ``key`` listens: what is told comes first, and behind it what was known.

        Who tells may be behind the times: a network may have been given new addresses meanwhile.

        Raises:
            CapacityError: as of `handle_of`.
        """
        entry = self._by_key.get(key) or self._add(key)
        told = dict.fromkeys((*addresses, *entry.addresses))
        entry.addresses = tuple(told)[:MAX_ADDRESSES]
        entry.name = name or entry.name
        entry.heard_at = self._clock()
        return entry

    def disown(self, key: int) -> None:
        """Forget where peer ``key`` listens: it is not to be dialled."""
        entry = self._by_key.get(key)
        if entry is not None:
            entry.addresses = ()

    def settle(self) -> None:
        """The handles given out so far are remembered by now by those who need them."""
        self._recent.clear()

    def _add(self, key: int) -> Entry:
        if len(self._by_key) >= self._capacity:
            self._forget_unneeded()
        if len(self._by_key) >= self._capacity:
            raise CapacityError("the address book", self._capacity, "raise its capacity")
        while self._next in self._by_handle:
            self._next = (self._next + 1) & HANDLE_MASK
        entry = Entry(key, self._next)
        self._next = (self._next + 1) & HANDLE_MASK
        self._by_key[key] = self._by_handle[entry.handle] = entry
        return entry

    def _forget_unneeded(self) -> None:
        """Forget the half of the unneeded peers that were heard of longest ago."""
        held = {SELF, *self._recent}.union(*(handles() for handles in self._held))
        free = [entry for entry in self._by_key.values() if entry.handle not in held]
        free.sort(key=lambda entry: -1.0 if entry.heard_at is None else entry.heard_at)
        for entry in free[: -(-len(free) // 2)]:
            del self._by_key[entry.key]
            del self._by_handle[entry.handle]
