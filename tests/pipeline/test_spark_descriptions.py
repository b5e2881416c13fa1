"""What commands say beside tables: settings in effect, what differs, what it costs."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest

from gossamer.sim.results.storage.place import LocalPlace
from gossamer.sim.row_tables.kinds import KINDS, WorkloadRequest, effective_settings, make_workload
from gossamer.spark import jobs
from gossamer.spark.workload import checks, writing
from support.made_up_results import write_run
from support.spark_processes import run_spark_here
from support.spark_results import crunch

SMALL = ("--subscriptions", "60", "--events", "40")


def rows_of(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.usefixtures("session")
def test_settings_in_effect_are_kept_and_costs_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, what was not asked for was not kept, and looked as if it did not differ."""
    monkeypatch.setattr(jobs, "_MANY", 70)
    monkeypatch.setattr(writing, "_LARGE_UNITS", 1)
    for name, given in (("a", ()), ("b", ("--set", "reach=2.0"))):
        words = ("workload", "covering", *SMALL, "--out", str(tmp_path / "w" / name), *given)
        done = run_spark_here(*words)
        assert done.returncode == 0, done.stderr
        told = "gossamer: making 71 rows of 0.0 GB, uncompressed, in 2 tasks\n"
        assert told in done.stderr
    told_of = json.loads((tmp_path / "w" / "b" / "workload.json").read_text())
    assert told_of["settings"] == {"subscriptions": 60, "events": 40, "reach": 2.0}
    assert told_of["effective"] == {"degree": 30, "reach": 2.0}
    done = run_spark_here("crunch", str(tmp_path / "w"), "--out", str(tmp_path / "c"), "--no-plots")
    assert re.search(r"crunching 142 rows of 0\.0 GB, uncompressed, in 4 tasks", done.stderr)
    found = rows_of(tmp_path / "c" / "measures.csv")
    assert {row["condition"] for row in found} == {"reach=2.0", "reach=6.0"}
    assert {row["condition.reach"] for row in found} == {"2.0", "6.0"}


@pytest.mark.parametrize("kind", KINDS)
def test_settings_in_effect_asked_for_make_the_same(kind: str) -> None:
    asked = WorkloadRequest(subscriptions=20, events=10, seed=3)
    effective = effective_settings(kind, asked)
    again = WorkloadRequest(subscriptions=20, events=10, seed=3, settings=effective)
    tables = [
        [one.table() for one in make_workload(kind, given).tables()] for given in (asked, again)
    ]
    assert tables[0] == tables[1]
    assert effective_settings(kind, again) == effective


def test_comparisons_say_which_way_is_better(session: Any, tmp_path: Path) -> None:
    for seed in (1, 2):
        write_run(tmp_path / "runs" / f"{seed}", seed)
    crunch(session, tmp_path / "runs", tmp_path / "c")
    better = {row["measure"]: row["better"] for row in rows_of(tmp_path / "c" / "comparisons.csv")}
    named = ("hit_ratio", "traffic_overhead", "load_gini", "deliveries")
    assert [better[name] for name in named] == ["higher", "lower", "lower", ""]


@pytest.mark.parametrize("most", [5_000, 10])
def test_no_roots_come_to_the_driver_whose_subscriptions_are_many(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(checks, "_MOST_SAMPLED", most)
    asked = WorkloadRequest(seed=7, subscriptions=60, events=40, settings={"degree": 19})
    made = writing.write_workload(session, "covering", asked, LocalPlace(tmp_path / "w"), 1)
    names = [check.name for check in made.checks]
    assert ("covering degree of 3 roots" in names) == (most == 5_000)
