"""Plots in the formats and widths that are asked for; text is text, and bytes are the same."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.container import ErrorbarContainer

from gossamer.sim.errors import ScenarioError
from gossamer.sim.results import plot_style as results_plot_style
from gossamer.sim.study.plot import PlotOptions, plot_options, plots_as

TITLE = "Share of what nobody wanted"


def drawn(folder: Path, options: PlotOptions) -> dict[str, bytes]:
    """The files of a small plot, by suffix."""
    folder.mkdir()
    with plots_as(options), results_plot_style.plot_style():
        figure = results_plot_style.new_figure()
        axes = figure.subplots()
        style = results_plot_style.system_styles(["mine"])["mine"]
        results_plot_style.draw_line(
            axes, np.arange(5), np.array([1.0, 2.0, np.nan, 4.0, 3.0]), style
        )
        axes.set_title(TITLE)
        results_plot_style.legend_below(figure, axes)
        _, files = results_plot_style.save(figure, folder, "plot")
    assert sorted(files) == sorted(folder.iterdir())
    return {file.suffix: file.read_bytes() for file in files}


def inches(svg: bytes) -> float:
    """The width of a plot."""
    found = re.search(rb'<svg [^>]*width="([0-9.]+)pt"', svg)
    assert found
    return float(found[1]) / 72


def test_text_is_text_and_bytes_are_the_same(tmp_path: Path) -> None:
    first = drawn(tmp_path / "a", PlotOptions())
    assert first == drawn(tmp_path / "b", PlotOptions())
    assert set(first) == {".pdf", ".svg", ".png"}
    assert TITLE.encode() in first[".svg"]
    assert b"/FontFile2" in first[".pdf"], "fonts are embedded as TrueType"
    assert b"CreationDate" not in first[".pdf"]
    assert inches(first[".svg"]) == pytest.approx(results_plot_style.WIDTH_IN)


def test_a_column_is_as_wide_as_one_and_only_asked_formats_are_written(tmp_path: Path) -> None:
    found = drawn(tmp_path / "a", plot_options("svg", "column"))
    assert set(found) == {".svg"}
    assert inches(found[".svg"]) == pytest.approx(results_plot_style.COLUMN_WIDTH_IN)
    assert set(drawn(tmp_path / "b", plot_options("pdf, png", None))) == {".pdf", ".png"}


def test_lines_break_where_nothing_is_known_and_points_between_gaps_are_dots() -> None:
    values = np.full(60, 1.0)
    values[[10, 20, 22]] = np.nan
    with results_plot_style.plot_style():
        axes = results_plot_style.new_figure().subplots()
        results_plot_style.draw_line(
            axes, np.arange(60), values, results_plot_style.system_styles(["mine"])["mine"]
        )
    (line,) = axes.lines
    assert np.isnan(line.get_ydata()).sum() == 3
    assert line.get_markevery() == [21]


@pytest.mark.parametrize("values", [[4.7, 4.8], [0.0, 3.0], [5.0, 5.0], [1000.0, 1001.0]])
def test_axes_from_zero_leave_room_above_lines(values: list[float]) -> None:
    with results_plot_style.plot_style():
        axes = results_plot_style.new_figure().subplots()
        axes.plot([1, 2], values)
        results_plot_style.from_zero(axes)
    low, high = axes.get_ylim()
    assert low == 0
    assert 1.04 * max(values) < high < 1.2 * max(values)


def test_intervals_are_drawn_only_where_there_are_several_seeds() -> None:
    with results_plot_style.plot_style():
        axes = results_plot_style.new_figure().subplots()
        results_plot_style.draw_intervals(axes, [1, 2], [3.0, 4.0], [np.nan, np.nan], label="one")
        results_plot_style.draw_intervals(axes, [1, 2], [3.0, 4.0], [0.5, 0.25], label="several")
    one, several = axes.containers
    assert isinstance(one, ErrorbarContainer)
    assert isinstance(several, ErrorbarContainer)
    assert not one.has_yerr
    assert several.has_yerr
    ends = several.lines[2][0].get_segments()
    assert [list(end[:, 1]) for end in ends] == [[2.5, 3.5], [3.75, 4.25]]


@pytest.mark.parametrize(
    ("formats", "width", "told"),
    [
        ("svg,gif", None, "--plots is 'svg,gif', expected some of pdf, svg, png"),
        ("", None, "--plots is '', expected some of pdf, svg, png"),
        (None, "poster", "--plot-width is 'poster', expected one of page, column"),
    ],
)
def test_what_cannot_be_drawn_is_refused(formats: str | None, width: str | None, told: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        plot_options(formats, width)
    assert told in str(caught.value)
