"""Tables of any terminal's width: numbers stay whole, names are wrapped and never cut."""

from __future__ import annotations

from typing import Final

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

# Text is wrapped to no less than so many characters, and the words of headings above numbers.
_LEAST_TEXT: Final = 12
_LEAST_HEADING: Final = 8
_ENDLESS: Final = 1 << 16


class FittingTable(Table):
    """A table that fits where it is printed, and turns on its side where it cannot.

    Columns that are justified to the right hold numbers, which are never wrapped; text and headings
    are. Where even that takes more than there is, each row is a block of lines: heading and cell.
    """

    def add_numbers(self, *headings: str) -> None:
        """Add columns of numbers."""
        for heading in headings:
            self.add_column(heading, justify="right")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        fitting = self._fitting_widths(console, options)
        if fitting is None:
            yield from self._on_its_side(options)
            return
        for column, width in zip(self.columns, fitting, strict=True):
            column.width, column.overflow = width, "fold"
        try:
            yield from super().__rich_console__(console, options)
        finally:
            for column in self.columns:
                column.width = None

    def _fitting_widths(self, console: Console, options: ConsoleOptions) -> list[int | None] | None:
        """Widths of the columns, None for as much as they take; nothing where none fit."""
        widest = options.update(width=_ENDLESS)
        natural = [_natural_width(console, widest, column) for column in self.columns]
        taken = Measurement.get(console, widest, self).maximum - sum(natural)
        room = options.max_width - taken
        if sum(natural) <= room:
            return [None] * len(natural)
        widths = [
            min(most, _least_width(console, widest, column))
            for most, column in zip(natural, self.columns, strict=True)
        ]
        if sum(widths) > room:
            return None
        # No word is broken while there is room for it.
        words = [_word_width(console, widest, column) for column in self.columns]
        for wanted in (words, natural):
            while sum(widths) < room:
                lacking = [most - width for most, width in zip(wanted, widths, strict=True)]
                if max(lacking) <= 0:
                    break
                widths[lacking.index(max(lacking))] += 1
        return list(widths)

    def _on_its_side(self, options: ConsoleOptions) -> RenderResult:
        if self.title:
            title = self.title
            yield Text(title, "bold") if isinstance(title, str) else title
        sides = Table.grid(padding=(0, 2))
        sides.add_column(overflow="fold", style="bold", max_width=max(options.max_width // 2, 1))
        sides.add_column(overflow="fold")
        cells = [list(column.cells) for column in self.columns]
        for number, row in enumerate(self.rows):
            if number:
                sides.add_row("", "")
            if not cells[0][number]:  # as above, which is not to be seen in a block of its own
                cells[0][number] = cells[0][number - 1] if number else ""
            for column, of_column in zip(self.columns, cells, strict=True):
                sides.add_row(column.header, of_column[number], style=row.style)
        yield sides
        if self.caption:
            yield self.caption


def _natural_width(console: Console, options: ConsoleOptions, column: Column) -> int:
    parts = [column.header, *column.cells]
    return max(Measurement.get(console, options, part).maximum for part in parts)


def _word_width(console: Console, options: ConsoleOptions, column: Column) -> int:
    parts = [column.header, *column.cells]
    return max(Measurement.get(console, options, part).minimum for part in parts)


def _least_width(console: Console, options: ConsoleOptions, column: Column) -> int:
    """The width of numbers, and of text where it can still be read."""
    heading = Measurement.get(console, options, column.header).minimum
    if column.justify != "right":
        return max(_LEAST_TEXT, min(heading, _LEAST_HEADING))
    numbers = (Measurement.get(console, options, cell).maximum for cell in column.cells)
    return max(min(heading, _LEAST_HEADING), *numbers, 1)
