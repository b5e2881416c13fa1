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
from typing import Any, Final, Generic, TypeVar

from gossamer.protocol.brokers.core.messages import Congestion, Hop, TimerFired

# Publications in a row that may go before an older message of another kind.
IN_A_ROW: Final = 8
# What the host says that has no place among what neighbours and clients send.
_AT_ANY_TIME: Final = (Congestion, TimerFired)

T = TypeVar("T")


def no_message(_: object) -> bool:
    """Let nothing go before what came earlier."""
    return False


class Arrivals(Generic[T]):
    """Messages that wait, each source's in its own order, with what is kept of each.

    What the host says of neighbours keeps its place among the messages of all of them.
    """

    def __init__(self, goes_first: Callable[[Any], bool] = no_message) -> None:
        """Nothing waits.

        Args:
            goes_first: of a message, whether it may go before what others sent earlier.
        """
        self.goes_first = goes_first
        self._numbers = itertools.count()
        self._ahead: deque[tuple[int, T]] = deque()
        # With the source that keeps its place, None for the host's; "" for what keeps none.
        self._behind: deque[tuple[int, Hop | str | None, T]] = deque()
        self._kept: Counter[Hop | str | None] = Counter()
        self._in_a_row = 0

    def __len__(self) -> int:
        return len(self._ahead) + len(self._behind)

    def add(self, source: Hop | None, message: object, item: T) -> None:
        """Have a message wait, from a neighbour, a client or, None, the host."""
        if self._is_ahead(source, message):
            self._ahead.append((next(self._numbers), item))
            return
        keeps = "" if isinstance(message, _AT_ANY_TIME) else source
        self._behind.append((next(self._numbers), keeps, item))
        self._kept[keeps] += 1

    def add_before_all(self, item: T) -> None:
        """Have a message of `Congestion` go before what waits."""
        self._ahead.appendleft((-1, item))

    def waiting_where(self, source: Hop | None, message: object) -> int:
        """How many messages wait in the place of this one: ahead of the others, or among them."""
        return len(self._ahead if self._is_ahead(source, message) else self._behind)

    def pop(self) -> T:
        """What is kept of the next message; there has to be one."""
        if not self._ahead or self._is_turn_of_older():
            self._in_a_row = 0
            _, keeps, item = self._behind.popleft()
            self._kept[keeps] -= 1
            return item
        self._in_a_row += 1
        return self._ahead.popleft()[1]

    def _is_ahead(self, source: Hop | None, message: Any) -> bool:
        """Whether it goes before others: not if its own source sent any of them, or the host."""
        if source is None or not self.goes_first(message):
            return False
        return not (self._kept[source] or self._kept[None])

    def _is_turn_of_older(self) -> bool:
        """Whether enough publications have gone before a message that came before the next."""
        if self._in_a_row < IN_A_ROW or not self._behind:
            return False
        return self._behind[0][0] < self._ahead[0][0]
