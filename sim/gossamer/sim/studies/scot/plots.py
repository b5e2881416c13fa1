"""Pictures of a SCOT and of bursts on it; to be made and saved within `plot_style`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import networkx as nx
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch

from gossamer.protocol.brokers.scot import Scot
from gossamer.protocol.brokers.scot.topology import Link
from gossamer.sim.results.plot_style import (
    BLUE,
    HEIGHT_IN,
    INK,
    VERMILION,
    filled,
    from_zero,
    legend_below,
    looks,
    new_figure,
    system_styles,
)
from gossamer.sim.studies.scot.burst import BurstResult
from gossamer.sim.studies.scot.records import ScotRunRecord
from gossamer.sim.study.plot import Drawing

Point = tuple[float, float]
Floats = npt.NDArray[np.float64]
Results = Mapping[str, BurstResult]

_MICROSECONDS: Final = 1e-6
_IN_A_POINT: Final = 1_000
_POINTS: Final = 400


def plot_scot(scot: Scot) -> Figure:
    """An overlay, clusters as layers and regions as columns.

    Links within clusters are blue, those between clusters vermilion; edge brokers are hollow.
    """
    columns = {region: i for i, region in enumerate(column_order(scot))}
    figure = new_figure(max(HEIGHT_IN, 0.85 * len(scot.clusters) + 1))
    axes = figure.subplots()
    narrow = 8 * figure.get_size_inches()[0] < 5 * len(columns)
    for link in scot.links():
        _draw_link(axes, link, columns)
    for broker in scot.brokers:
        edge = scot.position(broker).is_edge
        colour = "white" if edge else INK
        x, y = columns[broker.region], broker.cluster
        axes.plot(x, y, "o", color=INK, markerfacecolor=colour, markersize=7, zorder=3)
    axes.set_xticks(list(columns.values()), list(columns))
    if narrow:
        axes.tick_params(axis="x", labelrotation=90)
    axes.set_yticks(list(scot.clusters))
    axes.set_xlabel("region")
    axes.set_ylabel("cluster")
    axes.set_title(f"{scot.broker_count} brokers in {len(scot.clusters)} clusters")
    axes.grid(visible=False)
    axes.margins(0.05, 0.12)
    legend_below(figure, axes, _overlay_legend())
    return figure


def _overlay_legend() -> list[Line2D]:
    dot: dict[str, Any] = {"linestyle": "", "marker": "o", "color": INK, "markersize": 6}
    return [
        Line2D([], [], color=BLUE, linewidth=1.5, label="link within a cluster"),
        Line2D([], [], color=VERMILION, linewidth=0.8, label="link between clusters"),
        Line2D([], [], label="broker", **dot),
        Line2D([], [], label="edge broker", markerfacecolor="white", **dot),
    ]


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


def plot_delays(results: Results) -> Figure:
    """The largest delay of every 1,000 notifications received, or of fewer, as in Fig. 11."""
    return _lines(results, largest_delays, "Largest delay (s)", "received at (s)")


def plot_queues(results: Results) -> Figure:
    """The longest output queue over time."""
    return _lines(results, longest_queues, "Longest output queue (messages)", "time (s)")


def plot_messages(results: Results) -> Figure:
    """Messages by kind of link and of message, a bar for each way of routing."""
    figure = new_figure()
    axes = figure.subplots()
    kinds = ("subscriptions", "of them duplicates", "within clusters", "between clusters")
    width = 0.8 / len(results)
    for place, (name, style) in enumerate(system_styles(results).items()):
        one = results[name]
        heights = (
            one.subscription_messages,
            one.subscription_duplicates,
            one.intra_messages,
            one.inter_messages,
        )
        left = np.arange(len(kinds)) - 0.4 + (place + 0.5) * width
        axes.bar(left, heights, width, **filled(style), label=style.label)
    axes.set_xticks(range(len(kinds)), [*kinds[:2], *(f"notifications,\n{k}" for k in kinds[2:])])
    axes.set(title="Messages between brokers")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    legend_below(figure, axes)
    return figure


def drawings(record: ScotRunRecord) -> list[Drawing]:
    """The overlay and the run."""
    results = {name: one.result for name, one in record.systems.items()}
    scot = next(iter(record.systems.values())).burst.scot
    return [
        Drawing("overlay", "Overlay", _OVERLAY, partial(plot_scot, scot)),
        Drawing("delay", "Delay", _DELAY, partial(plot_delays, results)),
        Drawing("queues", "Output queues", _QUEUES, partial(plot_queues, results)),
        Drawing("messages", "Messages by link", _MESSAGES, partial(plot_messages, results)),
    ]


_OVERLAY: Final = (
    "Clusters as layers, regions as columns; links within clusters blue, those between clusters "
    "vermilion; edge brokers are hollow."
)
_DELAY: Final = (
    "The largest delay of every 1,000 notifications received, or of a fiftieth of all, since "
    "publishers began (Fig. 11 of the paper)."
)
_QUEUES: Final = "The longest output queue of any link since publishers began."
_MESSAGES: Final = "Messages from broker to broker, by what they carry and by the kind of link."


def largest_delays(result: BurstResult) -> tuple[Floats, Floats]:
    """Time and largest delay of deliveries in groups of 1,000, or of a fiftieth if they are few.

    Both in seconds; time since publishing began, of the first delivery of a group.
    """
    received = np.cumsum(result.clients)
    if not len(received):
        return np.zeros(0), np.zeros(0)
    size = max(1, min(_IN_A_POINT, int(received[-1]) // 50))
    starts = np.unique((received - result.clients) // size, return_index=True)[1]
    at = (result.received[starts] - result.started).astype(np.float64)
    return at * _MICROSECONDS, np.maximum.reduceat(result.delays, starts) * _MICROSECONDS


def longest_queues(result: BurstResult) -> tuple[Floats, Floats]:
    """Time in seconds since publishing began, and the longest output queue.

    Some hundred points; each stands for the windows up to the next, and has the longest of them.
    """
    at, lengths = result.windows[:, 0] - result.started, result.windows[:, 1]
    starts = np.arange(0, len(at), max(1, len(at) // _POINTS))
    if not len(starts):
        return np.zeros(0), np.zeros(0)
    longest = np.maximum.reduceat(lengths, starts).astype(np.float64)
    return at[starts].astype(np.float64) * _MICROSECONDS, longest


def _lines(
    results: Results, curve: Callable[[BurstResult], tuple[Floats, Floats]], title: str, xlabel: str
) -> Figure:
    """A line for each way of routing, dashed ones above, where lines coincide."""
    figure = new_figure()
    axes = figure.subplots()
    for name, style in system_styles(results).items():
        above = 3 if style.dashes != "-" else 2
        axes.plot(*curve(results[name]), **looks(style), zorder=above)
    axes.set(title=title, xlabel=xlabel)
    from_zero(axes)
    legend_below(figure, axes)
    return figure


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
