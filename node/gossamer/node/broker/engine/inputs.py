"""What waits for a broker: in the order in which it came, or publications before all else.

A burst of subscriptions comes from one side of a broker and publications from another, and on links
of their own. A broker cannot tell in which order two of its neighbours sent something, so any order
is right that keeps what each of them sent in its own. So publications may go before what came from
others, and do not wait until a burst has been worked off.
"""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Callable
from typing import Any, Final

import trio
from attrs import define, frozen

from gossamer.protocol.brokers.core.identifiers import Hop, Id
from gossamer.protocol.brokers.core.messages import Congestion, TimerFired
from gossamer.protocol.kernel.errors import ProtocolError

# Publications in a row that may go before an older message of another kind.
IN_A_ROW: Final = 8
# What the host says that has no place among what neighbours and clients send.
_AT_ANY_TIME: Final = (Congestion, TimerFired)


@frozen
class Outcome:
    """What came of a client's message.

    Attributes:
        id: what a subscription, advertisement or publication is called in the overlay.
        error: why it was refused, None if it was not.
    """

    id: Id
    error: ProtocolError | None


@define(eq=False)
class Input:
    """A message that waits for the broker.

    Attributes:
        source: who sent it, None for the host.
        message: what came.
        first: done before its effects are carried out, unless it was refused.
        done: set once what came of it is known and stored, where somebody waits for that.
        outcome: that.
    """

    source: Hop | None
    message: Any
    first: Callable[[], None] | None = None
    done: trio.Event | None = None
    outcome: Outcome | None = None


def no_message(_: Any) -> bool:
    """Let nothing go before what came earlier."""
    return False


class Inputs:
    """Messages that wait, each source's in its own order.

    What the host says of neighbours keeps its place among the messages of all of them.
    """

    def __init__(self, goes_first: Callable[[Any], bool] = no_message) -> None:
        """Nothing waits.

        Args:
            goes_first: of a message, whether it may go before what others sent earlier.
        """
        self.goes_first = goes_first
        self._numbers = itertools.count()
        self._ahead: deque[tuple[int, Input]] = deque()
        self._behind: deque[tuple[int, Input]] = deque()
        # How many of those behind nothing of their source may overtake; None: of any source.
        self._kept: Counter[Hop | None] = Counter()
        self._in_a_row = 0

    def __len__(self) -> int:
        return len(self._ahead) + len(self._behind)

    def add(self, told: Input) -> None:
        """Have a message wait."""
        if self._is_ahead(told):
            self._ahead.append((next(self._numbers), told))
            return
        self._behind.append((next(self._numbers), told))
        if not isinstance(told.message, _AT_ANY_TIME):
            self._kept[told.source] += 1

    def add_before_all(self, told: Input) -> None:
        """Have a message of `Congestion` go before what waits."""
        self._ahead.appendleft((-1, told))

    def leaves_no_room(self, told: Input, room: int) -> bool:
        """Whether so many messages wait where this one would."""
        return len(self._ahead if self._is_ahead(told) else self._behind) >= room

    def pop(self) -> Input:
        """The next message; there has to be one."""
        if not self._ahead or self._is_turn_of_older():
            self._in_a_row = 0
            _, told = self._behind.popleft()
            if not isinstance(told.message, _AT_ANY_TIME):
                self._kept[told.source] -= 1
            return told
        self._in_a_row += 1
        return self._ahead.popleft()[1]

    def _is_ahead(self, told: Input) -> bool:
        """Whether it goes before others: not if its own source sent any of them, or the host."""
        if told.source is None or not self.goes_first(told.message):
            return False
        return not (self._kept[told.source] or self._kept[None])

    def _is_turn_of_older(self) -> bool:
        """Whether enough publications have gone before a message that came before the next."""
        if self._in_a_row < IN_A_ROW or not self._behind:
            return False
        return self._behind[0][0] < self._ahead[0][0]
