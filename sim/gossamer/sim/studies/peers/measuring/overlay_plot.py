"""The picture of a small overlay: who is linked to whom, and how interests cluster (Sec. IV-B1)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, PathPatch
from matplotlib.path import Path as PathOfCurves

from gossamer.protocol.peer.settings.profile import LINK_KINDS
from gossamer.protocol.peer.space.ring import RING
from gossamer.sim.results.plot_style import (
    GREEN,
    GREY,
    INK,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    in_a_column,
    legend_below,
    new_figure,
    per_cent,
    shortened,
    system_styles,
)
from gossamer.sim.studies.peers.measuring.records import OverlaySnapshot, SystemRecord
from gossamer.sim.study.watching import Floats, Int64s

MAX_NODES = 150  # more cannot be told apart
GROUPS = 6  # of nodes with neighbouring interests, drawn of larger overlays

# By kind: colour, width, and what lies above what.
_LINK_STYLES = {
    "ring": (INK, 0.65, 1.3),
    "small-world": (SKY, 0.45, 1.1),
    "friend": (ORANGE, 0.6, 1.2),
    "finger": (GREEN, 0.45, 1.1),
    "host": (PURPLE, 0.6, 1.2),
    "guest": (VERMILION, 0.6, 1.2),
}
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "h")
_COLOUR_MAP = "viridis"


def plot_overlay(systems: Mapping[str, SystemRecord]) -> Figure | None:
    """Draw the overlay of each system twice, nodes placed by identifier and by interest.

    Of an overlay larger than MAX_NODES, GROUPS groups of nodes with neighbouring interests are
    drawn, and the links among them. None if no system kept its overlay.
    """
    overlays = {
        name: system.overlay
        for name, system in systems.items()
        if system.overlay is not None and len(system.overlay.nodes["identifier"])
    }
    if not overlays:
        return None
    if in_a_column():
        figure = new_figure(8.6 * len(overlays) + 0.4)
        panels = figure.subplots(2 * len(overlays), 1).reshape(-1, 2)
    else:
        figure = new_figure(3.05 * len(overlays) + 0.3)
        panels = figure.subplots(len(overlays), 2, squeeze=False)
    labels = system_styles(systems)
    for row, (name, overlay) in zip(panels, overlays.items(), strict=True):
        size = len(overlay.nodes["identifier"])
        shown = _sample(np.lexsort((_range_middle(overlay), overlay.nodes["primary"])))
        places = overlay.nodes["identifier"][shown] / RING
        count = f"{len(shown)} of {size:,} nodes" if len(shown) < size else f"{size} nodes"
        _draw(row[0], overlay, shown, 2 * np.pi * places)
        _draw(row[1], overlay, shown, 2 * np.pi * np.arange(len(shown)) / len(shown))
        row[0].set_title(f"{shortened(labels[name].label, 24)}\nby identifier")
        row[1].set_title(f"{count}\nby subscribed range")
    colours = ScalarMappable(Normalize(0.0, 1.0), _COLOUR_MAP)
    bar = figure.colorbar(colours, ax=panels, shrink=0.6, aspect=30)
    bar.set_label("middle of the subscribed range, place in its domain")
    per_cent(bar.ax.yaxis)
    legend_below(figure, panels[0, 0], _legend(overlays))
    return figure


def _sample(order: Int64s) -> Int64s:
    """All rows of ``order``, or GROUPS runs of neighbours in it, evenly spread."""
    if len(order) <= MAX_NODES:
        return order
    starts = np.linspace(0, len(order) - MAX_NODES // GROUPS, GROUPS).astype(np.int64)
    return np.asarray(order[(starts[:, None] + np.arange(MAX_NODES // GROUPS)).ravel()])


def _range_middle(overlay: OverlaySnapshot) -> Floats:
    """float64[nodes], middle of each node's range as a fraction of the ring."""
    low = overlay.nodes["low"].astype(np.float64)
    high = overlay.nodes["high"].astype(np.float64)
    return np.asarray((low + high) / 2 / RING)


