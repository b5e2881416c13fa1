"""Plots like Fig. 7 to 12 of the selective and Fig. 6 to 10 of the incremental paper."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Self

import attrs
import networkx as nx
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gossamer.sim.figures.common.measurements import RunResult, Runs
from gossamer.sim.figures.common.points import Floats
from gossamer.sim.figures.covering.burst_runs import (
    ACTIVE,
    CLUSTERED,
    COMPARED,
    DEGREES,
    INCREMENTAL,
    LAZY,
    PACKED,
    SELECTIVE,
    UNSUBSCRIPTIONS,
)
from gossamer.sim.figures.covering.scenes import (
    CITY,
    EVERYBODY,
    GAME,
    MONITORS,
    RUSH,
    TOGETHER,
    WORKFLOW,
    Scenes,
)
from gossamer.sim.results.plot_style import (
    BLUE,
    GREY,
    ORANGE,
    VERMILION,
    SystemStyle,
    beside,
    covering_styles,
    draw_line,
    from_zero,
    legend_below,
    looks,
    new_figure,
    per_cent,
)
from gossamer.sim.studies.tree_brokers.topology import (
    BrokerOverlay,
    star_17,
    tiered,
    workflow_40,
)


class Outcomes(Runs):
    """What bursts measured, by study, covering and place on the x axis."""

    @classmethod
    def of(cls, found: Iterable[RunResult], *readings: str) -> Self:
        """Those of some readings, or of all; the comparison is a point of two sweeps, too."""
        results = super().of(found, *readings).found
        compared = [one for one in results if one.run.study == COMPARED]
        sweeps = [
            attrs.evolve(one, run=attrs.evolve(one.run, study=study, x=float(x)))
            for one in compared
            for study, x in (
                (UNSUBSCRIPTIONS, one.run.x),
                (DEGREES, one.run.burst.workload.degree),
            )
        ]
        return cls([*results, *sweeps])


_SELECTIVE = (ACTIVE, LAZY, PACKED, SELECTIVE)
_INCREMENTAL = (ACTIVE, LAZY, PACKED, INCREMENTAL)


def draw_bursts(found: Outcomes) -> Iterator[tuple[str, Figure]]:
    """All plots, by name of the file."""
    compared = [found.one(COMPARED, covering) for covering in _SELECTIVE]
    clustered = [found.one(CLUSTERED, covering) for covering in (ACTIVE, SELECTIVE)]
    most = found.one(INCREMENTAL, LAZY).run.x
    large = [found.one(INCREMENTAL, covering, most) for covering in _INCREMENTAL]
    yield "selective7a", plot_bars(compared, "measured_s", "Publication delay (s)")
    yield "selective7b", plot_bars(compared, "table_core", "Routing table at the core")
    yield "selective7c", plot_false_positives(compared[-1])
    yield "selective7d", plot_triggered(compared)
    yield "selective7e", plot_queues(compared)
    yield "selective8", plot_sweep(found, UNSUBSCRIPTIONS, SELECTIVE, "unsubscriptions")
    yield "selective9", plot_sweep(found, DEGREES, SELECTIVE, "covering degree")
    yield "selective10a", plot_bars(clustered, "measured_s", "Publication delay (s), clustered")
    yield "selective10b", plot_bars(clustered, "table_core", "Routing table at the core, clustered")
    yield "selective10c", plot_queues(clustered)
    yield "incremental6a", plot_delays(large)
    yield "incremental6b", plot_queues(large)
    yield "incremental6c", plot_triggered(large)
    yield "incremental6d", plot_bars(large, "table_core", "Routing table at the core")
    yield "incremental7", plot_sweep(found, INCREMENTAL, INCREMENTAL, "triggered subscriptions")


def plot_bars(bursts: Sequence[RunResult], measure: str, title: str) -> Figure:
    """A measure of several bursts, on a logarithmic axis where they are far apart."""
    figure, axes = _plot()
    values = [one.measures[measure] for one in bursts]
    names = [one.run.covering for one in bursts]
    styles = covering_styles(names)
    axes.bar(names, values, color=[styles[name].colour for name in names], width=0.6)
    for place, value in enumerate(values):
        text = f"{value:,.3g}" if value < 1000 else f"{value:,.0f}"
        axes.annotate(text, (place, value), ha="center", va="bottom")
    if min(values) > 0 and max(values) > 30 * min(values):
        axes.set_yscale("log")
    axes.set(title=title)
    return figure


def plot_triggered(bursts: Sequence[RunResult]) -> Figure:
    """Triggered messages at the core brokers, in order towards the publishers."""
    figure, axes = _plot()
    for one, style in _styled(bursts):
        core = one.tables["core"]
        axes.plot(core["broker"], core["triggered"], marker="o", markersize=4, **looks(style))
    axes.set_yscale("symlog", linthresh=10)
    axes.set(title="Triggered messages", xlabel="core broker", ylim=(0, None))
    legend_below(figure, axes)
    return figure


def plot_queues(bursts: Sequence[RunResult]) -> Figure:
    """The longest input queue of the core over time."""
    figure, axes = _plot()
    for one, style in _styled(bursts):
        queues = [column for name, column in one.tables["queues"].items() if name != "time_s"]
        axes.plot(one.tables["queues"]["time_s"], np.max(queues, axis=0), **looks(style))
    axes.set(title="Longest core queue", xlabel="time (s)")
    from_zero(axes)
    legend_below(figure, axes)
    return figure


def plot_delays(bursts: Sequence[RunResult]) -> Figure:
    """Mean publication delay over the time of publication."""
    figure, axes = _plot()
    for one, style in _styled(bursts):
        draw_line(axes, one.tables["delays"]["time_s"], one.tables["delays"]["delay_mean_s"], style)
    axes.set_yscale("log")
    axes.set(title="Publication delay (s)", xlabel="published at (s)")
    legend_below(figure, axes)
    return figure


def plot_false_positives(one: RunResult) -> Figure:
    """False positives as a share of what each core broker got, and of all traffic."""
    figure, axes = _plot()
    core = one.tables["core"]
    shares = core["false_positives"] / np.maximum(core["arrived"], 1)
    style = covering_styles([one.run.covering])[one.run.covering]
    names = [*core["broker"], "all brokers"]
    heights = [*shares, one.measures["false_positives"]]
    axes.bar(names, heights, color=style.colour, label=style.label)
    axes.set(title="False positives, share of publications", ylim=(0, 1.1 * max(0.01, *heights)))
    legend_below(figure, axes)
    per_cent(axes.yaxis)
    return figure


def plot_sweep(found: Outcomes, study: str, pruned: str, label: str) -> Figure:
    """Delay, longest queue and tables over what a study varies, for active covering and pruning."""
    figure = new_figure()
    delay = "delay_mean_s" if study == INCREMENTAL else "measured_s"
    panels = {"Delay (s)": delay, "Longest core queue": "queue_max", "Core table": "table_core"}
    styles = covering_styles((ACTIVE, pruned))
    for axes, (title, measure) in zip(beside(figure, len(panels)), panels.items(), strict=True):
        for covering, style in styles.items():
            x, y = found.series(measure, study, covering)
            axes.plot(x, y, marker="o", markersize=4, **looks(style))
        if measure == delay:
            axes.set_yscale("log")
            legend_below(figure, axes)
        else:
            from_zero(axes)
        axes.set(title=title, xlabel=label)
    return figure


def _plot() -> tuple[Figure, Axes]:
    figure = new_figure()
    return figure, figure.subplots()


def _styled(bursts: Sequence[RunResult]) -> Iterator[tuple[RunResult, SystemStyle]]:
    styles = covering_styles([one.run.covering for one in bursts])
    for one in bursts:
        yield one, styles[one.run.covering]


_TIER_COLOURS = (VERMILION, ORANGE, BLUE, GREY)


def draw_mobile(found: Scenes) -> Iterator[tuple[str, Figure]]:
    """Fig. 11 and 12 of the selective paper, Fig. 8 and 9 of the incremental paper."""
    games = {
        case: [found.one(GAME, covering, case) for covering in (ACTIVE, SELECTIVE)]
        for case in (MONITORS, EVERYBODY)
    }
    city = [found.one(CITY, covering, RUSH) for covering in (ACTIVE, INCREMENTAL)]
    yield "selective11", plot_overlay(tiered())
    yield (
        "selective12ab",
        plot_panels(
            {f"Longest core queue, {case}": its for case, its in games.items()}, "queue_core"
        ),
    )
    yield (
        "selective12cd",
        plot_panels({f"Routing tables, {case}": its for case, its in games.items()}, "table_mean"),
    )
    yield "selective12ef", plot_tiers(games[EVERYBODY])
    yield "incremental8", plot_overlay(star_17())
    yield from _over_time("incremental9", city, "queue_core")


def draw_workflow(found: Scenes) -> Iterator[tuple[str, Figure]]:
    """Fig. 10 of the incremental paper, and its overlay."""
    runs = [found.one(WORKFLOW, covering, TOGETHER) for covering in (ACTIVE, INCREMENTAL)]
    yield "workflow_overlay", plot_overlay(workflow_40())
    yield from _over_time("incremental10", runs, "queue_mean")


def _over_time(name: str, runs: Sequence[RunResult], queue: str) -> Iterator[tuple[str, Figure]]:
    yield f"{name}a", plot_panels({"Worst publication delay (s)": runs}, "delay_max_s", log=True)
    title = "Longest core queue" if queue == "queue_core" else "Mean queue of all brokers"
    yield f"{name}b", plot_panels({title: runs}, queue)
    yield f"{name}c", plot_panels({"Mean routing table": runs}, "table_mean")


def plot_panels(
    panels: dict[str, Sequence[RunResult]], column: str, *, log: bool = False
) -> Figure:
    """A column over time, a panel for each title, a line for each covering."""
    figure = new_figure()
    drawn = beside(figure, len(panels), sharey=True)
    for axes, (title, runs) in zip(drawn, panels.items(), strict=True):
        styles = covering_styles([one.run.covering for one in runs])
        for one in runs:
            style = styles[one.run.covering]
            draw_line(axes, one.tables["times"]["time_s"] / 60, one.tables["times"][column], style)
        if log:
            axes.set_yscale("log")
        axes.set(title=title.replace(", ", ",\n"), xlabel="time (minutes)")
    if not log:
        from_zero(drawn[0])
    legend_below(figure, drawn[0])
    return figure


def plot_tiers(runs: Sequence[RunResult]) -> Figure:
    """Publications that a broker of each tier got, and the false positives among them."""
    figure = new_figure()
    panels = {"received": "Publications at a broker", "false_positives": "False positives"}
    for axes, (column, title) in zip(beside(figure, 2), panels.items(), strict=True):
        width = 0.8 / len(runs)
        styles = covering_styles([one.run.covering for one in runs])
        for place, one in enumerate(runs):
            tiers, means = by_tier(one, column)
            style = styles[one.run.covering]
            axes.bar(tiers + width * place, means, width, color=style.colour, label=style.label)
        axes.set(title=title, xlabel="tier, from the top")
        axes.set_xticks(tiers + width / 2, [f"{tier:g}" for tier in tiers])
    legend_below(figure, figure.axes[0])
    return figure


def by_tier(one: RunResult, column: str) -> tuple[Floats, Floats]:
    """float64[tiers], float64[tiers]: tiers from the top, and the mean of a broker of each."""
    brokers = one.tables["brokers"]
    tiers = np.unique(brokers["tier"])
    means = [float(brokers[column][brokers["tier"] == tier].mean()) for tier in tiers]
    return tiers.astype(np.float64), np.array(means)


def plot_overlay(overlay: BrokerOverlay) -> Figure:
    """Who is linked to whom, coloured by tier, regions side by side."""
    figure = new_figure()
    axes: Axes = figure.subplots()
    graph = overlay.graph
    places = _radial(graph)
    for one, other in graph.edges:
        (x1, y1), (x2, y2) = places[one], places[other]
        axes.plot([x1, x2], [y1, y2], color=GREY, linewidth=1.0, zorder=1)
    for tier in sorted({tier for _, tier in graph.nodes(data="tier")}):
        names = [name for name, found in graph.nodes(data="tier") if found == tier]
        x, y = zip(*(places[name] for name in names), strict=True)
        axes.scatter(x, y, s=60, color=_TIER_COLOURS[tier], label=f"tier {tier}", zorder=2)
    axes.set(title=f"{len(graph)} brokers: {overlay.name.replace('_', ' ')}")
    axes.set_aspect("equal")
    axes.margins(0.04)
    axes.set_axis_off()
    legend_below(figure, axes)
    return figure


def _radial(graph: nx.Graph[str]) -> dict[str, tuple[float, float]]:
    """A tree around its centre: leaves at equal angles, all others between what hangs from them."""
    centre = nx.center(graph)[0]
    tree = nx.bfs_tree(graph, centre)
    depth = nx.single_source_shortest_path_length(graph, centre)
    angles: dict[str, float] = {}
    leaves = [name for name in nx.dfs_preorder_nodes(tree, centre) if tree.out_degree(name) == 0]
    for name in nx.dfs_postorder_nodes(tree, centre):
        below = [angles[other] for other in tree[name]]
        angles[name] = (
            float(np.mean(below)) if below else 2 * np.pi * leaves.index(name) / len(leaves)
        )
    return {
        name: (depth[name] * float(np.cos(angle)), depth[name] * float(np.sin(angle)))
        for name, angle in angles.items()
    }
