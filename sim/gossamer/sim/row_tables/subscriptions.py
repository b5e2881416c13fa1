"""SIENA's subscriptions and publications, and those of a covering degree, as tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from gossamer.sim.row_tables.table import Field, RowTable, list_array, text_array
from gossamer.sim.studies.tree_brokers.covering_workload import CoveringWorkload
from gossamer.sim.studies.tree_brokers.workloads.siena import OPERATORS, Siena
from gossamer.sim.study.draws import Int64s

_WORDS = pa.list_(pa.string())
_NUMBERS = pa.list_(pa.int32())


@attrs.frozen(kw_only=True)
class SienaRows:
    """SIENA's broker workload.

    Attributes:
        subscriptions, events: rows of each table.
        spec: what they are like, seed and all.
    """

    subscriptions: int
    events: int
    spec: Siena

    def tables(self) -> tuple[RowTable, ...]:
        """Subscriptions, then events."""
        return (
            RowTable(
                name="subscriptions",
                units=self.subscriptions,
                fields=(
                    Field("subscription", pa.int64(), "row number"),
                    Field("names", _WORDS, "attribute of each constraint, in order of draw"),
                    Field("operators", _WORDS, "operator of each constraint"),
                    Field("values", _NUMBERS, "what each constraint compares with"),
                ),
                make=self.subscription_columns,
            ),
            RowTable(
                name="events",
                units=self.events,
                fields=(
                    Field("event", pa.int64(), "row number"),
                    Field("names", _WORDS, "attributes, in order of draw"),
                    Field("values", _NUMBERS, "value of each"),
                ),
                make=self.event_columns,
            ),
        )

    def subscription_columns(self, rows: Int64s) -> Mapping[str, Any]:
        """The columns of these subscriptions."""
        words, operators, values = self.spec.subscription_rows(rows)
        there = words >= 0
        lengths = there.sum(axis=1)
        signs = [operator.value for operator in OPERATORS]
        return {
            "subscription": rows,
            "names": list_array(lengths, text_array(self.spec.words(), words[there])),
            "operators": list_array(lengths, text_array(signs, operators[there])),
            "values": list_array(lengths, values[there].astype(np.int32)),
        }

    def event_columns(self, rows: Int64s) -> Mapping[str, Any]:
        """The columns of these publications."""
        words, values = self.spec.publication_rows(rows)
        there = words >= 0
        lengths = there.sum(axis=1)
        return {
            "event": rows,
            "names": list_array(lengths, text_array(self.spec.words(), words[there])),
            "values": list_array(lengths, values[there].astype(np.int32)),
        }


# Subscriptions of a covering degree, and publications (see `covering_workload`).


@attrs.frozen(kw_only=True)
class CoveringRows:
    """A workload in which every root covers as many subscriptions as another.

    Attributes:
        spec: roots, degree and seed; the number of subscriptions follows from them.
        events: rows of that table.
        reach: root subscriptions that a publication matches, about.
    """

    spec: CoveringWorkload
    events: int
    reach: float = 6.0

    def tables(self) -> tuple[RowTable, ...]:
        """Subscriptions, then events."""
        return (
            RowTable(
                name="subscriptions",
                units=self.spec.roots * self.spec.step,
                fields=(
                    Field("subscription", pa.int64(), "row number"),
                    Field("root", pa.int64(), "number of the root that it is or that covers it"),
                    Field("is_root", pa.bool_(), "whether no other subscription covers it"),
                    Field("x", pa.int64(), "it asks for x of at least this"),
                    Field("y", pa.int64(), "and for y of at least this"),
                ),
                make=self.subscription_columns,
            ),
            RowTable(
                name="events",
                units=self.events,
                fields=(
                    Field("event", pa.int64(), "row number"),
                    Field("x", pa.int64(), "its x"),
                    Field("y", pa.int64(), "its y"),
                ),
                make=self.event_columns,
            ),
        )

    def subscription_columns(self, rows: Int64s) -> Mapping[str, Any]:
        """The columns of these subscriptions."""
        root, child, x, y = self.spec.subscription_rows(rows)
        is_root = np.equal(child, 0)
        return {"subscription": rows, "root": root, "is_root": is_root, "x": x, "y": y}

    def event_columns(self, rows: Int64s) -> Mapping[str, Any]:
        """The columns of these publications."""
        x, y = self.spec.publication_rows(rows, self.reach)
        return {"event": rows, "x": x, "y": y}
