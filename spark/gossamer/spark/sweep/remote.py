"""A sweep in an object store: points are where they belong at once, and the marker comes last.

A point is there when its summary is, which its task sends after all else. Until the marker
`_SUCCESS` says that the sweep is whole, ``--resume`` runs the points that are not there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, Final

import attrs

from gossamer.sim.results.results import SUMMARY_FILE
from gossamer.sim.results.storage.place import LocalPlace, Place, PlaceError
from gossamer.sim.results.storage.remote import RemotePlace
from gossamer.sim.results.sweeps.folder import PLAN_FILE, RUNS, plan_text, point_rows, write_rows
from gossamer.sim.results.sweeps.plan import Point, SweepPlan
from gossamer.sim.results.sweeps.store import RunPoint, SweepStore
from gossamer.spark.handover import Uploads
from gossamer.spark.storage.claims import CLAIMS, claimed
from gossamer.spark.storage.folders import ALREADY, MARKER, WRITING, clear, commit, sent_folder
from gossamer.spark.storage.lineage import write_lineage
from gossamer.spark.sweep.lineage import with_points

# Summaries that are read at a time.
_READERS: Final = 16


@attrs.frozen
class RemoteStore(SweepStore[Place]):
    """A folder of an object store.

    Attributes:
        out: the new folder.
        send: runs a point, whose task sends its results.
        lineage: of the command, without inputs.
    """

    out: RemotePlace
    send: Callable[[Point, Uploads], None]
    lineage: Mapping[str, Any]

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep every other process from working on the sweep."""
        with claimed(self.out):
            if (self.out / MARKER).exists():
                raise PlaceError(self.out, ALREADY)
            try:
                yield
            finally:
                with suppress(PlaceError):
                    (self.out / WRITING).delete()

    def claim(self, plan: SweepPlan, resume: bool) -> None:
        """Begin the sweep, or check that the one that was begun is of this plan."""
        file, told = self.out / PLAN_FILE, plan_text(plan).encode()
        if resume:
            try:
                found = file.read_bytes()
            except FileNotFoundError:
                reason = "does not exist, expected an unfinished sweep there"
                raise PlaceError(self.out, reason) from None
            if found != told:
                raise PlaceError(file, "is of another sweep, expected the one to be resumed")
        else:
            self._require_empty()
            file.write_bytes(told)
        (self.out / WRITING).write_bytes(b"")

    def _require_empty(self) -> None:
        there = [one.name for one in self.out.files() if not one.name.startswith(f"{CLAIMS}/")]
        if PLAN_FILE in there:
            action = "go on with it by --resume, choose another folder, or move it away"
            raise PlaceError(self.out, f"holds an unfinished sweep; {action}")
        if there:
            raise PlaceError(self.out, ALREADY.replace("results", f"files ({there[0]})"))

    def finished(self) -> Collection[str]:
        """The names of points whose summaries are there."""
        return finished_points(self.out)

    def keep(self, point: Point, run: RunPoint) -> None:
        """Run a point, whose task sends its results to where they belong."""
        del run
        self.send(point, Uploads(self.out / RUNS / point.name, self.out))

    def give_up(self) -> None:
        """Remove all where no point is finished."""
        with suppress(PlaceError):  # what went wrong first is told
            if not self.finished():
                clear(self.out)

    def unfinished(self) -> Place:
        """Where finished points are while others are not."""
        return self.out

    def complete(self, plan: SweepPlan) -> Place:
        """Write the table of all points, what made them, and the marker."""

        def summary(point: Point) -> bytes:
            return (self.out / RUNS / point.name / SUMMARY_FILE).read_bytes()

        with ThreadPoolExecutor(_READERS) as pool:
            contents = list(pool.map(summary, plan.points))
        names = [point.name for point in plan.points]
        summaries = dict(zip(names, contents, strict=True))
        with sent_folder(self.out) as here:
            rows = point_rows(plan, {name: json.loads(one) for name, one in summaries.items()})
            write_rows(rows, here / "points")
            write_lineage(LocalPlace(here), with_points(self.lineage, plan, summaries))
        commit(self.out)
        return self.out


def finished_points(out: RemotePlace) -> list[str]:
    """The names of the points of a sweep whose results are there."""
    parts = [one.name.split("/") for one in (out / RUNS).files()]
    return [part[0] for part in parts if part[1:] == [SUMMARY_FILE]]
