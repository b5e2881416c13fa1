"""A workload of the pipeline, published by a client of a node."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from support.node_processes import Shell

EVENTS = 700


def test_the_events_of_a_workload_are_published(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    rows = {
        "event": list(range(EVENTS)),
        "symbol": ["IBM"] * EVENTS,
        "close": [80.0 + row for row in range(EVENTS)],
        "volume": [1] * EVENTS,
    }
    (tmp_path / "w" / "events").mkdir(parents=True)
    pq.write_table(pa.table(rows), tmp_path / "w" / "events" / "part-00000.parquet")
    shell.ok("node", "init", "desk", "--preset", "local")
    chosen = ("--column", "symbol", "--column", "price=close", "--column", "volume")
    command = ("pub", "--folder", "desk", "--from", "w")
    with shell.node("desk"):
        done = shell.run(*command, *chosen)
        assert (done.returncode, len(done.stdout.splitlines())) == (0, EVENTS), done.stderr
        assert f"published {EVENTS} events" in done.stderr
        other = shell.run(*command, "--column", "price")
        assert other.returncode == 2
        assert "has no column price" in other.stderr
        both = shell.run(*command, "symbol=IBM")
        assert both.returncode == 2
