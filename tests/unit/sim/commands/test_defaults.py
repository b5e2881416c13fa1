"""`gossamer sim run` without a scenario: peers under the defaults, but for what is set."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.command.main import main
from gossamer.sim.studies.peers.inputs.scenario import Scenario
from gossamer.sim.study.scenarios import default_scenario, read_scenario


def test_what_is_not_set_has_its_default(tmp_path: Path) -> None:
    scenario, text = default_scenario({"nodes": 1e4, "events.per_round": 2})
    assert scenario == read_scenario(_written(tmp_path, text))[0]
    assert isinstance(scenario, Scenario)
    assert (scenario.nodes, scenario.rounds) == (10_000, Scenario().rounds)


def test_other_studies_have_defaults_as_well() -> None:
    assert default_scenario({"kind": "scot"})[0].kind == "scot"


def test_the_command_checks_the_defaults(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["sim", "check", "--nodes", "1e3"]) == 0
    assert "1,000" in capsys.readouterr().out
    for command in ("check", "run"):
        assert main(["sim", command, "--nodes", "1"]) == 2
        told = "gossamer: nodes is 1, expected a whole number from 2 to 10000000\n"
        assert capsys.readouterr().err == told


def _written(folder: Path, text: str) -> Path:
    path = folder / "scenario.toml"
    path.write_text(text)
    return path
