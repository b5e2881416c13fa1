"""What each idea brings, as bars: `kindred` without it, beside all of it."""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np
from matplotlib.figure import Figure

from gossamer.sim.figures.common.measurements import OVERHEAD, PATH, Measurements
from gossamer.sim.figures.kindred.setup import KINDRED
from gossamer.sim.figures.kindred.studies import (
    ABLATION,
    ABLATION_ATTRIBUTES,
    ABLATION_RANGES,
    IDEAS,
    SHOWN_BY_STANDARD,
)
from gossamer.sim.figures.vinifera.studies import KINDS
from gossamer.sim.results.plot_style import (
    BLUE,
    INK,
    ORANGE,
    beside,
    legend_below,
    new_figure,
    per_cent,
)

_COLOURS: Final = (BLUE, ORANGE)
_BAR: Final = 0.38
_PANELS: Final = (
    (OVERHEAD, "Traffic overhead"),
    (PATH, "Path length (hops)"),
    ("load_max", "Busiest node"),
)


@attrs.frozen
class _Row:
    """A pair of bars in every panel, at a height."""

    study: str
    system: str
    label: str
    at: float


def plot_ablation(found: Measurements) -> Figure:
    """Overhead, hops and load of the busiest node without each idea, from the top down."""
    rows = _rows(found)
    figure = new_figure(0.9 + 0.33 * len(rows))
    panels = beside(figure, len(_PANELS), sharey=True)
    at = np.array([row.at for row in rows])
    for axes, (measure, title) in zip(panels, _PANELS, strict=True):
        for number, kind in enumerate(KINDS):
            values = [found.value(measure, row.study, row.system, kind, _x(row)) for row in rows]
            halves = [
                found.half_interval(measure, row.study, row.system, kind, _x(row)) for row in rows
            ]
            bars = {"xerr": halves, "ecolor": INK, "error_kw": {"elinewidth": 0.8}}
            axes.barh(
                at + (number - 0.5) * _BAR,
                values,
                _BAR,
                color=_COLOURS[number],
                label=kind,
                **(bars if np.isfinite(halves).any() else {}),
            )
        axes.set(title=title, ylim=(at[-1] + 0.7, -0.7))
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        if measure != PATH:
            per_cent(axes.xaxis)
    panels[0].set_yticks(at, [row.label for row in rows])
    legend_below(figure, panels[0], note=found.note_of(ABLATION))
    return figure


def _x(row: _Row) -> float:
    """The value of x of a study, which varies nothing but what is left out."""
    return 0.0 if row.study == ABLATION else 3.0


def _rows(found: Measurements) -> list[_Row]:
    """The standard workload, then those that show what it does not, with gaps between them."""
    groups = [
        (ABLATION, KINDRED, "kindred"),
        *((ABLATION, name, f"without {IDEAS[name]}") for name in SHOWN_BY_STANDARD),
        None,
        (ABLATION_RANGES, KINDRED, "three ranges a node"),
        (ABLATION_RANGES, "no-guests", "without guests"),
        None,
        (ABLATION_ATTRIBUTES, KINDRED, "three attributes"),
        (ABLATION_ATTRIBUTES, "no-key", "without the routing key"),
    ]
    rows = []
    at = 0.0
    for group in groups:
        if group is None:
            at += 0.4
        elif found.select(group[0], group[1], KINDS[0]):
            rows.append(_Row(*group, at))
            at += 1.0
    return rows
