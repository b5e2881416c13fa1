"""Subscriptions and documents of dissemination trees, taken from the tables of a workload."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pyarrow.parquet as pq
import pytest

from gossamer.sim.errors import ScenarioError
from gossamer.sim.row_tables.keywords import KeywordTables
from gossamer.sim.row_tables.kinds import Wish, make_workload
from gossamer.sim.studies.dissemination.workload.keyword_tables import read_tables

BROKERS = 50


@pytest.fixture
def made(tmp_path: Path) -> KeywordTables:
    wish = Wish(subscriptions=60, events=80, seed=3, settings={"brokers": BROKERS})
    workload = make_workload("keywords", wish)
    assert isinstance(workload, KeywordTables)
    tables = workload.tables()
    for table in tables:
        (tmp_path / table.name).mkdir()
        pq.write_table(table.table(), tmp_path / table.name / "part-00000.parquet")
    rows = {table.name: {"rows": table.units} for table in tables}
    told = {"kind": "keywords", "seed": 3, "settings": dict(wish.settings), "tables": rows}
    (tmp_path / "workload.json").write_text(json.dumps(told))
    return workload


def test_tables_are_the_workload_that_is_drawn(tmp_path: Path, made: KeywordTables) -> None:
    found = read_tables(tmp_path, BROKERS)
    assert attrs.asdict(found) == attrs.asdict(made.spec.workload())


def test_a_topology_with_too_few_brokers_is_refused(tmp_path: Path, made: KeywordTables) -> None:
    workload = made.spec.workload()
    last = max(*workload.places, *workload.hosts)
    assert read_tables(tmp_path, last + 1).places == workload.places
    with pytest.raises(ScenarioError, match=f"broker is {last}, expected at most {last - 1}"):
        read_tables(tmp_path, last)


def test_a_workload_of_another_kind_is_refused(tmp_path: Path, made: KeywordTables) -> None:
    file = tmp_path / "workload.json"
    file.write_text(file.read_text().replace('"kind": "keywords"', '"kind": "quotes"'))
    with pytest.raises(ScenarioError, match="expected 'keywords', for dissemination trees"):
        read_tables(tmp_path, BROKERS)
    assert made.spec.brokers == BROKERS
