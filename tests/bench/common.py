"""What benchmarks share: options, timing, rows of `bench.json` and their tables."""

from __future__ import annotations

import argparse
import gc
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any, TypeVar

from gossamer.sim.bench.benchmarks import machine
from gossamer.sim.studies.stock_quotes import Quote, make_quotes, read_quotes

SEED = 1
Row = dict[str, Any]
T = TypeVar("T")


def read_options(
    doc: str | None, words: Iterable[str] = (), /, **options: Any
) -> argparse.Namespace:
    """The command line, with an option for each name, and some words of several, by default all.

    A type is that of an option without a default, a tuple of texts what may be chosen, the first
    one if nothing is, and a list what an option with several values has by default, or their type.
    The result has a function ``refuse``, which ends the program with a sentence.
    """
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    if known := [*words]:
        parser.add_argument("words", nargs="*", default=known, metavar=f"{{{','.join(known)}}}")
    for name, value in options.items():
        kind: dict[str, Any] = {"type": type(value), "default": value, "help": f"default: {value}"}
        if isinstance(value, type):
            kind = {"type": value}
        elif isinstance(value, bool):
            kind = {"action": "store_true"}
        elif isinstance(value, tuple):
            kind = {"choices": tuple(dict.fromkeys(value)), "default": value[0]}
        elif isinstance(value, list) and isinstance(value[0], type):
            kind = {"type": value[0], "nargs": "*", "action": "extend", "default": []}
        elif isinstance(value, list):
            kind |= {"type": type(value[0]), "nargs": "*"}
        parser.add_argument(f"--{name.strip('_').replace('_', '-')}", dest=name, **kind)
    parser.set_defaults(refuse=parser.error)
    return parser.parse_args()


def write_rows(path: Path | None, rows: Sequence[Row]) -> None:
    """Write rows as JSON where that is asked for."""
    if path:
        path.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def by_turns(works: Mapping[str, Callable[[], T]], runs: int) -> dict[str, list[T]]:
    """What each work gives, so many times, so that what else the machine does meets all alike."""
    found: dict[str, list[T]] = {name: [] for name in works}
    for _ in range(runs):
        for name, work in works.items():
            found[name].append(work())
    return found


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Processor seconds of some work, and its result."""
    begun = process_time()
    result = work()
    return process_time() - begun, result


def seconds_each(work: Callable[[Any], object], items: Sequence[Any], runs: int) -> list[float]:
    """Processor seconds an item, for as many parts of the items as there are runs."""
    size = max(len(items) // runs, 1)
    found = []
    for begin in range(0, size * runs, size):
        begun = process_time()
        for item in items[begin : begin + size]:
            work(item)
        found.append((process_time() - begun) / size)
    return found


def timed_row(name: str, size: int, seconds: list[float], unit: str, **more: Any) -> Row:
    """A row of `bench.json`."""
    return {
        "name": name,
        "size": size,
        "median_s": median(seconds),
        "least_s": min(seconds),
        "runs": len(seconds),
        "unit": unit,
        "machine": machine(),
        **more,
    }


def print_medians(runs: Sequence[Mapping[str, float]]) -> None:
    """A line a figure: its median, and the values of all runs from the least to the most."""
    for name in runs[0]:
        values = sorted(one[name] for one in runs)
        shown = ", ".join(f"{value:,.1f}" for value in values)
        print(f"{name:52} {median(values):>10,.1f}   ({shown})")


def print_table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """The machine, and a line a row; numbers of at least a hundred are whole."""

    def shown(value: object) -> str:
        if isinstance(value, float):
            return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
        return f"{value:,}" if isinstance(value, int) else str(value)

    lines = [[*heads], *([*map(shown, row)] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    print(machine())
    for first, *rest in lines:
        cells = (cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))
        print(first.ljust(widths[0]), *cells, sep="  ")


def print_rows(rows: Iterable[Row], **columns: str) -> None:
    """A line for each timed row: microseconds, and under their headings further values of it."""
    print_table(
        ("what", "size", "us", "least", *columns.values()),
        (
            (
                *(one["name"], one["size"], one["median_s"] * 1e6, one["least_s"] * 1e6),
                *(one.get(key, "") for key in columns),
            )
            for one in rows
        ),
    )


def quotes_of(path: Path | None) -> list[Quote]:
    """Stock quotes of a gzipped CSV file, made up if there is none; no garbage from now on."""
    quotes = read_quotes(path) if path else make_quotes(100_000, SEED)
    gc.collect()
    gc.freeze()
    return quotes
