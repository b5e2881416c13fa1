"""The notebooks of examples/notebook run from their first cell to their last, at small sizes."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Final

import pytest
from matplotlib.image import imread

from support.checkout import ROOT

FOLDER: Final = ROOT / "examples" / "notebook"
# By script: the least size that shows something, and what it then prints.
SMALL: Final = {
    "overlay.py": ("24", "kindred: 24 nodes, "),
    "trace.py": ("30", "ChurnTrace(30 nodes, "),
    "sweep.py": ("2", "paper (paper.friend_links=2)"),
    "cluster.py": ("12", "'peer 3, away for a while': '12 of 12 events'"),
}
DEAR: Final = ("trace.py", "sweep.py", "cluster.py")


def test_each_notebook_is_small_and_in_the_table() -> None:
    scripts = sorted(path.name for path in FOLDER.glob("*.py"))
    assert scripts == sorted(SMALL)
    table = (FOLDER / "README.md").read_text(encoding="utf-8")
    for name in scripts:
        assert f"| `{name}` |" in table
        text = (FOLDER / name).read_text(encoding="utf-8")
        assert len(text.splitlines()) < 60
        assert text.count("\n# %% ") >= 3
        assert "savefig" in text.rpartition("\n# %% ")[2]


@pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=[pytest.mark.campaign] if one in DEAR else []) for one in SMALL],
)
def test_a_notebook_runs_and_ends_with_a_picture(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    size, expected = SMALL[name]
    picture = tmp_path / "picture.png"
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setattr(sys, "argv", [name, size, str(picture)])
    runpy.run_path(str(FOLDER / name))
    assert expected in capsys.readouterr().out
    assert imread(picture).std() > 0.05
