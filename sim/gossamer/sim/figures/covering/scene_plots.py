"""Plots like Fig. 12 of the selective paper, and Fig. 9 and 10 of the incremental paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import networkx as nx
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gossamer.sim.figures.covering.scenes import (
    ACTIVE,
    CITY,
    EVERYBODY,
    GAME,
    INCREMENTAL,
    MONITORS,
    RUSH,
    SELECTIVE,
    TOGETHER,
    WORKFLOW,
    SceneResult,
    Scenes,
)
from gossamer.sim.results.plot_style import (
    BLUE,
    GREY,
    ORANGE,
    VERMILION,
    beside,
    covering_styles,
    draw_line,
    from_zero,
    legend_below,
    new_figure,
)
from gossamer.sim.studies.tree_brokers.overlay.topology import (
    BrokerOverlay,
    star_17,
    tiered,
    workflow_40,
)

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


def _over_time(name: str, runs: Sequence[SceneResult], queue: str) -> Iterator[tuple[str, Figure]]:
    yield f"{name}a", plot_panels({"Worst publication delay (s)": runs}, "delay_max_s", log=True)
    title = "Longest core queue" if queue == "queue_core" else "Mean queue of all brokers"
    yield f"{name}b", plot_panels({title: runs}, queue)
    yield f"{name}c", plot_panels({"Mean routing table": runs}, "table_mean")


def plot_panels(
    panels: dict[str, Sequence[SceneResult]], column: str, *, log: bool = False
) -> Figure:
    """A column over time, a panel for each title, a line for each covering."""
    figure = new_figure()
    drawn = beside(figure, len(panels), sharey=True)
    for axes, (title, runs) in zip(drawn, panels.items(), strict=True):
        styles = covering_styles([one.task.covering for one in runs])
        for one in runs:
            style = styles[one.task.covering]
            draw_line(axes, one.times["time_s"] / 60, one.times[column], style)
        if log:
            axes.set_yscale("log")
        axes.set(title=title.replace(", ", ",\n"), xlabel="time (minutes)")
    if not log:
        from_zero(drawn[0])
    legend_below(figure, drawn[0])
    return figure


def plot_tiers(runs: Sequence[SceneResult]) -> Figure:
    """Publications that a broker of each tier got, and the false positives among them."""
    figure = new_figure()
    panels = {"received": "Publications at a broker", "false_positives": "False positives"}
    for axes, (column, title) in zip(beside(figure, 2), panels.items(), strict=True):
        width = 0.8 / len(runs)
        styles = covering_styles([one.task.covering for one in runs])
        for place, one in enumerate(runs):
            tiers = np.unique(one.brokers["tier"])
            means = [one.brokers[column][one.brokers["tier"] == tier].mean() for tier in tiers]
            style = styles[one.task.covering]
            axes.bar(tiers + width * place, means, width, color=style.colour, label=style.label)
        axes.set(title=title, xlabel="tier, from the top")
        axes.set_xticks(tiers + width / 2, [f"{tier}" for tier in tiers])
    legend_below(figure, figure.axes[0])
    return figure


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
