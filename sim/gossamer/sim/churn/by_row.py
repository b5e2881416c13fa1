"""Synthetic churn in which every node's sessions depend on the seed and the node's number alone.

Nodes alternate between sessions and absences as those of `synthetic` do, with other draws: those of
a node do not hang on how many nodes there are. Beyond that, absences may end more often by day than
by night, many nodes may come or leave at a time, and a specification can be fitted to a trace.
"""

from __future__ import annotations

import math
from typing import Final

import attrs
import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from gossamer.sim.churn.synthetic import FlashCrowd, Floats, Lifetimes, Pareto, Weibull, above
from gossamer.sim.churn.trace import ChurnTrace
from gossamer.sim.errors import ScenarioError
from gossamer.sim.study.draws import Int64s, uniform

DAY_S: Final = 86_400.0
# The seed's streams.
_BEGINNINGS, _LENGTHS, _TURNS, _CROWDS = 341, 342, 343, 351
# Halvings of an interval that invert the day's rhythm to far below a second.
_HALVINGS: Final = 60
_MOST_NODES: Final = 2**31 - 1


@attrs.frozen(kw_only=True)
class Turn:
    """Many come back, or leave, within a short while: a flash crowd, or a failure.

    Attributes:
        at_s: when it begins.
        within_s: how long it takes.
        joins: whether those who are absent when it begins come, else those who are online leave.
        share: of them to whom it happens.
    """

    at_s: float
    within_s: float
    joins: bool
    share: float


