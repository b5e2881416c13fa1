"""`gossamer sub --into`: every event in a file, though the subscriber is killed."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

from support.node_processes import Shell, end, wait_for_line
from support.spark_processes import wait_for

EVENTS = 30


def lines_of(folder: Path) -> list[dict[str, Any]]:
    """All lines of finished files."""
    return [
        json.loads(line)
        for path in sorted(folder.glob("*/*.jsonl"))
        for line in path.read_text().splitlines()
    ]


def test_a_killed_subscriber_loses_nothing(desk: Shell) -> None:
    got = desk.folder / "got"
    text = "".join(
        json.dumps({"symbol": "IBM", "price": 60 + n, "volume": n}) + "\n" for n in range(EVENTS)
    )
    sub = ("sub", "--folder", "desk", "price > 50", "--into", "got", "--name", "keep")
    pub = ("pub", "--folder", "desk", "--jsonl", "-")
    with desk.node("desk"):
        first = desk.start(*sub, "--rotate-s", "3600")
        wait_for_line(first, "subscribed")
        published = desk.ok(*pub, text=text)
        first.send_signal(signal.SIGKILL)
        end(first)
        published += desk.ok(*pub, text=text)
        ids = {line.split()[1] for line in published.splitlines()}
        assert len(ids) == 2 * EVENTS
        rest = desk.start(*sub, "--rotate-events", "7", "--rotate-s", "0.2")
        wait_for(lambda: {line["id"] for line in lines_of(got)} == ids)
        rest.send_signal(signal.SIGINT)
        end(rest)
    told = json.loads((got / "desk" / "subscription.json").read_text())
    assert (told["subscriber"], told["expression"]) == ("desk", "price > 50")
    assert set(told["schema"]) == {"symbol", "price", "volume"}
    for line in lines_of(got):
        assert line["subscriber"] == "desk"
        assert 0 <= line["received_at"] - line["published_at"] < 60
    assert all(path.stat().st_size for path in got.glob("desk/*.jsonl"))
