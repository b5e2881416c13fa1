"""Synthetic stock quotes and range subscriptions to them, for benchmarks and tests of exactness."""

from __future__ import annotations

import random
from collections.abc import Sequence

from attrs import frozen

from gossamer.protocol.content.schema import FloatAttribute, IntegerAttribute, Schema

SCHEMA = Schema(
    [
        FloatAttribute("price", 0, 200),
        IntegerAttribute("volume", 0, 10_000),
        FloatAttribute("change", -20, 20),
    ]
)

Quote = dict[str, float | int]

_SYMBOLS = 40
# The share of quotes that a range holds: three of them together hold a quarter, on average.
WIDTHS = (0.4, 0.9)


@frozen
class Wish:
    """A subscription that wants each attribute in a range, ends included."""

    ranges: dict[str, tuple[float, float]]

    @property
    def expression(self) -> str:
        return " and ".join(
            f"{name} >= {low!r} and {name} <= {high!r}" for name, (low, high) in self.ranges.items()
        )

    def wants(self, quote: Quote) -> bool:
        """Whether it matches, by the definition rather than by any code of the node."""
        return all(low <= quote[name] <= high for name, (low, high) in self.ranges.items())


def make_quotes(count: int, seed: int) -> list[Quote]:
    """Quotes of symbols whose prices walk at random, each with a volume and the change so far."""
    draws = random.Random(seed)
    opened = [draws.uniform(20, 180) for _ in range(_SYMBOLS)]
    prices = list(opened)
    quotes: list[Quote] = []
    for _ in range(count):
        symbol = draws.randrange(_SYMBOLS)
        moved = prices[symbol] * draws.gauss(1, 0.01)
        prices[symbol] = min(max(moved, 0.9 * opened[symbol]), 1.1 * opened[symbol])
        change = 100 * (prices[symbol] / opened[symbol] - 1)
        quotes.append(
            {
                "price": round(prices[symbol], 2),
                "volume": min(10_000, round(draws.lognormvariate(6.5, 1))),
                "change": round(change, 3),
            }
        )
    return quotes


def make_wishes(
    count: int, quotes: Sequence[Quote], seed: int, widths: tuple[float, float] = WIDTHS
) -> list[Wish]:
    """Subscriptions to ranges of all attributes, each of which holds a share of ``quotes`` in it.

    Shares are from the least to the largest of ``widths``.
    """
    draws = random.Random(seed)
    ordered = {name: sorted(quote[name] for quote in quotes) for name in SCHEMA.names}

    def draw_range(values: list[float | int]) -> tuple[float, float]:
        held = round(draws.uniform(*widths) * len(values))
        first = draws.randrange(len(values) - held)
        return values[first], values[first + held]

    return [
        Wish({name: draw_range(values) for name, values in ordered.items()}) for _ in range(count)
    ]
