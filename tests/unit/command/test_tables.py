"""Tables fit the terminal: numbers stay whole, names are wrapped, the widest turn on their side."""

from __future__ import annotations

import pytest
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.text import Text

from gossamer.command.tables import FittingTable
from support.terminals import columns_of, printed_at

NAME = "a-kindred-of-a-name-that-somebody-gave-to-a-system-of-theirs"


def table_of(names: int, number: str = "123,456.789") -> FittingTable:
    table = FittingTable("measure")
    for count in range(names):
        table.add_column(f"{NAME}-{count}", justify="right")
    table.add_row("routing table entries, mean", *[number] * names)
    table.add_row("hit ratio", *["0.99987"] * names)
    return table


def test_what_fits_is_printed_as_it_is() -> None:
    table = FittingTable("name", "number")
    table.add_row("kindred", "7")
    assert printed_at(80, table) == printed_at(200, table)


@pytest.mark.parametrize("names", [1, 2, 3, 4])
def test_names_are_wrapped_and_numbers_whole(names: int) -> None:
    shown = printed_at(80, table_of(names))
    columns = columns_of(shown)
    assert len(columns) == names + 1
    for count, column in enumerate(columns[1:]):
        assert f"{NAME}-{count}" in "".join(column)
        assert {"123,456.789", "0.99987"} <= set(column)


def test_no_word_is_broken_where_there_is_room_for_it() -> None:
    table = FittingTable("system")
    table.add_numbers("cost of all documents, in milliseconds", "duplicates", "trees of all groups")
    table.add_row("SemCast-filtered", "777,102", "200,361", "100")
    shown = printed_at(60, table)
    assert all(word in shown for word in ("SemCast-filtered", "duplicates", "milliseconds"))


def test_what_cannot_fit_is_turned_on_its_side() -> None:
    shown = printed_at(80, table_of(12))
    assert "\u2502" not in shown
    joined = "".join(line[:40].strip() for line in shown.splitlines())
    assert all(joined.count(f"{NAME}-{count}") >= 2 for count in range(12))
    assert shown.count("123,456.789") == shown.count("0.99987") == 12


def test_a_table_fits_anew_wherever_it_is_printed() -> None:
    table = table_of(3)
    wide = printed_at(300, table)
    narrow = printed_at(80, table)
    assert narrow != wide
    assert printed_at(300, table) == wide
    assert printed_at(80, table) == narrow


def test_cells_of_text_and_tables_without_edges_fit_too() -> None:
    table = FittingTable(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, title="members")
    table.add_column("peer")
    table.add_column("links")
    table.add_column("load", justify="right")
    table.add_row(Text(NAME), Text("ring, finger, host, guest, random view"), Text("1,234.5"))
    shown = printed_at(60, table)
    assert shown.splitlines()[0].strip() == "members"
    assert "1,234.5" in shown


def test_a_table_without_rows_is_printed() -> None:
    console = Console(width=20)
    with console.capture() as told:
        console.print(FittingTable("nothing", "to see", "here at all"))
    assert "\u2026" not in told.get()
