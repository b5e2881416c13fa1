"""Lines that were not published: the first are named, the others counted by kind at the end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from attrs import define, field

from gossamer.node.errors import EventInputError

# Lines that are named each, and kinds that are named of the others.
LISTED: Final = 10
KINDS: Final = 5
# Kinds that are told from each other at all.
_MOST_KINDS: Final = 100
# What differs between two lines of one kind: values, places within them, details.
_VALUES: Final = re.compile(r'"(?:[^"\\]|\\.)*"|\([^)]*\)|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?')


@define
class _Kind:
    example: EventInputError
    count: int = 0


@define
class Refusals:
    """Why lines were not published.

    Attributes:
        listed: how many have been named.
    """

    listed: int = 0
    _kinds: dict[str, _Kind] = field(factory=dict)

    def take(self, error: EventInputError) -> str | None:
        """A sentence about a line; None if it is only counted, after so many others."""
        if self.listed < LISTED:
            self.listed += 1
            return str(error)
        kind = _VALUES.sub("#", error.reason)
        if kind not in self._kinds and len(self._kinds) >= _MOST_KINDS:
            kind = next(reversed(self._kinds))
        self._kinds.setdefault(kind, _Kind(error)).count += 1
        return None

    def summary(self) -> Iterator[str]:
        """Sentences about the lines that were only counted."""
        kinds = sorted(self._kinds.values(), key=lambda kind: -kind.count)
        if kinds:
            yield f"{_lines(sum(kind.count for kind in kinds))} more:"
        for kind in kinds[:KINDS]:
            more = "" if kind.count == 1 else f" (and {kind.count - 1:,} like it)"
            yield f"  {kind.example}{more}"
        left = sum(kind.count for kind in kinds[KINDS:])
        if left:
            yield f"  {_lines(left)} for other reasons"


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count:,} lines"
