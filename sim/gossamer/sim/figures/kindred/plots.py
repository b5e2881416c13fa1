"""Plots of `kindred` beside the others: growth, load, congestion, churn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from gossamer.sim.figures.common.measurements import OVERHEAD, PATH, TREE, Measurements
from gossamer.sim.figures.kindred.ablation_plot import plot_ablation
from gossamer.sim.figures.kindred.growth_plot import (
    draw_scale,
    is_logarithmic,
    numbers_of_nodes,
    plot_growth,
    sizes_of,
    steps,
)
from gossamer.sim.figures.kindred.setup import SYSTEMS, Data
from gossamer.sim.figures.kindred.studies import ABLATION, MONTH
from gossamer.sim.figures.vinifera.studies import (
    ATTRIBUTES,
    BASELINE,
    CHURN,
    KINDS,
    RANDOM,
    RATES,
    SIZES,
)
from gossamer.sim.results.plot_style import (
    GREY,
    HEIGHT_IN,
    INK,
    SystemStyle,
    beside,
    draw_band,
    draw_intervals,
    draw_line,
    from_zero,
    legend_below,
    new_figure,
    per_cent,
    plot_style,
    population_handle,
    save,
    system_styles,
)

_MARKERS = ("o", "s", "^", "D")
# Lines of a second measure of the same system are thinner and lighter.
_SECOND = {"alpha": 0.55, "linewidth": 1.1, "markerfacecolor": "white"}


def write_plots(found: Measurements, data: Data, folder: Path) -> None:
    """Draw all plots that there are measurements for into the new folder ``folder``."""
    folder.mkdir()
    with plot_style():
        for name, figure in _figures(found, data):
            save(figure, folder, name)


def _figures(found: Measurements, data: Data) -> Iterator[tuple[str, Figure]]:
    yield "growth", plot_growth(found)
    yield "growth_overhead", plot_sweep(found, SIZES, [OVERHEAD], "Traffic overhead", "nodes")
    hops = plot_sweep(found, SIZES, [PATH, TREE], "Path length (hops)", "nodes")
    yield "growth_hops", hops
    degrees = ["in_degree_mean", "in_degree_max"]
    yield "growth_degree", plot_sweep(found, SIZES, degrees, "Links to a node", "nodes")
    yield "attributes", plot_sweep(found, ATTRIBUTES, [OVERHEAD], "Traffic overhead", "attributes")
    label = "publication rate (X)"
    yield "congestion", plot_sweep(found, RATES, ["hit_ratio"], "Hit ratio", label)
    yield "load", plot_load(found)
    yield "churn", plot_hit_ratio(found, CHURN, data.trace.first_hour)
    if found.has(ABLATION):
        yield "ablation", plot_ablation(found)
    if found.has(MONTH):
        yield "month", plot_hit_ratio(found, MONTH, 0.0)


# What lines mean of which there are two for a system.
_PAIRS = {
    (PATH, TREE): ("from the publisher", "depth of the tree"),
    ("in_degree_mean", "in_degree_max"): ("mean", "most"),
}


def plot_sweep(
    found: Measurements, study: str, measures: Sequence[str], title: str, label: str
) -> Figure:
    """One or two measures over what a study varies, a panel for each kind of subscriptions."""
    figure = new_figure()
    panels = beside(figure, 2, sharex=True, sharey=True)
    styles = system_styles(SYSTEMS)
    for axes, kind in zip(panels, KINDS, strict=True):
        for system, marker in zip(SYSTEMS, _MARKERS, strict=True):
            for number, measure in enumerate(measures):
                x, y = found.series(measure, study, system, kind)
                draw_intervals(
                    axes,
                    x,
                    y,
                    found.half_intervals(measure, study, system, kind),
                    color=styles[system].colour,
                    linestyle="-" if number == 0 else ":",
                    marker=marker,
                    markersize=4,
                    elinewidth=0.8,
                    **(_SECOND if number else {}),
                )
                if study == SIZES:
                    draw_scale(axes, found, measure, system, kind, styles[system].colour)
        axes.set(title=f"{title}, {kind}", xlabel=label)
    # Panels share their axes, so that all is drawn before these are laid out.
    for axes in panels:
        _scale(axes, found, study, measures[0])
    if panels[0].get_yscale() == "linear":
        from_zero(panels[0])
    handles = _handles(styles, tuple(measures))
    legend_below(figure, panels[0], handles, note=found.note_of(study))
    return figure


def _scale(axes: Axes, found: Measurements, study: str, measure: str) -> None:
    shares = measure in (OVERHEAD, "hit_ratio")
    if shares:
        per_cent(axes.yaxis)
    if study == SIZES:
        numbers_of_nodes(axes, sizes_of(found))
        if is_logarithmic(axes):
            steps(axes, shares=shares)
    elif study == ATTRIBUTES:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _handles(styles: dict[str, SystemStyle], measures: tuple[str, ...]) -> list[Line2D]:
    """Entries of a legend: systems, and what the two lines of each are."""
    handles = [
        Line2D([], [], color=styles[system].colour, marker=marker, markersize=4, label=style.label)
        for (system, style), marker in zip(styles.items(), _MARKERS, strict=True)
    ]
    for number, words in enumerate(_PAIRS.get((measures[0], measures[-1]), ())):
        handles.append(
            Line2D(
                [],
                [],
                color=INK,
                linestyle=":" if number else "-",
                alpha=0.55 if number else 1.0,
                label=words,
            )
        )
    return handles


def plot_load(found: Measurements) -> Figure:
    """Which share of the nodes carries more than a load, on logarithmic axes."""
    figure = new_figure()
    panels = beside(figure, 2, sharex=True, sharey=True)
    places = found.places(SIZES, BASELINE, RANDOM)
    nodes = 1000.0 if 1000.0 in places else places[-1]
    for axes, kind in zip(panels, KINDS, strict=True):
        for system, style in system_styles(SYSTEMS).items():
            load = found.load(SIZES, system, kind, nodes)
            beyond = 1.0 - np.arange(len(load)) / max(len(load), 1)
            shown = load > 0
            axes.step(
                load[shown],
                beyond[shown],
                where="pre",
                color=style.colour,
                linestyle=style.dashes,
                label=style.label,
            )
        axes.set(
            title=f"Nodes above a load, {kind}",
            xlabel="share of events handled without interest",
            xscale="log",
            yscale="log",
        )
        for axis in (axes.xaxis, axes.yaxis):
            per_cent(axis)
    legend_below(figure, panels[0])
    return figure


def plot_hit_ratio(found: Measurements, study: str, first_hour: float) -> Figure:
    """The hit ratio hour by hour under churn, a panel for each kind, over the nodes online."""
    figure = new_figure(HEIGHT_IN + 0.9)
    panels = figure.subplots(2, 1, sharex=True, sharey=True)
    systems = [system for system in SYSTEMS if found.select(study, system, KINDS[0])]
    for axes, kind in zip(panels, KINDS, strict=True):
        # Who misses most is drawn first, so that no line hides a better one.
        for system, style in reversed(system_styles(systems).items()):
            hours, ratios, half = found.hourly("hit_ratio", study, system, kind)
            looks = {"linestyle": "-", "linewidth": 1.2, "marker": ""}
            draw_line(axes, hours + first_hour, ratios, style, **looks)
            draw_band(axes, hours + first_hour, ratios, half, style.colour)
        axes.set(title=f"Hit ratio, {kind} subscriptions")
        per_cent(axes.yaxis)
        _show_population(axes, found, study, systems[0], kind, first_hour)
    panels[1].set(xlabel="time (hours)")
    handles = [*panels[0].get_legend_handles_labels()[0], population_handle()]
    legend_below(figure, panels[0], handles, note=found.note_of(study))
    return figure


def _show_population(
    axes: Axes, found: Measurements, study: str, system: str, kind: str, first_hour: float
) -> None:
    """The nodes online, on an axis of its own on the right, as in the paper."""
    hours = found.hours(study, system, kind)
    right = axes.twinx()
    right.plot(hours["hour"] + first_hour, hours["population"], color=GREY, linewidth=0.8)
    right.set(ylabel="nodes online", ylim=(0, 2.5 * max(1.0, float(hours["population"].max()))))
    right.grid(visible=False)
    right.spines["right"].set_visible(True)
