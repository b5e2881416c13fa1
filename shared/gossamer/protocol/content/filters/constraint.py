"""What a filter asks of one attribute, in a form in which relations are cheap.

A constraint is an interval between two cuts of one kind, less excluded intervals inside it, and on
strings a few patterns. Its interval is tight: neither end can move inwards without losing a value
that matches. So one constraint can only cover another if its interval contains the other's, and
where it excludes nothing and has no patterns that is enough.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from attrs import field, frozen

from gossamer.protocol.content.filters.domains import (
    DOMAINS,
    Cut,
    Exact,
    Interval,
    Strings,
    exact_kind,
)
from gossamer.protocol.content.filters.patterns import NO_PATTERNS, Patterns
from gossamer.protocol.content.values import Kind


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
