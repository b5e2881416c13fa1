"""What tests of commands that simulate share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.protocol.kernel.rules import use_compiled
from support.installed_command import install


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, with the command installed."""
    install(tmp_path / "site", monkeypatch)
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def interpreted() -> Iterator[None]:
    """Runs are interpreted, so that nothing is compiled for a single test."""
    with use_compiled(False):
        yield
