"""Stock quotes, which content-based brokers are measured by.

They have the shape of daily prices (symbol, date, open, high, low, close, volume), and are random
walks, or read from a file.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from pathlib import Path
from random import Random
from typing import Any, Final

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
