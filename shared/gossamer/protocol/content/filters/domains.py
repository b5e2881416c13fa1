"""The ordered values of each kind, and cuts between them.

A cut divides the values of a kind into those below it and those above, so an interval between two
cuts needs no flags for open and closed ends. Numbers lie dense: before and after a number are two
cuts. Behind a string comes the same string with a NUL, behind an instant the next microsecond:
there, after a value and before its successor are one cut. Cuts of one kind compare as tuples.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Final

from gossamer.protocol.content.grammar import Operator
from gossamer.protocol.content.values import Kind, canonical, literal, prefix_successor

Exact = Any
"""An exact value: what `canonical` gives, a boolean, or an infinity."""

Cut = tuple[Any, ...]
Interval = tuple[Cut, Cut]
"""The values from the first cut up to the second."""
End = tuple[Operator, Exact]
"""A comparison that says where an interval begins or ends."""

_NUL: Final = "\0"
_MICROSECOND: Final = timedelta(microseconds=1)


def exact_value(value: object) -> Exact | None:
    """The one form of a value that all equal values share, or None if it is no value.

    As `canonical`, and booleans and infinities are values too; NaN is none.
    """
    if isinstance(value, float) and math.isinf(value):
        return float(value)
    if isinstance(value, bool):
        return value
    return canonical(value)


def exact_kind(value: Exact) -> Kind:
    """The kind of an exact value."""
    if isinstance(value, bool):
        return Kind.BOOLEAN
    if isinstance(value, str):
        return Kind.STRING
    return Kind.DATE if isinstance(value, datetime) else Kind.NUMBER


def exact_literal(value: Exact) -> str:
    """The text of an exact value, which the filter language reads back."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return literal(value)


class Domain(ABC):
    """The values of one kind in their order.

    Attributes:
        bottom, top: the cuts below and above all values.
    """

    bottom: ClassVar[Cut]
    top: ClassVar[Cut]

    @staticmethod
    @abstractmethod
    def before(value: Exact) -> Cut:
        """The cut just below a value."""

    @staticmethod
    @abstractmethod
    def after(value: Exact) -> Cut:
        """The cut just above a value."""

    @classmethod
    def point(cls, low: Cut, high: Cut) -> Exact | None:
        """The value that alone lies between two cuts, or None."""
        value = cls.above(low)
        return value if value is not None and cls.after(value) == high else None

    @staticmethod
    @abstractmethod
    def above(low: Cut) -> Exact | None:
        """The least value above a cut, or None if there is none."""

    @classmethod
    @abstractmethod
    def begins(cls, low: Cut) -> End:
        """How text says that values begin at a cut other than the bottom."""

    @classmethod
    @abstractmethod
    def ends(cls, high: Cut) -> End:
        """How text says that values end at a cut other than the top."""


class Numbers(Domain):
    """The reals and both infinities; a cut is a number and whether it lies above it."""

    bottom = (-math.inf, 0)
    top = (math.inf, 1)

    @staticmethod
    def before(value: Exact) -> Cut:
        return (value, 0)

    @staticmethod
    def after(value: Exact) -> Cut:
        return (value, 1)

    @staticmethod
    def above(low: Cut) -> Exact | None:
        return None if low[1] else low[0]

    @classmethod
    def begins(cls, low: Cut) -> End:
        return (Operator.GREATER if low[1] else Operator.AT_LEAST, low[0])

    @classmethod
    def ends(cls, high: Cut) -> End:
        return (Operator.AT_MOST if high[1] else Operator.LESS, high[0])


