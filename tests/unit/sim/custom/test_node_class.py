"""What initialisers, controls and measures of plain classes see of their class."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.command.main import main
from gossamer.sim.studies.custom.agreement import scenario_of
from gossamer.sim.studies.custom.simulation import simulate_custom
from support.own_protocols import protocol_file, scenario_file

COUNTING = """
from gossamer.sim.custom import initialiser

class Own(Node):
    step: int = 1
    {more}

    tick = Timer(rounds=1)

    def __init__(self):
        self.count = 0

    @initialiser
    def begin(cls, run):
        for node in run.nodes:
            node.count = cls.first()

    @classmethod
    def first(cls):
        return 100 * cls.step

    def on_tick(self):
        self.count += self.step

    @measure
    def in_steps(cls, run):
        return sum(node.count for node in run.nodes) / len(run.nodes) / cls.step
"""


@pytest.mark.parametrize("step", [1, 7])
def test_settings_are_those_of_the_scenario(tmp_path: Path, step: int) -> None:
    protocol = protocol_file(tmp_path, f"counting_by_{step}", COUNTING.format(more=""))
    given = {"nodes": 3, "rounds": 4, "settings": {"step": step}}
    scenario = scenario_of(protocol, folder=tmp_path, **given)
    (system,) = simulate_custom(scenario).systems.values()
    assert system.rounds["in_steps"].tolist() == [100, 101, 102, 103, 104]


def test_a_setting_is_not_set_by_a_function_of_the_class(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    more = "@control(once=1)\n    def change(cls, run):\n        cls.step = 3"
    scenario_file(tmp_path, protocol_file(tmp_path, "counting_and_set", COUNTING.format(more=more)))
    assert main(["sim", "run", "own.toml", "--out", "out"]) == 2
    assert "Own.step is a setting, which the scenario sets" in capsys.readouterr().err


def test_a_run_of_plain_classes_does_not_say_that_it_compiles(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    protocol = protocol_file(tmp_path, "counting_alone", COUNTING.format(more=""))
    scenario = scenario_file(tmp_path, protocol)
    assert main(["sim", "run", str(scenario), "--out", str(tmp_path / "out"), "--no-plots"]) == 0
    told = capsys.readouterr().err
    assert "0 of 3 rounds, begun" in told
    assert "compile" not in told
