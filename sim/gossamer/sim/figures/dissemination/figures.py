"""`gossamer sim figures trees`: the paper on content-aware trees, T1 to T7.

claims.json       verdicts, see `gossamer.sim.figures.common.claims`
checks.json       the numbers and bounds behind them
readings.md       both readings of every claim side by side
costs.parquet     one row a strategy and run: what was varied, trees, cost, duplicates, time
mergers.parquet   cost of the sampled documents after every merger (Fig. 6)
states.parquet    cost and duplicates of all documents by number of trees (Fig. 7)
plots/            fig4 to fig8 like the paper's; fig5_graphs other graphs, real the real networks
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gossamer.sim.figures.common.claims import (
    ALTERNATIVE,
    LITERAL,
    Claim,
    side_by_side,
)
from gossamer.sim.figures.common.experiments import CHECKOUT, write_figures
from gossamer.sim.figures.common.rows import check_claims
from gossamer.sim.figures.dissemination.claims import READ_OTHERWISE, T1
from gossamer.sim.figures.dissemination.plots import Outcomes, draw
from gossamer.sim.figures.dissemination.studies import (
    CONTRADICTIONS,
    FULL,
    QUICK,
    READINGS,
    RunResult,
    find_networks,
    plan_runs,
)
from gossamer.sim.results.results import check_destination
from gossamer.sim.study.tasks import Progress, run_tasks


def reproduce_trees(
    out: Path,
    *,
    quick: bool,
    processes: int,
    progress: Progress | None = None,
    checkout: Path = CHECKOUT,
) -> list[Claim]:
    """Run everything behind Fig. 4 to 8 (Sec. VII), judge T1 to T7, write ``out`` whole.

    Takes and raises what `reproduce_vinifera` does, but needs no trace.
    ``quick`` runs small graphs and few documents.
    Beside ``checkout``, ``shared/data/topologies`` may hold files of real networks.
    """
    check_destination(out)
    runs = plan_runs(QUICK if quick else FULL, find_networks(checkout))
    outcomes = run_tasks(runs, processes, progress)
    found = Outcomes.of(outcomes)
    claims = _checked(outcomes)
    tables = {
        "costs": found.table(),
        "mergers": found.mergers_table(),
        "states": found.states_table(),
    }
    write_figures(out, claims, tables, lambda: draw(Outcomes.of(outcomes, LITERAL)))
    return claims


def _checked(outcomes: Sequence[Sequence[RunResult]]) -> list[Claim]:
    literal, alternative = (Outcomes.of(outcomes, reading) for reading in (LITERAL, ALTERNATIVE))
    claims, others = (
        check_claims((T1, *READ_OTHERWISE), literal),
        check_claims(READ_OTHERWISE, alternative),
    )
    return side_by_side(claims, others, READINGS, CONTRADICTIONS)
