"""Sums of tasks, conditions as columns, and plots of crunched results as people see them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from fractions import Fraction
from html import unescape
from itertools import product
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

import gossamer.sim.results.interval_plots as interval_plots
import gossamer.spark.crunch.plots as plots_module
from gossamer.sim.results.interval_plots import legible_ticks, order_of
from gossamer.sim.results.intervals import Value, intervals
from gossamer.sim.results.plot_style import save
from gossamer.sim.results.storage.place import LocalPlace
from gossamer.sim.study.plot import Plot, PlotOptions, plots_as
from gossamer.sim.study.records import CDF, PER_CENTS, SERIES, percentile_place
from gossamer.spark.crunch import crunching, deliveries, folders, page, quantiles
from gossamer.spark.crunch.curves import CURVES_FILE, Curves, CurveWriter, Owner
from gossamer.spark.crunch.plots import write_plots
from gossamer.spark.crunch.quantiles import _total, sums_of

SIZES, SEEDS = (60, 120, 1000), (1, 2, 3)
SYSTEMS = ("kindred", "a-system-of-ones-own")
MEASURES = ("hit_ratio", "load_gini")
VALUES = st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=30)


def made_up(folder: Path, sizes: Sequence[int] = SIZES) -> crunching.Crunched:
    """Results of two systems, sizes and seeds, in which delays are always the same."""
    draw = np.random.default_rng(1)
    drawn_ones = ((CDF, "load"), (CDF, "delay"), (CDF, "path length"), (SERIES, "hit ratio"))
    owners: dict[int, Owner] = {}
    values, rows = [], []
    for number, (nodes, seed, system) in enumerate(product(reversed(sizes), SEEDS, SYSTEMS)):
        owner = owners[number] = Owner(f"{nodes}-{seed}", (("nodes", nodes),), seed, system)
        measured = {"hit_ratio": draw.uniform(0.9, 1), "load_gini": draw.uniform(0, 1)}
        values += [
            Value(**attrs.asdict(owner, recurse=False), measure=one, value=value, method="exact")
            for one, value in (measured | {"delay_mean_s": 2.0}).items()
        ]
        for part, name in drawn_ones:
            drawn = np.sort(draw.uniform(0, 1, 101)) if name != "delay" else np.ones(101)
            if name == "path length":
                drawn = np.floor(12 * drawn)
            rows += [(number, part, name, float(x), float(y), "exact") for x, y in enumerate(drawn)]
    columns = [list(column) for column in zip(*rows, strict=True)]
    with CurveWriter(folder / CURVES_FILE, owners) as curves:
        curves.write(pa.table(columns, schema=deliveries.ROW_SCHEMA))
    if len(sizes) == 1:
        values = [attrs.evolve(one, condition=()) for one in values]
    conditions = {(one.run, one.system): one.condition for one in owners.values()}
    return crunching.Crunched(
        folder=LocalPlace(folder),
        runs=len(sizes) * len(SEEDS),
        values=values,
        intervals=intervals(values),
        comparisons=[],
        curves=Curves(LocalPlace(folder / CURVES_FILE), conditions),
        notes=[],
    )


def drawn(folder: Path, sizes: Sequence[int] = SIZES) -> tuple[dict[str, Plot], list[str]]:
    with plots_as(PlotOptions(formats=("svg",))):
        made, notes = write_plots(made_up(folder, sizes), folder / "plots")
    return {one.name: one for one in made}, notes


def words_of(plot: Plot) -> list[str]:
    """All texts of a plot, in the order in which they are drawn."""
    return [unescape(one) for one in re.findall(r"<text[^>]*>([^<]*)</text>", plot.svg.decode())]


def test_plots_of_several_sizes_are_sorted_and_legible(
    tmp_path: Path,
) -> None:
    plots, (note,) = drawn(tmp_path)
    words = words_of(plots["hit_ratio"])
    # Ticks are where measurements are.
    assert words[: words.index("nodes")] == ["60", "1,000"]  # 120 would touch 60
    assert {"hit ratio", "Hit ratio", "means over 3 seeds, with 95 % intervals"} < set(words)
    assert words[-2:] == ["a-system-of-ones-own", "kindred"]
    for name in ("cdf-load", "series-hit-ratio"):
        assert words_of(plots[name])[-6:] == [
            f"{system} (nodes {nodes})" for system in sorted(SYSTEMS) for nodes in SIZES
        ]
        assert "intervals" not in plots[name].caption  # of six curves they would hide these
    assert "Gini coefficient of load" in words_of(plots["load_gini"])
    # Hops are whole.
    words = words_of(plots["cdf-path-length"])
    ticks = words[: words.index("path length (hops)")]
    assert all(re.fullmatch(r"\d+", tick) for tick in ticks)
    assert len(ticks) > 2
    # What is the same everywhere is said and not drawn.
    assert set(plots) == {*MEASURES, "cdf-load", "cdf-path-length", "series-hit-ratio"}
    same = "delay, mean (s) 2; distribution of delay 1 (s)"
    assert note == f"The same everywhere, and not drawn: {same}."
    page.write_page(made_up(tmp_path), [], tmp_path / "report.html", [note])
    assert note in unescape((tmp_path / "report.html").read_text())


@pytest.mark.parametrize(
    ("places", "ticks"),
    [
        ([7], [7]),
        ([7, 7, None], [7]),
        ([100, 200, 400, 800], [100, 200, 400, 800]),
        ([0.1, 0.11, 0.5, 0.99, 1.0], [0.1, 0.5, 1.0]),
        ([1, 2, 3], [1, 2, 3]),
    ],
)
def test_ticks_that_touch_are_left_out(places: list[float | None], ticks: list[float]) -> None:
    assert legible_ticks(places) == ticks


def test_bars_are_in_order_and_intervals_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures: dict[str, Figure] = {}

    def keep(figure: Figure, folder: Path, name: str) -> tuple[bytes, tuple[Path, ...]]:
        figures[name] = figure
        return save(figure, folder, name)

    for module in (plots_module, interval_plots):
        monkeypatch.setattr(module, "save", keep)
    plots, _ = drawn(tmp_path, SIZES[:1])
    assert [word for word in words_of(plots["hit_ratio"]) if word in SYSTEMS] == sorted(SYSTEMS)
    for name, axis in (("cdf-load", 0), ("series-hit-ratio", 1)):
        assert "with 95 % intervals" in plots[name].caption
        (axes,) = figures[name].axes
        paths = [path for band in axes.collections for path in band.get_paths()]
        ends = np.concatenate([np.asarray(path.vertices)[:, axis] for path in paths])
        assert (ends.min(), ends.max()) == (0.0, 1.0)


def test_conditions_are_sorted_by_size() -> None:
    given = [(("kind", "random"), ("nodes", nodes)) for nodes in (1000, 60, 120)]
    assert [one[1][1] for one in sorted(given, key=order_of)] == [60, 120, 1000]


def batch(values: list[float]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"value": np.array(values, np.float64)})


@given(VALUES, st.integers(0, 30), st.integers(0, 30))
def test_the_sum_is_exact_however_spread(values: list[float], first: int, second: int) -> None:
    assert list(sums_of(iter([batch([])]))) == []
    first, second = sorted((first, second))
    parts = [values[:first], values[first:second], values[second:]]
    tasks = [sums_of(iter([batch(parts[0]), batch(parts[1])])), sums_of(iter([batch(parts[2])]))]
    told = [row for task in tasks for made in task for row in made.to_pylist()]
    assert sum(row["rows"] for row in told) == len(values)
    assert min(row["low"] for row in told) == min(values)
    assert max(row["high"] for row in told) == max(values)
    assert _total(told) == sum(map(Fraction, values))
    assert math.isclose(float(_total(told)), math.fsum(values))


@attrs.frozen
class Tasks:
    """Batches of several tasks, in place of a frame of Spark."""

    tasks: list[list[pa.RecordBatch]]

    def mapInArrow(self, function: Any, _schema: str) -> list[pa.RecordBatch]:  # noqa: N802
        return [made for task in self.tasks for made in function(iter(task))]


def added(made: list[pa.RecordBatch], key: str, sums: Sequence[str], told: list[int]) -> pa.Table:
    """What Spark makes of the rows of tasks: those of a key added up."""
    wanted = [*((name, "sum") for name in sums), ("low", "min"), ("high", "max")]
    found = pa.Table.from_batches(made).group_by(key).aggregate(wanted)
    told.append(len(found))
    named = {name.rpartition("_")[0] or name: found[name] for name in found.column_names}
    return pa.table(named).sort_by(key)


NUMBERS = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=True)
CLOSE = st.integers(0, 30).map(lambda steps: float(np.nextafter(1.0, 2.0) ** steps))
TIMES = st.lists(st.tuples(NUMBERS | CLOSE, st.integers(1, 10**6)), min_size=1, max_size=60)


@given(TIMES, st.integers(1, 5), st.sampled_from([128, 1 << 10, 1 << 16]))
def test_percentiles_of_any_numbers_are_those_of_their_order(
    values: list[tuple[float, int]], tasks: int, parts: int
) -> None:
    """Denormal, negative and far apart, in so few passes that bits are what is gone through."""
    columns = [{"value": [one], "times": [times]} for one, times in values]
    batches = [pa.RecordBatch.from_pydict(one) for one in columns]
    told: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quantiles, "_added", lambda made, key, sums: added(made, key, sums, told))
        patch.setattr(quantiles, "_PARTS", parts)
        found = quantiles.distribution(Tasks([batches[one::tasks] for one in range(tasks)]))
    assert found is not None
    ordered = sorted(values)
    ends = np.cumsum([times for _, times in ordered])
    places = [percentile_place(int(ends[-1]), one) for one in PER_CENTS.tolist()]
    at = np.searchsorted(ends, places, side="right")
    assert found.centiles == [ordered[one][0] for one in at]
    total = sum(Fraction(one) * times for one, times in values)
    assert found.mean == float(total / int(ends[-1]))
    assert max(told[1:], default=0) <= min(len({one for one, _ in values}), max(parts, 101))


def test_columns_have_the_type_that_all_values_have() -> None:
    conditions = [
        (("nodes", 100), ("width", 1), ("kind", "random"), ("mixed", 1), ("on", True)),
        (("nodes", 200), ("width", 0.5), ("kind", "skewed"), ("mixed", "x"), ("on", False)),
    ]
    first = folders.ConditionColumns(conditions).of(conditions[0])
    wanted = {"nodes": 100, "width": 1.0, "kind": "random", "mixed": "1", "on": True}
    assert first == {f"condition.{name}": value for name, value in wanted.items()}
    assert [*map(type, first.values())] == [*map(type, wanted.values())]


def test_what_a_condition_lacks_is_empty() -> None:
    columns = folders.ConditionColumns([(("nodes", 100),), (("width", None),)])
    assert columns.of(()) == {"condition.nodes": None}
    assert columns.of((("nodes", 7),)) == {"condition.nodes": 7}
