"""Marks of filters in a broker's indexes: which neighbours they came from, and where they were sent.

An index answers by marks instead of listing what matches, so a neighbour has marks of its own while
there are any left. Those beyond share theirs, and for them, as for clients, filters are listed and
looked up.
"""

from __future__ import annotations

from typing import Final

from gossamer.protocol.broker.identifiers import Hop
from gossamer.protocol.content.matching.table import MARKS_FREE

LISTED: Final = 1
"""Came from a client, or from a neighbour without a mark of its own."""
SENT_ANYWHERE: Final = 2
"""Sent to a neighbour without a mark of its own."""
PRESERVED: Final = 4
"""Kept at some neighbour for nobody."""
_FIRST: Final = 3
OWN_MARKS: Final = (MARKS_FREE - _FIRST) // 2
"""Neighbours with marks of their own."""


class Marks:
    """Two marks for each neighbour, which are used again when it is forgotten."""

    def __init__(self) -> None:
        self._came: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self._free = [1 << (_FIRST + 2 * place) for place in reversed(range(OWN_MARKS))]

    @property
    def all_came(self) -> int:
        """The marks of everything that came from clients and neighbours."""
        marks = LISTED
        for mark in self._names:
            marks |= mark
        return marks

    def came(self, hop: Hop) -> int:
        """The mark of what came from a hop."""
        return LISTED if hop.is_client else self._came.get(hop.name, LISTED)

    def sent(self, name: str) -> int:
        """The mark of what was sent to a neighbour."""
        came = self._came.get(name)
        return SENT_ANYWHERE if came is None else came << 1

    def names(self, marks: int) -> list[str]:
        """The neighbours from which something with these marks came, LISTED aside."""
        return [name for mark, name in self._names.items() if marks & mark]

    def assign(self, name: str) -> None:
        """A neighbour is new."""
        if self._free:
            mark = self._free.pop()
            self._came[name] = mark
            self._names[mark] = name

    def forget(self, name: str) -> None:
        """A neighbour is gone, and nothing has its marks any more."""
        mark = self._came.pop(name, None)
        if mark is not None:
            del self._names[mark]
            self._free.append(mark)
