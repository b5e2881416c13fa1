"""A workload of the pipeline, published by a client of a node."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from support.node_processes import Shell

EVENTS = 700


def test_the_events_of_a_workload_are_published(tmp_path: Path, desk: Shell) -> None:
    rows = {
        "event": list(range(EVENTS)),
        "symbol": ["IBM"] * EVENTS,
        "close": [80.0 + row for row in range(EVENTS)],
        "volume": [1] * EVENTS,
    }
    (tmp_path / "w" / "events").mkdir(parents=True)
    pq.write_table(pa.table(rows), tmp_path / "w" / "events" / "part-00000.parquet")
    chosen = ("--column", "symbol", "--column", "price=close", "--column", "volume")
    command = ("pub", "--folder", "desk", "--from", "w")
    with desk.node("desk"):
        done = desk.run(*command, *chosen)
        assert (done.returncode, len(done.stdout.splitlines())) == (0, EVENTS), done.stderr
        assert f"published {EVENTS} events" in done.stderr
        assert "has no column price" in desk.refused(*command, "--column", "price")
        desk.refused(*command, "symbol=IBM")
