"""The report of what was crunched, in the form of that of a single run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

from gossamer.sim.results.report import page_html, plots_html, table_html
from gossamer.sim.study.plot import Plot
from gossamer.spark.crunch.claims import CheckedClaim
from gossamer.spark.crunch.crunching import Crunched
from gossamer.spark.crunch.curves import condition_text
from gossamer.spark.crunch.kept_runs import better_of, known_measures

# Rows of a table on the page; the files have all of them.
_LISTED: Final = 400


def write_page(
    found: Crunched, plots: Sequence[Plot], file: Path, not_drawn: Sequence[str] = ()
) -> None:
    """Write the report of ``found`` to ``file``; ``not_drawn`` says what no plot shows."""
    seeds = {one.seed for one in found.values}
    systems = sorted({one.system for one in found.values})
    facts = f"{found.runs:,} runs of {', '.join(map(escape, systems))}; {len(seeds):,} seeds"
    notes = "".join(f"<li>{escape(note)}</li>" for note in (*found.notes, *not_drawn))
    parts = [
        f"<ul>{notes}</ul>" if notes else "",
        "<h2>Plots</h2>",
        plots_html(plots),
        *(_claim_section(one) for one in found.checked),
        "<h2>Measures</h2>",
        _intervals(found),
        "<h2>Systems compared</h2>",
        _comparisons(found),
    ]
    file.write_text(page_html("Results crunched", facts, parts), encoding="utf-8")


def _claim_section(checked: CheckedClaim) -> str:
    rows = [
        _row(
            check.name,
            check.formatted(check.value),
            "-" if math.isnan(low) else f"{check.formatted(low)} to {check.formatted(high)}",
            check.paper,
            check.bounds(),
            "holds" if check.holds else "differs",
        )
        for check, low, high in checked.rows()
    ]
    titles = ("check", "measured", "95 % interval", "paper", "accepted", "")
    claim = checked.claim
    told = f"<p>{escape(claim.claim)}</p><p>{escape(claim.reason)}.</p>"
    return f"<h2>{claim.id} {claim.verdict}</h2>{told}{_table(titles, rows)}"


def label_of(measure: str) -> str:
    """The name of a measure for people."""
    known = known_measures().get(measure)
    return known.label if known else measure.replace("_", " ")


def value_text(measure: str, value: float) -> str:
    """A value as people read it; a dash where there is none."""
    if math.isnan(value):
        return "-"
    known = known_measures().get(measure)
    if known:
        return known.format(value)
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"


def _intervals(found: Crunched) -> str:
    rows = [
        _row(
            condition_text(one.condition),
            one.system,
            label_of(one.measure),
            one.seeds,
            value_text(one.measure, one.mean),
            f"{value_text(one.measure, one.low)} to {value_text(one.measure, one.high)}",
        )
        for one in found.intervals[:_LISTED]
    ]
    return _table(("condition", "system", "measure", "seeds", "mean", "95 % interval"), rows) + (
        _more(len(found.intervals), "intervals.csv")
    )


def _comparisons(found: Crunched) -> str:
    known = known_measures()
    rows = [
        _row(
            condition_text(one.condition),
            f"{one.second} less {one.first}",
            label_of(one.measure),
            better_of(known.get(one.measure)),
            one.seeds,
            f"{one.difference:,.4g}",
            f"{one.low:,.4g} to {one.high:,.4g}" if not math.isnan(one.low) else "-",
            f"{one.hedges_g:,.2f}" if not math.isnan(one.hedges_g) else "-",
            f"{one.cliffs_delta:,.2f}",
        )
        for one in found.comparisons[:_LISTED]
    ]
    titles = (
        "condition",
        "systems",
        "measure",
        "better",
        "seeds",
        "difference",
        "95 % interval",
        "Hedges' g",
        "Cliff's delta",
    )
    return _table(titles, rows) + _more(len(found.comparisons), "comparisons.csv")


def _table(titles: Sequence[str], rows: Sequence[str]) -> str:
    return table_html("".join(f"<th>{escape(title)}</th>" for title in titles), rows)


def _row(*cells: Any) -> str:
    return "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in cells) + "</tr>"


def _more(count: int, file: str) -> str:
    if count <= _LISTED:
        return ""
    return f"<p>The first {_LISTED} of {count:,} rows; {file} has all.</p>"
