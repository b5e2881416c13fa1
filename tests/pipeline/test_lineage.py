"""Lineage: what made a folder is kept within it, and shown."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gossamer.sim.results.storage.place import LocalPlace, PlaceError
from gossamer.sim.row_tables.kinds import Wish
from gossamer.spark.commands.cli import app
from gossamer.spark.crunch.crunching import crunch_results
from gossamer.spark.crunch.folders import find_runs
from gossamer.spark.storage.lineage import LINEAGE_FILE, read_lineage
from gossamer.spark.workload.writing import write_workload


def test_results_tell_of_what_they_were_made_from(session: Any, tmp_path: Path) -> None:
    wish = Wish(seed=7, subscriptions=60, events=40)
    write_workload(session, "covering", wish, tmp_path / "w", 1)
    runs = find_runs([tmp_path / "w"])
    crunch_results(session, runs, tmp_path / "c", plots=False, exact_up_to=100)
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
    import click

    from gossamer.spark.storage.lineage import running_command

    assert running_command() is None
    command = click.Command("crunch")
    conf = ["spark.hadoop.fs.s3a.secret.key=abc", "spark.sql.shuffle.partitions=3"]
    context = click.Context(command, info_name="crunch")
    context.params = {"conf": conf, "seed": 3, "master": None}
    with context.scope():
        told = running_command()
    assert told == {
        "name": "crunch",
        "options": {
            "conf": ["spark.hadoop.fs.s3a.secret.key=(hidden)", "spark.sql.shuffle.partitions=3"],
            "seed": 3,
        },
    }


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
    with pytest.raises(PlaceError, match=sentence):
        read_lineage(LocalPlace(tmp_path))
