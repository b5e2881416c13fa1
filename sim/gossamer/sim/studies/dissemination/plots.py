"""The plots of a run of kind "trees": what strategies cost, how groups came about, two trees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import attrs
import networkx as nx
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gossamer.sim.results.plot_style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    WIDTH_IN,
    SystemStyle,
    beside,
    from_zero,
    legend_below,
    looks,
    new_figure,
)
from gossamer.sim.studies.dissemination.records import StrategyRecord, TreesRunRecord
from gossamer.sim.studies.dissemination.topologies import Positions, Topology
from gossamer.sim.study.plot import Drawing
from gossamer.sim.study.records import Column

# Trees drawn over their graph.


_THIN, _WIDE = 0.5, 2.6
_FAINT = "#D5D8DD"


@attrs.frozen(eq=False)
class Picture:
    """One tree to be drawn.

    Attributes:
        title: of its panel.
        colour: of its links.
        links: of the tree.
        loads: what each of these carries.
    """

    title: str
    colour: str
    links: Column
    loads: Column


def plot_trees(topology: Topology, pictures: Sequence[Picture]) -> Figure:
    """A panel for each tree: its links over those of the graph, as wide as what they carry."""
    panels = max(len(pictures), 1)
    figure = new_figure(WIDTH_IN / panels + 0.4)
    places = places_of(topology)
    most = max((float(one.loads.max(initial=0.0)) for one in pictures), default=0.0) or 1.0
    for axes, picture in zip(beside(figure, panels), pictures, strict=False):
        _draw(axes, topology, places, picture, most)
    if pictures:
        legend_below(figure, figure.axes[0], _legend(pictures))
    return figure


def _legend(pictures: Sequence[Picture]) -> list[Line2D]:
    colours = dict.fromkeys(picture.colour for picture in pictures)
    return [
        Line2D([], [], color=_FAINT, linewidth=1, label="link of the graph"),
        *(
            Line2D([], [], color=colour, linewidth=2, label="of the tree, as wide as its load")
            for colour in colours
        ),
        Line2D([], [], color=INK, linestyle="", marker="o", markersize=2, label="broker"),
    ]


def _draw(axes: Axes, topology: Topology, places: Positions, picture: Picture, most: float) -> None:
    segments = places[topology.graph.ends]
    axes.add_collection(LineCollection(list(segments), colors=_FAINT, linewidths=0.5, zorder=1))
    # Widths by the square root of the load, so that light links are seen beside heavy ones.
    widths = _THIN + (_WIDE - _THIN) * np.sqrt(picture.loads / most)
    chosen = list(segments[picture.links])
    axes.add_collection(
        LineCollection(chosen, colors=picture.colour, linewidths=list(widths), zorder=2)
    )
    axes.scatter(places[:, 0], places[:, 1], s=3, color=INK, linewidths=0, zorder=3)
    axes.set_title(picture.title, fontsize=8)
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.03)
    axes.set_axis_off()


def places_of(topology: Topology) -> Positions:
    """float64[n, 2]: where to draw the brokers; those without a place are put near their links."""
    places = topology.positions.copy()
    known = np.isfinite(places).all(axis=1)
    if known.all():
        return places
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(topology.graph.nodes))
    graph.add_edges_from(topology.graph.ends.tolist())
    given = {int(broker): tuple(places[broker]) for broker in np.flatnonzero(known)}
    if len(given) < 2:
        given = {}
    found = nx.spring_layout(graph, pos=given or None, fixed=list(given) or None, seed=1)
    return np.array([found[broker] for broker in range(topology.graph.nodes)])


Strategies = Mapping[str, StrategyRecord]

# The paper's own algorithms in solid lines, what they are compared with dashed.
STYLES: Final[Mapping[str, SystemStyle]] = {
    "SPT-flooded": SystemStyle(GREY, ":", "SPT, flooded"),
    "SPT": SystemStyle(GREY, "--", "SPT"),
    "MST": SystemStyle(SKY, "--", "MST"),
    "SINGLE": SystemStyle(ORANGE, "-", "SINGLE"),
    "MULT": SystemStyle(BLUE, "-", "MULT"),
    "HYBRID": SystemStyle(SKY, "-", "HYBRID"),
    "MULT2": SystemStyle(GREEN, "-", "MULT2"),
    "WITHIN": SystemStyle(INK, "-", "WITHIN"),
    "TRIED": SystemStyle(PURPLE, "-", "TRIED"),
    "SemCast": SystemStyle(VERMILION, "--", "SemCast"),
    "SemCast-filtered": SystemStyle(PURPLE, "--", "SemCast, filtered"),
    "OPT": SystemStyle(INK, ":", "OPT"),
}


def drawings(record: TreesRunRecord) -> Iterator[Drawing]:
    """Every plot that a run has data for."""
    systems = record.systems
    yield Drawing(
        "cost",
        "Cost by strategy",
        "Links crossed by all documents, by size and cost of the link; beside each bar how many "
        "trees it takes.",
        partial(plot_costs, systems),
    )
    merged = {name: one for name, one in systems.items() if len(one.mergers["trees"]) > 1}
    if merged:
        yield Drawing(
            "mergers",
            "Cost by number of trees",
            "Cost of the sampled documents after every merger, as in Fig. 6 of the paper; a dot "
            "where it is least.",
            partial(plot_mergers, merged),
        )
    routed = {name: one for name, one in systems.items() if len(one.states["trees"]) > 1}
    if routed:
        yield Drawing(
            "states",
            "All documents by number of trees",
            "Cost and duplicates (Fig. 7) of all documents, most of which were not in the sample, "
            "on the trees of some states of the mergers.",
            partial(plot_states, routed),
        )
    yield Drawing(
        "trees",
        "Two of the trees",
        "Links of the graph in grey, those of the tree in colour and as wide as what they carry.",
        lambda: plot_trees(record.common, pictures_of(systems)),
    )


def plot_costs(systems: Strategies) -> Figure:
    """A bar for each strategy, on a logarithmic scale as in Fig. 5."""
    figure = new_figure(0.9 + 0.32 * len(systems))
    axes = figure.subplots()
    costs = [float(one.documents["cost"].sum()) for one in systems.values()]
    places = np.arange(len(costs))
    axes.barh(places, costs, 0.72, color=[STYLES[name].colour for name in systems])
    for place, (cost, one) in enumerate(zip(costs, systems.values(), strict=True)):
        trees = one.totals["trees"]
        label = f" {cost:,.0f}" + ("" if one.name == "OPT" else f", {_trees(int(trees))}")
        axes.text(cost, place, label, va="center", fontsize=8, color=INK)
    axes.set_yticks(places, [STYLES[name].label for name in systems])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlim(0.7 * max(min(costs), 1.0), 3.5 * max(*costs, 1.0))
    axes.grid(axis="y", visible=False)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    axes.set(title="Cost of all documents")
    return figure


def _trees(count: int) -> str:
    return "1 tree" if count == 1 else f"{count:,} trees"


def plot_mergers(systems: Strategies) -> Figure:
    """Cost of the sample over the number of trees (Fig. 6)."""
    figure = new_figure()
    axes = figure.subplots()
    for name, one in systems.items():
        style = STYLES[name]
        trees, cost = one.mergers["trees"], one.mergers["cost"]
        axes.plot(trees, cost, **looks(style))
        best = int(np.argmin(cost))
        axes.plot(trees[best], cost[best], "o", color=style.colour)
    axes.set_xscale("log")
    axes.invert_xaxis()
    axes.set(title="Cost of the sampled documents", xlabel="trees left")
    from_zero(axes)
    plain_numbers(axes)
    legend_below(figure, axes, [*axes.get_legend_handles_labels()[0], least_handle()])
    return figure


def least_handle() -> Line2D:
    """The entry of a legend for the dot on a line."""
    return Line2D([], [], linestyle="", marker="o", color=INK, label="least cost")


def plot_states(systems: Strategies) -> Figure:
    """Cost and duplicates of all documents over the number of trees."""
    figure = new_figure()
    panels = {"cost": "Cost of all documents", "duplicates": "Duplicates"}
    for axes, (column, title) in zip(beside(figure, 2), panels.items(), strict=True):
        for name, one in systems.items():
            drawn = {**looks(STYLES[name]), "marker": "o", "markersize": 3}
            axes.plot(one.states["trees"], one.states[column], **drawn)
        axes.set_xscale("log")
        axes.invert_xaxis()
        axes.set(title=title, xlabel="trees left")
        from_zero(axes)
        plain_numbers(axes)
    legend_below(figure, figure.axes[0])
    return figure


def plain_numbers(axes: Axes) -> None:
    """Write numbers on both axes out, thousands apart."""
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:,.10g}")


def pictures_of(systems: Strategies) -> Sequence[Picture]:
    """The two busiest trees of a strategy that makes several, or else one each of two strategies.

    Strategies further down in `STYLES` up to WITHIN are asked first for several trees.
    """
    drawn = [name for name in STYLES if name in systems and len(systems[name].pictured["tree"])]
    for name in reversed(drawn):
        trees = list(dict.fromkeys(systems[name].pictured["tree"].tolist()))
        if len(trees) > 1:
            return [_picture(systems[name], tree) for tree in trees]
    chosen = [drawn[0], drawn[-1]] if len(drawn) > 1 else drawn
    return [_picture(systems[name], 0) for name in chosen]


def _picture(record: StrategyRecord, tree: int) -> Picture:
    chosen = record.pictured["tree"] == tree
    style = STYLES[record.name]
    subscriptions = int(record.trees["subscriptions"][tree])
    documents = int(record.trees["documents"][tree])
    return Picture(
        title=f"{style.label}, tree {tree + 1}\n{subscriptions:,} subscriptions, "
        f"{documents:,} documents",
        colour=style.colour,
        links=record.pictured["link"][chosen],
        loads=record.pictured["load"][chosen],
    )
