"""Messages that miss a library name a command that installs it, as it was installed itself."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from gossamer.command.extras import install_hint

CHECKOUT = Path(__file__).parents[3]


def test_an_installed_package_is_named(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()  # of whoever keeps packages beside it
    for packages in ("site-packages", "vendor"):
        assert install_hint("spark", tmp_path / packages) == "pip install 'gossamer[spark]'"


def test_a_checkout_installs_itself_as_its_readme_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CHECKOUT)
    assert install_hint("spark") == "pip install '.[spark]'"
    assert install_hint("spark") in (CHECKOUT / "README.md").read_text()


def test_a_checkout_is_named_from_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = tmp_path / "a checkout"
    sources.mkdir()
    (sources / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path)
    command = install_hint("spark", sources / "shared")
    assert shlex.split(command) == ["pip", "install", f"{sources}[spark]"]


def test_sources_leave_the_wording_to_the_hint() -> None:
    """No other sentence of a program names an extra, which a checkout would install otherwise."""
    own = CHECKOUT / "shared" / "gossamer" / "command" / "extras.py"
    for part in ("shared", "node", "sim", "spark"):
        for file in sorted((CHECKOUT / part).rglob("*.py")):
            assert file == own or "pip install 'gossamer[" not in file.read_text(), file
