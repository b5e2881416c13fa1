"""Keywords wanted near each other, and documents about them (see `keyword_rows`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from gossamer.sim.row_tables.keyword_rows import KeywordRows
from gossamer.sim.row_tables.table import Field, RowTable, list_array
from gossamer.sim.study.draws import Int64s

_NUMBERS = pa.list_(pa.int32())


@attrs.frozen(kw_only=True)
class KeywordTables:
    """Subscriptions by keyword and documents by number.

    Attributes:
        spec: who wants what where.
    """

    spec: KeywordRows

    def tables(self) -> tuple[RowTable, ...]:
        """Keywords with the brokers that want them, then documents."""
        return (
            RowTable(
                name="subscriptions",
                units=self.spec.locality.keywords,
                fields=(
                    Field("keyword", pa.int64(), "row number"),
                    Field("root", pa.int32(), "broker around which it is wanted"),
                    Field("brokers", _NUMBERS, "brokers that want it, in order of draw"),
                ),
                make=self.subscription_columns,
            ),
            RowTable(
                name="events",
                units=self.spec.locality.documents,
                fields=(
                    Field("document", pa.int64(), "row number"),
                    Field("host", pa.int32(), "broker that publishes it"),
                    Field("keywords", _NUMBERS, "its keywords, ascending"),
                    Field("size", pa.float64(), "of the document, 1 or more"),
                ),
                make=self.event_columns,
            ),
        )

    def subscription_columns(self, rows: Int64s) -> Mapping[str, Any]:
        """The columns of these keywords."""
        return {
            "keyword": rows,
            "root": self.spec.roots_of(rows).astype(np.int32),
            "brokers": _lists(self.spec.subscribers_of(rows)),
        }

    def event_columns(self, rows: Int64s) -> Mapping[str, Any]:
        """The columns of these documents."""
        return {
            "document": rows,
            "host": self.spec.hosts_of(rows).astype(np.int32),
            "keywords": _lists(self.spec.keywords_of(rows)),
            "size": self.spec.sizes_of(rows),
        }


def _lists(padded: Int64s) -> pa.ListArray:
    there = padded >= 0
    return list_array(there.sum(axis=1), padded[there].astype(np.int32))
