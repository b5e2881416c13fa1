"""The pictures of README.md and docs/kindred.md, drawn from the points in docs/measured.

    python -m gossamer.sim.figures.kindred.published docs
    python -m gossamer.sim.figures.kindred.published docs --points kindred/points.parquet

The second form takes the points of a full run of ``gossamer sim figures kindred`` first. Those of
the study `SCALE`, which no run of the figures has, stay as they are.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow.parquet as pq

from gossamer.sim.figures.common.measurements import OVERHEAD, PATH, TREE, Measurements
from gossamer.sim.figures.common.points import Outcome, Point
from gossamer.sim.figures.kindred.growth_plot import SCALE, plot_growth
from gossamer.sim.figures.kindred.plots import plot_ablation, plot_sweep
from gossamer.sim.figures.kindred.studies import ABLATION, ABLATION_ATTRIBUTES, ABLATION_RANGES
from gossamer.sim.figures.vinifera.studies import SIZES
from gossamer.sim.results.plot_style import plot_style, save
from gossamer.sim.studies.peers.inputs.scenario import Scenario
from gossamer.sim.study.plot import PlotOptions, plots_as

# Below the folder of the documentation.
POINTS: Final = Path("measured") / "kindred.csv"
STUDIES: Final = (SIZES, ABLATION, ABLATION_RANGES, ABLATION_ATTRIBUTES)
MEASURES: Final = (OVERHEAD, PATH, TREE, "load_max")
_POINT: Final = ("study", "system", "kind", "x", "seed")
_DIGITS: Final = 5


def read_points(file: Path) -> Measurements:
    """The points of a file of `write_points`; what is not known of one is NaN."""
    with file.open(encoding="utf-8", newline="") as lines:
        return Measurements([_outcome(row) for row in csv.DictReader(lines)])


def _outcome(row: Mapping[str, str]) -> Outcome:
    # Of the scenario only the seed is kept; what else it was follows from the study.
    point = Point(
        study=row["study"],
        system=row["system"],
        kind=row["kind"],
        x=float(row["x"]),
        scenario=Scenario(seed=int(row["seed"])),
    )
    measures = {name: float(row[name] or math.nan) for name in MEASURES}
    return Outcome(point=point, measures=measures, load=np.empty(0), hours={})


def write_points(rows: Iterable[Mapping[str, Any]], file: Path) -> None:
    """Write points, a line each.

    Args:
        rows: with ``study``, ``system``, ``kind``, ``x``, ``seed`` and all of `MEASURES`.
        file: CSV.
    """
    with file.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow([*_POINT, *MEASURES])
        for row in rows:
            values = [row[name] for name in MEASURES]
            known = ["" if math.isnan(one) else f"{one:.{_DIGITS}g}" for one in values]
            writer.writerow(
                [*(row[name] for name in _POINT[:3]), f"{row['x']:g}", row["seed"], *known]
            )


def rows_of(found: Measurements) -> list[dict[str, Any]]:
    """Measurements as rows of `write_points`."""
    return [
        {
            "study": outcome.point.study,
            "system": outcome.point.system,
            "kind": outcome.point.kind,
            "x": outcome.point.x,
            "seed": outcome.point.scenario.seed,
            **{name: outcome.measures[name] for name in MEASURES},
        }
        for outcome in found.outcomes
    ]


def take_points(table: Path, file: Path) -> None:
    """Replace the points of ``file`` by those of a ``points.parquet``, but for those of `SCALE`."""
    kept = [row for row in rows_of(read_points(file)) if row["study"] == SCALE]
    taken = pq.read_table(table, columns=[*_POINT, *MEASURES]).to_pylist()
    write_points([*(row for row in taken if row["study"] in STUDIES), *kept], file)


def draw(found: Measurements, folder: Path) -> None:
    """Draw the pictures into a folder, as PNG."""
    with plots_as(PlotOptions(("png",))), plot_style():
        save(plot_growth(found), folder, "growth")
        hops = plot_sweep(found, SIZES, [PATH, TREE], "Path length (hops)", "nodes")
        save(hops, folder, "kindred-hops")
        save(plot_ablation(found), folder, "kindred-ablation")


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw them, see above."""
    parser = argparse.ArgumentParser(description="Draw the pictures of the documentation.")
    parser.add_argument("docs", type=Path, help="folder of the documentation")
    parser.add_argument("--points", type=Path, help="points.parquet of a full run, to take first")
    chosen = parser.parse_args(arguments)
    file = chosen.docs / POINTS
    if chosen.points is not None:
        take_points(chosen.points, file)
    draw(read_points(file), chosen.docs)


if __name__ == "__main__":
    main()
