"""Events that wait until it is known whose keys they were signed by.

Anybody can make up events and keys, so what waits is bounded: in number and bytes, by neighbour
that brings it, and in how many questions it leads to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

import attrs

from gossamer.node.security.sealing import publisher_of

# Events that wait, together and of those that one neighbour brought, and their bytes.
MOST_PARKED: Final = 1024
MOST_OF_ONE: Final = 128
MOST_BYTES: Final = 4 << 20
# For how many rounds, in each of which so many neighbours are asked for a key, and each of them
# for so many keys.
PATIENCE_ROUNDS: Final = 120
ASKED_A_ROUND: Final = 3
KEYS_AT_ONCE: Final = 16


class Parked(NamedTuple):
    """An event that waits: its identifier, all of it, and the key of who brought it."""

    event: int
    sealed: bytes
    brought_by: int


@attrs.define(eq=False)
class _Missing:
    """A key that is not known: what waits for it, since how many rounds, and who was asked.

    Attributes:
        questions: how many so far.
    """

    events: dict[int, Parked] = attrs.field(factory=dict)
    rounds: int = 0
    questions: int = 0
    asked: set[int] = attrs.field(factory=set)


class ParkedEvents:
    """What waits, by the key that it waits for."""

    def __init__(self) -> None:
        self._missing: dict[bytes, _Missing] = {}
        self._of: Counter[int] = Counter()
        self._bytes = 0

    def __len__(self) -> int:
        """How many events wait."""
        return self._of.total()

    def add(self, signer: bytes, parked: Parked) -> bool:
        """Let an event wait; False where it finds no room."""
        missing = self._missing.get(signer)
        if missing is not None and parked.event in missing.events:
            return True
        if (
            len(self) >= MOST_PARKED
            or self._of[parked.brought_by] >= MOST_OF_ONE
            or self._bytes + len(parked.sealed) > MOST_BYTES
        ):
            return False
        if missing is None:
            missing = self._missing[signer] = _Missing()
        missing.events[parked.event] = parked
        self._of[parked.brought_by] += 1
        self._bytes += len(parked.sealed)
        return True

    def take(self, signer: bytes) -> list[Parked]:
        """What waited for a key, and waits no more."""
        missing = self._missing.pop(signer, None)
        if missing is None:
            return []
        for parked in missing.events.values():
            self._of[parked.brought_by] -= 1
            self._bytes -= len(parked.sealed)
        self._of += Counter()  # forgets those of whom nothing waits
        return list(missing.events.values())

    def ask_first(self, signer: bytes, neighbour: int) -> bool:
        """Whether to ask the neighbour that brought an event for its key, as was not done yet."""
        asked = self._missing[signer].asked
        if neighbour in asked:
            return False
        asked.add(neighbour)
        return True

    def new_round(self, neighbours: Sequence[int]) -> tuple[list[Parked], dict[int, list[bytes]]]:
        """What nobody could prove for too long, and whom to ask now for which keys.

        Args:
            neighbours: keys of the peers that are connected.
        """
        given_up: list[Parked] = []
        questions: dict[int, list[bytes]] = {}
        # Those first of which least was asked: who makes up keys delays its own.
        by_questions = sorted(self._missing.items(), key=lambda item: item[1].questions)
        for signer, missing in by_questions:
            missing.rounds += 1
            if missing.rounds > PATIENCE_ROUNDS:
                given_up += self.take(signer)
                continue
            for key in _to_be_asked(missing, neighbours):
                keys = questions.setdefault(key, [])
                if len(keys) < KEYS_AT_ONCE:
                    missing.asked.add(key)
                    missing.questions += 1
                    keys.append(signer)
        return given_up, questions


def _to_be_asked(missing: _Missing, neighbours: Sequence[int]) -> list[int]:
    """Who may know a key: who brought events, their publisher, then any neighbour."""
    events = missing.events.values()
    named = [key for one in events for key in (one.brought_by, publisher_of(one.sealed))]
    connected = set(neighbours)
    may_know = [key for key in dict.fromkeys((*named, *neighbours)) if key in connected]
    left = [key for key in may_know if key not in missing.asked]
    if not left:
        # All were asked; what they did not know then they may know now.
        missing.asked.clear()
        left = may_know
    return left[:ASKED_A_ROUND]
