"""Windows of a stream on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.markup import escape

from gossamer.command.tables import FittingTable

if TYPE_CHECKING:
    import pyarrow as pa

# Windows that are printed, the newest; the folder has all.
_PRINTED: Final = 20


def print_windows(windows: pa.Table | None, folder: str) -> None:
    """The newest windows, and where all are."""
    console = Console()
    table = FittingTable("window", "subscriber")
    table.add_numbers("due", "made", "hit ratio", "a second", "p50", "p99")
    rows = [] if windows is None else windows.slice(max(len(windows) - _PRINTED, 0)).to_pylist()
    for row in rows:
        table.add_row(
            f"{row['begin']:%Y-%m-%d %H:%M:%S}",
            escape(row["subscriber"]),
            "-" if row["due"] is None else f"{row['due']:,}",
            f"{row['delivered']:,}",
            "-" if row["hit_ratio"] is None else f"{row['hit_ratio']:.2%}",
            f"{row['rate_per_s']:,.3g}",
            *(_milliseconds(row[f"latency_p{one}_s"]) for one in (50, 99)),
        )
    console.print(table)
    console.print(f"Windows: {folder}", highlight=False, soft_wrap=True, markup=False)


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e3:,.3g} ms"
