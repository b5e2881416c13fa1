"""Trees drawn over their graph."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import networkx as nx
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gossamer.sim.results.plot_style import (
    INK,
    WIDTH_IN,
    beside,
    legend_below,
    new_figure,
)
from gossamer.sim.studies.dissemination.topologies.topology import Positions, Topology
from gossamer.sim.study.records import Column

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
