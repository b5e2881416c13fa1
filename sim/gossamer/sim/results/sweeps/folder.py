"""The folder of a sweep, the same whoever runs its points.

Beside the folder OUT, a sweep in progress holds OUT.unfinished, which becomes OUT when all points
are there:

sweep.json          the points of the sweep
runs/<point>/       the result folder of each, as `gossamer sim run` makes it, without plots
points.parquet, .csv   when all are there: a row a point and system, with all measures

A point is there or it is not: its folder is renamed into place whole. What is resumed runs those
that are not there.
"""

from __future__ import annotations

import csv
import json
import os
import shlex
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import attrs
import pyarrow as pa
import pyarrow.parquet as pq

from gossamer.sim.errors import ResultsError
from gossamer.sim.results.held import UNFINISHED, held
from gossamer.sim.results.results import read_results, rename_to_free, scratch_folder
from gossamer.sim.results.sweeps.plan import SEED, SYSTEM, Point, SweepPlan

PLAN_FILE: Final = "sweep.json"
RUNS: Final = "runs"
# Columns of the table of points beside what is varied, and what tells measures from all of these.
POINT, RESULT_HASH = "point", "result_hash"
MEASURED: Final = "measured."


def claim(plan: SweepPlan, unfinished: Path, resume: bool) -> None:
    """Make the folder of the sweep, or check that the one there is of this plan."""
    told = plan_text(plan)
    if not resume:
        try:
            unfinished.mkdir()
        except FileExistsError:
            raise ResultsError(
                unfinished,
                "holds an unfinished sweep; go on with it by --resume, choose another folder, or "
                "move it away",
            ) from None
        try:
            (unfinished / RUNS).mkdir()
            (unfinished / PLAN_FILE).write_text(told, encoding="utf-8")
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
        return
    file = unfinished / PLAN_FILE
    if not file.is_file():
        raise ResultsError(unfinished, "does not exist, expected an unfinished sweep there")
    if file.read_text(encoding="utf-8") != told:
        raise ResultsError(file, "is of another sweep, expected the one that is to be resumed")
    (unfinished / RUNS).mkdir(exist_ok=True)
    for aside in (unfinished / RUNS).glob(".*.tmp"):
        shutil.rmtree(aside, ignore_errors=True)


def plan_text(plan: SweepPlan) -> str:
    """The content of `PLAN_FILE`, by which a sweep is known again when it is resumed."""
    points = [
        {"name": point.name, "values": dict(point.values), "scenario": point.text}
        for point in plan.points
    ]
    return json.dumps({"name": plan.name, "points": points}, indent=2) + "\n"


def write_points(plan: SweepPlan, folder: Path) -> None:
    """The table of all points, from their summaries."""
    write_rows(point_rows(plan, summaries_in(plan, folder)), folder / "points")


def summaries_in(plan: SweepPlan, folder: Path) -> dict[str, dict[str, Any]]:
    """The ``summary.json`` of each point, by its name."""
    return {one.name: read_results(folder / RUNS / one.name).summary for one in plan.points}


def write_rows(rows: Sequence[Mapping[str, Any]], path: Path, columns: Sequence[str] = ()) -> None:
    """Write rows by column as ``path`` with .parquet and with .csv; what a row lacks is empty.

    Args:
        rows: what to write.
        path: of the files, without their endings.
        columns: that there are even without a row; others follow as rows name them.
    """
    names = list(dict.fromkeys((*columns, *(name for row in rows for name in row))))
    full = [{name: row.get(name) for name in names} for row in rows]
    table = pa.Table.from_pylist(full) if full else pa.table({name: pa.nulls(0) for name in names})
    pq.write_table(table, path.with_name(f"{path.name}.parquet"), compression="zstd")
    place = path.with_name(f"{path.name}.csv")
    with place.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, fieldnames=names)
        writer.writeheader()
        writer.writerows(full)


