"""Quotes resampled from a real file, and subscriptions to them (see `quote_rows`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gossamer.protocol.content.filters import Filter
from gossamer.protocol.content.grammar import Comparison, Operator
from gossamer.sim.errors import ScenarioError
from gossamer.sim.row_tables.table import Field, RowTable, text_array
from gossamer.sim.studies.stock_quotes import PRICES, Quote
from gossamer.sim.study.draws import Floats, Int64s, choices, normal, uniform

# Quotes resampled from real ones, and subscriptions to them, each row drawn for itself.
#
# A quote is a random one of the source with its prices scaled by a common factor, so that what
# holds within a day (the low is the lowest, and so on) goes on to hold; its volume is scaled by
# another. Subscriptions have about four predicates, around prices that were seen with little
# covering, with round ends and heavy covering otherwise.


# The seed's streams.
_QUOTES, _FACTORS, _VOLUMES, _WANTED, _RANGES = 321, 322, 323, 324, 325
_LEAST_PRICE: Final = 0.01
_STEPS: Final = np.array([0.5, 1, 5, 10, 50])
# Shares of subscriptions that name a whole symbol; the others its first letter.
_WHOLE: Final = {"little": 0.8, "heavy": 0.97}
COVERINGS: Final = tuple(_WHOLE)


@attrs.frozen(eq=False)
class QuoteSource:
    """Quotes that were seen, as columns of equal length.

    Attributes:
        symbols, dates: texts.
        prices: float64[n, 4], in the order of `PRICES`.
        volumes: int64.
    """

    symbols: npt.NDArray[np.str_]
    dates: npt.NDArray[np.str_]
    prices: Floats
    volumes: Int64s


def source_of(quotes: Sequence[Quote]) -> QuoteSource:
    """The columns of quotes.

    Raises:
        ScenarioError: there are none.
    """
    if not quotes:
        raise ScenarioError(None, "quotes", [], "at least one quote", found="missing")
    prices = [[quote[name] for name in PRICES] for quote in quotes]
    return QuoteSource(
        symbols=np.array([quote["symbol"] for quote in quotes], np.str_),
        dates=np.array([quote["date"] for quote in quotes], np.str_),
        prices=np.array(prices, np.float64),
        volumes=np.array([quote["volume"] for quote in quotes], np.int64),
    )


@attrs.frozen(kw_only=True, eq=False)
class QuoteRows:
    """Quotes and subscriptions by number.

    Attributes:
        source: quotes that were seen.
        seed: of all draws.
        spread: standard deviation of the logarithm of the factor on prices; a guess.
        volume_spread: the same for volumes; a guess.
        covering: "little" or "heavy".
    """

    source: QuoteSource
    seed: int
    spread: float = 0.02
    volume_spread: float = 0.2
    covering: str = "little"

    def __attrs_post_init__(self) -> None:
        if self.covering not in COVERINGS:
            expected = f"one of {', '.join(COVERINGS)}"
            raise ScenarioError(None, "workload.covering", self.covering, expected)

    def picks_of(self, rows: Int64s) -> Int64s:
        """The place in the source of each of these quotes."""
        return choices(self.seed, _QUOTES, rows, 0, len(self.source.volumes))

    def quote_columns(self, rows: Int64s) -> dict[str, Any]:
        """The columns of these quotes: texts, prices in dollars and cents, volumes."""
        picks = self.picks_of(rows)
        factor = np.exp(self.spread * normal(self.seed, _FACTORS, rows, 0))
        prices = np.round(self.source.prices[picks] * factor[:, None], 2)
        prices = np.maximum(prices, _LEAST_PRICE)
        more = np.exp(self.volume_spread * normal(self.seed, _VOLUMES, rows, 0))
        return {
            "symbol": self.source.symbols[picks],
            "date": self.source.dates[picks],
            **{name: prices[:, place] for place, name in enumerate(PRICES)},
            "volume": np.rint(self.source.volumes[picks] * more / 100).astype(np.int64) * 100,
        }

    def quotes_of(self, rows: Int64s) -> list[Quote]:
        """These quotes."""
        columns = self.quote_columns(rows)
        lists = [column.tolist() for column in columns.values()]
        return [
            {"class": "stock", **dict(zip(columns, values, strict=True))}
            for values in zip(*lists, strict=True)
        ]

    def subscription_columns(self, rows: Int64s) -> dict[str, Any]:
        """The columns of these subscriptions.

        ``symbol`` is whole or its first letter, as ``whole`` says; ``price`` is the place in
        `PRICES` of the price that has to be from ``low`` to below ``high``; ``volume`` has to be
        exceeded, -1: any will do.
        """
        picks = choices(self.seed, _WANTED, rows, 0, len(self.source.volumes))
        whole = uniform(self.seed, _WANTED, rows, 1) < _WHOLE[self.covering]
        symbols = self.source.symbols[picks]
        price = choices(self.seed, _WANTED, rows, 2, len(PRICES))
        seen = self.source.prices[picks, price]
        if self.covering == "little":
            low, high = self._around(rows, seen)
            scale = 0.5 + uniform(self.seed, _RANGES, rows, 2)
            volume = (self.source.volumes[picks] * scale).astype(np.int64)
        else:
            step = _STEPS[choices(self.seed, _RANGES, rows, 3, len(_STEPS))]
            low = np.floor_divide(seen, step) * step
            high = low + step
            volume = np.full(len(rows), -1, np.int64)
        letters = symbols.astype("U1")
        return {
            "symbol": np.where(whole, symbols, letters),
            "whole": whole,
            "price": price,
            "low": low,
            "high": high,
            "volume": volume,
        }

    def _around(self, rows: Int64s, seen: Floats) -> tuple[Floats, Floats]:
        """Ranges that each subscriber chooses around a price."""
        width = seen * (0.02 + 0.28 * uniform(self.seed, _RANGES, rows, 0))
        low = np.round(seen - width * uniform(self.seed, _RANGES, rows, 1), 2)
        return low, np.maximum(np.round(low + width, 2), low + _LEAST_PRICE)

    def subscriptions_of(self, rows: Int64s) -> list[Filter]:
        """These subscriptions."""
        columns = self.subscription_columns(rows)
        lists = [column.tolist() for column in columns.values()]
        return [Filter.of(_comparisons(*values)) for values in zip(*lists, strict=True)]


def _comparisons(
    symbol: str, whole: bool, price: int, low: float, high: float, volume: int
) -> list[Comparison]:
    found = [
        Comparison("symbol", Operator.EQUAL if whole else Operator.STARTS_WITH, symbol),
        Comparison(PRICES[price], Operator.AT_LEAST, low),
        Comparison(PRICES[price], Operator.LESS, high),
    ]
    if volume >= 0:
        found.append(Comparison("volume", Operator.GREATER, volume))
    return found


@attrs.frozen(kw_only=True)
class QuoteTables:
    """Subscriptions and quotes by number.

    Attributes:
        subscriptions, events: rows of each table.
        spec: what they are like.
    """

    subscriptions: int
    events: int
    spec: QuoteRows

    def tables(self) -> tuple[RowTable, ...]:
        """Subscriptions, then quotes."""
        text, real, number = pa.string(), pa.float64(), pa.int64()
        prices = [Field(name, real, f"{name} price, dollars") for name in PRICES]
        return (
            RowTable(
                name="subscriptions",
                units=self.subscriptions,
                fields=(
                    Field("subscription", number, "row number"),
                    Field("symbol", text, "symbol, or its first letter"),
                    Field("whole", pa.bool_(), "whether the symbol has to be equal, not begin so"),
                    Field("price", text, "which price is asked for"),
                    Field("low", real, "it has to be at least this, dollars"),
                    Field("high", real, "and below this"),
                    Field("volume", number, "volume has to be above this; -1: any will do"),
                ),
                make=self.subscription_columns,
            ),
            RowTable(
                name="events",
                units=self.events,
                fields=(
                    Field("event", number, "row number"),
                    Field("symbol", text, "of the company"),
                    Field("date", text, "day of the quote that it is made from"),
                    *prices,
                    Field("volume", number, "shares"),
                ),
                make=self.event_columns,
            ),
        )

    def subscription_columns(self, rows: Int64s) -> Mapping[str, Any]:
        """The columns of these subscriptions."""
        columns = self.spec.subscription_columns(rows)
        return {
            "subscription": rows,
            **columns,
            "symbol": pa.array(columns["symbol"].tolist(), pa.string()),
            "price": text_array(PRICES, columns["price"]),
        }

    def event_columns(self, rows: Int64s) -> Mapping[str, Any]:
        """The columns of these quotes."""
        columns = self.spec.quote_columns(rows)
        texts = {name: pa.array(columns[name].tolist()) for name in ("symbol", "date")}
        return {"event": rows, **columns, **texts}
