"""Quotes from a file of prices, as programs write CSV."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.stock_quotes import read_quotes

QUOTES = "symbol,date,open,high,low,close,volume\r\nIBM,1996-01-02,22.5,22.75,22,22.6,7800\r\n"


def written(folder: Path, text: str, encoding: str = "utf-8") -> Path:
    path = folder / "quotes.csv.gz"
    path.write_bytes(gzip.compress(text.encode(encoding)))
    return path


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_mark_is_no_part_of_the_first_name(encoding: str, tmp_path: Path) -> None:
    (quote,) = read_quotes(written(tmp_path, QUOTES, encoding))
    assert (quote["symbol"], quote["open"], quote["volume"]) == ("IBM", 22.5, 7800)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("22.5", "22,5", "line 2: further columns is '7800', expected no more than in the first"),
        ("7800", "7_800", "line 2: volume is '7_800', expected a whole number from 0 to 1e+15"),
        (",7800", "", "line 2: volume is missing, expected a value"),
    ],
)
def test_a_line_that_is_no_quote_is_refused(
    old: str, new: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ScenarioError) as caught:
        read_quotes(written(tmp_path, QUOTES.replace(old, new)))
    assert message in str(caught.value)
