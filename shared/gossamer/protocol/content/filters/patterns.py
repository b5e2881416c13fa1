"""What a filter asks of a string beside its place in the order: suffix, parts, and their negation.

Prefixes are intervals of the order and none of this module's business.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from attrs import evolve, field, frozen

from gossamer.protocol.content.filters.domains import Cut, Strings


def _texts(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(texts)


@frozen
class Patterns:
    """A conjunction of demands on the text of a string.

    Attributes:
        suffix: what it ends with; two suffixes are one, or contradict each other.
        parts: what it contains.
        no_suffixes: what it does not end with.
        no_parts: what it does not contain.
    """

    suffix: str = ""
    parts: frozenset[str] = field(default=frozenset(), converter=_texts)
    no_suffixes: frozenset[str] = field(default=frozenset(), converter=_texts)
    no_parts: frozenset[str] = field(default=frozenset(), converter=_texts)

    def match(self, text: str) -> bool:
        """Whether a string meets all demands."""
        return (
            text.endswith(self.suffix)
            and all(part in text for part in self.parts)
            and not any(text.endswith(suffix) for suffix in self.no_suffixes)
            and not any(part in text for part in self.no_parts)
        )

    def joined(self, other: Patterns) -> Patterns | None:
        """The demands of both, or None if they contradict each other in their suffixes."""
        short, long = sorted((self.suffix, other.suffix), key=len)
        if not long.endswith(short):
            return None
        return Patterns(
            long,
            self.parts | other.parts,
            self.no_suffixes | other.no_suffixes,
            self.no_parts | other.no_parts,
        )

    def contradict(self, prefix: str) -> bool:
        """Whether no string that begins with a prefix meets all demands.

        Never true wrongly. It may be false where negated demands, or parts that overlap, leave
        nothing: what that takes is not worth finding out.
        """
        known = (prefix, self.suffix, *self.parts)
        return any(self.suffix.endswith(suffix) for suffix in self.no_suffixes) or any(
            part in text for part in self.no_parts for text in known
        )

    def negations(self) -> tuple[Patterns, ...]:
        """For every demand, what strings that fail it meet."""
        return (
            *(Patterns(no_suffixes={self.suffix}) for _ in range(bool(self.suffix))),
            *(Patterns(no_parts={part}) for part in self.parts),
            *(Patterns(suffix=suffix) for suffix in self.no_suffixes),
            *(Patterns(parts={part}) for part in self.no_parts),
        )

    def without_implied(self, prefix: str) -> Patterns:
        """The same demands on strings that begin with a prefix, without those that follow."""
        parts = {
            part
            for part in self.parts
            if part not in prefix
            and part not in self.suffix
            and not any(part in other for other in self.parts - {part})
        }
        no_suffixes = {
            suffix
            for suffix in self.no_suffixes
            if not any(suffix.endswith(other) for other in self.no_suffixes - {suffix})
            and suffix.endswith(self.suffix)
        }
        no_parts = {
            part
            for part in self.no_parts
            if not any(other in part for other in self.no_parts - {part})
        }
        return evolve(self, parts=parts, no_suffixes=no_suffixes, no_parts=no_parts)

    def tight_low(self, low: Cut) -> Cut:
        """The highest cut with the same matching strings above it as `low`, among strings with
        NULs at their end: those right above `low`, one after the other."""
        past_all, stem, nuls = low
        if past_all or nuls == math.inf:
            return low
        for more in range(nuls, nuls + self._longest + 2):
            if self.match(stem + "\0" * more):
                return (0, stem, more)
        return (0, stem, math.inf)

    def written_low(self, low: Cut) -> Cut:
        """A cut without infinitely many NULs, so that text can say it, which tightens to `low`."""
        if low[-1] != math.inf:
            return low
        stem = low[1]
        later = range(self._longest + 2, -1, -1)
        last = next((nuls for nuls in later if self.match(stem + "\0" * nuls)), -1)
        return (0, stem, last + 1)

    def tight_high(self, high: Cut) -> Cut:
        """The lowest cut with the same matching strings below it as `high`, likewise."""
        past_all, stem, nuls = high
        if past_all or nuls == math.inf:
            return high
        while nuls and not self.match(stem + "\0" * (nuls - 1)):
            nuls -= 1
        return (0, stem, nuls)

    def leave_nothing(self, low: Cut, high: Cut) -> bool:
        """Whether no string between two cuts meets all demands; never true wrongly."""
        members = Strings.members(low, high)
        if members is not None:
            return not any(self.match(text) for text in members)
        return self.contradict(Strings.common_prefix(low, high))

    @property
    def _longest(self) -> int:
        texts = (self.suffix, *self.parts, *self.no_suffixes, *self.no_parts)
        return max(map(len, texts))


NO_PATTERNS: Final = Patterns()
