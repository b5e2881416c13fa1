"""Sweep files from any storage: fetched with the scenarios that they name."""

from __future__ import annotations

import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gossamer.protocol.content.encodings import decoded
from gossamer.sim.results.storage.place import Place, PlaceError
from gossamer.sim.results.storage.remote import RemotePlace
from gossamer.sim.results.sweeps.plan import SCENARIO, SweepPlan, read_sweep
from gossamer.spark.storage.folders import local_of


def read_sweep_at(place: Place) -> SweepPlan:
    """Read a sweep file, and check every point of it.

    Raises:
        ScenarioError: as `read_sweep`.
        PlaceError: the storage fails, or the file or a scenario of it is not there.
    """
    if not isinstance(place, RemotePlace):
        return read_sweep(local_of(place))
    with _fetched_with_scenarios(place) as file:
        return read_sweep(file)


@contextmanager
def _fetched_with_scenarios(place: RemotePlace) -> Iterator[Path]:
    """The files on this machine, in the places to each other that they have there."""
    with tempfile.TemporaryDirectory(prefix="gossamer-sweep-") as folder:
        file = Path(folder) / place.name
        file.write_bytes(_content(place))
        for name in _scenarios(file):
            copy = Path(folder) / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(_content(place.beside(name)))
        yield file


def _content(place: RemotePlace) -> bytes:
    try:
        return place.read_bytes()
    except FileNotFoundError:
        raise PlaceError(place, "does not exist, expected a file") from None


def _scenarios(file: Path) -> list[str]:
    """The scenarios that a sweep file names beside itself; `read_sweep` reports faults in it."""
    try:
        named = tomllib.loads(decoded(file.read_bytes())).get(SCENARIO)
    except ValueError:
        return []
    names = named if isinstance(named, list) else [named]
    return [name for name in names if isinstance(name, str) and _is_beside(name)]


def _is_beside(name: str) -> bool:
    path = Path(name)
    return bool(name) and not path.is_absolute() and ".." not in path.parts
