"""`gossamer sim figures kindred`: V1 to V10 with `kindred` beside the others, and our own bounds.

claims.json     verdicts: V1 to V10 with `kindred` in Vinifera's place, and K1 to K12
checks.json     the numbers and bounds behind them
report.md       the same as tables, with the growth, the ablation and the other workloads
points.parquet  every run: what was varied, and all measures
load.parquet    load of every node, at the standard size and with several attributes
hours.parquet   the runs under churn, hour by hour
plots/          SVG and PNG

Until all of it is there, the outcomes of runs are kept in ``OUT.unfinished``: the same command goes
on with them.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import attrs

from gossamer.sim.figures.common.claims import Claim
from gossamer.sim.figures.common.measurements import (
    OVERHEAD,
    PATH,
    TREE,
    Measurements,
    check_claims,
    hours_table,
    load_table,
    points_table,
)
from gossamer.sim.figures.common.points import CHECKOUT, kept_beside, run_kept_points, write_figures
from gossamer.sim.figures.kindred.bounds import CONTROL, HIT, LOAD, WORST_HOUR, check_bounds
from gossamer.sim.figures.kindred.plots import draw
from gossamer.sim.figures.kindred.promises import promises
from gossamer.sim.figures.kindred.studies import (
    ABLATION,
    ABLATION_ATTRIBUTES,
    ABLATION_RANGES,
    ABLATION_SILENT,
    BACKWARDS,
    FAST,
    FULL,
    IDEAS,
    MONTH,
    OTHERS,
    QUICK,
    SILENT,
    SYSTEMS,
    Data,
    Plan,
    plan_points,
)
from gossamer.sim.figures.vinifera.studies import (
    ATTRIBUTES,
    CHURN,
    FRIENDS,
    KINDS,
    RATES,
    REAL_TRACE,
    SIZES,
    find_trace,
)
from gossamer.sim.figures.vinifera.studies import FULL as PAPER_FULL
from gossamer.sim.results.results import check_destination
from gossamer.sim.studies.peers.inputs.scenario import Churn
from gossamer.sim.study.tasks import Progress

# Columns of tables: the measure, its heading, and how its values are written.
_Columns = Sequence[tuple[str, str, str]]
_COST: Final[_Columns] = (
    (OVERHEAD, "overhead", "%"),
    (PATH, "hops", ".1f"),
    (TREE, "depth", ".1f"),
)
_COSTS: Final[_Columns] = (
    *_COST,
    (LOAD, "busiest", "%"),
    (CONTROL, "control", ".1f"),
    ("routing_table_entries_max", "largest table", ".0f"),
    ("in_degree_max", "most links to a node", ".0f"),
    (HIT, "hit ratio", "%%"),
)
_UNDER_CHURN: Final[_Columns] = (
    (HIT, "hit ratio", "%%"),
    (WORST_HOUR, "worst hour", "%%"),
    *_COST,
    (LOAD, "busiest", "%"),
    (CONTROL, "control", ".1f"),
)
# What varies in a study, with the heading of its values of x.
_BESIDE_EACH_OTHER: Final = (
    ("Friends (V1, V2)", FRIENDS, "friends", _COST),
    ("Growth (V3, V4)", SIZES, "nodes", _COSTS),
    ("Attributes (V5, V6)", ATTRIBUTES, "attributes", _COSTS),
    ("Congestion (V7)", RATES, "rate (X)", ((HIT, "hit ratio", "%"),)),
    ("Churn (V8 to V10)", CHURN, "", _UNDER_CHURN),
    ("The month", MONTH, "", _UNDER_CHURN),
    ("Four times as fast", FAST, "", _UNDER_CHURN),
    ("Backwards", BACKWARDS, "", _UNDER_CHURN),
    ("Failures noticed by silence alone", SILENT, "", _UNDER_CHURN),
)


def report_of(found: Measurements, claims: Sequence[Claim]) -> Iterator[str]:
    """The lines of `report.md`: all tables that there are measurements for."""
    yield from _titled("Verdicts", _verdicts(claims))
    for title, study, varied, columns in _BESIDE_EACH_OTHER:
        if found.has(study):
            yield from _titled(title, _study(found, study, varied, columns))
    yield from _titled("What each idea brings", _ablation(found))
    yield from _titled("Other workloads", _others(found))


def _titled(title: str, table: Iterable[str]) -> Iterator[str]:
    yield from (f"## {title}", "", *table, "")


def _verdicts(claims: Sequence[Claim]) -> Iterator[str]:
    yield from _head("id", "verdict", "check", "measured", "accepted", "")
    for claim in claims:
        first = (claim.id, claim.verdict)
        if claim.skipped:
            yield _row(*first, claim.skipped, "", "", "")
        for check in claim.checks:
            mark = "✓" if check.holds else ""
            values = (check.name, check.formatted(check.value), check.bounds(), mark)
            yield _row(*first, *values)
            first = ("", "")


def _study(found: Measurements, study: str, varied: str, columns: _Columns) -> Iterator[str]:
    yield from _head("subscriptions", varied, "system", *(heading for _, heading, _ in columns))
    for kind in KINDS:
        places = sorted({x for system in SYSTEMS for x in found.places(study, system, kind)})
        for x in places:
            for system in SYSTEMS:
                if found.select(study, system, kind, x):
                    value = f"{x:,g}" if x < 10_000 else f"{x:,.0f}"
                    values = _values(found, study, system, kind, x, columns)
                    yield _row(kind, value if varied else "", system, *values)


def _ablation(found: Measurements) -> Iterator[str]:
    columns = (
        *_COST,
        (LOAD, "busiest", "%"),
        (CONTROL, "control", ".1f"),
        (HIT, "hit ratio", "%%"),
    )
    yield from _head("set-up", "without", "subscriptions", *(heading for _, heading, _ in columns))
    for title, study, x in (
        ("one range a node", ABLATION, 0.0),
        ("three ranges a node", ABLATION_RANGES, 3.0),
        ("three attributes", ABLATION_ATTRIBUTES, 3.0),
        ("silent failures", SILENT, 0.0),
        ("silent failures", ABLATION_SILENT, 0.0),
    ):
        for system, idea in IDEAS.items():
            for kind in KINDS:
                if found.select(study, system, kind, x):
                    yield _row(title, idea, kind, *_values(found, study, system, kind, x, columns))


def _others(found: Measurements) -> Iterator[str]:
    yield from _head("workload", "subscriptions", "system", *(heading for _, heading, _ in _COSTS))
    for other in OTHERS:
        for x in other.places:
            for kind in other.kinds:
                for system in SYSTEMS:
                    if found.select(other.study, system, kind, x):
                        values = _values(found, other.study, system, kind, x, _COSTS, between=True)
                        yield _row(other.label.format(x=x), kind, system, *values)


def _values(
    found: Measurements,
    study: str,
    system: str,
    kind: str,
    x: float,
    columns: _Columns,
    *,
    between: bool = False,
) -> list[str]:
    """Means over seeds; ``between`` gives the lowest and the highest of them, too."""
    values = []
    for measure, _, how in columns:
        value = formatted(found.value(measure, study, system, kind, x), how)
        seen = found.values(measure, study, system, kind, x)
        if between and min(seen) < max(seen):
            ends = "-".join(
                formatted(end, how).removesuffix(" %") for end in (min(seen), max(seen))
            )
            value = f"{value} ({ends})"
        values.append(value)
    return values


def formatted(value: float, how: str) -> str:
    """A value of a table: "%" in per cent, "%%" with as many digits as it takes to see what lacks.

    NaN, of which there was nothing to measure, is a dash.
    """
    if not math.isfinite(value):
        return "-"
    if how == "%":
        return f"{100 * value:.1f} %"
    if how == "%%":
        lacking = 100 * (1 - value)
        digits = 2 if lacking <= 0 else min(6, max(1, 1 - math.floor(math.log10(lacking) + 1e-9)))
        return "100 %" if lacking <= 0 else f"{100 * value:.{digits}f} %"
    return format(value, "," + how)


def _head(*cells: str) -> Iterator[str]:
    yield _row(*cells)
    yield "|" + "---|" * len(cells)


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def reproduce_kindred(
    out: Path,
    *,
    quick: bool,
    processes: int,
    progress: Progress | None = None,
    checkout: Path = CHECKOUT,
    plan: Plan | None = None,
) -> list[Claim]:
    """Run everything, check V1 to V10 and K1 to K12, write ``out`` whole.

    Args:
        out: the new folder; on any error it is not made, and what has been run is kept beside it.
        quick: a fraction of the sizes, one seed, and no month of churn.
        processes: points that run at a time.
        progress: called with "figures", points done and points in all.
        checkout: where the bundled traces are, and beside it ``shared/data``.
        plan: how much is run, in place of what ``quick`` says.

    Raises:
        ResultsError: ``out`` is taken.
        ScenarioError: there is no churn trace, or what is kept beside ``out`` is of other sources.
        SimulationError: a run failed.
        OSError: the disk is full or not writable.
    """
    out = Path(out)
    check_destination(out)
    chosen = plan or (QUICK if quick else FULL)
    data = find_data(chosen, checkout)
    kept = kept_beside(out)
    outcomes = run_kept_points(plan_points(chosen, data), processes, kept, progress)
    found = Measurements(outcomes)
    claims = [
        *check_claims(promises(data), found),
        *check_bounds(found, real_trace=data.real is not None),
    ]
    tables = {
        "points": points_table(outcomes),
        "load": load_table(outcomes, (SIZES, ATTRIBUTES)),
        "hours": hours_table(outcomes, _first_hours(chosen, data)),
    }
    report = "\n".join(report_of(found, claims)) + "\n"
    write_figures(out, claims, tables, lambda: draw(found, data), readings=False, report=report)
    shutil.rmtree(kept, ignore_errors=True)
    return claims


def find_data(plan: Plan, checkout: Path) -> Data:
    """The traces that are there; raises `ScenarioError` where there is none at all."""
    asked = attrs.evolve(PAPER_FULL, churn_hours=plan.churn_hours, bundled_hours=plan.bundled_hours)
    trace = find_trace(asked, checkout)
    is_real = trace.churn.trace.name == REAL_TRACE
    return Data(trace=trace, real=Churn(trace=trace.churn.trace) if is_real else None)


def _first_hours(plan: Plan, data: Data) -> dict[str, float]:
    """The hour of the trace at which each study under churn begins."""
    begins = dict.fromkeys((MONTH, FAST, BACKWARDS), 0.0)
    silent = 0.0 if plan.silence is None else plan.silence[0]
    return {**begins, CHURN: data.trace.first_hour, SILENT: silent}