@attrs.frozen(kw_only=True)
class ChurnByRow:
    """Populations that come and go; all times are whole seconds.

    Attributes:
        seed: of all draws.
        nodes: nodes that alternate between sessions and absences.
        duration_s: length of the trace.
        sessions, absences: how long those last.
        rhythm: from 0 to below 1, by how much the rate at which nodes come back swings around its
            mean in the course of a day.
        peak_s: when in the day that rate is highest.
        turns: in order of time; what cuts an interval short is the first that may.
        crowds: further nodes that join once, all within a short while.
    """

    seed: int
    nodes: int
    duration_s: float = attrs.field(validator=above(0.0))
    sessions: Lifetimes
    absences: Lifetimes
    rhythm: float = 0.0
    peak_s: float = 0.0
    turns: tuple[Turn, ...] = ()
    crowds: tuple[FlashCrowd, ...] = ()

    def __attrs_post_init__(self) -> None:
        if not 1 <= self.nodes <= _MOST_NODES:
            expected = f"a whole number from 1 to {_MOST_NODES}"
            raise ScenarioError(None, "workload.nodes", self.nodes, expected)
        if not 0 <= self.rhythm < 1:
            expected = "a share from 0 to below 1"
            raise ScenarioError(None, "workload.rhythm", self.rhythm, expected)

    @property
    def all_nodes(self) -> int:
        """Nodes with those of crowds, whose numbers come after the others."""
        return self.nodes + sum(crowd.nodes for crowd in self.crowds)

    @property
    def availability(self) -> float:
        """The share of time that a node that is in no crowd is online, on average."""
        return self.sessions.mean_s / (self.sessions.mean_s + self.absences.mean_s)

    def sessions_of(self, rows: Int64s) -> tuple[Int64s, Floats, Floats]:
        """Node, beginning and end in seconds of each session of these nodes, by node and time."""
        parts = [self._alternating(rows[rows < self.nodes])]
        first = self.nodes
        for position, crowd in enumerate(self.crowds):
            inside = (rows >= first) & (rows < first + crowd.nodes)
            parts.append(self._crowded(position, crowd, rows[inside]))
            first += crowd.nodes
        node, start, end = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        end = np.minimum(end, self.duration_s)
        kept = start < end
        order = np.lexsort((start[kept], node[kept]))
        return node[kept][order], start[kept][order], end[kept][order]

    def trace(self) -> ChurnTrace:
        """All sessions, of nodes n0, n1, and so on."""
        node, start, end = self.sessions_of(np.arange(self.all_nodes, dtype=np.int64))
        names = tuple(f"n{number}" for number in range(self.all_nodes))
        return ChurnTrace(names, node.astype(np.int32), start, end, self.duration_s)

    def _alternating(self, rows: Int64s) -> tuple[Int64s, Floats, Floats]:
        draw = uniform(self.seed, _BEGINNINGS, rows, 1)
        online = uniform(self.seed, _BEGINNINGS, rows, 0) < self.availability
        first = np.where(online, self.sessions.residual_s(draw), self.absences.residual_s(draw))
        now = np.zeros(len(rows))
        until = self._after(rows, now, first, online)
        node, start, end = [], [], []
        turn = 0
        while len(rows):
            node.append(rows[online])
            start.append(now[online])
            end.append(until[online])
            left = until < self.duration_s
            rows, online, now = rows[left], ~online[left], until[left]
            draw = uniform(self.seed, _LENGTHS, rows, turn)
            length = np.where(online, self.sessions.length_s(draw), self.absences.length_s(draw))
            until = self._after(rows, now, length, online)
            turn += 1
        return (
            np.concatenate([np.empty(0, np.int64), *node]),
            np.concatenate([np.empty(0), *start]),
            np.concatenate([np.empty(0), *end]),
        )

    def _after(
        self, rows: Int64s, now: Floats, length: Floats, online: npt.NDArray[np.bool_]
    ) -> Floats:
        """When intervals of these lengths end, in whole seconds, each a second at least."""
        until = now + length
        absent = ~online & (until < np.inf)
        if self.rhythm > 0 and absent.any():
            until[absent] = self._rhythmic(now[absent], length[absent])
        self._cut_short(rows, now, until, online)
        return np.maximum(np.rint(np.minimum(until, 2.0**52)), now + 1)

    def _cut_short(
        self, rows: Int64s, now: Floats, until: Floats, online: npt.NDArray[np.bool_]
    ) -> None:
        """Let intervals end at the first turn that they meet; writes ``until``."""
        whole = np.ones(len(rows), np.bool_)
        for position, turn in enumerate(self.turns):
            draw = uniform(self.seed, _TURNS, rows, 2 * position)
            met = whole & (online != turn.joins) & (now < turn.at_s) & (until > turn.at_s)
            met &= draw < turn.share
            late = uniform(self.seed, _TURNS, rows[met], 2 * position + 1)
            until[met] = np.minimum(until[met], turn.at_s + turn.within_s * late)
            whole &= ~met

    def _rhythmic(self, now: Floats, length: Floats) -> Floats:
        """When absences end whose clock runs faster by day: the inverse of `_ticks`, by halving."""
        target = self._ticks(now) + length
        swing = 2 * self.rhythm * DAY_S / (2 * math.pi)
        low, high = now + np.maximum(length - swing, 0.0), now + length + swing
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            early = self._ticks(middle) < target
            low, high = np.where(early, middle, low), np.where(early, high, middle)
        return np.asarray(high)

    def _ticks(self, time: Floats) -> Floats:
        """The integral of 1 + rhythm cos(2 pi (time - peak) / day)."""
        turns = 2 * math.pi / DAY_S
        return np.asarray(time + self.rhythm / turns * np.sin(turns * (time - self.peak_s)))

    def _crowded(
        self, position: int, crowd: FlashCrowd, rows: Int64s
    ) -> tuple[Int64s, Floats, Floats]:
        stream = _CROWDS + position
        start = np.rint(crowd.at_s + crowd.within_s * uniform(self.seed, stream, rows, 0))
        stay = crowd.stay.length_s(uniform(self.seed, stream, rows, 1))
        remains = uniform(self.seed, stream, rows, 2) < crowd.remain
        end = np.where(remains, np.inf, start + np.maximum(np.rint(stay), 1))
        return rows, start, np.minimum(end, self.duration_s)


# Fits a specification to a trace.
#
# Means come from times online and from numbers of sessions, which intervals cut off by the trace's
# ends do not bias much; shapes from the spread of the intervals that were seen whole; the day's
# rhythm from the first harmonic of when nodes come; flash crowds and failures from hours in which
# far more of them come or leave than usually.


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


def fit_churn(trace: ChurnTrace, seed: int, distribution: str = "weibull") -> ChurnByRow:
    """The specification of traces like one: sessions, absences, rhythm and crowds fitted to it.

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
    return ChurnByRow(
        seed=seed,
        nodes=len(trace.names),
        duration_s=trace.duration_s,
        sessions=_fitted(distribution, mean_s, sessions),
        absences=_fitted(distribution, mean_s * (1 - availability) / availability, absences),
        rhythm=rhythm,
        peak_s=peak_s,
        turns=tuple(sorted(turns, key=lambda turn: turn.at_s)),
    )


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
