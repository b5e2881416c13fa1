"""Runs added to crunched results in any order are as all of them crunched at once."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gossamer.spark.crunch.deliveries as deliveries
from support.draws import Draws, few_or_many, named
from support.made_up_results import change, write_run
from support.spark_processes import run_spark_here
from support.spark_results import crunch

RUNS = 4
SYSTEMS = ("kindred", "baseline")
CSVS = ("measures.csv", "intervals.csv", "comparisons.csv")


@attrs.frozen
class Corpus:
    """Runs whose delays are all different in some, and what comes of all of them at once."""

    runs: list[Path]
    out: Path


@pytest.fixture(scope="module")
def corpus(session: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    folder = tmp_path_factory.mktemp("appends")
    draws = np.random.default_rng(2)
    runs = [
        write_run(folder / f"run-{one}", one, nodes=12 + 4 * (one % 2), cycles=8 + 9 * one)
        for one in range(RUNS)
    ]
    for table in (run / one / "deliveries.parquet" for run in runs[1:] for one in SYSTEMS):
        change(table, {"time_s": lambda old: pa.array(old.to_numpy() + draws.random(len(old)))})
    with pytest.MonkeyPatch.context() as patch:
        # Some of the systems have more different delays than one task puts together.
        patch.setattr(deliveries, "_MOST_TOGETHER", 60)
        crunch(session, runs, folder / "whole")
        yield Corpus(runs, folder / "whole")


def same(one: Path, other: Path) -> None:
    """Every table is the same, whatever the order of curves."""
    for name in CSVS:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name
    keys = [(key, "ascending") for key in ("run", "system", "part", "name", "x")]
    curves = [pq.read_table(folder / "curves.parquet").sort_by(keys) for folder in (one, other)]
    assert curves[0].drop_columns("value").equals(curves[1].drop_columns("value"))
    values = [curve["value"].to_numpy() for curve in curves]
    assert np.array_equal(values[0], values[1], equal_nan=True)
    told = [json.loads((folder / "crunch.json").read_text()) for folder in (one, other)]
    assert [found["methods"] for found in told] == [["exact", "summary"]] * 2


@few_or_many(1, 100)
def test_runs_added_in_any_parts_are_as_all_at_once(
    session: Any, corpus: Corpus, tmp_path: Path, draws: Draws, count: int
) -> None:
    for seed in draws.numbers(count):
        drawn = random.Random(seed)
        left, added = drawn.sample(corpus.runs, RUNS), list[Path]()
        while left:
            size = drawn.randint(1, len(left))
            # Some that are there already come again.
            given = [*left[:size], *drawn.sample(added, drawn.randint(0, len(added)))]
            limit = drawn.choice([0, 100, 10**9])
            crunch(session, given, tmp_path / f"{seed}", exact_up_to=limit, append=True)
            added, left = added + left[:size], left[size:]
        with named(f"seed {seed}"):
            same(tmp_path / f"{seed}", corpus.out)


def test_runs_added_by_the_command_are_as_all_at_once(corpus: Corpus, tmp_path: Path) -> None:
    """Before, whether delays were exact hung on how many deliveries were added with them."""
    out = tmp_path / "out"
    options = ("--out", str(out), "--append", "--no-plots", "--exact-up-to", "200")
    for runs in (corpus.runs[:2], corpus.runs[2:]):
        done = run_spark_here("crunch", *map(str, runs), *options)
        assert done.returncode == 0, done.stderr
    same(out, corpus.out)
