"""What the figures about covering are made of: experiments that are run, checked and drawn apart.

An experiment covers some of the claims P1 to P9 and I1 to I6. `covering.figures.EXPERIMENTS` lists
them all; a module of an experiment ends with the experiment itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np
from matplotlib.figure import Figure

from gossamer.sim.figures.common.claims import Claim, write_claims, write_readings
from gossamer.sim.results.plot_style import plot_style, save
from gossamer.sim.results.results import whole_folder, write_table
from gossamer.sim.study.records import Column, Table
from gossamer.sim.study.tasks import Task


@attrs.frozen(kw_only=True)
class Experiment:
    """Claims with the runs that decide them.

    Attributes:
        claims: their ids.
        tasks: what is run, reduced if the argument says so.
        check: the claims, from the outcomes of all tasks in their order.
        tables: what is kept of the outcomes, by name of the Parquet file.
        draw: the plots, by name of the file; called within `plot_style`.
    """

    claims: Sequence[str]
    tasks: Callable[[bool], Sequence[Task[Any]]]
    check: Callable[[Sequence[Any]], Sequence[Claim]]
    tables: Callable[[Sequence[Any]], Mapping[str, Table]]
    draw: Callable[[Sequence[Any]], Iterable[tuple[str, Figure]]]


def stacked(of: Sequence[Any], keys: Sequence[str], parts: Sequence[Table]) -> dict[str, Column]:
    """Tables under one another, with columns that tell them apart.

    Args:
        of: what each table is of.
        keys: attributes of these, as "run.study"; the last part of each names a column.
        parts: the tables, of the same columns.
    """
    lengths = [len(next(iter(part.values()))) for part in parts]
    known = {
        key.rpartition(".")[-1]: np.repeat([attrgetter(key)(one) for one in of], lengths)
        for key in keys
    }
    return {**known, **{name: np.concatenate([part[name] for part in parts]) for name in parts[0]}}


def row_of(measures: Mapping[str, float]) -> dict[str, Column]:
    """Measures as a table of one row."""
    return {name: np.array([value]) for name, value in measures.items()}


def write_figures(
    out: Path,
    claims: Sequence[Claim],
    tables: Mapping[str, Table],
    plots: Callable[[], Iterable[tuple[str, Figure]]],
    *,
    readings: bool = True,
    report: str | None = None,
) -> None:
    """Write the figures of a paper into the new folder ``out``, whole.

    Args:
        out: the folder; on any error it is not made.
        claims: with their verdicts.
        tables: by name of the Parquet file.
        plots: draws them, by name of the file; called within `plot_style`.
        readings: whether the claims have two readings, and ``readings.md`` sets them side by side.
        report: what ``report.md`` says, if there is one.
    """
    with whole_folder(Path(out), replace=False) as folder:
        write_claims(claims, folder)
        if readings:
            write_readings(claims, folder)
        if report is not None:
            (folder / "report.md").write_text(report, encoding="utf-8")
        for name, table in tables.items():
            write_table(table, folder / f"{name}.parquet")
        drawn = folder / "plots"
        drawn.mkdir()
        with plot_style():
            for name, figure in plots():
                save(figure, drawn, name)


# Where the checkout is that figures take examples and data from.
CHECKOUT: Final = Path(__file__).resolve().parents[5]
