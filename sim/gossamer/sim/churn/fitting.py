"""Fits a specification of synthetic churn to a trace.

Means come from times online and from numbers of sessions, which intervals cut off by the trace's
ends do not bias much; shapes from the spread of the intervals that were seen whole; the day's
rhythm from the first harmonic of when nodes come; flash crowds and failures from hours in which far
more of them come or leave than usually.
"""

from __future__ import annotations

import math
from typing import Final

import attrs
import numpy as np
from scipy.optimize import brentq

from gossamer.sim.churn.by_row import DAY_S, ChurnByRow, Turn
from gossamer.sim.churn.synthetic import Floats, Lifetimes, Pareto, Weibull
from gossamer.sim.churn.trace import ChurnTrace
from gossamer.sim.errors import ScenarioError

HOUR_S: Final = 3600.0
# An hour is unusual if so many times as many nodes come, or leave, as in the median hour, and so
# large a share of those online on average; our choice.
_UNUSUAL_TIMES, _UNUSUAL_SHARE = 5.0, 0.1
_LEAST_SHAPE, _MOST_SHAPE = 0.15, 20.0
_MOST_RHYTHM: Final = 0.95
# Intervals below which no shape can be told, and days below which no rhythm.
_LEAST_INTERVALS, _LEAST_DAYS = 30, 2.0
# A Pareto distribution of a shape up to 2 has no variance.
_PARETO_BOUND: Final = 2.0


@attrs.frozen(kw_only=True)
class Fit:
    """What was found in a trace.

    Attributes:
        spec: that makes traces like it.
        complete_sessions, complete_absences: intervals that shapes were told from.
        ks_sessions: Kolmogorov and Smirnov's distance between sessions seen and fitted.
    """

    spec: ChurnByRow
    complete_sessions: int
    complete_absences: int
    ks_sessions: float


