"""`gossamer sim figures rivals`: `kindred` beside overlays of others, workload by workload.

claims.json     verdicts: R1 to R5
checks.json     the numbers and bounds behind them
report.md       a table a measure, means over seeds with 95 % intervals, and where a rival is better
points.parquet  every run: what was varied, and all measures
load.parquet    load of every node
plots/          SVG and PNG

Until all of it is there, the outcomes of runs are kept in ``OUT.unfinished``: the same command goes
on with them.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from matplotlib.figure import Figure

from gossamer.sim.errors import ScenarioError
from gossamer.sim.figures.common.claims import Claim
from gossamer.sim.figures.common.measurements import (
    OVERHEAD,
    PATH,
    Measurements,
    Quantity,
    Row,
    Statement,
    check_claims,
    load_table,
    points_table,
    unit_of,
)
from gossamer.sim.figures.common.points import CHECKOUT, kept_beside, run_kept_points, write_figures
from gossamer.sim.figures.kindred.figures import formatted
from gossamer.sim.figures.kindred.studies import KINDRED
from gossamer.sim.figures.rivals.plots import plot_measures
from gossamer.sim.figures.rivals.studies import (
    BOUND,
    CROWD,
    FULL,
    LEAVING,
    QUICK,
    RIVALS,
    SYSTEMS,
    WORKLOADS,
    Plan,
    plan_points,
)
from gossamer.sim.results.results import check_destination
from gossamer.sim.study.tasks import Progress

HIT, LOAD = "hit_ratio", "load_max"
_CONTROL, _BYTES = "control_messages_per_node_cycle", "bytes_per_node_and_second"
_MOVING: Final = ("turnover", CROWD, LEAVING, "replaced")


class Column(NamedTuple):
    """A table of the report.

    Attributes:
        measure: its name.
        heading: of the table.
        how: how a value is written, see `formatted`.
        more_is_better: whether it is.
    """

    measure: str
    heading: str
    how: str
    more_is_better: bool = False


TABLES: Final = (
    Column(HIT, "Hit ratio", "%%", more_is_better=True),
    Column(OVERHEAD, "Traffic overhead", "%"),
    Column(PATH, "Hops", ".2f"),
    Column(LOAD, "Load of the busiest node", "%"),
    Column("load_p95", "Load, 95th percentile of nodes", "%"),
    Column("messages_per_event", "Copies of an event", ".1f"),
    Column(_CONTROL, "Control messages a node and round", ".2f"),
    Column(_BYTES, "Bytes a node and second, control and events", ".1f"),
    Column("routing_table_entries_max", "Largest routing table", ".0f"),
)


class Place(NamedTuple):
    """A workload with a kind of subscriptions."""

    study: str
    kind: str
    label: str
    x: float


def places(found: Measurements) -> list[Place]:
    """All that were run, in order."""
    return [
        Place(
            other.study,
            kind,
            f"{other.label}, {kind}" if len(other.kinds) > 1 else other.label,
            float(other.places[0]),
        )
        for other in WORKLOADS
        for kind in other.kinds
        if found.has(other.study)
    ]


def value(found: Measurements, measure: str, system: str, place: Place) -> float:
    """Mean over seeds; of the bound that of its own measure."""
    if system == BOUND:
        least = {PATH: "bound_hops"}.get(measure)
        if least is None:
            return 0.0 if measure == OVERHEAD else math.nan
        return found.value(least, place.study, KINDRED, place.kind, place.x)
    return found.value(measure, place.study, system, place.kind, place.x)


def report_of(found: Measurements, claims: Sequence[Claim]) -> Iterator[str]:
    """The lines of `report.md`."""
    yield from ("## What is held", "")
    for claim in claims:
        yield f"- **{claim.id}** {claim.verdict}: {claim.claim} {claim.measured}."
    yield ""
    for table in TABLES:
        yield from (f"## {table.heading}", "")
        yield from _table(found, table)
        yield ""
    yield from ("## Where a rival is better", "", *_better(found), "")


def _table(found: Measurements, table: Column) -> Iterator[str]:
    systems = [*SYSTEMS, *((BOUND,) if table.measure in (PATH, OVERHEAD) else ())]
    yield "| workload | " + " | ".join(systems) + " |"
    yield "|" + "---|" * (len(systems) + 1)
    for place in places(found):
        cells = [_cell(found, table, system, place) for system in systems]
        if any(cell != "-" for cell in cells):
            yield f"| {place.label} | " + " | ".join(cells) + " |"


def _cell(found: Measurements, table: Column, system: str, place: Place) -> str:
    mean = value(found, table.measure, system, place)
    text = formatted(mean, table.how)
    if system == BOUND or not math.isfinite(mean):
        return text
    at = (place.study, system, place.kind, place.x)
    half = found.half_interval(table.measure, *at)
    if math.isfinite(half) and half > 0:
        unit = " %" if "%" in table.how else ""
        scale, digits = (100, 2) if unit else (1, 2)
        text = f"{text.removesuffix(unit)} ± {scale * half:.{digits}g}{unit}"
    return f"**{text}**" if system in _best(found, table, place) else text


def _best(found: Measurements, table: Column, place: Place) -> set[str]:
    """Which systems have the best value; none where all have the same."""
    values = {system: value(found, table.measure, system, place) for system in SYSTEMS}
    known = {name: one for name, one in values.items() if math.isfinite(one)}
    if not known or len(set(known.values())) == 1:
        return set()
    best = max(known.values()) if table.more_is_better else min(known.values())
    return {name for name, one in known.items() if one == best}


def _better(found: Measurements) -> Iterator[str]:
    yield "| measure | workload | kindred | best |"
    yield "|---|---|---|---|"
    for table in TABLES:
        for place in places(found):
            best = _best(found, table, place)
            if best and KINDRED not in best:
                own = formatted(value(found, table.measure, KINDRED, place), table.how)
                winner = min(best)
                other = formatted(value(found, table.measure, winner, place), table.how)
                yield f"| {table.heading} | {place.label} | {own} | {winner} {other} |"


def _worst(measure: str, system: str, take: str, moving: bool) -> Quantity:
    """The greatest or least value of a system over workloads that move, or over the others."""

    def of(found: Measurements) -> float:
        chosen = [place for place in places(found) if (place.study in _MOVING) is moving]
        values = [value(found, measure, system, place) for place in chosen]
        return max(values) if take == "most" else min(values)

    return Quantity(of, unit_of(measure))


def _over_best(measure: str, rivals: Sequence[str]) -> Quantity:
    """Of `kindred` over the best of these, where that is worst for it."""

    def of(found: Measurements) -> float:
        ratios = []
        for place in places(found):
            own = value(found, measure, KINDRED, place)
            best = min(value(found, measure, system, place) for system in rivals)
            ratios.append(own / best if best else math.inf if own else 1.0)
        return max(ratios)

    return Quantity(of, "ratio")


CLAIMS: Final = (
    Statement(
        "R1",
        "Nothing is lost where nobody comes or goes.",
        [
            Row(f"least hit ratio of {name}", _worst(HIT, name, "least", False), low=0.999)
            for name in SYSTEMS
        ],
    ),
    Statement(
        "R2",
        "`kindred` delivers while nodes come, go, fail and change their minds.",
        [Row("least hit ratio", _worst(HIT, KINDRED, "least", True), low=0.99)],
    ),
    Statement(
        "R3",
        "No rival brings a node less of what it does not want.",
        [Row("overhead over that of the best rival", _over_best(OVERHEAD, [*RIVALS]), high=1.0)],
    ),
    Statement(
        "R4",
        "The busiest node has less to do than in any rival.",
        [Row("load over that in the best rival", _over_best(LOAD, [*RIVALS]), high=1.0)],
    ),
    Statement(
        "R5",
        "Deliveries take few hops more than any routing over as many links needs.",
        [Row("hops over the bound", _over_best(PATH, [BOUND]), high=4.0)],
    ),
)


def reproduce_rivals(
    out: Path,
    *,
    quick: bool,
    processes: int,
    progress: Progress | None = None,
    plan: Plan | None = None,
) -> list[Claim]:
    """Run everything, check R1 to R5, write ``out`` whole.

    Args:
        out: the new folder; on any error it is not made, and what has been run is kept beside it.
        quick: a tenth of the nodes and events, and one seed.
        processes: points that run at a time.
        progress: called with "figures", points done and points in all.
        plan: how much is run, in place of what ``quick`` says.

    Raises:
        ResultsError: ``out`` is taken.
        ScenarioError: there are no rivals, or what is kept beside ``out`` is of other sources.
        SimulationError: a run failed.
        OSError: the disk is full or not writable.
    """
    out = Path(out)
    check_destination(out)
    rivals = CHECKOUT / "examples" / "rivals"
    if not rivals.is_dir():
        expected = "a checkout of gossamer, whose examples have the rivals"
        raise ScenarioError(None, "figures", "rivals", expected)
    kept = kept_beside(out)
    points = plan_points(plan or (QUICK if quick else FULL), kept)
    outcomes = run_kept_points(points, processes, kept, progress)
    found = Measurements(outcomes)
    claims = check_claims(CLAIMS, found)
    tables = {
        "points": points_table(outcomes),
        "load": load_table(outcomes, [other.study for other in WORKLOADS]),
    }
    report = "\n".join(report_of(found, claims)) + "\n"
    write_figures(out, claims, tables, lambda: _plots(found), readings=False, report=report)
    shutil.rmtree(kept, ignore_errors=True)
    return claims


def _plots(found: Measurements) -> Iterator[tuple[str, Figure]]:
    at = places(found)
    yield "costs", plot_measures(found, at, (OVERHEAD, PATH, LOAD))
    yield "control", plot_measures(found, at, (HIT, _CONTROL, _BYTES))
