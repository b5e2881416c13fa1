"""Marks of filters in a broker's index: who told it of them, and whom it told.

An index answers by marks instead of listing what matches, so a neighbour has marks of its own while
there are any left. Those beyond share theirs, and for them, as for clients, filters are listed and
looked up.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from gossamer.protocol.brokers.core.identifiers import Hop
from gossamer.protocol.content.matching.table import MARKS_FREE

# What filters without a mark of their neighbour's own have: subscriptions of clients or that came
# from, or were sent to, a neighbour, advertisements of one; and what is kept at one for nobody.
LISTED: Final = 1
SENT_SOMEWHERE: Final = 2
OFFERED_SOMEWHERE: Final = 4
PRESERVED: Final = 8
_SHARED: Final = 4
_CAME, _SENT, _OFFERED, _EACH = range(4)
OWN_MARKS: Final = (MARKS_FREE - _SHARED) // _EACH
"""Neighbours with marks of their own."""


def _every(mark: int) -> int:
    return sum(1 << (_SHARED + _EACH * place + mark) for place in range(OWN_MARKS))


ALL_CAME: Final = LISTED | _every(_CAME)
ALL_SENT: Final = SENT_SOMEWHERE | PRESERVED | _every(_SENT)
ALL_OFFERED: Final = OFFERED_SOMEWHERE | _every(_OFFERED)
"""The marks of subscriptions in the table, of those at neighbours, and of advertisements."""


class Marks:
    """Three marks for each neighbour, which are used again when it is forgotten."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self._free = list(reversed(range(OWN_MARKS)))

    def came(self, hop: Hop) -> int:
        """The mark of subscriptions that came from a hop."""
        return LISTED if hop.is_client else self._mark(hop.name, _CAME, LISTED)

    def sent(self, name: str) -> int:
        """The mark of subscriptions that were sent to a neighbour."""
        return self._mark(name, _SENT, SENT_SOMEWHERE)

    def offered(self, name: str) -> int:
        """The mark of advertisements that came from a neighbour."""
        return self._mark(name, _OFFERED, OFFERED_SOMEWHERE)

    def names(self, marks: int) -> Iterable[str]:
        """The neighbours that have some of these marks for their own."""
        marks >>= _SHARED
        place = 0
        while marks:
            if marks & (1 << _EACH) - 1:
                yield self._names[place]
            marks >>= _EACH
            place += 1

    def assign(self, name: str) -> None:
        """A neighbour is new."""
        if self._free:
            place = self._free.pop()
            self._places[name] = place
            self._names[place] = name

    def forget(self, name: str) -> None:
        """A neighbour is gone, and nothing has its marks any more."""
        place = self._places.pop(name, None)
        if place is not None:
            del self._names[place]
            self._free.append(place)

    def _mark(self, name: str, mark: int, shared: int) -> int:
        place = self._places.get(name)
        return shared if place is None else 1 << (_SHARED + _EACH * place + mark)
