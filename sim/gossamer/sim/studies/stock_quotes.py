"""Stock quotes and subscriptions to them: the workload that content-based brokers are measured by.

Quotes have the shape of daily prices (symbol, date, open, high, low, close, volume); they are
random walks, or read from a file. Subscriptions have about four predicates. With little covering
they are about ranges that each subscriber chooses around prices that were seen; with heavy covering
about ranges whose ends are round numbers, so that many contain each other.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from random import Random
from typing import Any, Final

from gossamer.protocol.content.filters import Filter
from gossamer.protocol.content.grammar import Comparison, Operator
from gossamer.protocol.kernel.errors import ContradictionError
from gossamer.sim.errors import ScenarioError

Quote = dict[str, object]

PRICES: Final = ("open", "high", "low", "close")
SYMBOLS: Final = 100
_COLUMNS: Final = ("symbol", "date", *PRICES, "volume")
# No name of a column has a line end in it.
_FURTHER: Final = "further columns\n"
# Of a price or volume that is read; whole numbers up to it are exact as floats.
LARGEST: Final = 1e15
_ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_FIRST_DAY: Final = date(1996, 1, 2)


def make_quotes(number: int, seed: int, symbols: int = SYMBOLS) -> list[Quote]:
    """Quotes of as many symbols, day by day; prices in dollars and cents.

    Closing prices are geometric random walks with a daily deviation of 2 %; volumes are log-normal.
    """
    rng = Random(seed)
    names = ["".join(rng.choices(_ALPHABET, k=rng.randint(3, 5))) for _ in range(symbols)]
    closes = [rng.lognormvariate(3, 1) for _ in names]
    quotes: list[Quote] = []
    while len(quotes) < number:
        day = _FIRST_DAY + timedelta(len(quotes) // symbols)
        for place, name in enumerate(names[: number - len(quotes)]):
            before = closes[place]
            after = closes[place] = max(before * rng.lognormvariate(0, 0.02), 0.1)
            quotes.append(
                {
                    "class": "stock",
                    "symbol": name,
                    "date": day.isoformat(),
                    "open": round(before, 2),
                    "high": round(max(before, after) * (1 + rng.random() / 50), 2),
                    "low": round(min(before, after) * (1 - rng.random() / 50), 2),
                    "close": round(after, 2),
                    "volume": int(rng.lognormvariate(13, 1)) // 100 * 100,
                }
            )
    return quotes


def read_quotes(path: Path) -> list[Quote]:
    """The quotes of a gzipped CSV file with the columns that `make_quotes` has, class aside.

    Raises:
        ScenarioError: the file cannot be read, or a line is no quote.
    """
    try:
        with gzip.open(path, "rt", encoding="utf-8-sig", newline="") as lines:
            rows = csv.DictReader(lines, restkey=_FURTHER)
            return [_quote_of(row, f"{path}, line {rows.line_num}") for row in rows]
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        found = f"unreadable ({getattr(error, 'strerror', None) or error})"
        expected = f"gzipped CSV with the columns {', '.join(_COLUMNS)}"
        raise ScenarioError(str(path), "the file of quotes", None, expected, found) from None


def _quote_of(row: Mapping[str, Any], place: str) -> Quote:
    """A line of the file at ``place``."""
    for name in _COLUMNS:
        if row.get(name) is None:
            raise ScenarioError(place, name, None, "a value", found="missing")
    if row.get(_FURTHER):
        expected = "no more than in the first line; numbers have decimal points"
        raise ScenarioError(place, "further columns", ", ".join(row[_FURTHER]), expected)
    return {
        "class": "stock",
        "symbol": str(row["symbol"]),
        "date": str(row["date"]),
        **{name: _number_of(row[name], float, name, place) for name in PRICES},
        "volume": _number_of(row["volume"], int, "volume", place),
    }


def _number_of(text: str, kind: Callable[[str], float], name: str, place: str) -> float:
    expected = f"a {'whole' if kind is int else 'finite'} number from 0 to {LARGEST:g}"
    try:
        number = kind(text)
    except ValueError:
        raise ScenarioError(place, name, text, expected) from None
    if "_" in text or not 0 <= number <= LARGEST:  # nor NaN
        raise ScenarioError(place, name, text, expected)
    return number


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
