"""Plots of traffic in bytes: over time, and by kind of message."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from gossamer.sim.results.plot_style import (
    HEIGHT_IN,
    filled,
    legend_below,
    looks,
    new_figure,
    system_styles,
)
from gossamer.sim.study.plot import Drawing

Floats = npt.NDArray[np.float64]

# Points that a line over time has at most; longer runs are drawn as means of so many stretches.
_MOST_POINTS: Final = 250
_MOST_KINDS: Final = 20
_HOURS_FROM_S: Final = 12 * 3600.0
_MINUTES_FROM_S: Final = 600.0


class Traffic(NamedTuple):
    """The traffic of one system.

    Attributes:
        ends_s: float64[r], when each round ended.
        size_bytes: float64[r], bytes that nodes took in it.
        node_s: float64[r], seconds in it that nodes were up, of all nodes together.
        by_message: bytes by message, of the whole run.
    """

    ends_s: Floats
    size_bytes: Floats
    node_s: Floats
    by_message: Mapping[str, int]


def traffic_drawings(systems: Mapping[str, Traffic]) -> list[Drawing]:
    """The plots of the traffic of systems; none where there was none."""
    if not any(one.size_bytes.sum() for one in systems.values()):
        return []
    return [
        Drawing(
            "traffic",
            "Traffic",
            "Bytes that a node took in a second, on average over the nodes that were up.",
            partial(_over_time, systems),
        ),
        Drawing(
            "traffic_by_message",
            "Traffic by message",
            "Bytes that a node took in a second over the whole run, by kind of message.",
            partial(_by_message, systems),
        ),
    ]


def _over_time(systems: Mapping[str, Traffic]) -> Figure:
    figure = new_figure()
    axes = figure.subplots()
    longest = max((float(one.ends_s[-1]) for one in systems.values() if len(one.ends_s)), default=0)
    unit, factor = "s", 1.0
    if longest >= _MINUTES_FROM_S:
        unit, factor = ("hours", 3600.0) if longest >= _HOURS_FROM_S else ("minutes", 60.0)
    for name, style in system_styles(systems).items():
        one = systems[name]
        size = -(-max(len(one.ends_s), 1) // _MOST_POINTS)
        group = np.arange(len(one.ends_s)) // size
        node_s, taken = np.bincount(group, one.node_s), np.bincount(group, one.size_bytes)
        ends = np.append(one.ends_s[size - 1 :: size], one.ends_s[-1:])[: len(node_s)]
        rates = np.divide(taken, node_s, out=np.full(len(node_s), np.nan), where=node_s > 0)
        axes.plot(ends / factor, rates, **looks(style))
    axes.set(title="Bytes a node and second", xlabel=f"time ({unit})", ylim=(0, None))
    if len(systems) > 1:
        legend_below(figure, axes)
    return figure


def _by_message(systems: Mapping[str, Traffic]) -> Figure:
    total: dict[str, int] = {}
    for one in systems.values():
        for message, size in one.by_message.items():
            total[message] = total.get(message, 0) + size
    names = sorted((name for name in total if total[name]), key=lambda name: -total[name])
    names = names[:_MOST_KINDS]
    height = max(HEIGHT_IN, 0.9 + 0.22 * len(names) * max(len(systems), 1) ** 0.5)
    figure = new_figure(height)
    axes = figure.subplots()
    width = 0.84 / max(len(systems), 1)
    for index, (name, style) in enumerate(system_styles(systems).items()):
        one = systems[name]
        seconds = max(float(one.node_s.sum()), 1e-9)
        shown = [one.by_message.get(message, 0) / seconds for message in names]
        places = np.arange(len(names)) + (index - (len(systems) - 1) / 2) * width
        axes.barh(places, shown, width, **filled(style), label=style.label)
    axes.set_yticks(np.arange(len(names)), [name.replace("_", " ") for name in names])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set(title="Bytes a node and second, by message", xlabel="bytes a node and second")
    if len(systems) > 1:
        legend_below(figure, axes)
    return figure
