"""What a filter asks of one attribute, in a form in which relations are cheap.

A constraint is an interval between two cuts of one kind, less excluded intervals inside it, and on
strings a few patterns. Its interval is tight: neither end can move inwards without losing a value
that matches. So one constraint can only cover another if its interval contains the other's, and
where it excludes nothing and has no patterns that is enough.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from attrs import evolve, field, frozen

from gossamer.protocol.content.filters.domains import (
    DOMAINS,
    Cut,
    Exact,
    Interval,
    Strings,
    exact_kind,
)
from gossamer.protocol.content.values import Kind

# What a filter asks of a string beside its place in the order: suffix, parts, and their negation.
#
# Prefixes are intervals of the order and none of this module's business.


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


@frozen(cache_hash=True)
class Constraint:
    """A set of values; made by `present`, `between`, `narrowed`, not by hand.

    Attributes:
        kind: of all values, or None: any value of any kind, and the rest says nothing.
        low, high: the tight interval.
        excluded: disjoint intervals inside it, in order, that touch none of its ends.
        patterns: what strings meet besides, if anything.
    """

    # The interval alone tells most constraints apart, and is quicker to hash.
    kind: Kind | None = field(hash=False)
    low: Cut = ()
    high: Cut = ()
    excluded: tuple[Interval, ...] = field(default=(), hash=False)
    patterns: Patterns | None = field(default=None, hash=False)

    @property
    def is_interval(self) -> bool:
        """Whether there is nothing but the interval."""
        return not self.excluded and self.patterns is None

    @property
    def demands(self) -> Patterns:
        """The patterns, which may ask for nothing."""
        return NO_PATTERNS if self.patterns is None else self.patterns

    @property
    def point(self) -> Exact | None:
        """The only value, or None if there are others."""
        return None if self.kind is None else DOMAINS[self.kind].point(self.low, self.high)

    def contains(self, value: Exact) -> bool:
        """Whether an exact value belongs to the set; values of another kind never do."""
        if self.kind is None:
            return True
        if exact_kind(value) is not self.kind:
            return False
        cut = DOMAINS[self.kind].before(value)
        if not self.low <= cut < self.high:
            return False
        return self.is_interval or (
            not any(low <= cut < high for low, high in self.excluded)
            and (self.patterns is None or self.patterns.match(value))
        )

    def covers(self, other: Constraint) -> bool:
        """Whether every value of the other set belongs to this one.

        Never true wrongly. It may be false although it holds where the other has negated or
        `contains` patterns, or this one has.
        """
        if self.kind is None:
            return True
        if other.kind is not self.kind or other.low < self.low or self.high < other.high:
            return False
        return self.is_interval or not (
            any(other.narrowed(between(self.kind, *gap)) for gap in self.excluded)
            or any(
                other.narrowed(between(self.kind, self.low, self.high, patterns=failing))
                for failing in self.demands.negations()
            )
        )

    def intersects(self, other: Constraint) -> bool:
        """Whether some value belongs to both sets; never false wrongly."""
        if self.kind is None or other.kind is None:
            return True
        if self.kind is not other.kind or self.high <= other.low or other.high <= self.low:
            return False
        both_plain = self.is_interval and other.is_interval
        return both_plain or self.narrowed(other) is not None

    def narrowed(self, other: Constraint | None) -> Constraint | None:
        """The values of both sets, or None if there are none or the other is None."""
        if other is None or self.kind is None:
            return other
        if other.kind is None:
            return self
        if other.kind is not self.kind:
            return None
        low, high = max(self.low, other.low), min(self.high, other.high)
        if self.is_interval and other.is_interval:
            return Constraint(self.kind, low, high) if low < high else None
        patterns = self.demands.joined(other.demands)
        if patterns is None:
            return None
        return between(self.kind, low, high, self.excluded + other.excluded, patterns)


PRESENT: Final = Constraint(None)
"""Any value at all."""


def between(
    kind: Kind,
    low: Cut,
    high: Cut,
    excluded: Iterable[Interval] = (),
    patterns: Patterns = NO_PATTERNS,
) -> Constraint | None:
    """The values between two cuts that are not excluded and meet the patterns, or None if none do.

    Never None wrongly. Where patterns leave nothing for reasons that `Patterns.contradict` does not
    look for, the constraint that comes back holds no value.
    """
    gaps = _merged(low, high, excluded, patterns)
    if gaps or patterns != NO_PATTERNS:
        low, high, gaps = _tightened(low, high, gaps, patterns)
    if low >= high:
        return None
    if patterns == NO_PATTERNS:
        return Constraint(kind, low, high, tuple(gaps))
    if all(patterns.leave_nothing(*piece) for piece in _pieces(low, high, gaps)):
        return None
    members = Strings.members(low, high)
    if members is not None and all(map(patterns.match, members)):
        return Constraint(kind, low, high, tuple(gaps))
    kept = patterns.without_implied(Strings.common_prefix(low, high))
    return Constraint(kind, low, high, tuple(gaps), None if kept == NO_PATTERNS else kept)


def _merged(
    low: Cut, high: Cut, excluded: Iterable[Interval], patterns: Patterns
) -> list[Interval]:
    """The excluded intervals, cut to the interval, in order, none inside another.

    Points and prefixes never overlap otherwise; what touches stays apart, to be told as it was.
    """
    gaps: list[Interval] = []
    for gap in sorted(excluded):
        begin, end = max(gap[0], low), min(gap[1], high)
        if begin >= end or (patterns != NO_PATTERNS and patterns.leave_nothing(begin, end)):
            continue
        if gaps and begin < gaps[-1][1]:
            gaps[-1] = (gaps[-1][0], max(end, gaps[-1][1]))
        else:
            gaps.append((begin, end))
    return gaps


def _tightened(
    low: Cut, high: Cut, gaps: list[Interval], patterns: Patterns
) -> tuple[Cut, Cut, list[Interval]]:
    """The ends moved inwards past whatever does not match, and the gaps that remain between."""
    gaps = list(gaps)
    while low < high:
        before = (low, high)
        if patterns != NO_PATTERNS:
            low, high = patterns.tight_low(low), patterns.tight_high(high)
        while gaps and gaps[0][0] <= low:
            low = max(low, gaps.pop(0)[1])
        while gaps and gaps[-1][1] >= high:
            high = min(high, gaps.pop()[0])
        if (low, high) == before:
            break
    return low, high, gaps


def _pieces(low: Cut, high: Cut, gaps: list[Interval]) -> list[Interval]:
    begins = [low, *(end for _, end in gaps)]
    ends = [*(begin for begin, _ in gaps), high]
    return list(zip(begins, ends, strict=True))
