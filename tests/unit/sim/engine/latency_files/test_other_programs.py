"""Tables as spreadsheets, pandas, R and p2psim write them: read as meant, or refused in a sentence.

Each is written in several locales, by which the decimal mark and separators differ.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pytest

from gossamer.sim.engine.latency_files.matrices import read_matrix
from gossamer.sim.engine.latency_files.site_latency import read_coordinates
from support.refusals import check_cuts, sentence_about

Rows = list[list[str]]
Floats = npt.NDArray[np.float64]
LOCALES: Final = {
    "points": lambda rows: joined(rows, ","),
    "points and blanks": lambda rows: joined(rows, ", "),
    "decimal commas": lambda rows: joined(rows, ";", mark=","),
    "BOM and CRLF": lambda rows: "\ufeff" + joined(rows, ";", end="\r\n"),
    "tabs, BOM and CRLF": lambda rows: "\ufeff" + joined(rows, "\t", ",", "\r\n"),
}
MATRIX: Final = np.array([[0, 20.5, 300, 7], [21, 0, 40, 8.25], [301, 41, 0, 9], [6, 5, 4, 0]])
SITES: Final = np.array([[12.5, 3.25, 1], [14, 2.5, 0.5], [1.5, 7.75, 2], [-8, 0.125, 3]])
# In order of the sites' numbers or names.
PAIRS: Final = np.array([[np.nan, 10, 20.5, 7], [10, np.nan, 30, 8], [20.5, 30, np.nan, 1]])


def joined(rows: Rows, separator: str, mark: str = ".", end: str = "\n") -> str:
    """Rows as text; a point within a cell is the decimal mark."""
    return "".join(separator.join(row).replace(".", mark) + end for row in rows)


def cells(values: Floats) -> Rows:
    return [[f"{value:g}" if value == value else "" for value in row] for row in values]


def under(names: list[str], rows: Rows) -> Rows:
    return [names, *rows]


def behind(names: list[str], rows: Rows) -> Rows:
    return [[name, *row] for name, row in zip(names, rows, strict=True)]


def counted(prefix: str, first: int, number: int, quote: str = "") -> list[str]:
    return [f"{quote}{prefix}{i}{quote}" for i in range(first, first + number)]


def quoted(names: list[str]) -> list[str]:
    return [f'"{name}"' for name in names]


NAMES: Final = ["Oslo", "New York", "Rome", "São Paulo"]
# By who writes them: all rows with names around them, for numbers of as many columns.
AROUND: Final[dict[str, Callable[[Rows], Rows]]] = {
    "a spreadsheet": lambda rows: rows,
    "pandas": lambda rows: under(
        ["", *counted("", 0, len(rows[0]))], behind(["0", "1", "2", "3"], rows)
    ),
    "R's write.table": lambda rows: under(
        counted("V", 1, len(rows[0]), '"'), behind(counted("", 1, 4, '"'), rows)
    ),
    "R's write.csv": lambda rows: under(
        ['""', *counted("X", 1, len(rows[0]), '"')], behind(counted("", 1, 4, '"'), rows)
    ),
}
SQUARE: Final[dict[str, Callable[[Rows], Rows]]] = {
    "pandas without an index": lambda rows: under(counted("", 0, 4), rows),
    "R without row names": lambda rows: under(counted("V", 1, 4, '"'), rows),
    "pandas, by name": lambda rows: under(["", *NAMES], behind(NAMES, rows)),
    "a spreadsheet with a corner": lambda rows: under(["from \\ to", *NAMES], behind(NAMES, rows)),
    "R, by name": lambda rows: under(quoted(NAMES), behind(quoted(NAMES), rows)),
}


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize("program", [*AROUND, *SQUARE])
def test_a_matrix_is_read_as_programs_write_it(program: str, locale: str, tmp_path: Path) -> None:
    path = tmp_path / "matrix.csv"
    path.write_bytes(LOCALES[locale]({**AROUND, **SQUARE}[program](cells(MATRIX))).encode())
    np.testing.assert_array_equal(read_matrix(path), MATRIX)
    np.testing.assert_array_equal(read_matrix(path, "full"), MATRIX)


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize("program", ["a spreadsheet", "pandas, by name", "R, by name"])
def test_empty_cells_keep_their_column(program: str, locale: str, tmp_path: Path) -> None:
    path, matrix = tmp_path / "matrix.csv", MATRIX.copy()
    np.fill_diagonal(matrix, np.nan)
    path.write_bytes(LOCALES[locale]({**AROUND, **SQUARE}[program](cells(matrix))).encode())
    np.testing.assert_array_equal(read_matrix(path), matrix)


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize("program", [*AROUND, "names of axes", "numbered axes"])
def test_coordinates_are_read_as_written(program: str, locale: str, tmp_path: Path) -> None:
    ways: dict[str, Callable[[Rows], Rows]] = {
        **AROUND,
        "names of axes": lambda rows: under(["x", "y", "Z"], rows),
        "numbered axes": lambda rows: under(quoted(counted("dim", 0, 3)), rows),
    }
    path = tmp_path / "sites.csv"
    path.write_bytes(LOCALES[locale](ways[program](cells(SITES))).encode())
    np.testing.assert_array_equal(read_coordinates(path), SITES)


PAIR_ROWS: Final = [*(["1", "2", "10"], ["1", "3", "20.5"], ["2", "3", "30"]), ["4", "1", "7"]]
PAIR_ROWS.extend([["2", "4", "8"], ["3", "4", "1"]])


@pytest.mark.parametrize("locale", [name for name in LOCALES if name != "points and blanks"])
@pytest.mark.parametrize(
    "rows",
    [
        PAIR_ROWS,
        under(["from", "to", "ms"], PAIR_ROWS),
        under(["from", "to", "ms"], [[f"lon-{a}", f"lon-{b}", ms] for a, b, ms in PAIR_ROWS]),
        under(["", "from", "to", "rtt_ms"], behind(counted("", 0, 6), PAIR_ROWS)),
        under(quoted(["from", "to", "x"]), behind(counted("", 1, 6, '"'), PAIR_ROWS)),
    ],
)
def test_pairs_are_read_as_programs_write_them(rows: Rows, locale: str, tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_bytes(LOCALES[locale](rows).encode())
    np.testing.assert_array_equal(read_matrix(path)[:3], PAIRS)
    np.testing.assert_array_equal(read_matrix(path, "pairs")[:3], PAIRS)


KING: Final = "node 1\nnode 2\nnode 3\nnode 4\n\n" + "".join(
    f"{one},{other} {far}\n" for one, other, far in PAIR_ROWS
)


@pytest.mark.parametrize(
    "text",
    [
        *(KING, KING.partition("\n\n")[2], KING.replace(",", ", ").upper()),
        "\ufeff" + KING.replace("\n", "\r\n"),
    ],
)
def test_king_is_read_as_p2psim_has_it(text: str, tmp_path: Path) -> None:
    path = tmp_path / "king"
    path.write_bytes(text.encode())
    np.testing.assert_array_equal(read_matrix(path)[:3], PAIRS)


REFUSED: Final = [
    # Separators are those of the whole file.
    ("0 12,5\n12,5 0\n", "line 1, column 1: the latency is '0 12', expected a number"),
    ("0,12.5\n12.5 0\n", "line 2, column 1: the latency is '12.5 0', expected a number"),
    ("0;12.5\n12.5,0;0\n", "line 2, column 1: the latency is '12.5,0', expected a number"),
    ("0\t5\n5 0\n", "line 2, column 1: the latency is '5 0', expected a number from 0"),
    # Decimal commas.
    ('0,"12,5"\n"12,5",0\n', "line 1, column 2: the latency is '12,5', expected"),
    ("0;12,5\n12.5;0\n", "is '12,5', expected a number from 0 to 1e+12 with a decimal point, as"),
    ("0\t1,250\n1,250\t0\n", "line 1, column 2: the latency is '1,250', expected a number from"),
    # Numbers.
    ("0 1_0\n10 0\n", "line 1, column 2: the latency is '1_0', expected a number from 0"),
    ("0 0x1F\n31 0\n", "line 1, column 2: the latency is '0x1F', expected a number from 0"),
    ("0 ٣\n3 0\n", "line 1, column 2: the latency is '٣', expected a number from 0"),
    ("0 infinity\n3 0\n", "line 1, column 2: the latency is 'infinity', expected a number"),
    ("0 1e999\n3 0\n", "line 1, column 2: the latency is '1e999', expected a number from 0"),
    # Names, or what may be some.
    ("0,0,5,6\n1,5,0,7\n2,6,7,0\n", "line 1: number of latencies is 4, expected 3"),
    (",a,b\nb,0,5\na,5,0\n", "line 1: the names of columns is 'a, b', expected those before the"),
    (",a,b,c\na,0,5,6\n7,5,0,7\nc,6,7,0\n", "line 3, column 1: the cell is '7', expected the name"),
    (",0,1,2\n0,,5,6\n1,5,,7\n2,6,7,\n", "line 1, column 1: the cell is empty, expected a latency"),
    (",5,6\n5,0,7\n6,7,0\n", "line 1, column 1: the cell is empty, expected a latency, or names"),
    (",1,2\n10,0,7\n20,7,0\n", "line 1, column 1: the cell is empty, expected a latency, or names"),
    ("a,b,c\n0,5\n5,0\n", "line 1: number of names is 3, expected 2, one a column, or 1"),
    ("0,1,2\n4,5,6\n5,0,7\n6,7,0\n", "line 1: the line is one of names, expected a diagonal of 0"),
    ("a,b,c,d\n" + "0,5,6,7\n" * 4, "line 1: the line is one of names, expected a diagonal of 0"),
    ("from,to,ms,loss\n1,2,5,0\n", "line 1: the line is one of names, expected a diagonal of 0"),
    # Forms.
    ("1,2,5,\n1,3,6,\n", "line 1: number of latencies is 4, expected 2"),
    ("1.0,2.0,5\n2.0,3.0,6\n", "line 1, column 1: the site is '1.0', expected a whole number"),
    ("01,2,5\n2,3,6\n", "line 1, column 1: the site is '01', expected a whole number"),
    ("1,2,5\n,3,6\n", "line 2, column 1: the site is '', expected a whole number, or a name"),
    ("a\u200bb,2,5\nc,3,6\n", "line 1, column 1: the site is 'a\\u200bb', expected a whole"),
    ('1,"2,5\n2,3,6"\n', "line 1: the line is '1,\"2,5', expected cells of which each is in"),
    ('1,"2"x,5\n2,3,6\n', "line 1: the line is '1,\"2\"x,5', expected cells of which each is in"),
    # What the file says of itself.
    ("4\n0 5 6\n5 0 7\n6 7 0\n", "number of lines is 3, expected 4 for 4 sites, as line 1 says"),
    ("9\n1\n2 3\n4 5 6\n", "number of lines is 3, expected 9 or 8 for 9 sites, as line 1 says"),
    ("7\n", "the number of lines is 0, expected 7 for 7 sites, as line 1 says"),
    ("node 1\nnode 2\nnode 3\n1,2 5\n", "line 3: the node is '3', expected one that is in a pair"),
    ("node 1\nnode 1\n1,1 5\n", "line 2: the node is '1', expected one that no line before names"),
    ("node 1\nnode 2\n1,2 5\n1,3 6\n", "line 4, column 2: the site is '3', expected one of the n"),
    ("node 1\nnode 2\n", "the latency matrix is empty, expected at least one line"),
    ("0 5\n5 0", "line 2: the last line is '5 0', expected one with a line end, which a file"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_what_may_mean_something_else_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "matrix"
    path.write_bytes(text.encode())
    assert message in sentence_about(path, read_matrix)


def test_the_form_that_is_named_settles_what_a_line_of_numbers_is(tmp_path: Path) -> None:
    path = tmp_path / "matrix"
    path.write_text("1,2,3\n4,5,6\n5,0,7\n6,7,0\n")
    assert read_matrix(path, "full").tolist() == [[4, 5, 6], [5, 0, 7], [6, 7, 0]]
    assert read_matrix(path, "pairs").shape == (7, 7)
    path.write_text("a 1 2\nb 1 5\n")
    assert read_matrix(path, "pairs").shape == (3, 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("12,5 3,25\n14,0 2,5\n", "line 1, column 2: coordinate 2 is '5 3', expected a finite"),
        ("1;2\n3;\n", "line 2, column 2: coordinate 2 is '', expected a finite number"),
        ("1 nan\n3 4\n", "line 1, column 2: coordinate 2 is 'nan', expected a finite number"),
        ("id,x,y\n1,2.5,3\n2,3.5,4\n", "line 1: the names of columns is 'id, x, y', expected x, y"),
        ("0,1\n2.5,3\n", "line 1: the line is '0 1', expected numbers such as 0.0, or names of"),
        ("1,2.5\n2,3.5\n3,4.5\n", "line 1, column 1: the column is '1, 2, 3', expected coord"),
        ("x,y\n1,2\n3,4,5\n", "line 3: number of columns is 3, expected 2"),
        (",x,y\nOslo,1,2\n7,3,4\n", "line 3, column 1: the cell is '7', expected the name of a"),
        (" ".join("1" * 17) + "\n", "line 1: number of columns is 17, expected at most 16"),
    ],
)
def test_ambiguous_coordinates_are_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "sites"
    path.write_text(text)
    assert message in sentence_about(path, read_coordinates)


FORMATS: Final[dict[str, tuple[str, Callable[[Path], Floats]]]] = {
    "full": (joined(cells(MATRIX * 11), " "), read_matrix),
    "with a heading": ("4\n" + joined(cells(MATRIX * 11), "\t"), read_matrix),
    "pandas": (joined(SQUARE["pandas, by name"](cells(MATRIX * 11)), ","), read_matrix),
    "R": (joined(AROUND["R's write.table"](cells(MATRIX * 11)), " "), read_matrix),
    "falling": ("10 200 30 4\n5 6 70\n8 90\n12\n", read_matrix),
    "king": (KING.partition("2,3")[0] + "2,4 8\n", read_matrix),
    "pairs": ("from;to;ms\n" + joined(PAIR_ROWS, ";", mark=","), read_matrix),
    "coordinates": (joined(cells(SITES * 11), ";", mark=","), read_coordinates),
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_table_that_was_cut_off_is_read_as_the_whole_or_refused(
    name: str, tmp_path: Path
) -> None:
    """At every byte, but for whole lines where the form has as many as there happen to be."""
    text, read = FORMATS[name]
    whole = text.encode()
    ends: list[int] = [i for i in range(len(whole)) if whole[i : i + 1] != b"\n"]
    if name in ("king", "pairs", "coordinates"):
        ends = [i for i in ends if whole[i - 1 : i] != b"\n" or i == 0]
    assert check_cuts(tmp_path / "cut", whole, read, array_equal, ends) == len(ends)


def array_equal(one: Floats, other: Floats) -> bool:
    return np.array_equal(one, other, equal_nan=True)
