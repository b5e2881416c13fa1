"""The findings as tables in Markdown: `report.md`, from which docs/kindred.md is written."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from gossamer.sim.figures.common.claims import Claim
from gossamer.sim.figures.common.measurements import OVERHEAD, PATH, TREE, Measurements
from gossamer.sim.figures.kindred.bounds import CONTROL, HIT, LOAD, WORST_HOUR
from gossamer.sim.figures.kindred.setup import SYSTEMS
from gossamer.sim.figures.kindred.studies import (
    ABLATION,
    ABLATION_ATTRIBUTES,
    ABLATION_RANGES,
    ABLATION_SILENT,
    BACKWARDS,
    FAST,
    IDEAS,
    MONTH,
    OTHERS,
    SILENT,
)
from gossamer.sim.figures.vinifera.studies import (
    ATTRIBUTES,
    CHURN,
    FRIENDS,
    KINDS,
    RATES,
    SIZES,
)

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


def report_of(found: Measurements, claims: Sequence[Claim]) -> str:
    """All tables that there are measurements for."""
    return "\n".join(_lines(found, claims)) + "\n"


def _lines(found: Measurements, claims: Sequence[Claim]) -> Iterator[str]:
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