def _draw(axes: Axes, overlay: OverlaySnapshot, shown: Int64s, angles: Floats) -> None:
    """Draw the nodes ``shown`` on a circle at ``angles`` (float64[shown]) and their links."""
    # Clockwise from the top, as the ring of identifiers is usually drawn.
    points = np.full((len(overlay.nodes["identifier"]), 2), np.nan)
    points[shown] = np.column_stack((np.sin(angles), np.cos(angles)))
    axes.set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), aspect="equal")
    axes.axis("off")
    axes.add_patch(Circle((0, 0), 1, fill=False, edgecolor=GREY, linewidth=0.5, zorder=1))
    for kind, name in enumerate(LINK_KINDS):
        _draw_links(axes, overlay, kind, name, points)
    _draw_nodes(axes, overlay, shown, points)


def _draw_links(axes: Axes, overlay: OverlaySnapshot, kind: int, name: str, points: Floats) -> None:
    """Draw the links of one kind between nodes that have a place in ``points`` (NaN: none)."""
    ends = np.column_stack((overlay.links["source"], overlay.links["target"]))
    placed = np.isfinite(points[ends, 0]).all(axis=1)
    # Two ends often keep the same link: draw it once.
    pairs = np.unique(np.sort(ends[placed & (overlay.links["kind"] == kind)], axis=1), axis=0)
    if len(pairs) == 0:
        return
    colour, width, layer = _LINK_STYLES[name]
    curves = _curves(points[pairs[:, 0]], points[pairs[:, 1]])
    axes.add_patch(PathPatch(curves, fill=False, edgecolor=colour, linewidth=width, zorder=layer))


def _curves(start: Floats, end: Floats) -> PathOfCurves:
    """One path of all links from ``start`` to ``end``, each bent towards the centre.

    One path for all keeps the SVG small: links number thousands.
    """
    distance = np.linalg.norm(start - end, axis=1)[:, None]
    control = (start + end) / 2 * (1 - 0.5 * np.minimum(distance, 1.0))
    vertices = np.stack((start, control, end), axis=1).reshape(-1, 2)
    one = (PathOfCurves.MOVETO, PathOfCurves.CURVE3, PathOfCurves.CURVE3)
    return PathOfCurves(vertices, np.tile(one, len(start)))


def _draw_nodes(axes: Axes, overlay: OverlaySnapshot, shown: Int64s, points: Floats) -> None:
    """Draw nodes coloured by the middle of their range, shaped by primary attribute."""
    middle = _range_middle(overlay)
    primary = overlay.nodes["primary"]
    for attribute in np.unique(primary[shown]):
        rows = shown[primary[shown] == attribute]
        axes.scatter(
            points[rows, 0],
            points[rows, 1],
            c=middle[rows],
            cmap=_COLOUR_MAP,
            vmin=0.0,
            vmax=1.0,
            marker=_MARKERS[int(attribute) % len(_MARKERS)],
            s=30,
            linewidths=0.4,
            edgecolors="white",
            zorder=3,
        )


def _legend(overlays: Mapping[str, OverlaySnapshot]) -> list[Line2D]:
    """Entries for link kinds and, where there are several, primary attributes."""
    shown = sorted({int(kind) for one in overlays.values() for kind in one.links["kind"]})
    kinds = [
        Line2D([], [], color=_LINK_STYLES[name][0], linewidth=2, label=f"{name} link")
        for name in (LINK_KINDS[kind] for kind in shown)
    ]
    attributes = sorted({int(a) for o in overlays.values() for a in o.nodes["primary"]})
    if len(attributes) < 2:
        return kinds
    return kinds + [
        Line2D(
            [],
            [],
            color=GREY,
            linestyle="",
            marker=_MARKERS[attribute % len(_MARKERS)],
            label=f"attribute {attribute + 1}",
        )
        for attribute in attributes
    ]
