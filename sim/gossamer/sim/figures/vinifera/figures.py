"""`gossamer sim figures vinifera`: Fig. 3 to 5 of the Vinifera paper and its claims V1 to V10.

claims.json     verdicts, see `gossamer.sim.figures.common.claims`
checks.json     the numbers and bounds behind them
points.parquet  every run: what was varied, and all measures
load.parquet    load of every node of the runs with 1 to 5 attributes (Fig. 4(e))
hours.parquet   the runs under churn, hour by hour (Fig. 5)
plots/          fig3a to fig5c, SVG and PNG
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, MaxNLocator, NullFormatter, NullLocator

from gossamer.sim.figures.common.claims import Claim
from gossamer.sim.figures.common.measurements import (
    Measurements,
    check_claims,
    hours_table,
    load_table,
    points_table,
)
from gossamer.sim.figures.common.points import CHECKOUT, write_figures
from gossamer.sim.figures.vinifera.claims import claims_of
from gossamer.sim.figures.vinifera.studies import (
    ATTRIBUTES,
    BASELINE,
    CHURN,
    FRIENDS,
    FRIENDS_LARGE,
    FULL,
    KINDS,
    PAPER,
    QUICK,
    RANDOM,
    RATES,
    RESILIENT,
    SIZES,
    SKEWED,
    Trace,
    find_trace,
    plan_points,
)
from gossamer.sim.results.plot_style import (
    HEIGHT_IN,
    beside,
    draw_band,
    draw_intervals,
    draw_line,
    draw_population,
    from_zero,
    legend_below,
    new_figure,
    per_cent,
    population_handle,
    system_styles,
)
from gossamer.sim.results.results import check_destination
from gossamer.sim.study.tasks import Progress, run_tasks

_MARKERS = {RANDOM: "o", SKEWED: "^"}
_ALPHA = {RANDOM: 0.55, SKEWED: 1.0}
_LOAD_ATTRIBUTES = (1, 2, 3)
_SHADES = (1.0, 0.65, 0.35)


def draw(found: Measurements, trace: Trace) -> list[tuple[str, Figure]]:
    """All figures that there are measurements for, by name of the file; within `plot_style`."""
    figures = [
        *_pair(found, FRIENDS, "fig3a", "fig3b", "friend links (of 8)"),
        *_pair(found, SIZES, "fig4a", "fig4b", "nodes"),
        *_pair(found, ATTRIBUTES, "fig4c", "fig4d", "attributes"),
        ("fig4e", plot_load(found)),
        ("fig4f", plot_sweep(found, RATES, "hit_ratio", "Hit ratio", "publication rate (X)")),
        ("fig5a", plot_hours(found, trace, "hit_ratio", "Hit ratio")),
        ("fig5b", plot_hours(found, trace, "traffic_overhead", "Traffic overhead")),
        ("fig5c", plot_hours(found, trace, "path_length", "Mean path length (hops)")),
    ]
    if found.has(FRIENDS_LARGE):
        label = "friend links (of 8), 10,000 nodes"
        figures += _pair(found, FRIENDS_LARGE, "fig3a_10000", "fig3b_10000", label)
    return figures


def _pair(
    found: Measurements, study: str, overhead: str, path: str, label: str
) -> list[tuple[str, Figure]]:
    """Traffic overhead, and path length, over what a study varies."""
    return [
        (overhead, plot_sweep(found, study, "traffic_overhead", "Traffic overhead", label)),
        (path, plot_sweep(found, study, "path_length_mean", "Mean path length (hops)", label)),
    ]


def plot_sweep(found: Measurements, study: str, measure: str, title: str, label: str) -> Figure:
    """A measure over what a study varies, for both systems and kinds of subscriptions."""
    figure = new_figure()
    axes = figure.subplots()
    for system, style in system_styles((PAPER, BASELINE)).items():
        for kind in KINDS:
            x, y = found.series(measure, study, system, kind)
            half = found.half_intervals(measure, study, system, kind)
            if len(x) == 1:  # the baseline has no friend links to vary
                places = found.places(study, PAPER, kind)
                x, y, half = np.array(places), np.repeat(y, len(places)), half.repeat(len(places))
            draw_intervals(
                axes,
                x,
                y,
                half,
                color=style.colour,
                linestyle=style.dashes,
                marker=_MARKERS[kind],
                markersize=4,
                alpha=_ALPHA[kind],
                label=f"{style.label}, {kind}",
            )
    axes.set(title=title, xlabel=label)
    from_zero(axes)
    if measure != "path_length_mean":
        per_cent(axes.yaxis)
    if study == SIZES:
        _logarithmic(axes, found.places(study, PAPER, RANDOM))
    elif study != RATES:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    legend_below(figure, axes, note=found.note_of(study))
    return figure


def _logarithmic(axes: Axes, places: list[float]) -> None:
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(places))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())


def plot_load(found: Measurements) -> Figure:
    """Cumulative distribution of load for 1, 2 and 3 attributes, a panel for each kind."""
    figure = new_figure()
    panels = beside(figure, 2, sharey=True)
    for axes, kind in zip(panels, (SKEWED, RANDOM), strict=True):
        for system, style in system_styles((PAPER, BASELINE)).items():
            for attributes, alpha in zip(_LOAD_ATTRIBUTES, _SHADES, strict=True):
                load = found.load(ATTRIBUTES, system, kind, attributes)
                share = np.arange(1, len(load) + 1) / max(len(load), 1)
                axes.step(
                    np.concatenate(([0.0], load)),
                    np.concatenate(([0.0], share)),
                    where="post",
                    color=style.colour,
                    linestyle=style.dashes,
                    alpha=alpha,
                    label=f"{style.label}, attributes: {attributes}",
                )
        axes.set(
            title=f"Nodes up to this load, {kind}",
            xlabel="share of events handled without interest",
            xlim=(0, 1),
            ylim=(0, 1.02),
        )
        per_cent(axes.xaxis)
        per_cent(axes.yaxis)
    legend_below(figure, panels[0])
    return figure


def plot_hours(found: Measurements, trace: Trace, measure: str, title: str) -> Figure:
    """A measure hour by hour under churn, a panel for each kind, over the nodes online."""
    figure = new_figure(HEIGHT_IN + 0.9)
    panels = figure.subplots(2, 1, sharex=True, sharey=True)
    for axes, kind in zip(panels, KINDS, strict=True):
        for system, style in system_styles((PAPER, BASELINE, RESILIENT)).items():
            hours, values, half = found.hourly(measure, CHURN, system, kind)
            draw_line(axes, hours + trace.first_hour, values, style, marker="")
            draw_band(axes, hours + trace.first_hour, values, half, style.colour)
        axes.set(title=f"{title}, {kind} subscriptions")
        if measure != "path_length":
            per_cent(axes.yaxis)
        table = found.hours(CHURN, PAPER, kind)
        draw_population(axes, table["hour"] + trace.first_hour, table["population"], 1.1)
    panels[1].set(xlabel="time (hours)")
    from_zero(panels[1])
    handles = [*panels[0].get_legend_handles_labels()[0], population_handle()]
    legend_below(figure, panels[0], handles, note=found.note_of(CHURN))
    return figure


def reproduce_vinifera(
    out: Path,
    *,
    quick: bool,
    processes: int,
    progress: Progress | None = None,
    checkout: Path = CHECKOUT,
) -> list[Claim]:
    """Run everything behind Fig. 3 to 5 (Sec. V), check V1 to V10, write ``out`` whole.

    Args:
        out: the new folder; on any error it is not made.
        quick: fewer points, seeds and events, and some hours of churn instead of a week.
        processes: points that run at a time.
        progress: called with "figures", points done and points in all.
        checkout: where the bundled traces are, and beside it ``shared/data``.

    Raises:
        ResultsError: ``out`` is taken.
        ScenarioError: there is no churn trace.
        SimulationError: a run failed.
        OSError: the disk is full or not writable.
    """
    check_destination(out)
    plan = QUICK if quick else FULL
    trace = find_trace(plan, checkout)
    outcomes = run_tasks(plan_points(plan, trace), processes, progress)
    found = Measurements(outcomes)
    claims = check_claims(claims_of(trace), found)
    tables = {
        "points": points_table(outcomes),
        "load": load_table(outcomes, (ATTRIBUTES,)),
        "hours": hours_table(outcomes, {CHURN: trace.first_hour}),
    }
    write_figures(out, claims, tables, lambda: draw(found, trace), readings=False)
    return claims
