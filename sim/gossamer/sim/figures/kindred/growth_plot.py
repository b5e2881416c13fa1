"""How hops and overhead grow with the number of nodes: one picture, with a name at each line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, LogLocator, NullFormatter, NullLocator

from gossamer.sim.figures.common.measurements import OVERHEAD, PATH, Measurements
from gossamer.sim.figures.common.points import Floats
from gossamer.sim.figures.kindred.studies import KINDRED, SYSTEMS
from gossamer.sim.figures.vinifera.studies import BASELINE, PAPER, RANDOM, SIZES
from gossamer.sim.results.plot_style import beside, new_figure, per_cent, system_styles

# A size beyond those of the growth study, run as `examples/scale/kindred.toml` has it.
SCALE: Final = "scale"

_HEIGHT_IN: Final = 3.1
# Where the name of a line stands beside its last point: offset in points, and alignment.
_RIGHT: Final = ((7.0, 0.0), "left", "center")
_BELOW: Final = ((3.0, -5.0), "left", "top")
_LEFT: Final = ((-8.0, 0.0), "right", "center")
# Of a logarithmic axis that is half a figure wide: what a label takes of it.
_LABEL: Final = 0.15
# From so many times the least value on, labels at powers of ten suffice.
_FAR: Final = 300.0
# Above and below all points, of what lies between them.
_MARGIN: Final = 0.07


# In the order of the legend that other plots have; `kindred` is drawn above the others.
_MARKERS: Final = {PAPER: "s", BASELINE: "D", KINDRED: "o"}
_PANELS: Final = ((PATH, "Hops of a delivery"), (OVERHEAD, "Traffic overhead"))


def plot_growth(found: Measurements) -> Figure:
    """Hops and overhead over numbers of nodes, random subscriptions, on logarithmic axes."""
    figure = new_figure(_HEIGHT_IN)
    styles = system_styles(list(_MARKERS))
    for axes, (measure, title) in zip(beside(figure, len(_PANELS)), _PANELS, strict=True):
        ends = {}
        for system, marker in _MARKERS.items():
            x, y = found.series(measure, SIZES, system, RANDOM)
            if not len(x):
                continue
            colour = styles[system].colour
            axes.plot(x, y, color=colour, marker=marker, markersize=4.5)
            draw_scale(axes, found, measure, system, RANDOM, colour)
            ends[system] = (float(x[-1]), float(y[-1]), bool(y[-1] > y[0]))
        axes.set(title=title, xlabel="nodes")
        numbers_of_nodes(axes, sizes_of(found))
        if is_logarithmic(axes):
            steps(axes, shares=measure == OVERHEAD)
        for system, (across, up, rises) in ends.items():
            offset, horizontal, vertical = _RIGHT
            if system == KINDRED:
                offset, horizontal, vertical = _BELOW if rises else _LEFT
            elif measure == OVERHEAD:
                # Both waste as much, and one name stands above its line.
                offset = (offset[0], 5.0 if system == BASELINE else -5.0)
            axes.annotate(
                system,
                (across, up),
                xytext=offset,
                textcoords="offset points",
                ha=horizontal,
                va=vertical,
                color=styles[system].colour,
                fontweight="bold",
            )
    return figure


def sizes_of(found: Measurements) -> list[float]:
    """All numbers of nodes of both studies."""
    studies = (SIZES, SCALE)
    return [x for study in studies for one in SYSTEMS for x in found.places(study, one, RANDOM)]


def draw_scale(
    axes: Axes, found: Measurements, measure: str, system: str, kind: str, colour: str
) -> None:
    """Go on to the sizes of the study `SCALE`, if any, dashed: their scenario is another one."""
    x, y = found.series(measure, SIZES, system, kind)
    further, values = found.series(measure, SCALE, system, kind)
    known = np.isfinite(values)
    if not known.any() or not len(x):
        return
    axes.plot(
        [x[-1], *further[known]],
        [y[-1], *values[known]],
        color=colour,
        linestyle="--",
        linewidth=1.1,
        marker="o",
        markersize=4.5,
        markerfacecolor="white",
        markevery=slice(1, None),
    )


def is_logarithmic(axes: Axes) -> bool:
    """Whether all that is drawn so far has a place on a logarithmic vertical axis."""
    values = _drawn(axes)
    return bool(len(values) and (values > 0).all())


def _drawn(axes: Axes) -> Floats:
    """float64: the heights of all lines, also of axes that share theirs; not those of intervals."""
    group = axes.get_shared_y_axes().get_siblings(axes)
    containers = [bars for one in group for bars in one.containers]
    ends = {
        id(end) for bars in containers if isinstance(bars, ErrorbarContainer) for end in bars[1]
    }
    lines = [line for one in group for line in one.lines if id(line) not in ends]
    drawn = [np.asarray(line.get_ydata(), np.float64) for line in lines]
    values = np.concatenate(drawn) if drawn else np.empty(0)
    return values[np.isfinite(values)]


def numbers_of_nodes(axes: Axes, sizes: Sequence[float]) -> None:
    """A logarithmic horizontal axis, with a tick at each of ``sizes``.

    Labels stand at powers of ten, or at those sizes for which there is room.
    """
    axes.set_xscale("log")
    places = sorted(set(sizes))
    tens = [one for one in (10.0**power for power in range(10)) if places[0] <= one <= places[-1]]
    axes.xaxis.set_major_locator(FixedLocator(tens if len(tens) > 1 else _apart(places)))
    axes.xaxis.set_major_formatter(_short)
    axes.xaxis.set_minor_locator(FixedLocator(places))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _apart(places: list[float]) -> list[float]:
    """Those of ``places`` that are so far apart on a logarithmic axis that their labels fit."""
    kept = places[:1]
    least = (places[-1] / places[0]) ** _LABEL if places else 1.0
    for place in places[1:]:
        if place >= least * kept[-1]:
            kept.append(place)
    return kept


def _short(value: float, _position: object) -> str:
    if value >= 1_000_000:
        return f"{value / 1_000_000:g}M"
    return f"{value / 1000:g}k" if value >= 10_000 else f"{value:,.0f}"


def steps(axes: Axes, *, shares: bool) -> None:
    """A logarithmic vertical axis with few round labels, of ratios in per cent or of numbers."""
    values = _drawn(axes)
    low, high = values.min(), values.max()
    # Of what is measured, as intervals may reach below anything.
    axes.set_yscale("log")
    margin = (high / low) ** _MARGIN
    axes.set_ylim(low / margin, high * margin)
    far = high > _FAR * low
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0,) if far else (1.0, 2.0, 5.0), numticks=20))
    axes.yaxis.set_minor_locator(NullLocator())
    if shares:
        per_cent(axes.yaxis)
    else:
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
