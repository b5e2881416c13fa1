"""Forty peers of this beside forty of Zenoh, NATS and py-libp2p, which do the same work in one run.

Run it by hand: ``python tests/bench/bench_peers.py [--small] [--stacks gossamer,nats]``. Every
stack has an environment of its own, made with pip in ``--environments FOLDER`` (a temporary one if
none is named); the NATS server is the one that is installed, or Debian's, unpacked there. What
cannot be installed or started is left out, and the table says why.

All have as many peers in as many processes, one loop each, on loopback. Every event has a topic,
here an attribute for which filters ask, and each topic has as many subscribers. All peers publish
in turn: first at a steady rate, then the same number as fast as each stack takes them. A delivery
is an event that an application has taken. Processor seconds are those of all processes, a server's
too. Latency is from when an event was due (in bursts: published) to when the application took it.

The fields of `Workload` and the seconds of gossamer's rounds can be set; ``--out`` writes all
figures. Stacks promise different things: see docs/comparison.md.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import attrs
from attrs import define, field

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.common import read_options
from bench.stacks.catalogue import STACKS, GossamerStack, Stack
from bench.stacks.measuring import measure
from bench.stacks.peer_processes import ProcessFailed
from bench.stacks.results import Run, medians
from bench.stacks.workload import Workload
from gossamer.sim.bench.benchmarks import machine

SMALL = Workload(peers=6, processes=2, topics=6, matches=3, rate=50, seconds=2, rest=2)
SMALL_ROUND_S = 0.2
RUNS = 3


@define(eq=False)
class Row:
    """A stack, its runs, and why some failed."""

    stack: Stack
    runs: list[Run] = field(factory=list)
    failures: list[str] = field(factory=list)

    def figures(self) -> dict[str, Any]:
        told = ("name", "versions", "security", "published")
        return {
            **{name: getattr(self.stack, name) for name in told},
            "failures": self.failures,
            "medians": medians(self.runs) if self.runs else None,
            "runs": [attrs.asdict(run) for run in self.runs],
        }


def measure_all(
    stacks: Sequence[Stack], workload: Workload, runs: int, environments: Path
) -> list[Row]:
    """All stacks by turns, so that what else the machine does meets all alike."""
    rows = [Row(stack) for stack in stacks]
    for row in rows:
        with _attempt(row, "installation"):
            row.stack.install(environments)
    taking_part = [row for row in rows if not row.failures]
    for number, row in product(range(runs), taking_part):
        with (
            _attempt(row, f"run {number + 1} of {runs}"),
            tempfile.TemporaryDirectory() as folder,
        ):
            row.runs.append(measure(row.stack, workload, Path(folder)))
    return rows


@contextmanager
def _attempt(row: Row, what: str) -> Iterator[None]:
    print(f"{row.stack.title}: {what}", file=sys.stderr, flush=True)
    try:
        yield
    except ProcessFailed as reason:
        row.failures.append(str(reason))


COLUMNS = (
    *("", "deliv./cpu s", "median ms", "99 % ms", "burst: d./cpu s", "d./s", "99 % ms"),
    *("at rest", "MB", "lost", "twice", "security"),
)


def print_table(rows: Sequence[Row]) -> None:
    lines = [COLUMNS, *(_cells(row) for row in rows if row.runs)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    for line in lines:
        first, *rest = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        print("  ".join((first, *(cell.strip().rjust(len(cell)) for cell in rest))))
    for row in rows:
        print(*(f"{row.stack.title}: {words}." for words in _remarks(row)), sep="\n")


def _remarks(row: Row) -> Iterator[str]:
    if row.runs:
        told = medians(row.runs)
        versions = ", ".join(f"{name} {number}" for name, number in row.stack.versions.items())
        yield f"{versions}; a publication is taken when {row.stack.published}"
        if told["settled_s"] is None:
            yield "events were lost before the streams began, too"
        for phase in (told["steady"], told["burst"]):
            if phase["false"]:
                yield f"{phase['false']:,} deliveries were to those who did not want them"
            for reason, events in phase["refused"].items():
                yield f"{events:,} events were not taken: {reason}"
    for reason in row.failures:
        yield f"{'a run failed' if row.runs else 'left out'}: {reason}"


def _cells(row: Row) -> tuple[str, ...]:
    told = medians(row.runs)
    steady, burst = told["steady"], told["burst"]
    in_steady = ("deliveries_per_cpu_s", "latency_ms", "slow_ms")
    in_burst = ("deliveries_per_cpu_s", "deliveries_per_s", "slow_ms")
    return (
        row.stack.title,
        *(_number(steady[name]) for name in in_steady),
        *(_number(burst[name]) for name in in_burst),
        f"{told['resting_cpu']:.2f}",
        _number(told["resident_mb"]),
        _counts(steady, burst, "lost"),
        _counts(steady, burst, "doubled"),
        row.stack.security,
    )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _counts(steady: Mapping[str, float], burst: Mapping[str, float], name: str) -> str:
    if steady[name] == burst[name] == 0:
        return "0"
    return f"{steady[name]:,.0f}+{burst[name]:,.0f}"


def _end(number: int, _: object) -> None:
    """Leave all blocks, so that all processes are ended."""
    sys.exit(128 + number)


def main() -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    of_workload = {one.name: type(one.default) for one in attrs.fields(Workload) if one.init}
    own = {"small": False, "stacks": str, "runs": RUNS, "round": float}
    given = read_options(__doc__, **own, environments=Path, out=Path, **of_workload)
    kinds = {one.name: one for one in STACKS}
    chosen = given.stacks.split(",") if given.stacks else list(kinds)
    if unknown := [name for name in chosen if name not in kinds]:
        given.refuse(f"there is no stack {unknown[0]!r}, only {', '.join(kinds)}")
    if given.runs < 1 or (given.round is not None and not 0.05 <= given.round <= 3600):
        given.refuse("there is at least 1 run, and a round takes 0.05 to 3600 s")
    changes = {name: value for name in of_workload if (value := getattr(given, name)) is not None}
    try:
        workload = attrs.evolve(SMALL if given.small else Workload(), **changes)
        for path in filter(None, (given.environments, given.out and given.out.parent)):
            path.mkdir(parents=True, exist_ok=True)
    except ValueError as error:
        given.refuse(str(error))
    except OSError as error:
        given.refuse(f"{error.filename} cannot be a folder: {error.strerror}")
    if given.out and given.out.is_dir():
        given.refuse(f"{given.out} is a folder, and --out is to be a file")
    stacks = [kinds[name]() for name in chosen]
    for stack in stacks:
        if isinstance(stack, GossamerStack):
            stack.round_s = given.round or (SMALL_ROUND_S if given.small else stack.round_s)
    with tempfile.TemporaryDirectory() as folder:
        environments = given.environments.absolute() if given.environments else Path(folder)
        rows = measure_all(stacks, workload, given.runs, environments)
    shape = f"{machine()}, load {os.getloadavg()[0]:.1f}, Python {platform.python_version()}"
    print(f"{shape}; {workload}; medians of {given.runs} runs")
    print_table(rows)
    if given.out:
        told = {
            "machine": shape,
            "workload": {name: getattr(workload, name) for name in of_workload},
            "stacks": [row.figures() for row in rows],
        }
        given.out.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    if not any(row.runs for row in rows):
        sys.exit("no stack could be measured")


if __name__ == "__main__":
    main()
