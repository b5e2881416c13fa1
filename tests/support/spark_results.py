"""Results crunched by Spark in a test's session."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gossamer.sim.results.storage.place import Place
from gossamer.spark.crunch.crunching import Crunched, crunch_results
from gossamer.spark.crunch.folders import find_runs


def crunch(
    session: Any, results: Path | Place | Sequence[Path | Place], out: Path | Place, **options: Any
) -> Crunched:
    """Crunch folders of results, exactly and without plots unless something else is asked for."""
    places = [*results] if isinstance(results, Sequence) else [results]
    given = {"plots": False, "exact_up_to": 10**9, **options}
    return crunch_results(session, find_runs(places), out, **given)
