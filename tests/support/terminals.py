"""What is printed on terminals of a width, which it has to fit."""

from __future__ import annotations

import io
from itertools import zip_longest

from rich.cells import cell_len
from rich.console import Console, RenderableType


def printed_at(width: int, shown: RenderableType) -> str:
    """``shown`` as a terminal of so many columns has it; nothing is cut or too wide."""
    console = Console(width=width, file=io.StringIO(), color_system=None)
    console.print(shown)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert_fits(text, width)
    return text


def assert_fits(text: str, width: int = 80) -> None:
    """What a command has printed fits into so many columns, and nothing in it is cut."""
    assert "\u2026" not in text, text
    assert max(map(cell_len, text.splitlines()), default=0) <= width, text


def columns_of(text: str) -> list[list[str]]:
    """The columns of a table with lines between them: what stands in each, line by line."""
    rows = []
    for line in text.splitlines():
        parts = line.replace("\u2503", "\u2502").split("\u2502")[1:-1]
        if parts:
            rows.append([part.strip() for part in parts])
    return [list(column) for column in zip_longest(*rows, fillvalue="")]
