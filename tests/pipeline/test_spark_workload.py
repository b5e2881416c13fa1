"""Workloads written by Spark: the rows of one process, whole or not at all; what made a folder."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import gossamer.spark.workload.writing as parts
import gossamer.spark.workload.writing as writing
from gossamer.sim.churn import read_trace
from gossamer.sim.errors import ResultsError
from gossamer.sim.results.storage.place import LocalPlace
from gossamer.sim.row_tables.kinds import KINDS, WorkloadRequest, make_workload
from gossamer.sim.row_tables.vinifera import ChurnRows
from gossamer.spark.commands.cli import app
from gossamer.spark.crunch.folders import find_runs
from gossamer.spark.crunch.workloads import workload_rows
from gossamer.spark.errors import JobError
from gossamer.spark.storage.lineage import LINEAGE_FILE, read_lineage, running_command
from gossamer.spark.workload.writing import write_row_table, write_workload
from support.draws import larger
from support.spark_results import crunch

WISHES = {
    "churn": WorkloadRequest(subscriptions=2_000, seed=3, settings={"crowd_nodes": 50}),
    "keywords": WorkloadRequest(subscriptions=100, events=500, seed=3, settings={"brokers": 60}),
}
COMMON = WorkloadRequest(subscriptions=3_000, events=2_000, seed=3)
# One of each shape: subscriptions and events, nested ones, sessions, and words.
EVERY_TIME = ("vinifera", "covering", "churn", "keywords")
LARGE = attrs.evolve(COMMON, subscriptions=larger(20_000, 200_000))


def read(folder: Path) -> pa.Table:
    files = sorted(folder.glob("*.parquet"))
    return pa.concat_tables([pq.read_table(file) for file in files])


@pytest.mark.parametrize(
    "kind",
    [one if one in EVERY_TIME else pytest.param(one, marks=pytest.mark.campaign) for one in KINDS],
)
def test_files_hold_the_rows_of_one_process_and_pass_their_checks(
    session: Any, tmp_path: Path, kind: str
) -> None:
    asked = WISHES.get(kind, COMMON)
    written = write_workload(session, kind, asked, tmp_path / "out", partitions=1)
    for table in make_workload(kind, asked).tables():
        found = read(tmp_path / "out" / table.name)
        assert found.equals(table.table().cast(found.schema)), table.name
        assert written.rows[table.name] == len(found)
    assert [check for check in written.checks if not check.holds] == []
    told = json.loads((tmp_path / "out" / "workload.json").read_text())
    assert told["tables"].keys() == written.rows.keys()
    crunched = workload_rows(session, find_runs([tmp_path / "out"])[0].systems, exact_up_to=0)
    assert {"ranks", "cdf", "measure"} <= {*crunched["part"].to_pylist()}
    assert not list(tmp_path.glob(".out*"))


@pytest.mark.parametrize(
    "settings",
    [{"width_decades": 2.0}, {"attributes": 2, "aspect": 30.0}, {"kind": "topics", "places": 40}],
)
def test_ranges_of_any_shape_pass_the_check_of_their_widths(
    session: Any, tmp_path: Path, settings: dict[str, object]
) -> None:
    asked = attrs.evolve(COMMON, settings=settings)
    written = write_workload(session, "vinifera", asked, tmp_path / "out", partitions=1)
    assert [check for check in written.checks if not check.holds] == []
    assert [one.found for one in written.checks if one.name.startswith("ranges too")] == [0]


@pytest.mark.parametrize(
    ("asked", "files"),
    [(LARGE, 1), (LARGE, 7), (LARGE, 32), (WorkloadRequest(subscriptions=3, events=0), 5)],
)
def test_a_table_has_exactly_the_files_asked_for(
    session: Any, tmp_path: Path, asked: WorkloadRequest, files: int
) -> None:
    """Before, 200,000 rows had four files however many were asked for."""
    for table in make_workload("vinifera", asked).tables():
        folder = tmp_path / table.name
        rows = write_row_table(session, table, folder, files, tmp_path)
        names = sorted(file.name for file in folder.iterdir())
        assert names == [f"part-{number:05}.parquet" for number in range(files)]
        assert rows == table.units
        found = read(folder)
        assert found.equals(table.table().cast(found.schema))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 300), st.integers(1, 12), st.integers(1, 60), st.integers(1, 4))
def test_rows_do_not_hang_on_files_chunks_or_groups(
    units: int, files: int, chunk: int, groups: int
) -> None:
    table = make_workload("siena", WorkloadRequest(subscriptions=units, events=0, seed=3)).tables()[
        0
    ]
    smaller = mock.patch.multiple(parts, CHUNK=chunk, GROUP_UNITS=chunk * groups)
    with tempfile.TemporaryDirectory() as scratch, smaller:
        names = [Path(scratch) / parts.file_name(part) for part in range(files)]
        rows = [parts.write_part(table, name, part, files) for part, name in enumerate(names)]
        assert sum(rows) == units
        found = read(Path(scratch))
    assert found.equals(table.table().cast(found.schema))


def test_churn_is_a_trace_that_the_simulator_reads(session: Any, tmp_path: Path) -> None:
    asked = WISHES["churn"]
    write_workload(session, "churn", asked, tmp_path / "out")
    workload = make_workload("churn", asked)
    assert isinstance(workload, ChurnRows)
    made, read_back = workload.spec.trace(), read_trace(tmp_path / "out" / "trace.parquet")
    assert (read_back.duration_s, len(read_back.node)) == (made.duration_s, len(made.node))
    assert sorted(read_back.start_s.tolist()) == sorted(made.start_s.tolist())


def test_a_folder_may_have_any_name_and_is_refused_untouched_if_taken(
    session: Any, tmp_path: Path
) -> None:
    out = tmp_path / "a b%2 ü+#?[x]*{y}"
    written = write_workload(session, "covering", COMMON, out / "out")
    assert all(check.holds for check in written.checks)
    shutil.rmtree(out)
    (tmp_path / "kept").write_text("mine")
    with pytest.raises(ResultsError, match="already holds results"):
        write_workload(session, "vinifera", COMMON, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


@attrs.frozen
class Failing:
    """Columns that cannot be made, as where no space is left or the process is gone."""

    reason: str

    def __call__(self, _units: Any) -> Any:
        if self.reason == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        raise OSError(28, self.reason)


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        ("No space left on device", "writing events: no space is left on the device"),
        ("gone", "writing events: .*gone"),
        ("killed", "writing events: a worker was lost while it was at work"),
    ],
)
def test_what_fails_half_way_leaves_nothing(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str, sentence: str
) -> None:
    subscriptions, events = make_workload("vinifera", COMMON).tables()
    half = subscriptions, attrs.evolve(events, make=Failing(reason))
    workload = SimpleNamespace(tables=lambda: half)
    monkeypatch.setattr(writing, "make_workload", lambda _kind, _wish: workload)
    with pytest.raises(JobError, match=sentence) as failed:
        write_workload(session, "vinifera", COMMON, tmp_path / "out")
    assert "\n" not in str(failed.value)
    assert list(tmp_path.iterdir()) == []


def test_results_tell_of_what_they_were_made_from(session: Any, tmp_path: Path) -> None:
    asked = WorkloadRequest(seed=7, subscriptions=60, events=40)
    write_workload(session, "covering", asked, tmp_path / "w", 1)
    crunch(session, tmp_path / "w", tmp_path / "c", exact_up_to=100)
    made = read_lineage(LocalPlace(tmp_path / "w"))
    told = read_lineage(LocalPlace(tmp_path / "c"))
    assert set(told["versions"]) >= {"gossamer", "pyspark", "spark", "pyarrow", "numpy", "python"}
    assert told["versions"]["spark"] == session.version
    (one,) = told["inputs"]
    digest = hashlib.sha256((tmp_path / "w" / "workload.json").read_bytes()).hexdigest()
    assert (one["sha256"], one["seed"], told["seeds"]) == (digest, 7, [7])
    assert one["lineage"] == made
    assert made["inputs"] == []
    shown = CliRunner().invoke(app, ["lineage", str(tmp_path / "c")])
    assert shown.exit_code == 0
    assert f"from {tmp_path}/w, seed 7, sha256 {digest[:12]}" in shown.output
    printed = CliRunner().invoke(app, ["lineage", str(tmp_path / "c"), "--json"])
    assert json.loads(printed.output) == told


def test_credentials_are_not_kept() -> None:
    with ThreadPoolExecutor() as fresh:  # where no command was interrupted before
        assert fresh.submit(running_command).result() is None
    commands, found = typer.Typer(), list[object]()

    @commands.command()
    def crunch(conf: list[str], seed: int = 1, master: str | None = None) -> None:
        assert (len(conf), seed, master) == (2, 3, None)
        found.append(running_command())

    conf = ["spark.hadoop.fs.s3a.secret.key=abc", "spark.sql.shuffle.partitions=3"]
    assert CliRunner().invoke(commands, [*conf, "--seed", "3"]).exit_code == 0
    shown = ["spark.hadoop.fs.s3a.secret.key=(hidden)", "spark.sql.shuffle.partitions=3"]
    assert found == [{"name": "crunch", "options": {"conf": shown, "seed": 3}}]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, f"tells no lineage, expected {LINEAGE_FILE} in it"),
        ("{", "is not a lineage"),
        ("[]", "has no versions, expected a lineage"),
        ('{"versions": {}, "seeds": []}', "has no inputs, expected a lineage"),
    ],
)
def test_no_or_bad_lineage_is_refused(tmp_path: Path, content: str | None, sentence: str) -> None:
    if content is not None:
        (tmp_path / LINEAGE_FILE).write_text(content)
    with pytest.raises(ResultsError, match=sentence):
        read_lineage(LocalPlace(tmp_path))
