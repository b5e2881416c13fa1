"""Tables for terminals, as `top` draws them."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD

from gossamer.command.tables import FittingTable


def slim_table(*names: str, title: str) -> FittingTable:
    """A table of words and the numbers that belong to them; three fit into eighty columns."""
    table = FittingTable(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.title, table.title_justify = title, "left"
    table.add_column(names[0])
    table.add_numbers(*names[1:])
    return table


def trip_text(trip_s: float | None) -> str:
    """A round trip, nothing where it was not measured."""
    return "" if trip_s is None else f"{trip_s * 1000:.1f} ms"


def span_text(seconds: float) -> str:
    """A time span in the unit that suits it."""
    for size, unit in ((86_400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def short_text(number: float) -> str:
    """A number of three digits or so, and a letter for thousands."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"
