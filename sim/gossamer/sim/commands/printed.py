"""What scripts and notebooks show: things that print as tables, and runs side by side."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any, Final

from rich.console import Console, RenderableType

from gossamer.sim.results.tables import Comparison, comparison_table

_PAGE: Final = '<pre style="line-height: normal; font-family: monospace">{code}</pre>'
_WIDE: Final = 120


class Printed:
    """Something that prints as a table, in a terminal and in a notebook."""

    def __rich__(self) -> RenderableType:
        raise NotImplementedError

    def __str__(self) -> str:
        console = Console(file=io.StringIO())
        with console.capture() as printed:
            console.print(self.__rich__(), markup=False, highlight=False)
        return "\n".join(line.rstrip() for line in printed.get().splitlines())

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        console = Console(file=io.StringIO(), record=True, width=_WIDE)
        console.print(self.__rich__(), markup=False, highlight=False)
        return console.export_html(code_format=_PAGE, inline_styles=True)


class ComparedRuns(Printed):
    """Runs side by side, the first as the reference.

    Attributes:
        comparison: measure by measure.
    """

    def __init__(self, comparison: Comparison) -> None:
        self.comparison = comparison

    @property
    def measures(self) -> Any:
        """A row a system and measure, a column a run: a pandas DataFrame, or an Arrow table."""
        rows = self.comparison.rows
        columns: dict[str, list[Any]] = {
            "system": [row.system for row in rows],
            "measure": [row.measure for row in rows],
        }
        for place, run in enumerate(self.comparison.runs):
            columns[run] = [row.values[place] for row in rows]
        return frame_of(columns, ["system", "measure"])

    def __rich__(self) -> RenderableType:
        return comparison_table(self.comparison)


def frame_of(columns: Mapping[str, list[Any]], index: list[str]) -> Any:
    """A pandas DataFrame with that index where pandas is installed, else an Arrow table."""
    try:
        import pandas
    except ImportError:
        import pyarrow as pa

        return pa.table(dict(columns))
    return pandas.DataFrame(columns).set_index(index)
