"""Sweeps in a script or notebook: scenarios in, a DataFrame out."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gossamer.command.extras import install_hint
from gossamer.sim.errors import SimulationError
from gossamer.sim.results.intervals import Value, comparisons, intervals
from gossamer.sim.results.sweeps.folder import POINT, point_rows, summaries_in
from gossamer.sim.results.sweeps.here import sweep_here
from gossamer.sim.results.sweeps.outcome import (
    outcome_row,
    values_of,
    varied_keys,
)
from gossamer.sim.results.sweeps.plan import SEED, SYSTEM, plan_sweep
from gossamer.sim.results.sweeps.scheduling import report_nothing
from gossamer.sim.study.contract import AnyScenario
from gossamer.sim.study.records import usable_cores
from gossamer.sim.study.tasks import Progress

if TYPE_CHECKING:
    import pandas as pd


# The attribute of a table that names what was varied.
_VARIED: Final = "varied"


def sweep(
    scenario: AnyScenario | str | Path,
    *,
    seeds: Iterable[int],
    grid: Mapping[str, Sequence[Any]] | None = None,
    points: Sequence[Mapping[str, Any]] | None = None,
    out: str | Path | None = None,
    processes: int | None = None,
    progress: Progress = report_nothing,
) -> pd.DataFrame:
    """Run a scenario over values and seeds, see `gossamer.sim.commands.scripts.sweep`.

    Args:
        scenario: one, or the path of its file.
        progress: called with the name of the sweep, runs done, and all.
        seeds, grid, points, out, processes: as there, and so are results and errors.
    """
    pandas = _pandas()
    with tempfile.TemporaryDirectory(prefix="gossamer-sweep-") as scratch:
        plan = plan_sweep(scenario, list(seeds), grid=grid, points=points, scratch=Path(scratch))
        place = Path(scratch) / "results" if out is None else Path(out)
        # What is not kept is not drawn either.
        outcome = sweep_here(
            *(plan, place, processes or usable_cores()),
            resume=False,
            progress=progress,
            pictures=out is not None,
        )
        if outcome.failed:
            reasons = "; ".join(outcome.failed.values())
            raise SimulationError(
                f"{len(outcome.failed)} of {outcome.points} runs failed: {reasons}"
            )
        frame = pandas.DataFrame(point_rows(plan, summaries_in(plan, outcome.folder)))
        frame.attrs[_VARIED] = varied_keys(plan)
        return frame


def means_of(frame: pd.DataFrame, by: Sequence[str] | None = None) -> pd.DataFrame:
    """Means over the seeds of a table of `sweep`, with their 95 % intervals (Student).

    Args:
        frame: the table.
        by: what was varied: columns of the table; those of `sweep` if None.

    Returns:
        a row a combination, system and measure: ``seeds``, ``mean``, ``deviation``, ``low`` and
        ``high``.
    """
    return _pandas().DataFrame([outcome_row(one) for one in intervals(_values(frame, by))])


def differences_of(frame: pd.DataFrame, by: Sequence[str] | None = None) -> pd.DataFrame:
    """Paired differences between the systems of a table of `sweep`, seed by seed.

    Systems that run with one seed meet the same population, workload and churn, so that these
    intervals are narrower than those of the means suggest.

    Args:
        frame: the table.
        by: what was varied: columns of the table; those of `sweep` if None.

    Returns:
        a row a combination, measure and pair of systems: ``difference`` is the second's less the
        first's, with ``low`` and ``high``, Hedges' g and Cliff's delta.
    """
    return _pandas().DataFrame([outcome_row(one) for one in comparisons(_values(frame, by))])


def _values(frame: pd.DataFrame, by: Sequence[str] | None) -> list[Value]:
    """The measures of a table; `SimulationError` where ``by`` does not tell its runs apart."""
    varied = list(frame.attrs.get(_VARIED, ()) if by is None else by)
    names = [*varied, POINT, SEED, SYSTEM]
    for name in names:
        if name not in frame.columns:
            shown = ", ".join(map(str, frame.columns[:8]))
            raise SimulationError(f"by is {name!r}, expected columns of the table: {shown}, ...")
    if frame.duplicated([*varied, SEED, SYSTEM]).any():
        raise SimulationError(
            f"by is {varied!r}, expected all that is varied: some runs of one system have the same "
            "seed"
        )
    numbers = [name for name in frame.select_dtypes("number").columns if name not in names]
    rows = frame[[*names, *numbers]].to_dict("records")
    return list(
        values_of(({str(key): value for key, value in row.items()} for row in rows), varied)
    )


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise SimulationError(f"pandas is not installed: {install_hint('notebook')}") from None
    return pandas
