"""Scenarios and sweeps are read as editors of any system save them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.sim.errors import ScenarioError
from gossamer.sim.results.sweeps.plan import read_sweep
from gossamer.sim.study.scenarios import read_scenario

SCENARIO = """\
name = "Zürich"
nodes = 20
rounds = 6
round_s = 2
engine = "event"
[events]
warm_up_rounds = 2
"""
SWEEP = 'scenario = "base.toml"\nseeds = [1, 2]\n'


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_marks_and_line_ends_change_nothing(encoding: str, end: str, tmp_path: Path) -> None:
    for name, text in (("base.toml", SCENARIO), ("sweep.toml", SWEEP)):
        (tmp_path / name).write_bytes(text.replace("\n", end).encode(encoding))
    scenario, text = read_scenario(tmp_path / "base.toml")
    assert scenario.name == "Zürich"
    assert text == SCENARIO
    assert len(read_sweep(tmp_path / "sweep.toml").points) == 2


@pytest.mark.parametrize(
    ("encoding", "found"), [("utf-16", "not UTF-8 but UTF-16"), ("latin-1", "not UTF-8 at byte 10")]
)
def test_other_encodings_are_named(encoding: str, found: str, tmp_path: Path) -> None:
    path = tmp_path / "base.toml"
    path.write_bytes(SCENARIO.encode(encoding))
    with pytest.raises(ScenarioError) as caught:
        read_scenario(path)
    assert str(caught.value) == f"{path}: the scenario file is {found}, expected text in UTF-8"
