"""Explorations that go on from a folder, and such that hold little in memory, find the same."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gossamer.sim as gs
from gossamer.protocol.kernel.rules import use_compiled
from support.checkout import ROOT
from support.own_protocols import PROTOCOLS

FILE = f"{PROTOCOLS}/explored.py"
ASKED: dict[str, Any] = {"invariants": ["bounded"], "in_flight": 2, "draws": 1, "losses": 1}


@pytest.fixture(autouse=True)
def interpreted() -> Iterator[None]:
    with use_compiled(False):
        yield


@pytest.mark.parametrize("memory", [None, 1])
def test_one_that_goes_on_finds_what_one_run_finds(tmp_path: Path, memory: int | None) -> None:
    whole = gs.explore(f"{FILE}:Flood", 2, **ASKED)
    kept: dict[str, Any] = {**ASKED, "folder": tmp_path, "memory": memory}
    first = gs.explore(f"{FILE}:Flood", 2, **kept, depth=2)
    assert (first.depth, first.exhausted) == (2, False)
    # Whatever ended the process while it wrote the next level left this behind.
    (tmp_path / "level-00003.npz.part").write_bytes(b"half")
    gs.explore(f"{FILE}:Flood", 2, **kept, resume=True, depth=4)
    assert gs.explore(f"{FILE}:Flood", 2, **kept, resume=True) == whole
    assert whole.exhausted
    assert whole.depth > 4


def test_a_violation_is_found_in_the_same_way_after_going_on(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"invariants": ["all_heard"], "crashes": 1, "in_flight": 2, "draws": 1}
    whole = gs.explore(f"{FILE}:Alarm", 2, invariants=["all_have_rung"])
    gs.explore(f"{FILE}:Alarm", 2, invariants=["all_have_rung"], folder=tmp_path, depth=1)
    again = gs.explore(
        f"{FILE}:Alarm", 2, invariants=["all_have_rung"], folder=tmp_path, resume=True
    )
    assert str(again.story) == str(whole.story)
    with pytest.raises(gs.ResultsError, match="holds another exploration"):
        gs.explore(f"{FILE}:Flood", 2, **asked, folder=tmp_path, resume=True)
    (tmp_path / "empty").mkdir()
    with pytest.raises(gs.ResultsError, match="holds no exploration to go on with"):
        gs.explore(f"{FILE}:Flood", 2, **asked, folder=tmp_path / "empty", resume=True)


SCRIPT = """
import sys
import gossamer.sim as gs
with gs.use_compiled(False):
    found = gs.explore(sys.argv[1], 3, crashes=1, in_flight=1, draws=1, invariants=["nobody_waits"])
print(found, found.story, found.story.steps)
"""


def test_the_result_is_the_same_with_any_seed_of_hashes() -> None:
    told = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", SCRIPT, f"{FILE}:Watch"]
        done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, check=True)
        told.add(done.stdout)
    assert len(told) == 1
