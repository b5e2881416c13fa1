"""What several tests of `gossamer sim` share."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.installed_command import MadeUpSimulation, install, replace_simulation
from support.sim_commands import SCENARIO, TRACE


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder but for a scenario and a trace, with the command installed."""
    install(tmp_path / "site", monkeypatch)
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "s.toml").write_text(SCENARIO)
    (folder / "t.avt").write_text(TRACE)
    return folder


@pytest.fixture
def simulation(monkeypatch: pytest.MonkeyPatch) -> MadeUpSimulation:
    return replace_simulation(monkeypatch)