def fit_churn(trace: ChurnTrace, seed: int, distribution: str = "weibull") -> Fit:
    """Fit sessions, absences, rhythm and crowds to a trace.

    Args:
        trace: with some sessions.
        seed: of the specification.
        distribution: "weibull" or "pareto".

    Raises:
        ScenarioError: the trace has no sessions, nobody is ever absent, or there is no
            distribution of that name.
    """
    if distribution not in ("weibull", "pareto"):
        raise ScenarioError(None, "workload.distribution", distribution, "weibull or pareto")
    online_s = float((trace.end_s - trace.start_s).sum())
    availability = online_s / (len(trace.names) * trace.duration_s)
    if not 0 < availability < 1:
        expected = "a trace in which nodes come and go"
        raise ScenarioError(None, "availability of the trace", availability, expected)
    sessions, absences = _complete(trace)
    joins = _hourly(trace, trace.start_s[trace.start_s > 0])
    leaves = _hourly(trace, trace.end_s[trace.end_s < trace.duration_s])
    turns = [*_turns(trace, joins, joins=True), *_turns(trace, leaves, joins=False)]
    mean_s = online_s / max(int((trace.end_s < trace.duration_s).sum()), 1)
    unusual = {int(turn.at_s // HOUR_S) for turn in turns}
    rhythm, peak_s = _rhythm(trace, joins, unusual)
    lifetimes = _fitted(distribution, mean_s, sessions)
    spec = ChurnByRow(
        seed=seed,
        nodes=len(trace.names),
        duration_s=trace.duration_s,
        sessions=lifetimes,
        absences=_fitted(distribution, mean_s * (1 - availability) / availability, absences),
        rhythm=rhythm,
        peak_s=peak_s,
        turns=tuple(sorted(turns, key=lambda turn: turn.at_s)),
    )
    return Fit(
        spec=spec,
        complete_sessions=len(sessions),
        complete_absences=len(absences),
        ks_sessions=distance(sessions, lifetimes),
    )


def distance(lengths: Floats, lifetimes: Lifetimes) -> float:
    """The largest difference between the shares of lengths seen and expected below any bound."""
    if len(lengths) == 0:
        return math.nan
    shares = (np.arange(1, 200) / 200).astype(np.float64)
    below = np.searchsorted(np.sort(lengths), lifetimes.length_s(shares), side="right")
    return float(np.abs(below / len(lengths) - shares).max())


def _complete(trace: ChurnTrace) -> tuple[Floats, Floats]:
    """Lengths of the sessions and absences that begin and end within the trace."""
    order = np.lexsort((trace.start_s, trace.node))
    node, start, end = trace.node[order], trace.start_s[order], trace.end_s[order]
    inside = (start > 0) & (end < trace.duration_s)
    gap = (start[1:] - end[:-1])[node[1:] == node[:-1]]
    return (end - start)[inside], gap[gap > 0]


def _fitted(distribution: str, mean_s: float, lengths: Floats) -> Lifetimes:
    """The distribution of this mean whose coefficient of variation is that of the lengths."""
    kind = Weibull if distribution == "weibull" else Pareto
    if len(lengths) < _LEAST_INTERVALS:
        return kind(mean_s)
    squared = float(lengths.var() / lengths.mean() ** 2)
    if kind is Pareto:
        # The square is shape / (shape - 2), always above 1.
        shape = _MOST_SHAPE if squared <= 1 else 2 * squared / (squared - 1)
        return Pareto(mean_s, float(np.clip(shape, _PARETO_BOUND, _MOST_SHAPE)))
    bounds = (_LEAST_SHAPE, _MOST_SHAPE)
    if not _weibull_square(bounds[1]) < squared < _weibull_square(bounds[0]):
        return Weibull(mean_s, bounds[0] if squared > 1 else bounds[1])
    return Weibull(mean_s, float(brentq(lambda shape: _weibull_square(shape) - squared, *bounds)))


def _weibull_square(shape: float) -> float:
    """The square of the coefficient of variation of a Weibull distribution."""
    return math.gamma(1 + 2 / shape) / math.gamma(1 + 1 / shape) ** 2 - 1


def _hourly(trace: ChurnTrace, times_s: Floats) -> Floats:
    """How many of these times are in each hour of the trace."""
    hours = math.ceil(trace.duration_s / HOUR_S)
    return np.bincount((times_s // HOUR_S).astype(np.int64), minlength=hours).astype(np.float64)


def _turns(trace: ChurnTrace, hourly: Floats, *, joins: bool) -> list[Turn]:
    """The hours in which unusually many come, or leave, and which share of those who might."""
    usual = float(np.median(hourly))
    online = float((trace.end_s - trace.start_s).sum()) / trace.duration_s
    bound = max(_UNUSUAL_TIMES * usual, _UNUSUAL_SHARE * online)
    found = []
    for hour in np.flatnonzero(hourly > bound).tolist():
        there = float(trace.population(np.array([hour * HOUR_S]))[0])
        might = len(trace.names) - there if joins else there
        share = min(1.0, (float(hourly[hour]) - usual) / max(might, 1.0))
        found.append(Turn(at_s=hour * HOUR_S, within_s=HOUR_S, joins=joins, share=share))
    return found


def _rhythm(trace: ChurnTrace, joins: Floats, unusual: set[int]) -> tuple[float, float]:
    """Swing and peak of the rate of joins in the course of a day, unusual hours left out."""
    if trace.duration_s < _LEAST_DAYS * DAY_S:
        return 0.0, 0.0
    whole_days = int(trace.duration_s // DAY_S) * 24
    hours = np.array([hour for hour in range(whole_days) if hour not in unusual])
    angles = 2 * math.pi * (hours + 0.5) * HOUR_S / DAY_S
    mean = float(joins[hours].mean())
    if mean == 0:
        return 0.0, 0.0
    harmonic = complex(2 * np.mean((joins[hours] - mean) * np.exp(1j * angles)) / mean)
    peak_s = (math.atan2(harmonic.imag, harmonic.real) % (2 * math.pi)) / (2 * math.pi) * DAY_S
    return min(abs(harmonic), _MOST_RHYTHM), peak_s
