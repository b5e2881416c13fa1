"""Plots of any number of systems are legible; they come in the formats and widths asked for."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from gossamer.sim.errors import ScenarioError
from gossamer.sim.results.plot_style import (
    COLUMN_WIDTH_IN,
    WIDTH_IN,
    draw_intervals,
    draw_line,
    from_zero,
    legend_below,
    new_figure,
    plot_style,
    save,
    shortened,
    system_styles,
)
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
from gossamer.sim.study.plot import FORMATS, PlotOptions, plot_options, plots_as
from support.made_up_runs import made_up_run

LONG = "a-preset-with-many-differences-from-the-paper-and-a-name-that-says-all-of-them"
NAMES = (
    *("kindred", "baseline", f"{LONG}-1", "resilient", f"{LONG}-2"),
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
    draw = np.random.default_rng(seed)
    core, roles = tuple("ABCDE"), ["core"] * 5 + ["inner"] * 2 + ["edge"] * 2
    hosts = {"broker": np.array([*core, "i0", "i1", "e0", "e1"]), "role": np.array(roles)}
    for column in ("triggered", "table", "arrived", "false_positives"):
        hosts[column] = draw.integers(1, 500, len(roles))
    published_s, delay_s = np.sort(draw.uniform(0, 900, 400)), draw.lognormal(0, 2, 400)
    nothing: dict[str, Any] = {"settings": {}, "aggregates": {}, "totals": {}, "peak_rss_bytes": 0}
    return CoveringRecord(
        name=name,
        core=core,
        deliveries={"published_s": published_s, "delay_s": delay_s},
        queues={"time_s": np.arange(900.0), **{one: draw.integers(0, 900, 900) for one in core}},
        brokers=hosts,
        **nothing,
    )


def assert_legible(figure: Figure | None) -> None:
    """Nothing that is written lies over anything else or outside, and all axes have room."""
    assert figure is not None
    canvas = FigureCanvasAgg(figure)
    figure.savefig(io.BytesIO(), format="png", dpi=100)
    figure.canvas.draw()
    renderer = canvas.get_renderer()  # type: ignore[no-untyped-call]
    everything: list[tuple[str, Bbox]] = []
    for place, axes in enumerate(figure.axes):
        box = axes.get_window_extent(renderer)
        assert box.height / figure.dpi >= LEAST_HEIGHT_IN, f"axes {place} are too low"
        wide = axes.get_label() == "<colorbar>" or box.width / figure.dpi >= LEAST_WIDTH_IN
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
    assert_legible(draw(made_up_run(names=NAMES[:number]).systems))


@few_and_many(6)
@pytest.mark.parametrize("draw", BROKERS, ids=lambda draw: draw.__name__)
def test_plots_of_coverings_are_legible(draw: Callable[..., Figure | None], number: int) -> None:
    chosen = {name: covering(name, seed) for seed, name in enumerate(COVERINGS[:number])}
    assert_legible(draw(chosen))


def test_twenty_systems_are_told_apart_by_line_and_by_bar_and_long_names_keep_both_ends() -> None:
    styles = system_styles([f"system-{number}" for number in range(20)]).values()
    assert len({(style.colour, style.dashes) for style in styles}) == 20
    assert len({(style.colour, style.hatch) for style in styles}) == 20
    short = shortened(f"{LONG}-1")
    assert len(short) == 40
    assert short.startswith("a-preset")
    assert short.endswith("all-of-them-1")
    assert shortened("resilient") == "resilient"


TITLE = "Share of what nobody wanted"


def drawn(folder: Path, options: PlotOptions) -> dict[str, bytes]:
    folder.mkdir()
    with plots_as(options), plot_style():
        figure = new_figure()
        axes = figure.subplots()
        style = system_styles(["mine"])["mine"]
        draw_line(axes, np.arange(5), np.array([1.0, 2.0, np.nan, 4.0, 3.0]), style)
        axes.set_title(TITLE)
        legend_below(figure, axes)
        _, files = save(figure, folder, "plot")
    assert sorted(files) == sorted(folder.iterdir())
    return {file.suffix: file.read_bytes() for file in files}


def inches(svg: bytes) -> float:
    found = re.search(rb'<svg [^>]*width="([0-9.]+)pt"', svg)
    assert found
    return float(found[1]) / 72


def test_text_is_text_and_bytes_widths_and_formats_are_as_asked(tmp_path: Path) -> None:
    first = drawn(tmp_path / "a", PlotOptions(FORMATS))
    assert first == drawn(tmp_path / "b", PlotOptions(FORMATS))
    assert set(first) == {".svg", ".png", ".pdf"}
    assert set(drawn(tmp_path / "usual", plot_options(None, None))) == {".svg", ".png"}
    assert TITLE.encode() in first[".svg"]
    assert b"/FontFile2" in first[".pdf"], "fonts are embedded as TrueType"
    assert b"CreationDate" not in first[".pdf"]
    assert inches(first[".svg"]) == pytest.approx(WIDTH_IN)
    found = drawn(tmp_path / "c", plot_options("svg", "column"))
    assert set(found) == {".svg"}
    assert inches(found[".svg"]) == pytest.approx(COLUMN_WIDTH_IN)
    others = drawn(tmp_path / "d", plot_options("pdf, png", None))
    assert set(others) == {".pdf", ".png"}
    assert others[".png"] == first[".png"], "whatever was drawn before it"


def test_lines_break_where_nothing_is_known_and_intervals_need_several_seeds() -> None:
    values = np.full(60, 1.0)
    values[[10, 20, 22]] = np.nan
    axes = new_figure().subplots()
    draw_line(axes, np.arange(60), values, system_styles(["mine"])["mine"])
    (line,) = axes.lines
    assert (np.isnan(line.get_ydata()).sum(), line.get_markevery()) == (3, [21])
    draw_intervals(axes, [1, 2], [3.0, 4.0], [np.nan, np.nan], label="one")
    draw_intervals(axes, [1, 2], [3.0, 4.0], [0.5, 0.25], label="several")
    one, several = axes.containers
    assert isinstance(one, ErrorbarContainer)
    assert isinstance(several, ErrorbarContainer)
    assert not one.has_yerr
    assert several.has_yerr
    ends = several.lines[2][0].get_segments()
    assert [list(end[:, 1]) for end in ends] == [[2.5, 3.5], [3.75, 4.25]]


@pytest.mark.parametrize("values", [[4.7, 4.8], [0.0, 3.0], [5.0, 5.0], [1000.0, 1001.0]])
def test_axes_from_zero_leave_room_above_lines(values: list[float]) -> None:
    axes = new_figure().subplots()
    axes.plot([1, 2], values)
    from_zero(axes)
    low, high = axes.get_ylim()
    assert low == 0
    assert 1.04 * max(values) < high < 1.2 * max(values)


@pytest.mark.parametrize(
    ("formats", "width", "told"),
    [
        ("svg,gif", None, "--plots is 'svg,gif', expected some of svg, png, pdf"),
        ("", None, "--plots is '', expected some of svg, png, pdf"),
        (None, "poster", "--plot-width is 'poster', expected one of page, column"),
    ],
)
def test_what_cannot_be_drawn_is_refused(formats: str | None, width: str | None, told: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        plot_options(formats, width)
    assert told in str(caught.value)
