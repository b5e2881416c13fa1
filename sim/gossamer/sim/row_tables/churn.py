"""Sessions of nodes that come and go (`gossamer.sim.churn.by_row`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import pyarrow as pa

from gossamer.sim.churn.by_row import ChurnByRow
from gossamer.sim.row_tables.table import Field, RowTable
from gossamer.sim.study.draws import Int64s


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
