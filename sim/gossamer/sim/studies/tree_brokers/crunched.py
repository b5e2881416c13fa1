"""What is told by the tables of a covering that were read back, but that of deliveries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gossamer.sim.study.records import REAL, WHOLE, Expected
from gossamer.sim.study.statistics import (
    Columns,
    Row,
    distribution,
    gini,
    mean,
    measure_rows,
    ratio,
    series,
    total,
)

TABLES: Final[Mapping[str, Expected]] = MappingProxyType(
    {
        "deliveries": Expected({"delay_s": REAL}),
        "queues": Expected({"time_s": REAL}),
        "brokers": Expected(
            {"table": WHOLE, "handled": WHOLE, "publications": WHOLE, "false_positives": WHOLE},
            {"triggered": WHOLE},
        ),
    }
)


def broker_rows(queues: Columns, brokers: Columns) -> Iterator[Row]:
    """What the queues and counts of brokers tell."""
    longest = _longest(queues)
    yield from measure_rows(
        {
            "queue_max": float(longest.max(initial=0)),
            "table_entries_mean": mean(brokers["table"]),
            "table_entries_gini": gini(brokers["table"]),
            "handled_gini": gini(brokers["handled"]),
            "messages": total(brokers, "handled"),
            "triggered_messages": total(brokers, "triggered"),
            "false_positives": total(brokers, "false_positives"),
            "false_positive_ratio": ratio(
                total(brokers, "false_positives"), total(brokers, "publications")
            ),
        }
    )
    yield from distribution("messages handled", brokers["handled"])
    yield from series("longest queue", queues["time_s"], longest, np.ones(len(longest)))


def _longest(queues: Columns) -> npt.NDArray[Any]:
    """The longest queue at each look; the brokers that were looked at differ between runs."""
    columns = [values for name, values in queues.items() if name != "time_s"]
    looks = len(queues["time_s"])
    return np.max(columns, axis=0) if columns else np.zeros(looks, np.int64)
