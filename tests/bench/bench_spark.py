"""What the pipeline costs: rows a second beside NumPy and PyArrow alone, and crunching deliveries.

Run it by hand:

    python tests/bench/bench_spark.py rows [--sizes 1000000,10000000] [--kind vinifera]
    python tests/bench/bench_spark.py crunch [--deliveries 1000000] [--nodes 100000]
    python tests/bench/bench_spark.py commands [--sizes 10000000] [--kind vinifera] [--memory 1g]
    python tests/bench/bench_spark.py runs [--sizes 1000,10000] [--memory 1g]
    python tests/bench/bench_spark.py tails [--deliveries 100000000] [--memory 512m]

`rows` says where the time goes: making rows, writing them in one process, Spark writing them, and
the whole command, which checks them as well. `commands` is what users wait and pay for: a plain
writer of the same rows, then `gossamer spark workload` and `crunch`, each a process of its own with
all that it starts. `runs` crunches so many small runs by the command, `tails` delays of a Pareto
distribution where tasks may return 16 MB, and fails unless percentiles are NumPy's. Processor time
is that of the machine, on which nothing else may run; memory is the largest sum of what processes
hold (PSS).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.common import Row, print_table, read_options, timed_row, write_rows
from gossamer.sim.results.results import write_table
from gossamer.sim.row_tables.kinds import WorkloadRequest, make_workload
from gossamer.sim.row_tables.table import write_plainly
from gossamer.sim.studies.peers.measuring import records
from gossamer.sim.study.records import CDF, PER_CENTS, percentile_place
from gossamer.spark.crunch.crunching import crunch_results
from gossamer.spark.crunch.folders import find_runs
from gossamer.spark.session import spark_session
from gossamer.spark.workload.writing import files_of, write_row_table, write_workload

PEAK_EVERY_S = 0.25
# What the tasks of a job may return to the driver, all together.
GUARD = "spark.driver.maxResultSize=16m"
# Deliveries that are made up at a time.
BATCH = 1_000_000
EVENTS_A_DELIVERY = 1 / 1_000
PLAIN = (
    "import sys; from pathlib import Path; "
    "from gossamer.sim.row_tables.kinds import WorkloadRequest, make_workload; "
    "from gossamer.sim.row_tables.table import write_plainly; "
    "kind, size, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]); folder.mkdir(); "
    "asked = WorkloadRequest(subscriptions=size, events=size); "
    "[write_plainly(table, folder / f'{table.name}.parquet')"
    " for table in make_workload(kind, asked).tables()]"
)
COMMAND = "import sys; from gossamer.command.main import main; sys.exit(main(sys.argv[1:]))"


def held(process: psutil.Process) -> int:
    """What a process holds, what it shares counted in part; 0 when it is gone."""
    try:
        return int(process.memory_full_info().pss)
    except psutil.Error:
        return 0


def cpu_s() -> float:
    """Processor time of the whole machine so far.

    That of processes alone would be too little: Java ends without waiting for the workers of
    Python that it has started, whose time nobody is told of then.
    """
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system)


def measured(name: str, size: int, unit: str, work: Callable[[], object]) -> Row:
    """What some work took: time, processor time of the machine, and memory at most."""
    this, over, memory = psutil.Process(), threading.Event(), [0]

    def watch() -> None:
        while not over.wait(PEAK_EVERY_S):
            memory.append(sum(map(held, [this, *this.children(recursive=True)])))

    watching = threading.Thread(target=watch)
    watching.start()
    begun, before = perf_counter(), cpu_s()
    try:
        work()
    finally:
        spent, cpu = perf_counter() - begun, cpu_s() - before
        over.set()
        watching.join()
    return timed_row(name, size, [spent / size], unit, cpu_s=cpu / size, bytes=max(memory))


def measure_commands(kind: str, size: int, memory: str) -> list[Row]:
    """A plain writer beside the commands that make and crunch the same rows, each once."""
    with tempfile.TemporaryDirectory() as scratch:
        made, out = f"{scratch}/w", f"{scratch}/c"
        sizes = ("--subscriptions", f"{size}", "--events", f"{size}")
        commands = {
            "NumPy and PyArrow, one process": (PLAIN, kind, f"{size}", f"{scratch}/plain"),
            "gossamer spark workload": (COMMAND, "spark", "workload", kind, "--out", made, *sizes),
            "gossamer spark crunch": (COMMAND, "spark", "crunch", made, "--out", out),
        }
        given = ("--memory", memory)
        return [
            measured(
                f"{kind}: {name}",
                2 * size,
                "row",
                partial(run_python, *command, *(given if command[0] == COMMAND else ())),
            )
            for name, command in commands.items()
        ]


def measure_runs(count: int, memory: str) -> list[Row]:
    with tempfile.TemporaryDirectory() as scratch:
        for seed in range(count):
            make_up_run(Path(scratch) / "runs" / f"{seed}", 2_000, 100, seed)
        command = (COMMAND, "spark", "crunch", f"{scratch}/runs", "--out", f"{scratch}/c")
        work = partial(run_python, *command, "--no-plots", "--memory", memory)
        return [measured("gossamer spark crunch: runs", count, "run", work)]


def measure_tails(deliveries: int, memory: str) -> list[Row]:
    """Crunching the delays of a run of brokers, most of them near 0 and some beyond any bound."""
    with tempfile.TemporaryDirectory() as scratch:
        run, out = Path(scratch) / "run", Path(scratch) / "c"
        (run / "active").mkdir(parents=True)
        summary = {"scenario": {"kind": "brokers"}, "seed": 1, "result_hash": ""}
        systems: dict[str, Any] = {"active": {"totals": {}}}
        (run / "summary.json").write_text(json.dumps({**summary, "systems": systems}))
        counts = ("table", "handled", "publications", "false_positives", "triggered")
        for name, columns in (("queues", ("time_s", "core")), ("brokers", counts)):
            write_table(
                {one: np.ones(1, np.int64) for one in columns}, run / "active" / f"{name}.parquet"
            )
        draws = np.random.default_rng(1)
        schema = pa.schema([("publication", pa.int64()), ("delay_s", pa.float64())])
        with pq.ParquetWriter(run / "active" / "deliveries.parquet", schema) as writer:
            for first in range(0, deliveries, BATCH):
                count = min(BATCH, deliveries - first)
                numbers, delays = np.arange(first, first + count), draws.pareto(0.5, count)
                writer.write_batch(pa.record_batch([numbers, delays], schema=schema))
        command = (COMMAND, "spark", "crunch", f"{run}", "--out", f"{out}", "--no-plots")
        work = partial(run_python, *command, "--memory", memory, "--conf", GUARD)
        rows = [measured("gossamer spark crunch: Pareto delays", deliveries, "delivery", work)]
        table = pq.read_table(out / "curves.parquet")
        rows_of_it = (pc.field("part") == CDF) & (pc.field("name") == "delay")
        found = table.filter(rows_of_it).sort_by("x")["value"].to_numpy()
        delays = pq.read_table(run / "active" / "deliveries.parquet")["delay_s"].to_numpy()
        delays.sort()
        places = [percentile_place(deliveries, per_cent) for per_cent in PER_CENTS.tolist()]
        if not np.array_equal(found, delays[places]):
            raise SystemExit("percentiles are not NumPy's")
        return rows


def run_python(*arguments: str) -> None:
    done = subprocess.run([sys.executable, "-c", *arguments], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments[1:])} ended with {done.returncode}: {done.stderr}")


def measure_rows(session: Any, kind: str, size: int) -> list[Row]:
    """The stages of making a workload of ``size`` subscriptions and events each."""
    asked = WorkloadRequest(subscriptions=size, events=size)
    tables = make_workload(kind, asked).tables()

    with tempfile.TemporaryDirectory() as scratch:
        written, out = Path(scratch) / "written", Path(scratch) / "out"
        written.mkdir()

        def make() -> None:
            for table in tables:
                for _ in table.batches():
                    pass

        def plain() -> None:
            for table in tables:
                write_plainly(table, Path(scratch) / f"{table.name}.parquet")

        def write() -> None:
            for table in tables:
                files = files_of(session, table)
                write_row_table(session, table, written / table.name, files, written)

        stages: dict[str, Callable[[], object]] = {
            "rows made by NumPy": make,
            "NumPy and PyArrow, one process": plain,
            "rows written by Spark": write,
            "the command, checks included": partial(write_workload, session, kind, asked, out),
        }
        return [measured(f"{kind}: {name}", 2 * size, "row", work) for name, work in stages.items()]


def measure_crunch(session: Any, deliveries: int, nodes: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "run"
        make_up_run(folder, deliveries, nodes)
        given = (session, find_runs([folder]), Path(scratch) / "out")
        work = partial(crunch_results, *given, plots=True, exact_up_to=10_000_000)
        return [measured(f"crunch, {nodes:,} nodes", deliveries, "delivery", work)]


def make_up_run(folder: Path, deliveries: int, nodes: int, seed: int = 1) -> None:
    """The tables of a run that never happened, of plausible shape."""
    draws = np.random.default_rng(seed)
    events = max(int(deliveries * EVENTS_A_DELIVERY), 1)
    system = folder / "kindred"
    system.mkdir(parents=True)
    summary = {"scenario": {}, "seed": seed, "systems": {"kindred": {}}, "result_hash": ""}
    (folder / "summary.json").write_text(json.dumps(summary))
    for name, columns, rows in (
        ("events", records.EVENT_COLUMNS, events),
        ("nodes", records.NODE_COLUMNS, nodes),
        ("cycles", records.CYCLE_COLUMNS, 1_000),
    ):
        table = {key: draws.integers(1, 50, rows).astype(kind) for key, kind in columns.items()}
        number = next(iter(columns))
        table[number] = np.arange(rows).astype(columns[number])
        write_table(table, system / f"{name}.parquet")
    fields = [(name, pa.from_numpy_dtype(kind)) for name, kind in records.DELIVERY_COLUMNS.items()]
    schema = pa.schema(fields)
    with pq.ParquetWriter(system / "deliveries.parquet", schema, compression="zstd") as writer:
        for first in range(0, deliveries, BATCH):
            count = min(BATCH, deliveries - first)
            hops = draws.poisson(6, count).astype(np.int16)
            values = [
                np.sort(draws.integers(0, events, count)),
                draws.integers(0, nodes, count, dtype=np.int32),
                hops,
                (hops // 2).astype(np.int16),
                60.0 * draws.integers(0, 40, count),
            ]
            arrays = [pa.array(column) for column in values]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))


def main() -> None:
    chosen = read_options(
        __doc__,
        ("rows", "crunch", "commands", "runs", "tails"),
        sizes="1000000",
        kind="vinifera",
        deliveries=1_000_000,
        nodes=100_000,
        memory="1g",
        out=Path,
    )
    words, sizes = chosen.words, [int(size) for size in chosen.sizes.split(",")]
    rows: list[Row] = []
    for size in sizes:
        if "commands" in words:
            rows += measure_commands(chosen.kind, size, chosen.memory)
        if "runs" in words:
            rows += measure_runs(size, chosen.memory)
    if "tails" in words:
        rows += measure_tails(chosen.deliveries, chosen.memory)
    if {"rows", "crunch"} & {*words}:
        with spark_session() as session:
            session.range(10).mapInArrow(lambda batches: batches, "id long").collect()  # warm
            for size in sizes if "rows" in words else ():
                rows += measure_rows(session, chosen.kind, size)
            if "crunch" in words:
                rows += measure_crunch(session, chosen.deliveries, chosen.nodes)
    print_table(
        ("", "size", "seconds", "CPU seconds", "a second", "memory, MiB"),
        (
            (
                *(one["name"], one["size"], one["median_s"] * one["size"]),
                *(one["cpu_s"] * one["size"], 1 / one["median_s"], one["bytes"] / 2**20),
            )
            for one in rows
        ),
    )
    write_rows(chosen.out, rows)


if __name__ == "__main__":
    main()
