"""Finds members that this peer does not reach though others do: two networks, or firewalls.

The protocol takes whom it cannot reach for gone, and goes on by other ways where there are some.
Whether somebody is gone or only out of reach from here tells who is connected to it: neighbours
are asked about those to whom connecting failed several times.
"""

from __future__ import annotations

import random
from typing import Final

import trio

from gossamer.node.errors import NoAnswerError
from gossamer.node.peer.frames.address_book import AddressBook
from gossamer.node.peer.unicast.messages import Unicast
from gossamer.node.security.identity import decode, encode, key_text
from gossamer.node.transport.base.frames import KEY_HIGH
from gossamer.node.transport.links import ConnectionPool

SERVICE: Final = "reach"
LOOK_S: Final = 10.0
ANSWER_S: Final = 5.0
# Connecting failed so often before somebody is asked, and whom is asked of how many.
FAILURES: Final = 3
ASKED, ABOUT = 3, 16
# For how long an answer holds, and a failure is asked about.
TOLD_S: Final = 90.0


class Reachability:
    """What one peer knows of that; `run` asks.

    Args:
        messages: to neighbours.
        pool: connections to others, and what failed.
        address_book: knows what people call peers.
        draws: choose whom to ask.
    """

    def __init__(
        self,
        messages: Unicast,
        pool: ConnectionPool,
        address_book: AddressBook,
        draws: random.Random,
    ) -> None:
        self._messages = messages
        self._pool = pool
        self._address_book = address_book
        self._draws = draws
        # By key, a neighbour that is connected to it, and trio's time of its answer.
        self._reached_by: dict[int, tuple[int, float]] = {}
        messages.offer(SERVICE, self._answer)

    @property
    def unreachable(self) -> dict[int, int]:
        """The keys of those who are there and not reached from here, and of who reaches each."""
        now = trio.current_time()
        return {
            key: by
            for key, (by, at) in sorted(self._reached_by.items())
            if now - at < TOLD_S and self._pool.get(key) is None
        }

    def complaint(self) -> str:
        """Who is not reached from here, in a sentence; "" where nobody is known to be."""
        found = self.unreachable
        if not found:
            return ""
        key, by = next(iter(found.items()))
        more = f", nor {len(found) - 1} more" if len(found) > 1 else ""
        where = ", ".join(map(str, self._address_book.addresses_of(key))) or "no known address"
        return (
            f"{self._name(key)} is not reached from here at {where}{more}, though "
            f"{self._name(by)} is connected to it: let their networks reach each other"
        )

    async def run(self) -> None:
        """Ask about those to whom connecting fails, until cancelled."""
        while True:
            await trio.sleep(LOOK_S)
            failing = self._pool.failing(FAILURES, TOLD_S)[:ABOUT]
            if failing:
                await self._ask(failing)

    async def _ask(self, failing: list[int]) -> None:
        connected = sorted(self._messages.connected)
        for neighbour in self._draws.sample(connected, min(ASKED, len(connected))):
            try:
                raw = await self._messages.ask(neighbour, (), SERVICE, encode(failing), ANSWER_S)
                for place in _places(raw, len(failing)):
                    self._reached_by[failing[place]] = neighbour, trio.current_time()
            except (NoAnswerError, ValueError):
                continue
        known = self.unreachable
        self._reached_by = {key: one for key, one in self._reached_by.items() if key in known}

    def _answer(self, _: int, body: bytes) -> bytes:
        keys = decode(body)
        if type(keys) is not list or len(keys) > ABOUT:
            raise ValueError("no question about keys")
        if any(type(key) is not int or not 0 <= key <= KEY_HIGH for key in keys):
            raise ValueError("no keys")
        return encode([place for place, key in enumerate(keys) if self._pool.get(key) is not None])

    def _name(self, key: int) -> str:
        entry = self._address_book.find(key)
        return f"{entry.name} ({key_text(key)})" if entry and entry.name else key_text(key)


def _places(raw: bytes, most: int) -> list[int]:
    places = decode(raw)
    if type(places) is not list or any(type(one) is not int for one in places):
        raise ValueError("no places")
    return [one for one in places if 0 <= one < most]
