"""What `gossamer sim` says of protocols that are wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.own_protocols import protocol_file, scenario_file
from support.sim_commands import sim


@pytest.fixture
def refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """The last line said of a protocol, or of a scenario, by a command that leaves nothing."""

    def of(command: str, text: str, keys: str = "nodes = 20\nrounds = 3\n") -> str:
        monkeypatch.chdir(tmp_path)
        # A module of each name is loaded once.
        name = f"case_{abs(hash(tmp_path))}_{len([*tmp_path.iterdir()])}"
        protocol = protocol_file(tmp_path, name, text) if "\n" in text else text
        file = scenario_file(tmp_path, protocol, keys)
        before = {*tmp_path.iterdir(), tmp_path / "__pycache__"}
        capsys.readouterr()
        assert sim(command, file) == 2
        assert {*tmp_path.iterdir()} <= before
        error = capsys.readouterr().err.strip()
        assert "Traceback" not in error
        assert command == "run" or "\n" not in error
        return error.splitlines()[-1].replace(name, "case")

    return of


@pytest.fixture
def found(refused: Callable[..., str]) -> Callable[[str, str, str], None]:
    """A command refuses a protocol in a sentence, of which "line: words" are told."""

    def check(command: str, text: str, told: str) -> None:
        line, _, words = told.partition(": ")
        said = refused(command, text)
        assert words in said
        assert f"case.py, line {line}" in said, said

    return check
