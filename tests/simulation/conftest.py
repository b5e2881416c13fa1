"""What tests of commands that simulate share."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from gossamer.protocol.kernel.rules import use_compiled
from support.checkout import ROOT
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
def push_sum(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script of the push-sum example, by a name that no file of the cookbook has."""
    script = ROOT / "examples" / "push_sum" / "push_sum.py"
    spec = importlib.util.spec_from_file_location("push_sum_script", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def interpreted() -> Iterator[None]:
    """Runs are interpreted, so that nothing is compiled for a single test."""
    with use_compiled(False):
        yield
