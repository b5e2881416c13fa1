"""The programs of docs/tasks.md run as they stand; its commands are in test_node_pages.py."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Final

import pytest

from support.checkout import ROOT

PAGE: Final = (ROOT / "docs" / "tasks.md").read_text(encoding="utf-8")
PROGRAMS: Final = {"hops": 0, "push-sum": 1, "sweep": 2}


@pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=[pytest.mark.campaign] if one == "sweep" else []) for one in PROGRAMS],
)
def test_a_program_of_the_page_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    programs = re.findall(r"(?ms)^```python\n(.*?)^```$", PAGE)
    assert len(programs) == len(PROGRAMS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    Path("program.py").write_text(programs[PROGRAMS[name]], encoding="utf-8")
    runpy.run_path("program.py")
    shown = capsys.readouterr().out
    if name == "hops":
        assert Path("hops.png").read_bytes().startswith(b"\x89PNG")
    elif name == "sweep":
        assert len(re.findall(r"traffic_overhead", shown)) == 8
    else:
        spread = re.search(r"spread +│ +([\d.e-]+)", shown)
        assert spread is not None
        assert float(spread[1]) < 0.01
