"""The churn trace: sessions of named nodes as columns, and the algebra on them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray

from gossamer.sim.errors import ScenarioError, TraceError

# Some 30,000 years. Beyond it a float no longer tells milliseconds apart, and what was written is
# no time of a trace but a mistake.
LONGEST_S = 1e12

Floats = NDArray[np.float64]
Nodes = NDArray[np.int32]


class Transitions(NamedTuple):
    """Joins and leaves in the order in which a simulation applies them.

    Sorted by time, at one instant leaves before joins, then by node: a node whose sessions touch
    restarts, and the population never overshoots in between.

    Attributes:
        time_s: float64, shape (2 * sessions,).
        node: int32 index into the names of the trace, same shape.
        up: bool, True for a join, same shape.
    """

    time_s: Floats
    node: Nodes
    up: NDArray[np.bool_]


class SessionFault(NamedTuple):
    """The first session that no trace can hold: its position, and what is wrong with it."""

    session: int
    field: str
    value: float
    expected: str


def first_fault(node: Nodes, start_s: Floats, end_s: Floats) -> SessionFault | None:
    """Find the first session that is no interval or begins before the node's previous one ended.

    Takes columns of one shape grouped by node, each node's sessions in order of time.
    """
    next_of_node = np.zeros(len(node), dtype=np.bool_)
    next_of_node[1:] = node[1:] == node[:-1]
    free_from_s = np.zeros(len(node))
    free_from_s[1:] = np.where(next_of_node[1:], end_s[:-1], 0.0)
    sound = (start_s >= free_from_s) & (end_s > start_s) & (end_s <= LONGEST_S)  # NaN fails as well
    if sound.all():
        return None
    session = int(np.argmin(sound))
    start, end, free_from = (float(column[session]) for column in (start_s, end_s, free_from_s))
    if not 0 <= start <= LONGEST_S:
        expected = f"a finite time from 0 to {LONGEST_S:g} s"
        return SessionFault(session, "start_s", start, expected)
    if not start >= free_from:
        expected = f"a time at or after the end of the node's previous session, {free_from!r}"
        return SessionFault(session, "start_s", start, expected)
    expected = f"a finite time after the start of the session, {start!r}, and up to {LONGEST_S:g} s"
    return SessionFault(session, "end_s", end, expected)


def _names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(names)


def _indices(values: ArrayLike) -> Nodes:
    """A copy of a column, so that nobody else's array becomes read-only."""
    return np.array(values, dtype=np.int32)


def _times(values: ArrayLike) -> Floats:
    """A copy of a column; adding 0.0 turns -0.0, equal but not alike in bytes, into 0.0."""
    return np.array(values, dtype=np.float64) + 0.0


_BY_VALUE = attrs.cmp_using(eq=np.array_equal)


