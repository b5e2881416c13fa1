"""Synthetic churn: populations that come and go, and failures that strike them.

A specification is a sum of populations (each with nodes of its own) to which failures are then
applied in order of time. Every part draws from a stream of its own, derived from the seed and
the position of the part, so that changing one part leaves the draws of the others alone. Only
uniform numbers are drawn and inverted here: a trace does not hang on how a library samples a
distribution. Times are whole multiples of the resolution.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Protocol

import attrs
import numpy as np
from numpy.typing import NDArray

from gossamer.sim.churn.trace import ChurnTrace
from gossamer.sim.errors import ScenarioError
from gossamer.sim.study.draws import rows_from, uniform

# Distributions of session and absence lengths, drawn by inversion.
#
# Measured session lengths have heavier tails than the exponential distribution. Stutzbach and
# Rejaie ("Understanding churn in peer-to-peer networks", IMC 2006) fit Weibull distributions of a
# shape below 1; Yao, Leonard, Wang and Loguinov ("Modeling heterogeneous user churn and local
# resilience of unstructured P2P networks", ICNP 2006) use the shifted Pareto distribution. The
# default shapes are guesses within the range of such measurements.


Floats = NDArray[np.float64]


class Lifetimes(Protocol):
    """A distribution of lengths of time, in seconds."""

    @property
    def mean_s(self) -> float:
        """The mean length."""
        ...

    def length_s(self, u: Floats) -> Floats:
        """Lengths for uniform draws `u` from [0, 1), of the same shape: the quantile function."""
        ...

    def residual_s(self, u: Floats) -> Floats:
        """Remaining lengths seen at a random instant of a process that has run forever.

        The quantile function of the equilibrium distribution of renewal theory, whose density is
        P(length > x) / mean.
        """
        ...


def above(bound: float) -> Any:
    """An attrs validator: a finite number greater than `bound`, else `ScenarioError`."""

    def check(_: object, attribute: attrs.Attribute[float], value: float) -> None:
        if not bound < value < math.inf:
            expected = f"a finite number greater than {bound:g}"
            raise ScenarioError(None, attribute.name, value, expected)

    return check


@attrs.frozen
class Weibull:
    """P(length > x) = exp(-(x / scale) ** shape); shape 1 is exponential, below 1 heavy-tailed.

    Raises:
        ScenarioError: the mean is not positive, or the shape not above 0.1 (where ten orders of
            magnitude lie between median and mean).
    """

    mean_s: float = attrs.field(validator=above(0.0))
    shape: float = attrs.field(default=0.5, validator=above(0.1))

    @property
    def scale_s(self) -> float:
        """The length that a fraction 1/e of all lengths exceeds."""
        return self.mean_s / math.gamma(1 + 1 / self.shape)

    def length_s(self, u: Floats) -> Floats:
        """See `Lifetimes`."""
        return np.asarray(self.scale_s * (-np.log1p(-u)) ** (1 / self.shape))

    def residual_s(self, u: Floats) -> Floats:
        """See `Lifetimes`."""
        from scipy.special import gammaincinv

        return np.asarray(self.scale_s * gammaincinv(1 / self.shape, u) ** (1 / self.shape))


@attrs.frozen
class Pareto:
    """P(length > x) = (1 + x / scale) ** -shape, the shifted Pareto distribution.

    Raises:
        ScenarioError: the mean is not positive, or the shape not above 1 (no mean exists).
    """

    mean_s: float = attrs.field(validator=above(0.0))
    shape: float = attrs.field(default=3.0, validator=above(1.0))

    @property
    def scale_s(self) -> float:
        """The shift of the distribution, in seconds."""
        return self.mean_s * (self.shape - 1)

    def length_s(self, u: Floats) -> Floats:
        """See `Lifetimes`."""
        return self._quantile_s(u, self.shape)

    def residual_s(self, u: Floats) -> Floats:
        """See `Lifetimes`; the residual life is shifted Pareto too, of a shape one lower."""
        return self._quantile_s(u, self.shape - 1)

    def _quantile_s(self, u: Floats, shape: float) -> Floats:
        with np.errstate(over="ignore"):  # a length beyond all numbers is longer than any trace
            return np.asarray(self.scale_s * np.expm1(-np.log1p(-u) / shape))


Ticks = NDArray[np.int64]

_POPULATION_STREAM, _FAILURE_STREAM = 0, 1


def _within(low: float, high: float, words: str) -> Any:
    """An attrs validator: a number from low to high, described by `words`."""

    def check(_: object, attribute: attrs.Attribute[float], value: float) -> None:
        if not low <= value <= high:
            raise ScenarioError(None, attribute.name, value, words)

    return check


_count = _within(1, 2**31 - 1, "a whole number of at least 1")
_instant = _within(0, 1e15, "a number of seconds of at least 0")
_share = _within(0, 1, "a fraction from 0 to 1")


@attrs.frozen
class StationaryChurn:
    """Nodes that alternate between sessions and absences, independently and since forever.

    The alternating renewal process of Yao et al. (ICNP 2006) in its stationary state:
    at time 0 each node is online with probability E[session] / (E[session] + E[absence]), and
    its first interval is a residual one.
    """

    nodes: int = attrs.field(validator=_count)
    sessions: Lifetimes
    absences: Lifetimes

    @property
    def availability(self) -> float:
        """The fraction of time that a node is online."""
        return self.sessions.mean_s / (self.sessions.mean_s + self.absences.mean_s)


@attrs.frozen
class FlashCrowd:
    """New nodes that all join, once, at uniform times within a short while.

    Attributes:
        at_s: when the first may join.
        within_s: the length of the interval in which all have joined.
        stay: how long those stay who leave again.
        remain: the fraction that stays to the end of the trace.
    """

    nodes: int = attrs.field(validator=_count)
    at_s: float = attrs.field(validator=_instant)
    within_s: float = attrs.field(validator=_instant)
    stay: Lifetimes
    remain: float = attrs.field(default=0.0, validator=_share)


@attrs.frozen
class CorrelatedFailure:
    """A fraction of those online leaves at one instant; all of them return after a delay.

    The life of a node that fails is suspended: it returns with the rest of its session, and what
    it would have done later happens later by the delay.
    """

    at_s: float = attrs.field(validator=_instant)
    fraction: float = attrs.field(validator=_share)
    back_after_s: float = attrs.field(validator=above(0.0))


Population = StationaryChurn | FlashCrowd


def _populations(parts: Iterable[Population]) -> tuple[Population, ...]:
    return tuple(parts)


def _failures(parts: Iterable[CorrelatedFailure]) -> tuple[CorrelatedFailure, ...]:
    return tuple(parts)


@attrs.frozen
class ChurnSpec:
    """What `generate` makes a trace of.

    Raises:
        ScenarioError: there is no population, or a part happens after the end.
    """

    duration_s: float = attrs.field(validator=above(0.0))
    populations: tuple[Population, ...] = attrs.field(converter=_populations)
    failures: tuple[CorrelatedFailure, ...] = attrs.field(default=(), converter=_failures)
    resolution_s: float = attrs.field(default=1.0, validator=above(0.0))

    def __attrs_post_init__(self) -> None:
        if not self.populations:
            raise ScenarioError(None, "populations", self.populations, "at least one population")
        if self.resolution_s > self.duration_s:
            expected = f"at most the duration, {self.duration_s!r}"
            raise ScenarioError(None, "resolution_s", self.resolution_s, expected)
        for part in (*self.populations, *self.failures):
            at_s = getattr(part, "at_s", 0.0)
            if at_s >= self.duration_s:
                expected = f"a time before the end of the trace, {self.duration_s!r}"
                raise ScenarioError(None, f"at_s of {type(part).__name__}", at_s, expected)


@attrs.frozen
class _Sessions:
    """Sessions in whole ticks, before they become a trace."""

    node: Ticks
    start: Ticks
    end: Ticks


@attrs.frozen
class _Clock:
    """Converts seconds to ticks of the resolution; nothing lies beyond the horizon."""

    resolution_s: float
    horizon: int

    def tick(self, time_s: float | Floats) -> Ticks:
        """The nearest tick to a time."""
        ticks = np.minimum(np.rint(np.asarray(time_s) / self.resolution_s), self.horizon)
        return ticks.astype(np.int64)

    def length(self, length_s: Floats) -> Ticks:
        """The nearest number of ticks to a length, at least one: no interval is empty."""
        return np.maximum(self.tick(length_s), 1)


def generate(spec: ChurnSpec, seed: int) -> ChurnTrace:
    """Generate the trace of a specification; equal arguments give equal traces.

    Args:
        spec: populations and failures.
        seed: any whole number of at least 0.

    Returns:
        A trace with nodes `n0`, `n1`, ... numbered through the populations in their order.

    Raises:
        ScenarioError: the seed is negative.
    """
    if seed < 0:
        raise ScenarioError(None, "seed", seed, "a whole number of at least 0")
    clock = _Clock(spec.resolution_s, math.ceil(spec.duration_s / spec.resolution_s))
    sessions, nodes = _populate(spec, seed, clock)
    by_time = sorted(enumerate(spec.failures), key=lambda item: item[1].at_s)
    for position, failure in by_time:
        rng = _stream(seed, _FAILURE_STREAM, position)
        sessions = _strike(failure, sessions, rng, clock)
    return _to_trace(spec, nodes, sessions, clock)


def _stream(seed: int, kind: int, position: int) -> np.random.Generator:
    return np.random.Generator(
        np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(kind, position)))
    )


def _populate(spec: ChurnSpec, seed: int, clock: _Clock) -> tuple[_Sessions, int]:
    """The sessions of all populations, and how many nodes those have."""
    parts = []
    nodes = 0
    for position, population in enumerate(spec.populations):
        rng = _stream(seed, _POPULATION_STREAM, position)
        if isinstance(population, StationaryChurn):
            part = _alternate(population, rng, clock)
        else:
            part = _crowd(population, rng, clock)
        parts.append(attrs.evolve(part, node=part.node + nodes))
        nodes += population.nodes
    columns = (
        np.concatenate([getattr(part, column) for part in parts])
        for column in ("node", "start", "end")
    )
    return _Sessions(*columns), nodes


def _alternate(churn: StationaryChurn, rng: np.random.Generator, clock: _Clock) -> _Sessions:
    """Step all nodes from one interval to the next until every one is past the horizon."""
    online = rng.random(churn.nodes) < churn.availability
    u = rng.random(churn.nodes)
    remaining_s = np.where(online, churn.sessions.residual_s(u), churn.absences.residual_s(u))
    now = np.zeros(churn.nodes, dtype=np.int64)
    until = clock.length(remaining_s)
    node, start, end = [], [], []
    while True:
        in_session = np.flatnonzero(online & (now < clock.horizon))
        node.append(in_session)
        start.append(now[in_session])
        end.append(np.minimum(until[in_session], clock.horizon))
        if (until >= clock.horizon).all():
            return _Sessions(np.concatenate(node), np.concatenate(start), np.concatenate(end))
        online, now = ~online, until
        u = rng.random(churn.nodes)
        length_s = np.where(online, churn.sessions.length_s(u), churn.absences.length_s(u))
        until = np.minimum(now + clock.length(length_s), clock.horizon)


def _crowd(crowd: FlashCrowd, rng: np.random.Generator, clock: _Clock) -> _Sessions:
    start = clock.tick(crowd.at_s + crowd.within_s * rng.random(crowd.nodes))
    stay = clock.length(crowd.stay.length_s(rng.random(crowd.nodes)))
    remains = rng.random(crowd.nodes) < crowd.remain
    end = np.where(remains, clock.horizon, np.minimum(start + stay, clock.horizon))
    return _Sessions(np.arange(crowd.nodes), start, end)


def _strike(
    failure: CorrelatedFailure, sessions: _Sessions, rng: np.random.Generator, clock: _Clock
) -> _Sessions:
    """Suspend the lives of a random fraction of the nodes that are online at the failure."""
    at = int(clock.tick(failure.at_s))
    delay = int(clock.length(np.asarray(failure.back_after_s)))
    online = sessions.node[(sessions.start <= at) & (at < sessions.end)]
    online.sort()
    victims = online[np.argsort(rng.random(len(online)), kind="stable")]
    victims = victims[: round(failure.fraction * len(online))]

    struck = np.isin(sessions.node, victims)
    before = struck & (sessions.start < at)
    after = struck & (sessions.end > at)
    columns = (
        (~struck, sessions.start, sessions.end),
        (before, sessions.start, np.minimum(sessions.end, at)),
        (after, np.maximum(sessions.start, at) + delay, sessions.end + delay),
    )
    return _Sessions(
        np.concatenate([sessions.node[chosen] for chosen, _, _ in columns]),
        np.concatenate([start[chosen] for chosen, start, _ in columns]),
        np.concatenate([end[chosen] for chosen, _, end in columns]),
    )


def _to_trace(spec: ChurnSpec, nodes: int, sessions: _Sessions, clock: _Clock) -> ChurnTrace:
    end_s = np.minimum(sessions.end * clock.resolution_s, spec.duration_s)
    end_s[sessions.end >= clock.horizon] = spec.duration_s
    start_s = np.minimum(sessions.start * clock.resolution_s, spec.duration_s)
    kept = start_s < end_s
    names = tuple(f"n{number}" for number in range(nodes))
    return ChurnTrace(names, sessions.node[kept], start_s[kept], end_s[kept], spec.duration_s)


# Turnover: a population of constant size whose members are replaced one by one.
#
# Half of the nodes are online at a time. At the moment one of them leaves, without a word, one that
# has been away joins. So nothing varies but how fast: half of all peers replaced in an hour is a
# share of 0.5.


_HOUR_S = 3600.0
# The streams of the draws of when nodes are replaced, which, and by whom.
_WHEN, _WHO, _BY_WHOM = 120, 121, 122


def make_turnover(nodes: int, duration_s: float, share: float, seed: int) -> ChurnTrace:
    """A trace in which so large a share of those online is replaced in an hour, at any time.

    Args:
        nodes: in all, at least 2; the first half of them is online at the beginning.
        duration_s: of the trace.
        share: of the nodes online, in an hour.
        seed: of all draws.
    """
    online, away = list(range(nodes // 2)), list(range(nodes // 2, nodes))
    rows = rows_from(0, round(share * len(online) * duration_s / _HOUR_S))
    times = np.sort(uniform(seed, _WHEN, rows, 0)) * duration_s
    leaving, joining = uniform(seed, _WHO, rows, 0), uniform(seed, _BY_WHOM, rows, 0)
    began = dict.fromkeys(online, 0.0)
    sessions: list[tuple[int, float, float]] = []
    for time_s, who, by_whom in zip(times.tolist(), leaving, joining, strict=True):
        i, j = int(who * len(online)), int(by_whom * len(away))
        if time_s > began[online[i]]:
            sessions.append((online[i], began.pop(online[i]), time_s))
            online[i], away[j] = away[j], online[i]
            began[online[i]] = time_s
    sessions += [(node, begin, duration_s) for node, begin in began.items() if begin < duration_s]
    node, start_s, end_s = zip(*sessions, strict=True)
    names = tuple(f"n{number}" for number in range(nodes))
    return ChurnTrace(names, node, start_s, end_s, duration_s)
