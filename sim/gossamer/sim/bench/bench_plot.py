"""The picture of a benchmark run: how costs grow with the number of nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from gossamer.sim.results.plot_style import (
    GREY,
    beside,
    legend_below,
    new_figure,
    plot_style,
    save,
    system_styles,
)

Rows = Sequence[Mapping[str, Any]]

# The least an axis spans: what hardly changes is to look as if it did not.
LEAST_SPAN = 10.0


def plot_growth(rows: Rows, folder: Path) -> None:
    """Draw time and memory by size, a line a benchmark, into ``folder`` as `growth`.

    Args:
        rows: the rows of `bench.json`.
        folder: exists.
    """
    styles = system_styles(dict.fromkeys(str(row["name"]) for row in rows))
    with plot_style():
        figure = new_figure()
        time, memory = beside(figure, 2)
        for name, style in styles.items():
            line = sorted((row for row in rows if row["name"] == name), key=lambda r: r["size"])
            sizes = [row["size"] for row in line]
            drawn = {"marker": "o", "color": style.colour, "ls": style.dashes, "label": style.label}
            if all(row["unit"] == "cycle" for row in line):
                per_node = [1e6 * row["median_s"] / row["size"] for row in line]
                time.plot(sizes, per_node, **drawn)
            if all(row["bytes"] for row in line):
                memory.plot(sizes, [row["bytes"] / 1024 for row in line], **drawn)
        _finish(time, "time of a cycle, µs a node")
        _finish(memory, "state, KiB a node")
        shown = {line.get_label(): line for line in (*time.lines, *memory.lines)}
        legend_below(figure, time, list(shown.values()))
        save(figure, folder, "growth")


def _finish(axes: Axes, label: str) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("nodes")
    axes.set_ylabel(label)
    low, high = axes.get_ylim()
    missing = max(1.0, LEAST_SPAN * low / high)
    axes.set_ylim(low / missing**0.5, high * missing**0.5)
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid(visible=True, which="both", color=GREY, alpha=0.2)
