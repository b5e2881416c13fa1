"""What the commands print: short tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.markup import escape

from gossamer.command.tables import FittingTable
from gossamer.spark.shipping.packing import ENVIRONMENT_FILE, ZIP_FILE

if TYPE_CHECKING:
    import pyarrow as pa

    from gossamer.spark.crunch.claims import CheckedClaim
    from gossamer.spark.crunch.crunching import Crunched
    from gossamer.spark.shipping.packing import Package
    from gossamer.spark.workload.writing import Written


# Rows of intervals that are printed; the folder has all.
_PRINTED: Final = 40
_BRIEF: Final = (
    "hit_ratio",
    "traffic_overhead",
    "path_length_mean",
    "load_p99",
    "load_gini",
    "routing_table_entries_mean",
    "table_entries_mean",
    "delay_mean_s",
    "queue_max",
)


def print_workload(written: Written) -> None:
    """The rows of each table, and the checks."""
    console = Console()
    sizes = FittingTable("table")
    sizes.add_numbers("rows")
    for name, rows in written.rows.items():
        sizes.add_row(escape(name), f"{rows:,}")
    console.print(sizes)
    checks = FittingTable("check")
    checks.add_numbers("wanted", "found", "may differ by")
    checks.add_column()
    for check in written.checks:
        style, verdict = ("green", "holds") if check.holds else ("red", "differs")
        found = "too few rows" if math.isnan(check.found) else f"{check.found:,.6g}"
        tolerance = f"{check.tolerance:,.2g}" if check.tolerance else ""
        checks.add_row(
            escape(check.name), f"{check.wanted:,.6g}", found, tolerance, f"[{style}]{verdict}[/]"
        )
    console.print(checks)
    _print_place(console, "Workload", written.folder)


def print_crunched(found: Crunched) -> None:
    """The measures that matter most, with their intervals."""
    from gossamer.spark.crunch.curves import condition_text
    from gossamer.spark.crunch.page import label_of, value_text

    console = Console()
    table = FittingTable("condition", "system", "measure")
    table.add_numbers("seeds", "mean", "95 % interval")
    brief = [one for one in found.intervals if one.measure in _BRIEF]
    chosen = brief or found.intervals
    for one in chosen[:_PRINTED]:
        ends = [value_text(one.measure, end) for end in (one.low, one.high)]
        table.add_row(
            escape(condition_text(one.condition)),
            escape(one.system),
            label_of(one.measure),
            f"{one.seeds}",
            value_text(one.measure, one.mean),
            "-" if math.isnan(one.low) else " to ".join(ends),
        )
    console.print(table)
    if len(chosen) > _PRINTED:
        console.print(f"and {len(chosen) - _PRINTED:,} more rows in intervals.csv")
    for checked in found.checked:
        _print_checked(console, checked)
    for note in found.notes:
        console.print(note, markup=False)
    _print_place(console, "Crunched", found.folder)


def _print_checked(console: Console, checked: CheckedClaim) -> None:
    """A claim, what was measured of it with intervals, and the verdict."""
    claim = checked.claim
    table = FittingTable("check", title=claim.id)
    table.add_numbers("measured", "95 % interval")
    for heading in ("paper", "accepted", ""):
        table.add_column(heading)
    for check, low, high in checked.rows():
        ends = "-" if math.isnan(low) else f"{check.formatted(low)} to {check.formatted(high)}"
        style, verdict = ("green", "holds") if check.holds else ("red", "differs")
        table.add_row(
            escape(check.name),
            check.formatted(check.value),
            ends,
            escape(check.paper),
            check.bounds(),
            f"[{style}]{verdict}[/]",
        )
    console.print(claim.claim, markup=False)
    console.print(table)
    seeds = f"{checked.seeds} seeds" if checked.seeds > 1 else "one seed"
    sentence = f"{claim.id} {claim.verdict}, over {seeds}: {claim.reason}."
    console.print(sentence, markup=False, highlight=False)


def print_package(made: Package) -> None:
    """What was packed, and how executors get it."""
    console = Console()
    named = ", ".join(f"{name} {version}" for name, version in made.distributions)
    console.print(f"The environment has gossamer, {named}.", markup=False, highlight=False)
    console.print(f"It is for Python {made.python} on {made.machine}. Executors get it by")
    words = [
        f"    --archives {made.folder / ENVIRONMENT_FILE}#environment",
        "    --conf spark.pyspark.python=./environment/bin/python",
        f"or, where they have all but gossamer, by\n    --py-files {made.folder / ZIP_FILE}",
        f"or in an image from apache/spark:{version('pyspark')}-python3",
    ]
    console.print("\n".join(words), highlight=False, soft_wrap=True, markup=False)


def _print_place(console: Console, what: str, folder: object) -> None:
    console.print(f"{what}: {folder}", highlight=False, soft_wrap=True, markup=False)


# Lineage on the terminal: what a folder was made from stands below it, further to the right.


# Inputs that are listed; `--json` has all.
_LISTED: Final = 20
_SEEDS: Final = 10
_INDENT: Final = "    "


def lineage_lines(name: str, told: Mapping[str, Any]) -> Iterator[str]:
    """What made a folder, and what made that."""
    yield name
    for line in _made_by(told):
        yield _INDENT + line


def _made_by(told: Mapping[str, Any]) -> Iterator[str]:
    yield from _command(told)
    for one in reversed(told.get("earlier", [])):
        yield "appended to what was made by"
        for line in _command(one):
            yield _INDENT + line
    seeds = told["seeds"]
    if seeds:
        more = f" and {len(seeds) - _SEEDS} more" if len(seeds) > _SEEDS else ""
        yield f"seeds: {', '.join(map(str, seeds[:_SEEDS]))}{more}"
    for one in told["inputs"][:_LISTED]:
        seed = f", seed {one['seed']}" if "seed" in one else ""
        yield f"from {one['place']}{seed}, sha256 {one['sha256'][:12]}"
        if "versions" in one:
            yield _INDENT + _versions(one["versions"])
        if "lineage" in one:
            for line in _made_by(one["lineage"]):
                yield _INDENT + line
    left = len(told["inputs"]) - _LISTED
    if left > 0:
        yield f"and from {left:,} more (--json lists all)"


def _command(told: Mapping[str, Any]) -> Iterator[str]:
    command = told.get("command")
    if command:
        options = (f"{key}={value}" for key, value in command["options"].items())
        yield f"command: {command['name']} {' '.join(options)}"
    yield _versions(told["versions"])


def _versions(versions: Mapping[str, str]) -> str:
    return "versions: " + ", ".join(f"{key} {value}" for key, value in versions.items())


# Windows of a stream on the terminal.


# Windows that are printed, the newest; the folder has all.
_WINDOWS_PRINTED: Final = 20


def print_windows(windows: pa.Table | None, folder: str) -> None:
    """The newest windows, and where all are."""
    console = Console()
    table = FittingTable("window", "subscriber")
    table.add_numbers("due", "made", "hit ratio", "a second", "p50", "p99")
    rows = (
        []
        if windows is None
        else windows.slice(max(len(windows) - _WINDOWS_PRINTED, 0)).to_pylist()
    )
    for row in rows:
        table.add_row(
            f"{row['begin']:%Y-%m-%d %H:%M:%S}",
            escape(row["subscriber"]),
            "-" if row["due"] is None else f"{row['due']:,}",
            f"{row['delivered']:,}",
            "-" if row["hit_ratio"] is None else f"{row['hit_ratio']:.2%}",
            f"{row['rate_per_s']:,.3g}",
            *(_milliseconds(row[f"latency_p{one}_s"]) for one in (50, 99)),
        )
    console.print(table)
    console.print(f"Windows: {folder}", highlight=False, soft_wrap=True, markup=False)


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e3:,.3g} ms"
