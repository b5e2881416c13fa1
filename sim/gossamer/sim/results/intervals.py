"""Intervals over seeds and comparisons of systems, from one value a run.

Runs that differ in nothing but the seed are repetitions of one condition; the interval of their
mean is Student's. Two systems are compared over the seeds that both ran under the same condition:
the mean of the differences with its interval, Hedges' g (Cohen's d without its bias in small
samples) and Cliff's delta (how much more often one is larger than the other).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import attrs
import numpy as np
import numpy.typing as npt

CONFIDENCE: Final = 0.95

# What tells runs apart but is not a condition.
_NO_CONDITION: Final = frozenset({"seed", "name", "systems", "coverings", "routings", "strategies"})

# Where the settings of systems stand among conditions: in a scenario, and in a sweep file.
SETTINGS: Final = ("settings.", "system.")

Condition = tuple[tuple[str, Any], ...]


@attrs.frozen(kw_only=True)
class Value:
    """One measure of one system of one run."""

    run: str
    condition: Condition
    seed: int
    system: str
    measure: str
    value: float
    method: str


@attrs.frozen(kw_only=True)
class Interval:
    """A measure over the seeds of a condition; ``low`` and ``high`` are NaN of a single seed."""

    condition: Condition
    system: str
    measure: str
    seeds: int
    mean: float
    deviation: float
    low: float
    high: float


@attrs.frozen(kw_only=True)
class Comparison:
    """Two systems under one condition: ``difference`` is the second less the first."""

    condition: Condition
    measure: str
    first: str
    second: str
    seeds: int
    difference: float
    low: float
    high: float
    hedges_g: float
    cliffs_delta: float


def conditions(scenarios: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Condition]:
    """What tells scenarios apart, by dotted key, for each of them.

    Args:
        scenarios: a system with its scenario each, see `condition_of`. What systems are set to
            counts only where it differs between runs of the same system.
    """
    flat = [(system, dict(flattened(scenario))) for system, scenario in scenarios]
    names = sorted(set().union(*(values for _, values in flat))) if flat else []
    values: dict[tuple[str, str], set[str]] = {}
    for system, known in flat:
        for name in names:
            place = (system if is_setting(name) else "", name)
            values.setdefault(place, set()).add(repr(known.get(name)))

    def varies(system: str, name: str) -> bool:
        return len(values[system if is_setting(name) else "", name]) > 1

    return [
        tuple((name, known.get(name)) for name in names if varies(system, name))
        for system, known in flat
    ]


def variant(system: str, condition: Condition) -> str:
    """A system with those of its settings that are varied."""
    own = [f"{short_name(name)}={x}" for name, x in condition if is_setting(name)]
    return f"{system} ({', '.join(own)})" if own else system


def short_name(name: str) -> str:
    """The name of a condition; of a setting, without where settings stand."""
    return name.partition(".")[2] if is_setting(name) else name


def is_setting(name: str) -> bool:
    """Whether a condition is a setting of systems, which tells these apart."""
    return name.startswith(SETTINGS)


def condition_of(scenario: Mapping[str, Any], system: str) -> dict[str, Any]:
    """A scenario without what is no condition, and of its systems only the one's settings."""
    kept = {key: value for key, value in scenario.items() if key not in _NO_CONDITION}
    for one in scenario.get("systems", ()):
        if isinstance(one, Mapping) and one.get("name") == system:
            settings = one.get("settings")
            kept["settings"] = dict(settings) if isinstance(settings, Mapping) else {}
    return kept