@attrs.frozen(repr=False)
class ChurnTrace:
    """Sessions of named nodes within `duration_s` seconds.

    A node is online in the half-open interval [start, end) of each of its sessions. Sessions of
    one node may touch but not overlap, and none is empty. Nodes without sessions are allowed.
    Whatever order the sessions are given in, they are held sorted by (start, node).

    Attributes:
        names: distinct names of the nodes; a node's index is its position here.
        node: int32, shape (sessions,).
        start_s: float64 seconds, at least 0, same shape.
        end_s: float64 seconds, at most `duration_s`, same shape.
        duration_s: positive, at most `LONGEST_S`.

    Raises:
        TraceError: the columns break one of these rules; `line` is the 1-based position of the
            session in (node, start) order.
    """

    names: tuple[str, ...] = attrs.field(converter=_names)
    node: Nodes = attrs.field(converter=_indices, eq=_BY_VALUE, hash=False)
    start_s: Floats = attrs.field(converter=_times, eq=_BY_VALUE, hash=False)
    end_s: Floats = attrs.field(converter=_times, eq=_BY_VALUE, hash=False)
    duration_s: float = attrs.field(converter=float)

    def __attrs_post_init__(self) -> None:
        _check_names(self.names)
        self._check_shapes()
        self._check_sessions()
        self._sort_and_freeze()

    def _check_shapes(self) -> None:
        if not 0 < self.duration_s <= LONGEST_S:
            expected = f"a finite positive number of seconds, at most {LONGEST_S:g}"
            raise TraceError(None, "duration_s", self.duration_s, expected)
        shapes = (self.node.shape, self.start_s.shape, self.end_s.shape)
        if self.node.ndim != 1 or len(set(shapes)) != 1:
            expected = "three one-dimensional columns of one length"
            raise TraceError(None, "shape of node, start_s and end_s", shapes, expected)

    def _check_sessions(self) -> None:
        strangers = (self.node < 0) | (self.node >= len(self.names))
        if strangers.any():
            expected = f"an index of the {len(self.names)} names"
            raise TraceError(None, "node", int(self.node[strangers][0]), expected)
        order = np.lexsort((self.start_s, self.node))
        fault = first_fault(self.node[order], self.start_s[order], self.end_s[order])
        if fault is not None:
            raise TraceError(None, *fault[1:], line=fault.session + 1, unit="session")
        last_s = float(self.end_s.max(initial=0.0))
        if last_s > self.duration_s:
            expected = f"at least the end of the last session, {last_s!r}"
            raise TraceError(None, "duration_s", self.duration_s, expected)

    def _sort_and_freeze(self) -> None:
        order = np.lexsort((self.node, self.start_s))
        for name in ("node", "start_s", "end_s"):
            column = getattr(self, name)[order]
            column.flags.writeable = False
            object.__setattr__(self, name, column)

    @property
    def session_count(self) -> int:
        """Number of sessions."""
        return len(self.node)

    def __repr__(self) -> str:
        counts = f"{len(self.names)} nodes, {self.session_count} sessions"
        return f"ChurnTrace({counts}, duration_s={self.duration_s})"

    def _with_sessions(
        self, node: Nodes, start_s: Floats, end_s: Floats, duration_s: float
    ) -> ChurnTrace:
        """The same names with other sessions; those clipped or rounded to nothing are left out."""
        kept = end_s > start_s
        return ChurnTrace(self.names, node[kept], start_s[kept], end_s[kept], duration_s)

    def scaled(self, factor: float) -> ChurnTrace:
        """Multiply all times by `factor`: above 1 churn slows down, below 1 it speeds up.

        Raises:
            ScenarioError: the duration that the factor leads to is not finite and positive.
        """
        if not 0 < factor * self.duration_s <= LONGEST_S:
            raise ScenarioError(None, "scale factor", factor, "a finite positive number")
        return self._with_sessions(
            self.node, self.start_s * factor, self.end_s * factor, self.duration_s * factor
        )

    def cut(self, start_s: float, end_s: float) -> ChurnTrace:
        """The window [start_s, end_s) with its beginning as time 0; sessions are clipped to it.

        All names stay, so that indices keep their meaning.

        Raises:
            ScenarioError: the window is empty or not within the trace.
        """
        if not 0 <= start_s < end_s <= self.duration_s:
            expected = f"0 <= start < end <= {self.duration_s!r}, the duration of the trace"
            raise ScenarioError(None, "window of the cut", (start_s, end_s), expected)
        clipped_start_s = np.clip(self.start_s, start_s, end_s) - start_s
        clipped_end_s = np.clip(self.end_s, start_s, end_s) - start_s
        return self._with_sessions(self.node, clipped_start_s, clipped_end_s, end_s - start_s)

    def backwards(self) -> ChurnTrace:
        """The trace from its end to its beginning: who leaves at a time joins where it is met."""
        start_s = np.maximum(self.duration_s - self.end_s, 0.0)
        return self._with_sessions(
            self.node, start_s, self.duration_s - self.start_s, self.duration_s
        )

    def looped(self, times: int) -> ChurnTrace:
        """Repeat the trace end to end; a node that is online across a seam stays online.

        Raises:
            ScenarioError: `times` is less than 1.
        """
        if times < 1:
            raise ScenarioError(None, "number of loops", times, "a whole number of at least 1")
        seam_s = np.arange(times + 1, dtype=np.float64) * self.duration_s
        begin_s, limit_s = seam_s[:-1, None], seam_s[1:, None]
        # Rounding may carry a sum beyond the seam, where the next repetition begins.
        start_s = np.minimum(self.start_s + begin_s, limit_s).ravel()
        end_s = np.where(
            self.end_s == self.duration_s, limit_s, np.minimum(self.end_s + begin_s, limit_s)
        ).ravel()
        node = np.tile(self.node, times)
        joined = self._join_at_seams(node, start_s, end_s, seam_s[1:-1])
        return self._with_sessions(*joined, float(seam_s[-1]))

    @staticmethod
    def _join_at_seams(
        node: Nodes, start_s: Floats, end_s: Floats, seam_s: Floats
    ) -> tuple[Nodes, Floats, Floats]:
        """Make one session of two of a node that touch at one of the times `seam_s`."""
        order = np.lexsort((start_s, node))
        node, start_s, end_s = node[order], start_s[order], end_s[order]
        goes_on = np.zeros(len(node), dtype=np.bool_)
        goes_on[:-1] = (
            (node[:-1] == node[1:]) & (end_s[:-1] == start_s[1:]) & np.isin(end_s[:-1], seam_s)
        )
        first = np.ones(len(node), dtype=np.bool_)
        first[1:] = ~goes_on[:-1]
        return node[first], start_s[first], end_s[~goes_on]

    def limited(self, nodes: int) -> ChurnTrace:
        """Only the first `nodes` nodes, over the same duration.

        Raises:
            ScenarioError: there are not that many nodes, or none is asked for.
        """
        if not 1 <= nodes <= len(self.names):
            expected = f"1 to {len(self.names)}, the nodes of the trace"
            raise ScenarioError(None, "number of nodes", nodes, expected)
        kept = self.node < nodes
        return ChurnTrace(
            self.names[:nodes],
            self.node[kept],
            self.start_s[kept],
            self.end_s[kept],
            self.duration_s,
        )

    def renamed(self, names: Iterable[str]) -> ChurnTrace:
        """The same sessions under other names, one for each node.

        Raises:
            TraceError: the names are not as many as the nodes, or not distinct.
        """
        fresh = tuple(names)
        if len(fresh) != len(self.names):
            raise TraceError(None, "number of names", len(fresh), f"{len(self.names)}, one a node")
        return attrs.evolve(self, names=fresh)

    def population(self, times_s: ArrayLike) -> NDArray[np.int64]:
        """How many nodes are online at each of `times_s`, seconds; int64 of the same shape."""
        times = np.asarray(times_s, dtype=np.float64)
        joined = np.searchsorted(self.start_s, times, side="right")
        left = np.searchsorted(np.sort(self.end_s), times, side="right")
        return np.asarray(joined - left, dtype=np.int64)

    def transitions(self) -> Transitions:
        """All joins and leaves, those at time 0 and at the very end included."""
        time_s = np.concatenate((self.start_s, self.end_s))
        node = np.concatenate((self.node, self.node))
        up = np.arange(len(node)) < self.session_count
        order = np.lexsort((node, up, time_s))
        return Transitions(time_s[order], node[order], up[order])

    def fingerprint(self) -> str:
        """Hexadecimal SHA-256 of the content, the same on every platform and in every format."""
        digest = hashlib.sha256()
        names = [name.encode() for name in self.names]
        lengths = np.array([len(name) for name in names], dtype="<i8")
        counts = np.array([len(names), self.session_count], dtype="<i8")
        digest.update(counts.tobytes() + lengths.tobytes() + b"".join(names))
        digest.update(self.node.astype("<i4").tobytes())
        for column in (self.start_s, self.end_s, np.array([self.duration_s])):
            digest.update(column.astype("<f8").tobytes())
        return digest.hexdigest()


def _check_names(names: Sequence[str]) -> None:
    if not names:
        raise TraceError(None, "number of nodes", 0, "at least one")
    if len(set(names)) < len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise TraceError(None, "node name", twice, "a name that no other node has")
    for name in names:
        if not name or _beyond_utf8(name):
            raise TraceError(None, "node name", name, "a text of at least one Unicode character")


def _beyond_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return True
    return False
