"""The pictures of `kindred`: all that was measured is on them, and the documents say the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import imread

from gossamer.sim.figures.common.measurements import OVERHEAD, PATH, TREE, Measurements
from gossamer.sim.figures.common.points import Outcome
from gossamer.sim.figures.kindred import published
from gossamer.sim.figures.kindred.growth_plot import SCALE, plot_growth
from gossamer.sim.figures.kindred.plots import plot_ablation, plot_sweep
from gossamer.sim.figures.kindred.studies import (
    ABLATION,
    ABLATION_ATTRIBUTES,
    ABLATION_RANGES,
    KINDRED,
    SYSTEMS,
)
from gossamer.sim.figures.vinifera.studies import BASELINE, KINDS, PAPER, RANDOM, SIZES, SKEWED
from gossamer.sim.results.plot_style import plot_style
from support.checkout import ROOT

DOCS = ROOT / "docs"
LOAD = "load_max"


@pytest.fixture(scope="module")
def found() -> Measurements:
    return published.read_points(DOCS / published.POINTS)


def rows_below(heading: str) -> Iterator[list[str]]:
    """The cells of the table of docs/kindred.md whose first line begins like this."""
    lines = (DOCS / "kindred.md").read_text(encoding="utf-8").splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith(heading))
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            return
        yield [cell.strip() for cell in line.strip("|").split("|")]


def check(cells: list[str], values: list[float]) -> None:
    """Printed values are those measured, to their last digit."""
    for cell, value in zip(cells, values, strict=True):
        if not cell:
            continue
        number = cell.strip("*").removesuffix(" %")
        step = 10.0 ** -len(number.partition(".")[2])
        measured = 100 * value if cell.strip("*").endswith("%") else value
        assert measured == pytest.approx(float(number), abs=0.501 * step), cell


def test_the_tables_of_the_documents_are_the_points_that_are_drawn(found: Measurements) -> None:
    measures = (OVERHEAD, PATH, TREE, LOAD)
    sizes = []
    for cells in rows_below("| nodes | random: overhead | hops | depth | busiest |"):
        (number,) = re.findall(r"^[\d,]+", cells[0])
        nodes = float(number.replace(",", ""))
        study = SIZES if found.select(SIZES, KINDRED, RANDOM, nodes) else SCALE
        at = [found.value(one, study, KINDRED, kind, nodes) for kind in KINDS for one in measures]
        check(cells[1:9], at)
        sizes.append(nodes)
    assert sizes == [*found.places(SIZES, KINDRED, RANDOM), *found.places(SCALE, KINDRED, RANDOM)]

    for cells in rows_below("| nodes | `baseline`: random: overhead | hops |"):
        nodes = float(cells[0].replace(",", ""))
        at = [
            found.value(one, SIZES, system, kind, nodes)
            for system in (BASELINE, PAPER, "resilient")
            for kind in KINDS
            for one in (OVERHEAD, PATH)
        ]
        check(cells[1:], at)

    studies = {"1,000": (ABLATION, 0.0), "three": (ABLATION_RANGES, 3.0)}
    studies["500"] = (ABLATION_ATTRIBUTES, 3.0)
    names = {
        "nothing": KINDRED,
        "places": "no-placement",
        "fingers": "no-fingers",
        "routing both": "no-nearest-routing",
        "entering": "no-entering",
        "routing key": "no-key",
        "guests": "no-guests",
    }
    study, x = ABLATION, 0.0
    rows = list(rows_below("| set-up | without | random: overhead"))
    for setup, without, *cells in rows:
        if setup:
            study, x = studies[setup.split()[0]]
        (system,) = (name for begin, name in names.items() if without.startswith(begin))
        at = [
            found.value(one, study, system, kind, x)
            for kind in KINDS
            for one in (OVERHEAD, PATH, LOAD)
        ]
        check(cells, at)
    assert len(rows) == 10


def test_points_are_written_as_read_or_from_a_run(found: Measurements, tmp_path: Path) -> None:
    file = tmp_path / "points.csv"
    rows = published.rows_of(found)
    published.write_points(rows, file)
    assert file.read_bytes() == (DOCS / published.POINTS).read_bytes()
    run = [row for row in rows if row["study"] == SIZES and row["x"] == 300]
    other = {**run[0], "study": "friends"}
    pq.write_table(pa.Table.from_pylist([*run, other]), tmp_path / "points.parquet")
    published.take_points(tmp_path / "points.parquet", file)
    taken = published.rows_of(published.read_points(file))
    assert [row["study"] for row in taken] == [*(SIZES for _ in run), SCALE]


def inside(axes: Axes, value: float) -> bool:
    low, high = axes.get_ylim()
    return low <= value <= high


def test_growth_shows_every_size_of_three_systems_with_their_names(found: Measurements) -> None:
    with plot_style():
        figure = plot_growth(found)
        figure.draw_without_rendering()
    assert len(figure.axes) == 2
    for axes, measure in zip(figure.axes, (PATH, OVERHEAD), strict=True):
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
        assert {text.get_text() for text in axes.texts} == {PAPER, BASELINE, KINDRED}
        boxes = [text.get_window_extent() for text in axes.texts]
        assert not any(a.overlaps(b) for a in boxes for b in boxes if a is not b)
        assert all(figure.bbox.containsx(box.x0) and figure.bbox.containsx(box.x1) for box in boxes)
        shown = {float(x) for line in axes.lines for x in np.asarray(line.get_xdata())}
        assert {300.0, 10_000.0, 100_000.0, 1_000_000.0} <= shown
        for system in (PAPER, BASELINE, KINDRED):
            x, y = found.series(measure, SIZES, system, RANDOM)
            assert any(np.array_equal(line.get_xdata(), x) for line in axes.lines), system
            assert all(inside(axes, value) for value in y)


@pytest.mark.parametrize("measure", [PATH, OVERHEAD])
def test_a_sweep_of_sizes_shows_all_of_every_system(found: Measurements, measure: str) -> None:
    measures = [PATH, TREE] if measure == PATH else [measure]
    with plot_style():
        figure = plot_sweep(found, SIZES, measures, "x", "nodes")
    for axes, kind in zip(figure.axes, KINDS, strict=True):
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
        drawn = [tuple(map(float, np.asarray(line.get_xdata()))) for line in axes.lines]
        for system in SYSTEMS:
            x, y = found.series(measure, SIZES, system, kind)
            assert tuple(x) in drawn
            assert all(inside(axes, value) for value in y)
    labels = [text.get_text() for text in figure.axes[0].get_xticklabels()]
    assert labels == ["1,000", "10k", "100k", "1M"]
    assert any(float(line.get_xdata()[-1]) == 1e6 for line in figure.axes[0].lines)  # type: ignore[index,arg-type]


def with_no_overhead(found: Measurements, **points: object) -> Measurements:

    def changed(one: Outcome) -> Outcome:
        if any(getattr(one.point, name) != value for name, value in points.items()):
            return one
        return attrs.evolve(one, measures={**one.measures, OVERHEAD: 0.0})

    return Measurements([changed(one) for one in found.outcomes])


def test_a_sweep_with_a_zero_begins_at_zero(found: Measurements) -> None:
    nothing = with_no_overhead(found, x=300)
    with plot_style():
        figure = plot_sweep(nothing, SIZES, [OVERHEAD], "x", "nodes")
    assert {(axes.get_yscale(), axes.get_ylim()[0]) for axes in figure.axes} == {("linear", 0.0)}


def values_on(axes: Axes) -> dict[str, list[float]]:
    """Where the dots of each kind of subscriptions are."""
    return {
        str(bars.get_label()): [float(x) for x in np.asarray(bars[0].get_xdata())]
        for bars in axes.containers
    }


def test_ablation_shows_every_value_as_a_dot_and_as_a_number(found: Measurements) -> None:
    def drawn(measurements: Measurements) -> Figure:
        with plot_style():
            figure = plot_ablation(measurements)
            figure.draw_without_rendering()
            return figure

    figure = drawn(found)
    for axes in figure.axes:
        assert axes.get_xscale() == "log"
        low, high = axes.get_xlim()
        dots = values_on(axes)
        assert set(dots) == set(KINDS)
        for values in dots.values():
            assert len(values) == 10
            assert all(low < value < high for value in values)
        assert len(axes.texts) == 20
        boxes = [text.get_window_extent() for text in axes.texts]
        assert not any(a.overlaps(b) for a in boxes for b in boxes if a is not b)
        edge = axes.get_window_extent()
        assert all(edge.x0 <= box.x0 and box.x1 <= edge.x1 for box in boxes)
    assert {"17.1 %", "0.19 %"} <= {text.get_text() for text in figure.axes[0].texts}

    first = drawn(with_no_overhead(found, study=ABLATION, system=KINDRED, kind=SKEWED)).axes[0]
    assert len(values_on(first)[SKEWED]) == 9
    assert "0 %" in {text.get_text() for text in first.texts}


def test_the_pictures_are_drawn_from_the_points(tmp_path: Path) -> None:
    """As far as another release of Matplotlib draws the same."""
    (tmp_path / "measured").mkdir()
    (tmp_path / published.POINTS).write_bytes((DOCS / published.POINTS).read_bytes())
    published.main([str(tmp_path)])
    names = sorted(path.name for path in tmp_path.glob("*.png"))
    assert names == ["growth.png", "kindred-ablation.png", "kindred-hops.png"]
    for name in names:
        made, kept = imread(tmp_path / name), imread(DOCS / name)
        assert made.shape == kept.shape
        assert float(np.abs(made - kept).mean()) < 0.02, name
