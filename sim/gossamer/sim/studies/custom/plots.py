"""The plots of protocols of one's own: each measure over time, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

import numpy as np
from matplotlib.figure import Figure

from gossamer.sim.results.plot_style import (
    draw_line,
    from_zero,
    legend_below,
    new_figure,
    system_styles,
)
from gossamer.sim.studies.custom.records import OF_ALL, CustomRecord
from gossamer.sim.studies.worlds.traffic_plots import Traffic, traffic_drawings
from gossamer.sim.study.plot import Drawing
from gossamer.sim.study.records import Column, by_message
from gossamer.sim.study.watching import Floats

# Plots that every run has, after which no plot of a measure is called.
_OF_EVERY_RUN: Final = ("messages", "traffic", "traffic_by_message", "population")
_MINUTES_FROM_S, _HOURS_FROM_S = 600.0, 12 * 3600.0
_UNITS = ((_HOURS_FROM_S, "hours", 3600.0), (_MINUTES_FROM_S, "minutes", 60.0), (0.0, "s", 1.0))


def drawings(
    systems: Mapping[str, CustomRecord], explained: Mapping[str, Any]
) -> Iterator[Drawing]:
    """A plot of each measure, as ``explained``, and of messages, traffic and population."""
    names = dict.fromkeys(
        name for system in systems.values() for name in system.rounds if name not in OF_ALL
    )
    for name in names:
        about = explained[name]
        lines = {system: one.rounds[name] for system, one in systems.items() if name in one.rounds}
        title = about["label"][:1].upper() + about["label"][1:]
        plot = f"measure_{name}" if name in _OF_EVERY_RUN else name
        yield _drawing(systems, plot, title, about["meaning"], lines)
    rates = {system: _rate(one) for system, one in systems.items()}
    title = "Messages a node and round"
    caption = "Messages taken in a round, for each node that is up."
    yield _drawing(systems, "messages", title, caption, rates)
    yield from traffic_drawings({name: _traffic(one) for name, one in systems.items()})
    populations = {system: one.rounds["population"] for system, one in systems.items()}
    if any((line != line[0]).any() for line in populations.values()):
        yield _drawing(systems, "population", "Population", "Nodes that are up.", populations)


def _rate(record: CustomRecord) -> Floats:
    """float64[rounds + 1]: messages a node in the round before, NaN before the first."""
    up = np.maximum(record.rounds["population"][:-1], 1)
    return np.concatenate([[np.nan], np.diff(record.rounds["messages"]) / up])


def _traffic(record: CustomRecord) -> Traffic:
    rounds = record.rounds
    return Traffic(
        rounds["time_s"][1:],
        np.diff(rounds["size_bytes"]).astype(np.float64),
        rounds["population"][:-1] * np.diff(rounds["time_s"]),
        by_message(record.messages, "size_bytes"),
    )


def _drawing(
    systems: Mapping[str, CustomRecord],
    name: str,
    title: str,
    caption: str,
    lines: Mapping[str, Column],
) -> Drawing:
    return Drawing(name, title, caption, partial(_draw, systems, name, title, lines))


def _draw(
    systems: Mapping[str, CustomRecord], name: str, title: str, lines: Mapping[str, Column]
) -> Figure:
    figure = new_figure()
    axes = figure.subplots()
    styles = system_styles(systems)
    longest = max(float(systems[system].rounds["time_s"][-1]) for system in lines)
    unit, factor = next((unit, factor) for least, unit, factor in _UNITS if longest >= least)
    for system, line in lines.items():
        style = styles[system]
        times = systems[system].rounds["time_s"] / factor
        draw_line(axes, times, line, style)
    if name in OF_ALL:
        from_zero(axes)
    axes.set_title(title)
    axes.set_xlabel(f"time ({unit})")
    legend_below(figure, axes)
    return figure
