"""Seeded expressions over a schema, and an oracle that evaluates every comparison by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from random import Random
from typing import Any

from attrs import frozen

from gossamer.protocol.content import schema
from gossamer.protocol.content.expressions.language import parse_expression
from gossamer.protocol.content.filters.domains import exact_literal, exact_value
from gossamer.protocol.content.filters.names import name_text
from gossamer.protocol.content.operators import Comparison, Operator
from gossamer.protocol.kernel.errors import ExpressionError
from gossamer.protocol.peer.space.covering import cover
from gossamer.protocol.peer.space.hashing import uniform_hashes
from support.filter_strategies import DAY, EQUALITY, ORDERED, TEXTS, TEXTS_AROUND, TEXTUAL, holds

SIZES = ("S", "M", "L", "XL")
SCHEMA = schema.Schema(
    [
        schema.FloatAttribute("x", -10, 10),
        schema.IntegerAttribute("n", 0, 9),
        schema.StringAttribute("s"),
        schema.DateAttribute("d", DAY, DAY + timedelta(days=3)),
        schema.EnumerationAttribute("e", SIZES),
        schema.BooleanAttribute("b"),
        schema.DecimalAttribute("c", 0, 5, 2),
    ]
)
"""One attribute of every type."""

_CONSTANTS: dict[str, tuple[Any, ...]] = {
    "x": (-10, -1.5, 0, 0.1, 1, 5e-324, 9.999999999999998, 10),
    "n": (0, 1, 2, 5, 8, 9),
    "s": TEXTS,
    "d": tuple(DAY + timedelta(days=k) for k in range(4)),
    "e": SIZES,
    "b": (False, True),
    "c": (0, 0.1, 0.3, 1.07, 5),
}
_AROUND: dict[str, tuple[Any, ...]] = {
    **_CONSTANTS,
    "x": (*_CONSTANTS["x"], -9.5, 0.10000000000000002, 1e-320, 3.5),
    "n": tuple(range(10)),
    "c": (*_CONSTANTS["c"], 0.2, 0.29, 0.31, 4.99),
    "s": TEXTS_AROUND,
    "d": (*_CONSTANTS["d"], DAY + timedelta(microseconds=1), DAY + timedelta(hours=30)),
}


@frozen
class Written:
    """An expression as text, and as the oracle reads it."""

    text: str
    word: str  # "and", "or", "not", "in", "not in", or "" for a single comparison
    parts: tuple[Written, ...] = ()
    comparisons: tuple[Comparison, ...] = ()

    def says(self, event: Mapping[str, Any]) -> bool | None:
        """Whether it holds; None where an attribute that decides it is missing (SQL's unknown)."""
        if self.word == "not":
            inner = self.parts[0].says(event)
            return None if inner is None else not inner
        if self.parts:
            said = [part.says(event) for part in self.parts]
            decisive = self.word == "or"
            if decisive in said:
                return decisive
            return None if None in said else not decisive
        name = self.comparisons[0].attribute
        if name not in event:
            return None
        found = any(_holds(one, event) for one in self.comparisons)
        return found is not (self.word == "not in")

    def matches(self, event: Mapping[str, Any]) -> bool:
        return self.says(event) is True


def _holds(comparison: Comparison, event: Mapping[str, Any]) -> bool:
    if comparison.attribute != "e" or comparison.operator is Operator.PRESENT:
        return holds(comparison, event)
    place, constant = SIZES.index(event["e"]), SIZES.index(str(comparison.constant))
    return bool(ORDERED[comparison.operator](place, constant))


def random_written(rng: Random, depth: int = 3) -> Written:
    kind = rng.random()
    if depth == 0 or kind < 0.35:
        return _random_comparison(rng)
    if kind < 0.5:
        inner = random_written(rng, depth - 1)
        if "present(" not in inner.text:
            return Written(f"not ({inner.text})", "not", (inner,))
        return inner
    word = "and" if kind < 0.75 else "or"
    parts = tuple(random_written(rng, depth - 1) for _ in range(rng.randint(2, 3)))
    return Written(f" {word} ".join(f"({part.text})" for part in parts), word, parts)


def _random_comparison(rng: Random) -> Written:
    name = rng.choice(SCHEMA.names)
    if rng.random() < 0.05:
        one = Comparison(name, Operator.PRESENT, None)
        return Written(f"present({name})", "", comparisons=(one,))
    if rng.random() < 0.15:
        word = rng.choice(("in", "not in"))
        values = rng.sample(_CONSTANTS[name], rng.randint(1, min(3, len(_CONSTANTS[name]))))
        listed = ", ".join(exact_literal(exact_value(value)) for value in values)
        found = tuple(Comparison(name, Operator.EQUAL, value) for value in values)
        return Written(f"{name} {word} {{{listed}}}", word, comparisons=found)
    operators = (*ORDERED, *TEXTUAL) if name == "s" else tuple(ORDERED)
    if name == "b":
        operators = EQUALITY
    one = Comparison(name, rng.choice(operators), rng.choice(_CONSTANTS[name]))
    value = exact_literal(exact_value(one.constant))
    return Written(f"{name_text(name)} {one.operator.value} {value}", "", comparisons=(one,))


def random_event(rng: Random, *, absent: float = 0.0) -> dict[str, Any]:
    kept = [name for name in SCHEMA.names if rng.random() >= absent] or [rng.choice(SCHEMA.names)]
    return {name: rng.choice(_AROUND[name]) for name in kept}


def matchable(draws: Random) -> Iterator[Written]:
    """Random expressions that some event may match."""
    hashes = uniform_hashes(SCHEMA)
    while True:
        written = random_written(draws)
        try:
            parsed = parse_expression(SCHEMA, written.text)
        except ExpressionError:
            continue
        if cover(SCHEMA, hashes, parsed):
            yield written
