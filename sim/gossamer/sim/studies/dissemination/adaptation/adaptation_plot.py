"""Pictures and tables of trees that follow what changes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from gossamer.command.tables import FittingTable
from gossamer.sim.results.plot_style import (
    BLUE,
    GREEN,
    GREY,
    HEIGHT_IN,
    VERMILION,
    legend_below,
    new_figure,
    plot_style,
    save,
)
from gossamer.sim.studies.dissemination.adaptation.adaptation import Adaptation


def plot_adaptation(results: Mapping[str, Adaptation], folder: Path, name: str) -> None:
    """Draw cost over time beside OPT into ``folder`` as SVG and PNG, a panel for each play.

    Args:
        results: by title.
        folder: exists.
        name: of the files.
    """
    with plot_style():
        figure = new_figure(HEIGHT_IN * 0.75 * len(results))
        panels = figure.subplots(len(results), 1, squeeze=False)[:, 0]
        for axes, (title, found) in zip(panels, results.items(), strict=True):
            at = (np.arange(len(found.optimum)) + 0.5) * found.stretch
            per_document = 1 / (found.play.rate * found.stretch)
            for moment in found.adaptive.installed:
                axes.axvline(moment, color=GREY, linewidth=0.7, linestyle=":")
            lines = (
                (found.frozen.cost, VERMILION, "--", "first trees kept"),
                (found.adaptive.cost, BLUE, "-", "planned anew"),
                (found.optimum, GREEN, "-.", "OPT, a tree a document"),
            )
            for costs, colour, dashes, label in lines:
                axes.plot(at, costs * per_document, dashes, color=colour, label=label)
            axes.set_ylim(bottom=0)
            axes.set_title(title)
            axes.set_ylabel("links per document")
        panels[-1].set_xlabel("seconds (dotted: other trees came into use)")
        legend_below(figure, panels[0])
        save(figure, folder, name)


def table_of_adaptation(results: Mapping[str, Adaptation]) -> FittingTable:
    """What plays came to, for the terminal."""
    table = FittingTable(title="Trees that follow what changes")
    headings = (
        *("play", "trees", "of OPT", "switches"),
        *("control\nkB/s", "documents\nkB/s", "lost,\ntwice"),
    )
    for heading in headings:
        words = heading in ("play", "trees")
        table.add_column(heading, justify="left" if words else "right")
    for title, found in results.items():
        for label, run in (("planned anew", found.adaptive), ("first trees kept", found.frozen)):
            table.add_row(
                title,
                label,
                f"{run.cost.sum() / found.optimum.sum():.3f}",
                str(len(run.installed)),
                f"{_rate(run.control_bytes.sum(), found):.1f}",
                f"{_rate(run.document_bytes.sum(), found):.1f}",
                f"{run.lost}, {run.doubled}",
            )
    return table


def _rate(total: int, found: Adaptation) -> float:
    return float(total) / found.play.length / 1_000
