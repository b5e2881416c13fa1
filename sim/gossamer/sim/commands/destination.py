"""Where a run's results go, and where an unfinished run is kept until they are there.

Beside the result folder OUT, a run in progress holds the folder OUT.unfinished with the scenario
and its checkpoints. Making that folder claims the name, so that two runs started at a time never
work for hours towards the same place.
"""

from __future__ import annotations

import contextlib
import glob
import itertools
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import attrs

from gossamer.sim.errors import ResultsError
from gossamer.sim.results.names import UNFINISHED
from gossamer.sim.results.results import check_destination, check_place
from gossamer.sim.study.registry import named_studies

RESULTS = Path("results")


@attrs.frozen
class Destination:
    """The result folder of a run, and what is kept beside it until the run is finished.

    Attributes:
        out: the result folder.
    """

    out: Path

    @property
    def unfinished(self) -> Path:
        """The folder that holds the run until it is finished."""
        return self.out.with_name(self.out.name + UNFINISHED)

    @property
    def checkpoint(self) -> Path:
        """The folder of its checkpoints."""
        return self.unfinished / "checkpoint"

    @property
    def snapshots(self) -> Path:
        """The folder of its snapshots."""
        return self.unfinished / "snapshots"

    @property
    def scenario(self) -> Path:
        """The scenario as it is being run."""
        return self.unfinished / "scenario.toml"

    @property
    def has_checkpoint(self) -> bool:
        """Whether there is anything to go on from."""
        return self.checkpoint.is_dir() and any(self.checkpoint.glob("*.checkpoint"))

    def check(self) -> None:
        """Refuse what `claim` would, and make nothing; raises `ResultsError`."""
        check_place(self.out)
        if self.unfinished.exists():
            raise self._held()

    def _held(self) -> ResultsError:
        return ResultsError(
            self.unfinished,
            f"holds an unfinished run; go on with it by '{self.resume_command()}', "
            "choose another folder, or move it away",
        )

    def claim(self, text: str) -> None:
        """Take the place for a run of the scenario ``text``.

        Raises:
            ResultsError: results or an unfinished run are there already; they are untouched.
            OSError: the place cannot be written to.
        """
        check_destination(self.out)
        try:
            self.unfinished.mkdir()
        except FileExistsError:
            raise self._held() from None
        try:
            self.scenario.write_text(text, encoding="utf-8")
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Remove what was kept of the run, which is finished or never got to a checkpoint."""
        shutil.rmtree(self.unfinished, ignore_errors=True)

    def remove_empty_parent(self) -> None:
        """Remove the folder of all results where no run has left anything in it."""
        if self.out.parent == RESULTS:
            with contextlib.suppress(OSError):
                RESULTS.rmdir()

    def resume_command(self) -> str:
        """The command that goes on with the unfinished run."""
        named = [word for study in named_studies() for word in ("--study", study)]
        words = ["run", str(self.scenario), "--out", str(self.out), "--resume"]
        return shlex.join(["gossamer", "sim", *named, *words])


def new_destination(out: Path | None, name: str) -> Destination:
    """Where the results of a new run go: ``out``, or a free folder of ``name`` under results."""
    if out is not None:
        return Destination(_plain(out))
    return next(place for place in _numbered(name) if not _taken(place))


def unfinished_destination(out: Path | None, name: str) -> Destination:
    """Where an unfinished run is to be resumed: at ``out``, or the only one of ``name``.

    Raises:
        ResultsError: there is none, or ``out`` is not given and there are several.
    """
    if out is not None:
        place = Destination(_plain(out))
        if not place.unfinished.is_dir():
            raise ResultsError(place.unfinished, "does not exist, expected an unfinished run there")
        return place
    places = _kept(name)
    if not places:
        missing = RESULTS / (name + UNFINISHED)
        raise ResultsError(missing, "does not exist, expected an unfinished run there")
    if len(places) > 1:
        choices = ", ".join(str(place.out) for place in places)
        raise ResultsError(RESULTS, f"has several unfinished runs, expected --out with {choices}")
    return places[0]


def free_folder(name: str) -> Path:
    """A folder of ``name`` under results that does not exist yet."""
    return next(place.out for place in _numbered(name) if not _taken(place))


def _numbered(name: str) -> Iterator[Destination]:
    """``name``, then ``name-2``, ``name-3``, and so on."""
    yield Destination(RESULTS / name)
    for number in itertools.count(2):
        yield Destination(RESULTS / f"{name}-{number}")


def _kept(name: str) -> list[Destination]:
    """The places of ``name`` that hold an unfinished run, in order of their names."""
    folders = RESULTS.glob(f"{glob.escape(name)}*{UNFINISHED}")
    outs = sorted(folder.with_name(folder.name.removesuffix(UNFINISHED)) for folder in folders)
    numbered = re.compile(re.escape(name) + r"(-\d+)?")
    return [Destination(out) for out in outs if numbered.fullmatch(out.name)]


def _taken(place: Destination) -> bool:
    return os.path.lexists(place.out) or os.path.lexists(place.unfinished)


def _plain(out: Path) -> Path:
    """``out`` with a last part that a name can be appended to, even if it is `.` or `..`."""
    return out if out.name not in ("", "..") else out.resolve()
