"""Pictures of a SCOT and of bursts on it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import networkx as nx
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from gossamer.protocol.scot import Scot
from gossamer.protocol.scot.topology import Link
from gossamer.sim.plot_style import (
    BLUE,
    HEIGHT_IN,
    INK,
    VERMILION,
    WIDTH_IN,
    plot_style,
    save,
    system_styles,
)
from gossamer.sim.scot.burst import BurstResult

Point = tuple[float, float]
_MICROSECONDS = 1e-6
_IN_A_POINT = 1000


def plot_scot(scot: Scot, folder: Path) -> None:
    """Draw an overlay into ``folder`` as `scot.svg`, `scot.png`, clusters as layers.

    Regions are columns. Links within clusters are blue, those between clusters vermilion; edge
    brokers are hollow.

    Args:
        scot: the overlay.
        folder: exists.
    """
    columns = {region: i for i, region in enumerate(column_order(scot))}
    size = (max(WIDTH_IN, 0.55 * len(columns) + 1), max(HEIGHT_IN, 0.85 * len(scot.clusters) + 1))
    with plot_style():
        figure = Figure(figsize=size)
        axes = figure.subplots()
        for link in scot.links():
            _draw_link(axes, link, columns)
        for broker in scot.brokers:
            edge = scot.position(broker).is_edge
            colour = "white" if edge else INK
            x, y = columns[broker.region], broker.cluster
            axes.plot(x, y, "o", color=INK, markerfacecolor=colour, markersize=7, zorder=3)
        axes.set_xticks(list(columns.values()), list(columns))
        axes.set_yticks(list(scot.clusters))
        axes.set_xlabel("region")
        axes.set_ylabel("cluster")
        axes.set_title(f"{scot.broker_count} brokers in {len(scot.clusters)} clusters")
        axes.grid(visible=False)
        axes.margins(0.05, 0.12)
        save(figure, folder, "scot")


def column_order(scot: Scot) -> list[str]:
    """Regions in an order that keeps neighbours near: depth first along the longest path."""
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(scot.regions)
    links = scot.intra_cluster_links(0)
    graph.add_edges_from((one.region, other.region) for one, other in links)
    far = nx.eccentricity(graph)
    start = max(scot.regions, key=far.__getitem__)
    order: list[str] = []
    _visit(graph, start, None, order)
    return order


def plot_burst(results: Mapping[str, BurstResult], folder: Path) -> None:
    """Draw a burst by several ways of routing into ``folder`` as `burst.svg`, `burst.png`.

    On the left the largest delay of every 1,000 notifications received, as in Fig. 11 (of fewer in
    a small run); on the right the longest output queue; over the time since publishing began.

    Args:
        results: by name of the way of routing.
        folder: exists.
    """
    styles = system_styles(results)
    with plot_style():
        figure = Figure(figsize=(WIDTH_IN * 1.5, HEIGHT_IN))
        delays, queues = figure.subplots(1, 2)
        for name, result in results.items():
            line = {"color": styles[name].colour, "linestyle": styles[name].dashes, "label": name}
            delays.plot(*largest_delays(result), **line)
            at = (result.windows[:, 0] - result.started) * _MICROSECONDS
            queues.plot(at, result.windows[:, 1], **line)
        delays.set_ylabel("largest delay, s")
        queues.set_ylabel("longest output queue, messages")
        for axes in (delays, queues):
            axes.set_xlabel("time, s")
            axes.legend()
        save(figure, folder, "burst")


def largest_delays(
    result: BurstResult,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Time and largest delay of deliveries in groups of 1,000, or of a fiftieth if they are few.

    Both in seconds; time since publishing began, of the last delivery of a group.
    """
    size = max(1, min(_IN_A_POINT, len(result.delays) // 50))
    groups = range(0, len(result.delays), size)
    at = [result.received[i : i + size].max() - result.started for i in groups]
    delays = [result.delays[i : i + size].max() for i in groups]
    return np.array(at) * _MICROSECONDS, np.array(delays) * _MICROSECONDS


def _visit(graph: nx.Graph[str], region: str, origin: str | None, order: list[str]) -> None:
    order.append(region)
    onward = [other for other in graph[region] if other != origin]
    # Short branches first, so that the longest path goes on to the right.
    for other in sorted(onward, key=lambda branch: _depth(graph, branch, region)):
        _visit(graph, other, region, order)


def _depth(graph: nx.Graph[str], region: str, origin: str) -> int:
    onward = (other for other in graph[region] if other != origin)
    return 1 + max((_depth(graph, other, region) for other in onward), default=0)


def _draw_link(axes: Axes, link: Link, columns: Mapping[str, int]) -> None:
    (one, other) = link
    inter = one.cluster != other.cluster
    ends: list[Point] = sorted((columns[end.region], end.cluster) for end in link)
    steps = abs(ends[0][0] - ends[1][0]) + abs(ends[0][1] - ends[1][1])
    # Straight between neighbours of the grid, else bent past those that lie between.
    bend = 0.0 if steps == 1 else 0.18
    patch = FancyArrowPatch(
        ends[0],
        ends[1],
        arrowstyle="-",
        connectionstyle=f"arc3,rad={bend}",
        color=VERMILION if inter else BLUE,
        linewidth=0.8 if inter else 1.5,
        alpha=0.45 if inter else 0.9,
        zorder=1 if inter else 2,
    )
    axes.add_patch(patch)
