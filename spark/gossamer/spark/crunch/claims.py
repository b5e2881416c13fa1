"""Claims of the Vinifera paper checked from crunched runs, with intervals over their seeds.

The bounds and what decides are those of `gossamer sim figures vinifera`, which checks here too;
intervals are added. A check is a function of means over seeds (a ratio of two, the largest less the
smallest of some), so that its interval is the jackknife's: that of a plain mean is Student's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import attrs
import numpy as np

from gossamer.sim.errors import ScenarioError
from gossamer.sim.figures.common.claims import Check, Claim
from gossamer.sim.figures.common.measurements import LOOKUP, PATH, TREE, Measurements
from gossamer.sim.figures.common.points import Outcome, Point
from gossamer.sim.figures.vinifera.claims import V3, V6
from gossamer.sim.figures.vinifera.studies import ATTRIBUTES, BASELINE, KINDS, PAPER, SIZES
from gossamer.sim.results.intervals import Value, student
from gossamer.sim.results.results import SCENARIO_FILE
from gossamer.sim.studies.peers.inputs.scenario import Scenario
from gossamer.sim.study.scenarios import read_scenario
from gossamer.spark.crunch.folders import Run

CLAIMS: Final = ("V3", "V6")


@attrs.frozen
class _Study:
    """What decides a claim: the runs of a study, which vary ``place``."""

    name: str
    place: Callable[[Scenario], float]
    check: Callable[[Measurements], Claim]


def _nodes(scenario: Scenario) -> float:
    return math.nan if scenario.nodes is None else float(scenario.nodes)


def _attributes(scenario: Scenario) -> float:
    return float(scenario.subscriptions.attributes)


_STUDIES: Final[Mapping[str, _Study]] = MappingProxyType(
    {"V3": _Study(SIZES, _nodes, V3.check), "V6": _Study(ATTRIBUTES, _attributes, V6.check)}
)


@attrs.frozen(kw_only=True)
class CheckedClaim:
    """A claim with the intervals of its checks.

    Attributes:
        claim: with its verdict.
        seeds: over which it was checked.
        ends: of the 95 % interval of each check; NaN where there are fewer than two seeds.
    """

    claim: Claim
    seeds: int
    ends: Sequence[tuple[float, float]]

    def rows(self) -> list[tuple[Check, float, float]]:
        """Every check with the ends of its interval."""
        pairs = zip(self.claim.checks, self.ends, strict=True)
        return [(check, low, high) for check, (low, high) in pairs]


def check_names(names: Sequence[str]) -> None:
    """Raise `ScenarioError` for a claim that is not checked here."""
    for name in names:
        if name not in CLAIMS:
            raise ScenarioError(None, "--claim", name, f"one of {', '.join(CLAIMS)}")


def check_claims(
    names: Sequence[str], runs: Sequence[Run], values: Sequence[Value]
) -> list[CheckedClaim]:
    """The verdicts on claims, from the measures of runs.

    Args:
        names: of the claims, see `CLAIMS`.
        runs: all that were crunched; those that are none of peers are left aside.
        values: their measures.

    Raises:
        ScenarioError: a claim is not checked here, or runs that decide it are missing altogether.
    """
    check_names(names)
    return [_check_over_seeds(name, _outcomes(_STUDIES[name], runs, values)) for name in names]


def _outcomes(study: _Study, runs: Sequence[Run], values: Sequence[Value]) -> list[Outcome]:
    scenarios = {run.name: _scenario(run) for run in runs}
    measures: dict[tuple[str, str], dict[str, float]] = {}
    for one in values:
        measures.setdefault((one.run, one.system), {})[one.measure] = one.value
    found = []
    for (run, system), known in measures.items():
        scenario = scenarios[run]
        if scenario is not None:
            point = Point(
                study=study.name,
                system=system,
                kind=scenario.subscriptions.kind,
                x=study.place(scenario),
                scenario=scenario,
            )
            lookup = {LOOKUP: known.get(PATH, math.nan) - known.get(TREE, math.nan)}
            found.append(Outcome(point=point, measures=known | lookup, load=np.empty(0), hours={}))
    return found


def _scenario(run: Run) -> Scenario | None:
    """What a run of peers ran; None of any other kind."""
    place = run.path / SCENARIO_FILE
    if not place.exists():
        return None
    with place.fetched() as file:
        scenario, _ = read_scenario(file, {})
    return scenario if isinstance(scenario, Scenario) else None


def _check_over_seeds(name: str, outcomes: Sequence[Outcome]) -> CheckedClaim:
    study = _STUDIES[name]
    there = {(one.point.system, one.point.kind) for one in outcomes}
    wanted = {(system, kind) for system in (PAPER, BASELINE) for kind in KINDS}
    if not wanted <= there:
        missing = ", ".join(f"{system} ({kind})" for system, kind in sorted(wanted - there))
        expected = f"runs of {missing} among the results"
        raise ScenarioError(None, "--claim", name, expected)
    claim = study.check(Measurements(outcomes))
    seeds = sorted({one.point.scenario.seed for one in outcomes})
    without = [
        study.check(Measurements([one for one in outcomes if one.point.scenario.seed != seed]))
        for seed in (seeds if len(seeds) > 1 else ())
    ]
    ends = [
        _jackknife(check, [other.checks[place] for other in without])
        for place, check in enumerate(claim.checks)
    ]
    return CheckedClaim(claim=claim, seeds=len(seeds), ends=ends)


def _jackknife(check: Check, without: Sequence[Check]) -> tuple[float, float]:
    """The interval of a check's value from its values without each of the seeds in turn."""
    count = len(without)
    if count < 2:
        return math.nan, math.nan
    values = np.array([one.value for one in without])
    error = math.sqrt((count - 1) * float(np.var(values)))
    half = student(count) * error
    return check.value - half, check.value + half