def flattened(scenario: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The values of a scenario by dotted key, below a key if given; a list is a tuple."""
    if isinstance(scenario, Mapping):
        for key, item in scenario.items():
            yield from flattened(item, f"{prefix}.{key}" if prefix else str(key))
    else:
        yield prefix, tuple(scenario) if isinstance(scenario, list) else scenario


def intervals(values: Iterable[Value]) -> list[Interval]:
    """The intervals of all measures, systems and conditions; values of NaN do not count."""
    groups: dict[tuple[Condition, str, str], list[Value]] = {}
    for one in values:
        groups.setdefault((one.condition, one.system, one.measure), []).append(one)
    found = []
    for (condition, system, measure), group in groups.items():
        numbers = np.array([one.value for one in group if not math.isnan(one.value)])
        if len(numbers) == 0:
            continue
        half = half_width(numbers)
        mean = float(numbers.mean())
        found.append(
            Interval(
                condition=condition,
                system=system,
                measure=measure,
                seeds=len(numbers),
                mean=mean,
                deviation=float(numbers.std(ddof=1)) if len(numbers) > 1 else math.nan,
                low=mean - half,
                high=mean + half,
            )
        )
    return found


def half_width(numbers: Any) -> float:
    """Half the length of Student's interval of a mean; NaN of fewer than two numbers."""
    count = len(numbers)
    if count < 2:
        return math.nan
    return student(count) * float(np.std(numbers, ddof=1)) / math.sqrt(count)


def student(count: int) -> float:
    """Half the length of the interval of a mean of ``count`` numbers, in standard errors."""
    from scipy.stats import t

    return float(t.ppf((1 + CONFIDENCE) / 2, count - 1))


def comparisons(values: Iterable[Value]) -> list[Comparison]:
    """All pairs of systems under the same condition, over the seeds that both have."""
    by_place: dict[tuple[Condition, str], dict[str, dict[int, float]]] = {}
    for one in values:
        if not math.isnan(one.value):
            shared = tuple(pair for pair in one.condition if not is_setting(pair[0]))
            systems = by_place.setdefault((shared, one.measure), {})
            systems.setdefault(variant(one.system, one.condition), {})[one.seed] = one.value
    found = []
    for (condition, measure), systems in by_place.items():
        for first, second in itertools.combinations(systems, 2):
            seeds = sorted(systems[first].keys() & systems[second].keys())
            if seeds:
                pair = (np.array([systems[one][seed] for seed in seeds]) for one in (first, second))
                found.append(_compared(condition, measure, first, second, *pair))
    return found


def _compared(
    condition: Condition, measure: str, first: str, second: str, one: Any, other: Any
) -> Comparison:
    differences = other - one
    half = half_width(differences)
    mean = float(differences.mean())
    return Comparison(
        condition=condition,
        measure=measure,
        first=first,
        second=second,
        seeds=len(one),
        difference=mean,
        low=mean - half,
        high=mean + half,
        hedges_g=hedges_g(one, other),
        cliffs_delta=cliffs_delta(one, other),
    )


def hedges_g(one: Any, other: Any) -> float:
    """Difference of means in pooled standard deviations, corrected for small samples.

    NaN where there are fewer than two values each, or all are equal.
    """
    freedom = len(one) + len(other) - 2
    if min(len(one), len(other)) < 2:
        return math.nan
    squares = (len(one) - 1) * np.var(one, ddof=1) + (len(other) - 1) * np.var(other, ddof=1)
    pooled = math.sqrt(float(squares) / freedom)
    if pooled == 0:
        return math.nan
    return (1 - 3 / (4 * freedom - 1)) * float(np.mean(other) - np.mean(one)) / pooled


def cliffs_delta(one: Any, other: Any) -> float:
    """Share of pairs in which the second is larger, less that in which it is smaller."""
    signs = np.sign(np.subtract.outer(np.asarray(other), np.asarray(one)))
    return float(signs.mean())


# How long a run takes to settle: MSER-5.
#
# What is measured while a simulation still depends on how it began biases a mean. White's rule
# leaves out as much of the beginning as makes the standard error of the mean of the rest least;
# MSER-5 (White, Cobb and Spratt, Winter Simulation Conference 2000) does so for means of five
# values at a time.


BATCH: Final = 5
# Fewer batches tell nothing about when something settles.
LEAST_BATCHES: Final = 4


class WarmUp(NamedTuple):
    """What MSER-5 finds of a series.

    Attributes:
        left_out: values at the beginning to be left out, a multiple of five.
        mean: of the others; NaN of none.
        settled: whether the rule is to be trusted: where it would leave out more than half, or
            there are fewer than twenty values, the run is too short to tell.
    """

    left_out: int
    mean: float
    settled: bool


def mser5(values: npt.ArrayLike) -> WarmUp:
    """Find how much of the beginning of a series belongs to its warm-up.

    Args:
        values: float[n], equally spaced in time; what is left over of five at the end counts for
            the mean alone.

    Returns:
        of all that may be left out, the shortest beginning with the least error.
    """
    series = np.asarray(values, dtype=np.float64)
    count = len(series) // BATCH
    if count < LEAST_BATCHES:
        return WarmUp(0, float(series.mean()) if len(series) else math.nan, False)
    batches = series[: count * BATCH].reshape(count, BATCH).mean(axis=1)
    errors = [
        float(np.var(batches[cut:])) / (count - cut) for cut in range(count - LEAST_BATCHES + 1)
    ]
    cut = int(np.argmin(errors))
    left_out = cut * BATCH
    return WarmUp(left_out, float(series[left_out:].mean()), 2 * cut <= count)
