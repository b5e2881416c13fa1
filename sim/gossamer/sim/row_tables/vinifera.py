"""Vinifera's subscriptions and events, hashed (Sec. V; see `peers.inputs.workload`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import pyarrow as pa

from gossamer.sim.churn.by_row import ChurnByRow
from gossamer.sim.row_tables.table import Field, RowTable
from gossamer.sim.studies.peers.inputs.scenario import Subscriptions
from gossamer.sim.studies.peers.inputs.workload import Workload
from gossamer.sim.study.draws import Int64s


@attrs.frozen(kw_only=True)
class ViniferaRows:
    """The workload of a scenario of peers, as `gossamer sim run` draws it.

    Attributes:
        seed: of all draws.
        subscriptions: rows of that table; a node has ``spec.per_node`` of them.
        events: rows of that table.
        spec: what they are like.
    """

    seed: int
    subscriptions: int
    events: int
    spec: Subscriptions

    def tables(self) -> tuple[RowTable, ...]:
        """Subscriptions, then events."""
        return (self._subscription_table(), self._event_table())

    def _subscription_table(self) -> RowTable:
        ranges = [
            Field(f"{end}_{a}", pa.int64(), f"{end} end of the range on attribute {a}, hashed")
            for a in range(self.spec.attributes)
            for end in ("low", "high")
        ]
        return RowTable(
            name="subscriptions",
            units=self.subscriptions,
            fields=(
                Field("subscription", pa.int64(), "row number"),
                Field("node", pa.int64(), "the node that subscribes"),
                Field("place", pa.int32(), "popular place near by, most popular 0; -1 anywhere"),
                Field("constrained", pa.int32(), "bits of attributes; -1: nothing is wanted"),
                *ranges,
            ),
            make=self.subscription_columns,
        )

    def _event_table(self) -> RowTable:
        values = [
            Field(f"value_{a}", pa.int64(), f"value of attribute {a}, hashed")
            for a in range(self.spec.attributes)
        ]
        return RowTable(
            name="events",
            units=self.events,
            fields=(
                Field("event", pa.int64(), "row number"),
                Field("place", pa.int32(), "popular place near by, most popular 0; -1 anywhere"),
                Field("publisher", pa.float64(), "draw from [0, 1) among the nodes online"),
                *values,
            ),
            make=self.event_columns,
        )

    def subscription_columns(self, rows: Int64s) -> Mapping[str, Any]:
        """The columns of these subscriptions."""
        boxes, constrained, places = Workload(self.spec, self.seed).subscription_rows(rows)
        columns = {
            "subscription": rows,
            "node": rows // self.spec.per_node,
            "place": places.astype("int32"),
            "constrained": constrained.astype("int32"),
        }
        for a in range(self.spec.attributes):
            columns[f"low_{a}"] = boxes[:, 2 * a].copy()
            columns[f"high_{a}"] = boxes[:, 2 * a + 1].copy()
        return columns

    def event_columns(self, rows: Int64s) -> Mapping[str, Any]:
        """The columns of these events."""
        workload = Workload(self.spec, self.seed)
        values, places = workload.event_rows(rows)
        columns: dict[str, Any] = {
            "event": rows,
            "place": places.astype("int32"),
            "publisher": workload.publisher_rows(rows),
        }
        for a in range(self.spec.attributes):
            columns[f"value_{a}"] = values[:, a].copy()
        return columns


# Sessions of nodes that come and go (`gossamer.sim.churn.by_row`).


@attrs.frozen(kw_only=True)
class ChurnRows:
    """A churn trace, a node a unit.

    Attributes:
        spec: who comes and goes.
    """

    spec: ChurnByRow

    def tables(self) -> tuple[RowTable, ...]:
        """The sessions."""
        fields = (
            Field("node", pa.int64(), "number of the node"),
            Field("start_s", pa.float64(), "beginning of the session, seconds"),
            Field("end_s", pa.float64(), "end of the session, seconds"),
        )
        units = self.spec.all_nodes
        return (RowTable(name="sessions", units=units, fields=fields, make=self.columns),)

    def columns(self, nodes: Int64s) -> Mapping[str, Any]:
        """The sessions of these nodes."""
        node, start_s, end_s = self.spec.sessions_of(nodes)
        return {"node": node, "start_s": start_s, "end_s": end_s}
