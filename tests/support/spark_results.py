"""What Spark made of results and streams."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gossamer.sim.results.storage.place import LocalPlace, Place
from gossamer.spark.crunch.crunching import Crunched, crunch_results
from gossamer.spark.crunch.folders import find_runs
from gossamer.spark.stream.following import windows_of


def crunch(
    session: Any, results: Path | Place | Sequence[Path | Place], out: Path | Place, **options: Any
) -> Crunched:
    """Crunch folders of results, exactly and without plots unless something else is asked for."""
    places = [*results] if isinstance(results, Sequence) else [results]
    given = {"plots": False, "exact_up_to": 10**9, **options}
    return crunch_results(session, find_runs(places), out, **given)


def windows_in(out: Path, since: int = 0) -> dict[tuple[int, str], dict[str, Any]]:
    """The windows of a stream by when they begin, in seconds since a time, and subscriber."""
    table = windows_of(LocalPlace(out))
    assert table is not None
    return {
        (round(row["begin"].timestamp()) - since, row["subscriber"]): row
        for row in table.to_pylist()
    }
