"""Subscriptions to stock quotes, with about four predicates each.

With little covering they are about ranges that each subscriber chooses around prices that were
seen; with heavy covering about ranges whose ends are round numbers, so that many contain each
other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random

from gossamer.protocol.content.filters import Filter
from gossamer.protocol.content.grammar import Comparison, Operator
from gossamer.protocol.kernel.errors import ContradictionError
from gossamer.sim.studies.stock_quotes import PRICES, Quote


def little_covering(quotes: Sequence[Quote], seed: int) -> Iterator[Filter]:
    """Subscriptions of which few cover others, without end."""
    return _subscriptions(quotes, seed, _little)


def heavy_covering(quotes: Sequence[Quote], seed: int) -> Iterator[Filter]:
    """Subscriptions of which most are covered by others, without end."""
    return _subscriptions(quotes, seed, _heavy)


def _subscriptions(
    quotes: Sequence[Quote], seed: int, compare: Callable[[Random, Quote], list[Comparison]]
) -> Iterator[Filter]:
    rng = Random(seed)
    while True:
        try:
            yield Filter.of(compare(rng, rng.choice(quotes)))
        except ContradictionError:  # of a price so low that its range is empty
            continue


def _little(rng: Random, quote: Quote) -> list[Comparison]:
    found = [_symbol(quote, whole=rng.random() < 0.8)]
    for name in rng.sample(PRICES, rng.choice((1, 1, 2))):
        price = _number(quote, name)
        width = price * rng.uniform(0.02, 0.3)
        low = round(price - width * rng.random(), 2)
        found += _between(name, low, round(low + width, 2))
    if len(found) < 4:
        volume = int(_number(quote, "volume") * rng.uniform(0.5, 1.5))
        found.append(Comparison("volume", Operator.GREATER, volume))
    return found


def _heavy(rng: Random, quote: Quote) -> list[Comparison]:
    if rng.random() < 0.002:
        return [Comparison("class", Operator.EQUAL, "stock"), _symbol(quote, whole=False)]
    found = [_symbol(quote, whole=rng.random() < 0.97)]
    for name in PRICES[: rng.choice((1, 2, 2))]:
        step = rng.choice((0.5, 1, 5, 10, 50))
        low = _number(quote, name) // step * step
        found += _between(name, low, low + step)
    return found[: rng.choice((3, 4, 5))]


def _symbol(quote: Quote, whole: bool) -> Comparison:
    symbol = str(quote["symbol"])
    if whole:
        return Comparison("symbol", Operator.EQUAL, symbol)
    return Comparison("symbol", Operator.STARTS_WITH, symbol[:1])


def _between(name: str, low: float, high: float) -> list[Comparison]:
    return [Comparison(name, Operator.AT_LEAST, low), Comparison(name, Operator.LESS, high)]


def _number(quote: Quote, name: str) -> float:
    value = quote[name]
    assert isinstance(value, int | float)
    return value
