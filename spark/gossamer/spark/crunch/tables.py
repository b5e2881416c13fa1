"""What is expected of the tables that are crunched, by kind of run.

Results of older versions may lack a column: what hangs on it is then left out and said. A column
that nothing can do without is refused where it is missing, and so is one of another type; whole
numbers of any width will do, and may stand where a real number is expected.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import attrs
import pyarrow as pa
import pyarrow.parquet as pq

from gossamer.sim.results.results import ResultsError

PEERS, BROKERS, WORKLOADS, OTHERS = "peers", "brokers", "workloads", "others"

WHOLE, REAL, TEXT = "whole numbers", "numbers", "texts"


@attrs.frozen
class Expected:
    """A table of a run.

    Attributes:
        needed: columns that have to be there, and what they hold.
        welcome: columns that may be missing.
    """

    needed: Mapping[str, str]
    welcome: Mapping[str, str] = attrs.field(factory=dict)


TABLES: Final[Mapping[str, Mapping[str, Expected]]] = MappingProxyType(
    {
        PEERS: {
            "events": Expected(
                {
                    "event": WHOLE,
                    "time_s": REAL,
                    "expected": WHOLE,
                    "delivered": WHOLE,
                    "received": WHOLE,
                    "uninterested": WHOLE,
                },
                {"cycle": WHOLE, "duplicates": WHOLE, "false_positives": WHOLE},
            ),
            "deliveries": Expected(
                {"event": WHOLE, "hops": WHOLE}, {"tree_hops": WHOLE, "time_s": REAL}
            ),
            "nodes": Expected({"load": REAL}, {"received": WHOLE, "routing_table_entries": WHOLE}),
            "cycles": Expected(
                {"time_s": REAL, "population": WHOLE},
                {
                    "cycle": WHOLE,
                    "control_messages": WHOLE,
                    "expected": WHOLE,
                    "delivered": WHOLE,
                    "received": WHOLE,
                    "uninterested": WHOLE,
                    "routing_table_entries": WHOLE,
                    "ring_correct": REAL,
                    "friend_utility": REAL,
                },
            ),
        },
        BROKERS: {
            "deliveries": Expected({"delay_s": REAL}),
            "queues": Expected({"time_s": REAL}),
            "brokers": Expected(
                {"table": WHOLE, "handled": WHOLE, "publications": WHOLE, "false_positives": WHOLE},
                {"triggered": WHOLE},
            ),
        },
    }
)


def kind_of(folder: Path) -> str:
    """The kind of a system's tables, by their names."""
    names = {file.stem for file in folder.glob("*.parquet")}
    if "nodes" in names and "events" in names and "cycles" in names:
        return PEERS
    if "queues" in names and "brokers" in names:
        return BROKERS
    return OTHERS


def check_file(file: Path, expected: Expected) -> tuple[int, tuple[str, ...]]:
    """Rows of a table, and the welcome columns that it lacks.

    Raises:
        ResultsError: it is missing, damaged, or a column is missing or of another type.
    """
    try:
        with pq.ParquetFile(file) as opened:
            schema, rows = opened.schema_arrow, opened.metadata.num_rows
    except FileNotFoundError:
        raise ResultsError(file, "does not exist, expected a table of the results") from None
    except (pa.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise ResultsError(file, f"is damaged or no Parquet table ({reason})") from error
    for name, kind in expected.needed.items():
        if name not in schema.names:
            raise ResultsError(file, f"has no column {name}, expected one of {kind}")
    for name, kind in (*expected.needed.items(), *expected.welcome.items()):
        if name in schema.names and not _fits(schema.field(name).type, kind):
            found = schema.field(name).type
            raise ResultsError(file, f"has a column {name} of {found}, expected {kind}")
    lacking = tuple(name for name in expected.welcome if name not in schema.names)
    return rows, lacking


def _fits(kind: pa.DataType, expected: str) -> bool:
    if expected == TEXT:
        return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
    whole = pa.types.is_integer(kind)
    return bool(whole or (expected == REAL and pa.types.is_floating(kind)))
