"""Where the results of a sweep are kept, whoever runs its points; a folder of this machine."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Generic, TypeVar

import attrs

from gossamer.sim.results.held import held
from gossamer.sim.results.names import UNFINISHED
from gossamer.sim.results.results import rename_to_free, scratch_folder
from gossamer.sim.results.sweeps.folder import RUNS, claim, write_points
from gossamer.sim.results.sweeps.plan import Point, SweepPlan

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
        """Keep every other process from working on the sweep."""
        return held(self.out)

    def claim(self, plan: SweepPlan, resume: bool) -> None:
        """Begin the sweep, or check that the one that was begun is of this plan."""
        claim(plan, self.unfinished(), resume)

    def finished(self) -> Collection[str]:
        """The names of points whose results are there."""
        return [one.name for one in (self.unfinished() / RUNS).iterdir() if one.is_dir()]

    def keep(self, point: Point, run: RunPoint) -> None:
        """Run a point in a folder beside the one that it is to have, and rename that."""
        place = self.unfinished() / RUNS / point.name
        with scratch_folder(place) as folder:
            rename_to_free(run(point, folder, self.unfinished().absolute()), place)

    def give_up(self) -> None:
        """Remove the folder where no point is finished."""
        if not any((self.unfinished() / RUNS).iterdir()):
            shutil.rmtree(self.unfinished(), ignore_errors=True)

    def unfinished(self) -> Path:
        """Where finished points are while others are not."""
        return self.out.with_name(self.out.name + UNFINISHED)

    def complete(self, plan: SweepPlan) -> Path:
        """Write what is told by all points, and rename the whole."""
        self.finish(plan, self.unfinished())
        self.unfinished().rename(self.out)
        return self.out