class Strings(Domain):
    """Strings by code point; a cut is the string above it without its NULs at the end, and those.

    Infinitely many NULs stand for the cut above the string with any number of them: below the rest
    of what begins with it. The first number of a cut is 1 for the top only.
    """

    bottom = (0, "", 0)
    top = (1, "", 0)

    @staticmethod
    def before(value: Exact) -> Cut:
        stem = value.rstrip(_NUL)
        return (0, stem, len(value) - len(stem))

    @classmethod
    def after(cls, value: Exact) -> Cut:
        stem, nuls = cls.before(value)[1:]
        return (0, stem, nuls + 1)

    @staticmethod
    def above(low: Cut) -> Exact | None:
        past_all, stem, nuls = low
        return None if past_all or nuls == math.inf else stem + _NUL * nuls

    @classmethod
    def begins(cls, low: Cut) -> End:
        nuls = low[2]
        if nuls == 0:
            return (Operator.AT_LEAST, low[1])
        return (Operator.GREATER, low[1] + _NUL * (nuls - 1))

    @classmethod
    def ends(cls, high: Cut) -> End:
        nuls = high[2]
        if nuls == 0:
            return (Operator.LESS, high[1])
        return (Operator.AT_MOST, high[1] + _NUL * (nuls - 1))

    @classmethod
    def starting_with(cls, prefix: str) -> Interval:
        """All strings that begin with a prefix."""
        successor = prefix_successor(prefix)
        return (cls.before(prefix), cls.top if successor is None else cls.before(successor))

    @staticmethod
    def members(low: Cut, high: Cut) -> list[str] | None:
        """The strings between two cuts if they are finitely many, else None.

        Only a string and itself with NULs have finitely many strings between them.
        """
        if low >= high:
            return []
        if low[:2] != high[:2] or high[2] == math.inf:
            return None
        return [low[1] + _NUL * nuls for nuls in range(low[2], high[2])]

    @staticmethod
    def common_prefix(low: Cut, high: Cut) -> str:
        """What all strings between two cuts begin with."""
        shared = 0
        for one, other in zip(low[1], high[1], strict=False):
            if one != other:
                break
            shared += 1
        prefix: str = low[1][:shared]
        if shared < len(low[1]) and high == Strings.starting_with(low[1][: shared + 1])[1]:
            return str(low[1][: shared + 1])
        return prefix


class Dates(Domain):
    """Instants to the microsecond; a cut is the instant above it, and 1 for the top only."""

    bottom = (datetime.min.replace(tzinfo=UTC), 0)
    top = (datetime.max.replace(tzinfo=UTC), 1)

    @staticmethod
    def before(value: Exact) -> Cut:
        return (value, 0)

    @classmethod
    def after(cls, value: Exact) -> Cut:
        return cls.top if value == cls.top[0] else (value + _MICROSECOND, 0)

    @staticmethod
    def above(low: Cut) -> Exact | None:
        return None if low[1] else low[0]

    @classmethod
    def begins(cls, low: Cut) -> End:
        if low[0].microsecond == 1:
            return (Operator.GREATER, low[0] - _MICROSECOND)
        return (Operator.AT_LEAST, low[0])

    @classmethod
    def ends(cls, high: Cut) -> End:
        if high[0].microsecond == 1:
            return (Operator.AT_MOST, high[0] - _MICROSECOND)
        return (Operator.LESS, high[0])


class Booleans(Domain):
    """False, then true; a cut is the number of values below it."""

    bottom = (0,)
    top = (2,)

    @staticmethod
    def before(value: Exact) -> Cut:
        return (int(value),)

    @staticmethod
    def after(value: Exact) -> Cut:
        return (int(value) + 1,)

    @staticmethod
    def above(low: Cut) -> Exact | None:
        return bool(low[0]) if low[0] < 2 else None

    @classmethod
    def begins(cls, low: Cut) -> End:
        return (Operator.AT_LEAST, bool(low[0]))

    @classmethod
    def ends(cls, high: Cut) -> End:
        return (Operator.LESS, bool(high[0]))


DOMAINS: Final[dict[Kind, type[Domain]]] = {
    Kind.NUMBER: Numbers,
    Kind.STRING: Strings,
    Kind.DATE: Dates,
    Kind.BOOLEAN: Booleans,
}
