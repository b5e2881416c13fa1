"""Plots of any number of systems: legends cover nothing, axes keep their size, systems differ."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from itertools import combinations

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from gossamer.sim.results.plot_style import plot_style, shortened, system_styles
from gossamer.sim.studies.peers.measuring.overlay_plot import plot_overlay
from gossamer.sim.studies.peers.measuring.plots import (
    plot_convergence,
    plot_hit_ratio,
    plot_load,
    plot_overhead,
    plot_path_length,
)
from gossamer.sim.studies.peers.measuring.records import SystemRecord
from gossamer.sim.studies.tree_brokers import plots as brokers
from gossamer.sim.studies.tree_brokers.records import CoveringRecord
from support.made_up_runs import made_up_run

LONG = "a-preset-with-many-differences-from-the-paper-and-a-name-that-says-all-of-them"
NAMES = (
    *("vinifera", "baseline", f"{LONG}-1", "resilient", f"{LONG}-2"),
    *("deep.ring", f"{LONG}-3", "newscast"),
)
LEAST_HEIGHT_IN, LEAST_WIDTH_IN = 0.9, 2.5

Draw = Callable[[Mapping[str, SystemRecord]], Figure | None]
PEERS: tuple[Draw, ...] = (
    *(plot_hit_ratio, plot_overhead, plot_load, plot_path_length, plot_convergence, plot_overlay),
)
COVERINGS = ("off", "lazy", "active", "packed", "selective", "incremental")
BROKERS = (
    *(brokers.plot_delay, brokers.plot_queues, brokers.plot_triggered, brokers.plot_tables),
    brokers.plot_false_positives,
)


@pytest.fixture(autouse=True)
def style() -> Iterator[None]:
    with plot_style():
        yield


def covering(name: str, seed: int) -> CoveringRecord:
    """What a covering might have done."""
    draw = np.random.default_rng(seed)
    core = tuple("ABCDE")
    hosts = np.array([*core, "i0", "i1", "e0", "e1"])
    counts = {
        column: draw.integers(1, 500, len(hosts))
        for column in ("triggered", "table", "arrived", "false_positives")
    }
    return CoveringRecord(
        name=name,
        settings={},
        core=core,
        deliveries={
            "published_s": np.sort(draw.uniform(0, 900, 400)),
            "delay_s": draw.lognormal(0, 2, 400),
        },
        queues={"time_s": np.arange(900.0), **{one: draw.integers(0, 900, 900) for one in core}},
        brokers={
            "broker": hosts,
            "role": np.array(["core"] * 5 + ["inner"] * 2 + ["edge"] * 2),
            **counts,
        },
        aggregates={},
        totals={},
        peak_rss_bytes=0,
    )


def assert_legible(figure: Figure) -> None:
    """Nothing that is written lies over anything else or outside, and all axes have room."""
    canvas = FigureCanvasAgg(figure)
    figure.savefig(io.BytesIO(), format="png", dpi=100)
    figure.canvas.draw()
    renderer = canvas.get_renderer()  # type: ignore[no-untyped-call]
    everything: list[tuple[str, Bbox]] = []
    for place, axes in enumerate(figure.axes):
        box = axes.get_window_extent(renderer)
        assert box.height / figure.dpi >= LEAST_HEIGHT_IN, f"axes {place} are too low"
        is_colour_bar = axes.get_label() == "<colorbar>"
        wide = is_colour_bar or box.width / figure.dpi >= LEAST_WIDTH_IN
        assert wide, f"axes {place} are too narrow"
        everything.append((f"axes {place}", box))
        texts = [one for one in axes.get_children() if isinstance(one, Text)]
        texts += [axes.xaxis.label, axes.yaxis.label]
        everything += [
            (text.get_text(), text.get_window_extent(renderer)) for text in texts if text.get_text()
        ]
        assert axes.get_legend() is None, "a legend of axes may cover what they show"
    everything += [("the legend", one.get_window_extent(renderer)) for one in figure.legends]
    whole = figure.bbox
    for name, box in everything:
        inside = box.x0 >= -1 and box.y0 >= -1 and box.x1 <= whole.x1 + 1 and box.y1 <= whole.y1 + 1
        assert inside, f"{name} reaches beyond the figure"
    for (name, box), (other, its) in combinations(everything, 2):
        overlap = Bbox.intersection(box, its)
        covered = overlap is not None and min(overlap.width, overlap.height) > 1
        assert not covered, f"{name} and {other} lie over each other"


def few_and_many(most: int) -> pytest.MarkDecorator:
    """So many systems are in one plot; numbers between are drawn in `make test-all` only."""
    between = [pytest.param(number, marks=pytest.mark.campaign) for number in (2, 3, 5)]
    return pytest.mark.parametrize("number", [1, *between, most])


@few_and_many(8)
@pytest.mark.parametrize("draw", PEERS, ids=lambda draw: draw.__name__)
def test_plots_of_peers_are_legible(draw: Draw, number: int) -> None:
    figure = draw(made_up_run(names=NAMES[:number]).systems)
    assert figure is not None
    assert_legible(figure)


@few_and_many(6)
@pytest.mark.parametrize("draw", BROKERS, ids=lambda draw: draw.__name__)
def test_plots_of_coverings_are_legible(
    draw: Callable[[Mapping[str, CoveringRecord]], Figure | None], number: int
) -> None:
    chosen = {name: covering(name, seed) for seed, name in enumerate(COVERINGS[:number])}
    figure = draw(chosen)
    assert figure is not None
    assert_legible(figure)


def test_twenty_systems_are_told_apart_by_line_and_by_bar() -> None:
    styles = system_styles([f"system-{number}" for number in range(20)]).values()
    assert len({(style.colour, style.dashes) for style in styles}) == 20
    assert len({(style.colour, style.hatch) for style in styles}) == 20


def test_long_names_keep_both_ends() -> None:
    short = shortened(f"{LONG}-1")
    assert len(short) == 40
    assert short.startswith("a-preset")
    assert short.endswith("all-of-them-1")
    assert shortened("resilient") == "resilient"
