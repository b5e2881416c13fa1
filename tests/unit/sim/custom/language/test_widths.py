"""Columns whose width follows from settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.protocol.kernel.rules import use_compiled
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.custom.agreement import scenario_of
from gossamer.sim.studies.custom.simulation import simulate_custom

PROTOCOL = """
from gossamer.sim.custom import Protocol, Timer, column, measure


class Own(Protocol):
    k: int = 2
    levels: int = 3
    table = column(int, lambda own: own.k * own.levels)
    tick = Timer(rounds=1)

    def on_tick(self, me, net):
        self.table[me, self.k * self.levels - 1] += 1

    @measure("width")
    def width(self, run):
        return self.table.shape[1]
"""


def test_a_column_is_as_wide_as_a_function_of_the_settings(tmp_path: Path) -> None:
    (tmp_path / "widths.py").write_text(PROTOCOL)
    for k, width in ((2, 6), (5, 15)):
        scenario = scenario_of(
            "widths.py:Own", folder=tmp_path, nodes=4, rounds=2, settings={"k": k}
        )
        with use_compiled(False):
            (system,) = simulate_custom(scenario).systems.values()
        assert system.rounds["width"][-1] == width
    with pytest.raises(ScenarioError, match="width of column table is 0, expected settings by"):
        scenario_of("widths.py:Own", folder=tmp_path, nodes=4, rounds=2, settings={"k": 0})
