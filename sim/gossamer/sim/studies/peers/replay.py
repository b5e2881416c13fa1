"""A scenario around a churn trace, for those who have nothing but the trace."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gossamer.sim.churn.files import ENDINGS
from gossamer.sim.studies.peers.inputs.scenario import Scenario
from gossamer.sim.studies.peers.inputs.scenario_file import FORMAT


def replay_scenario(
    trace: Path, preset: str, overrides: Mapping[str, object]
) -> tuple[Scenario, str]:
    """The system ``preset`` beside the baseline, under all of ``trace``.

    Args:
        trace: the trace file.
        preset: one of `PRESETS`.
        overrides: see `gossamer.sim.study.scenarios.read_scenario`.

    Returns:
        The scenario, and the text of a scenario file that says the same.

    Raises:
        ScenarioError: the preset is unknown or an override impossible.
    """
    document: dict[str, Any] = {
        "name": _stem(trace),
        # Measuring the whole overlay costs more than a round of it; over days, samples will do.
        "measure_every": 10,
        "events": {"per_round": 0.5},
        "churn": {"trace": trace.resolve()},
        "system": [{"name": one, "preset": one} for one in dict.fromkeys((preset, "baseline"))],
    }
    scenario = FORMAT.read(document, overrides)
    return scenario, f"# Replay of {trace.name!r}.\n\n" + FORMAT.write(scenario)


def _stem(trace: Path) -> str:
    ending = next((ending for ending in ENDINGS if trace.name.endswith(ending)), "")
    return trace.name.removesuffix(ending) or trace.name