def point_rows(plan: SweepPlan, summaries: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row a point and system: what was varied, and all measures.

    Args:
        plan: of the sweep.
        summaries: the ``summary.json`` of each point, by its name.

    Returns:
        Rows by column. A measure that is called as what is varied in any point (or as another
        column) has `MEASURED` before its name, in all rows.
    """
    varied = [
        {key: value for key, value in point.values.items() if key not in (SEED, SYSTEM)}
        for point in plan.points
    ]
    taken = {POINT, SEED, SYSTEM, RESULT_HASH}.union(*varied)
    rows = []
    for point, values in zip(plan.points, varied, strict=True):
        summary = summaries[point.name]
        for system, measures in summary["systems"].items():
            numbers = {
                f"{MEASURED}{name}" if name in taken else name: float(value)
                for name, value in sorted(measures.items())
                if isinstance(value, int | float) and not isinstance(value, bool)
            }
            row = {POINT: point.name, **values, SEED: point.values[SEED], SYSTEM: system}
            rows.append(row | {RESULT_HASH: summary["result_hash"]} | numbers)
    return rows


def what_is_kept(command: Sequence[str], sweep: Path, out: Path) -> str:
    """What an interrupted sweep left, and how to go on with it, in words.

    Args:
        command: the words before the sweep file.
        sweep: the sweep file.
        out: the folder asked for.
    """
    is_kept = out.with_name(out.name + UNFINISHED).is_dir()
    return kept_sentence(command, os.fspath(sweep), os.fspath(out), is_kept)


def kept_sentence(command: Sequence[str], sweep: str, out: str, is_kept: bool) -> str:
    """What `what_is_kept` says, whether or not there is anything."""
    if not is_kept:
        return "no point was finished yet, nothing is kept"
    words = [*command, sweep, "--out", out, "--resume"]
    return f"finished points are kept, go on by '{shlex.join(words)}'"


Place = TypeVar("Place")
# Runs a point within a folder of its own, below that of the sweep; returns its result folder.
RunPoint = Callable[[Point, Path, Path], Path]


class SweepStore(ABC, Generic[Place]):
    """Where the results of a sweep are kept; the type parameter is how the place is named."""

    @abstractmethod
    def held(self) -> AbstractContextManager[None]:
        """Keep every other process from working on the sweep.

        Raises:
            ResultsError: another process is at work on it, or there are results already.
        """

    @abstractmethod
    def claim(self, plan: SweepPlan, resume: bool) -> None:
        """Begin the sweep, or check that the one that was begun is of this plan."""

    @abstractmethod
    def finished(self) -> Collection[str]:
        """The names of points whose results are there."""

    @abstractmethod
    def keep(self, point: Point, run: RunPoint) -> None:
        """Run a point and keep its results, whole or not at all."""

    @abstractmethod
    def give_up(self) -> None:
        """The sweep ends early: leave nothing where no point is finished."""

    @abstractmethod
    def unfinished(self) -> Place:
        """Where finished points are while others are not."""

    @abstractmethod
    def complete(self, plan: SweepPlan) -> Place:
        """Make the sweep whole, all of whose points are finished; where it is then."""


@attrs.frozen
class FolderStore(SweepStore[Path]):
    """A folder of this machine, of another name until it is whole.

    Attributes:
        out: the new folder.
        finish: writes what is told by all points into the folder that holds their results.
    """

    out: Path
    finish: Callable[[SweepPlan, Path], None] = write_points

    def held(self) -> AbstractContextManager[None]:
        return held(self.out)

    def claim(self, plan: SweepPlan, resume: bool) -> None:
        claim(plan, self.unfinished(), resume)

    def finished(self) -> Collection[str]:
        return [one.name for one in (self.unfinished() / RUNS).iterdir() if one.is_dir()]

    def keep(self, point: Point, run: RunPoint) -> None:
        """Run a point in a folder beside the one that it is to have, and rename that."""
        place = self.unfinished() / RUNS / point.name
        with scratch_folder(place) as folder:
            rename_to_free(run(point, folder, self.unfinished().absolute()), place)

    def give_up(self) -> None:
        if not any((self.unfinished() / RUNS).iterdir()):
            shutil.rmtree(self.unfinished(), ignore_errors=True)

    def unfinished(self) -> Path:
        return self.out.with_name(self.out.name + UNFINISHED)

    def complete(self, plan: SweepPlan) -> Path:
        self.finish(plan, self.unfinished())
        self.unfinished().rename(self.out)
        return self.out
