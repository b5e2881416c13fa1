"""What tests of commands that simulate share."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.installed_command import install


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, with the command installed."""
    install(tmp_path / "site", monkeypatch)
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder
