"""Figures and benchmarks: registries are asked by name, their findings printed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from rich.console import Console

from gossamer.command.tables import FittingTable
from gossamer.sim.commands.progress import progress_bars
from gossamer.sim.commands.run import free_folder
from gossamer.sim.errors import ScenarioError
from gossamer.sim.results.held import file_name, held
from gossamer.sim.results.results import whole_folder
from gossamer.sim.study.plot import PlotOptions, plots_as

CLAIMS_FILE = "claims.json"


@contextmanager
def elsewhere(runner: str | None, address: str | None) -> Iterator[None]:
    """Let tasks run where a runner has them run; here if None.

    A runner is an entry point of the group ``gossamer.runners``: a context manager that is called
    with the address.

    Raises:
        ScenarioError: there is no runner of that name, or an address for none.
    """
    if runner is None:
        if address is not None:
            raise ScenarioError(None, "--master", address, "--spark with it")
        yield
        return
    found = entry_points(group="gossamer.runners", name=runner)
    if not found:
        expected = "gossamer to be installed, so that what runs tasks elsewhere is found"
        raise ScenarioError(None, f"--{runner}", True, expected)
    with next(iter(found)).load()(address):
        yield


def reproduce(
    name: str, out: Path | None, *, quick: bool, processes: int, plots: PlotOptions | None = None
) -> None:
    """Reproduce the figures of a paper and print which of its claims hold.

    Raises:
        ScenarioError: there are no figures of that name.
        ResultsError: ``out`` is taken.
    """
    # By name when asked for, as benchmarks: no other subcommand needs them.
    figures = import_module("gossamer.sim.figures").FIGURES
    _check_known("figures", [name], figures)
    folder = out if out is not None else free_folder(file_name(f"figures-{name}"))
    with held(folder), plots_as(plots or PlotOptions()), progress_bars("points") as show:
        figures[name](folder, quick=quick, processes=processes, progress=show)
    claims = json.loads((folder / CLAIMS_FILE).read_text(encoding="utf-8"))
    console = Console()
    console.print(claims_table(claims))
    for line in (f"Measured, and why: {folder / CLAIMS_FILE}", f"Figures: {folder}"):
        console.print(line, highlight=False, soft_wrap=True, markup=False)


def claims_table(claims: Sequence[Mapping[str, Any]]) -> FittingTable:
    """The verdicts on the claims of a paper, a line each, and on other readings of them."""
    table = FittingTable("id", "verdict", "claim")
    for claim in claims:
        table.add_row(_plain(claim["id"]), _verdict(claim), _plain(claim["claim"]))
        other = claim.get("alternative")
        if other is not None:
            table.add_row("", _verdict(other), _plain(f"read otherwise: {other['reading']}"))
    return table


def _verdict(claim: Mapping[str, Any]) -> str:
    style = "green" if claim["verdict"] == "holds" else "yellow"
    return f"[{style}]{claim['verdict']}[/]"


def measure_speed(
    names: Sequence[str], sizes: Sequence[int], out: Path | None, *, quick: bool, as_json: bool
) -> None:
    """Run benchmarks (all of them if none is named) and print their rows.

    With ``out`` a new folder gets them too, with a plot of how costs grow.

    Raises:
        ScenarioError: there is no benchmark of a name.
        ResultsError: ``out`` is taken.
    """
    benchmarks = import_module("gossamer.sim.bench.benchmarks")
    _check_known("bench", names, benchmarks.BENCHMARKS)
    with nullcontext() if out is None else held(out):
        chosen = list(names) or list(benchmarks.BENCHMARKS)
        with progress_bars("done") as show:
            rows = benchmarks.run_benchmarks(chosen, sizes, quick=quick, progress=show)
        if out is not None:
            write_benchmarks(rows, out)
    if as_json:
        json.dump(rows, sys.stdout, indent=2)
        sys.stdout.write("\n")
    else:
        Console().print(benchmark_table(rows))


def write_benchmarks(rows: Sequence[Mapping[str, Any]], out: Path) -> None:
    """Write `bench.json` and the plot of growth to a new folder, whole or not at all."""
    from gossamer.sim.bench.bench_plot import plot_growth

    with whole_folder(out, replace=False) as folder:
        (folder / "bench.json").write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
        plot_growth(rows, folder)


def benchmark_table(rows: Iterable[Mapping[str, Any]]) -> FittingTable:
    """The rows of `bench.json` for people."""
    table = FittingTable("benchmark")
    table.add_numbers("size", "median", "runs", "bytes a node")
    table.add_column("note")
    for row in rows:
        median = f"{row['median_s']:.4g} s / {row['unit']}"
        counts = (f"{row['runs']}", "-" if row["bytes"] is None else f"{row['bytes']:,}")
        note = _plain(row.get("note", ""))
        table.add_row(_plain(row["name"]), f"{row['size']:,}", median, *counts, note)
    return table


def parse_sizes(text: str) -> list[int]:
    """Sizes such as `10000,100000`.

    Raises:
        ScenarioError: one of them is no whole number above 0.
    """
    sizes = []
    for part in filter(None, text.split(",")):
        if not part.strip().isdecimal() or int(part) < 1:
            expected = "whole numbers above 0 with commas between them"
            raise ScenarioError(None, "--sizes", part, expected)
        sizes.append(int(part))
    return sizes


def _check_known(field: str, names: Iterable[str], known: Iterable[str]) -> None:
    known = sorted(known)
    for name in names:
        if name not in known:
            raise ScenarioError(None, field, name, "one of " + ", ".join(known))


def _plain(text: object) -> str:
    """``text`` with nothing in it that would be taken for a style."""
    from rich.markup import escape

    return escape(str(text))
