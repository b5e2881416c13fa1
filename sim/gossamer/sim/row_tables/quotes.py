"""Quotes resampled from a real file, and subscriptions to them (see `quote_rows`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import pyarrow as pa

from gossamer.sim.row_tables.quote_rows import QuoteRows
from gossamer.sim.row_tables.table import Field, RowTable, text_array
from gossamer.sim.studies.stock_quotes import PRICES
from gossamer.sim.study.draws import Int64s


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
