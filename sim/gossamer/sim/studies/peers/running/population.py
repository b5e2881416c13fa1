"""Who is online when: joins and leaves applied to the rows of a simulation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.draws import below, mix
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.peer.settings.profile import ARC_START, IDENTIFIER, OFF_THE_RING
from gossamer.protocol.peer.state.links import (
    descriptor_words,
    put_link,
    settle_ring,
    slot_of,
    write_own_descriptor,
)
from gossamer.protocol.peer.state.state import State
from gossamer.protocol.peer.topology.fingers import finger_slot
from gossamer.protocol.peer.topology.utility import AFTER, BEFORE
from gossamer.sim.churn import LONGEST_S, ChurnTrace, Transitions, read_trace
from gossamer.sim.churn.synthetic import make_turnover
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.peers.inputs.changes import Drift
from gossamer.sim.studies.peers.inputs.scenario import MOST_ROUNDS, Churn, Scenario
from gossamer.sim.studies.peers.inputs.workload import (
    Workload,
    changed_boxes,
    changes_before,
    late_changes,
)
from gossamer.sim.study.draws import Int64s
from gossamer.sim.study.scenarios import check

_CONTACTS = 0x636F6E74616374
# Of a trace that is repeated; they take some gigabytes.
MOST_SESSIONS = 50_000_000


def played_trace(scenario: Scenario) -> ChurnTrace | None:
    """Who is online when in a scenario, by a trace or by turnover; None where everybody always is.

    Raises:
        TraceError, ScenarioError: as `load_trace`.
    """
    if scenario.churn is not None:
        return load_trace(scenario.churn)
    if scenario.turnover is None:
        return None
    assert scenario.nodes is not None
    assert scenario.rounds is not None
    duration_s = scenario.rounds * scenario.round_s
    return make_turnover(scenario.nodes, duration_s, scenario.turnover.share, scenario.seed)


def load_trace(churn: Churn) -> ChurnTrace:
    """The trace that a scenario asks for, cut, turned round, repeated and scaled.

    Raises:
        TraceError: the file is missing, unreadable or no possible trace.
        ScenarioError: the trace cannot be cut, repeated or scaled so.
    """
    trace = read_trace(churn.trace)
    try:
        return _as_asked(trace, churn)
    except ScenarioError as error:
        raise attrs.evolve(error, file=str(churn.trace)) from None


def _as_asked(trace: ChurnTrace, churn: Churn) -> ChurnTrace:
    length_s = trace.duration_s
    if churn.start_s > 0 or churn.end_s is not None:
        expected = f"a time before the end of the trace, {length_s!r}"
        check(churn.start_s < length_s, "churn.start_s", churn.start_s, expected)
        trace = trace.cut(churn.start_s, min(churn.end_s or length_s, length_s))
    most = MOST_SESSIONS // max(trace.session_count, 1)
    expected = f"at most {most}, for {MOST_SESSIONS:,} sessions of the trace in all"
    check(churn.repeat <= most, "churn.repeat", churn.repeat, expected)
    scaled_s = trace.duration_s * churn.repeat * churn.time_scale
    expected = f"a factor that makes the trace take more than 0 and at most {LONGEST_S:g} s"
    check(0 < scaled_s <= LONGEST_S, "churn.time_scale", churn.time_scale, expected)
    if churn.backwards:
        trace = trace.backwards()
    if churn.repeat > 1:
        trace = trace.looped(churn.repeat)
    return trace.scaled(churn.time_scale) if churn.time_scale != 1.0 else trace


def size_of(scenario: Scenario, trace: ChurnTrace | None) -> tuple[int, int]:
    """Number of nodes and of rounds of a run.

    Raises:
        ScenarioError: the scenario asks for more of either than the trace has.
    """
    if trace is None:
        assert scenario.nodes is not None
        assert scenario.rounds is not None
        return scenario.nodes, scenario.rounds
    names = len(trace.names)
    nodes = names if scenario.nodes is None else scenario.nodes
    check(nodes <= names, "nodes", nodes, f"at most {names}, the nodes of the trace")
    length = int(np.ceil(trace.duration_s / scenario.round_s))
    rounds = length if scenario.rounds is None else scenario.rounds
    check(
        rounds <= length, "rounds", rounds, f"at most {length}, the length of the trace in rounds"
    )
    expected = (
        f"so long that the {trace.duration_s!r} s of the trace are at most {MOST_ROUNDS} rounds"
    )
    check(rounds <= MOST_ROUNDS, "round_s", scenario.round_s, expected)
    return nodes, rounds


def changes_of(trace: ChurnTrace) -> Transitions:
    """Joins and leaves as runs apply them; whoever is online at the end of the trace stays.

    A trace says nothing of what comes after it, and the last round may go on beyond it.
    """
    time_s, node, up = trace.transitions()
    kept = up | (time_s < trace.duration_s)
    return Transitions(time_s[kept], node[kept], up[kept])


def changes_until(changes: Transitions, time_s: float) -> int:
    """How many changes there are up to a time, itself included: sessions are [start, end)."""
    return int(np.searchsorted(changes.time_s, time_s, side="right"))


# What is done for a node that joins, by a contact if there is one.
Join = Callable[[int, int | None], None]
# What is done for a node that wants something else: int64[k, 2A], its boxes, and int64[k], what
# they constrain.
Subscribe = Callable[[int, Int64s, Int64s], None]


class Population:
    """Applies a churn trace, or keeps everybody online.

    Attributes:
        joined_s: float64[n], when each node last joined; -inf where never.
        leaves_s: float64[n], when each node's present, or last, session ends; inf where it goes
            on beyond the trace.
    """

    def __init__(self, nodes: int, trace: ChurnTrace | None, seed: int) -> None:
        self.seed = seed
        self.joined_s = np.full(nodes, -np.inf)
        self.leaves_s = np.full(nodes, np.inf)
        self._applied = 0
        self._joins = 0
        self._changes = None if trace is None else changes_of(trace.limited(nodes))
        self._ends_s = None if self._changes is None else _ends_of_sessions(self._changes)

    def start(self, alive: npt.NDArray[np.bool_]) -> None:
        """Put the nodes of time 0 online."""
        if self._changes is None:
            alive[:] = True
        else:
            alive[:] = False
            self._applied = changes_until(self._changes, 0.0)
            for i in range(self._applied):
                alive[self._note(i)] = True

    def advance(self, alive: npt.NDArray[np.bool_], until_s: float, join: Join) -> None:
        """Apply all joins and leaves up to ``until_s``, those at that very time included."""
        if self._changes is None:
            return
        last = changes_until(self._changes, until_s)
        if last == self._applied:
            return
        contacts = np.flatnonzero(alive)
        for i in range(self._applied, last):
            node = self._note(i)
            alive[node] = self._changes.up[i]
            if alive[node]:
                join(node, self._contact(alive, node, contacts))
        self._applied = last

    def _note(self, i: int) -> int:
        """The node of change i; if it joins, from when to when is noted."""
        assert self._changes is not None
        assert self._ends_s is not None
        node = int(self._changes.node[i])
        if self._changes.up[i]:
            self.joined_s[node] = self._changes.time_s[i]
            self.leaves_s[node] = self._ends_s[i]
        return node

    def _contact(
        self, alive: npt.NDArray[np.bool_], node: int, contacts: npt.NDArray[np.int64]
    ) -> int | None:
        """A random node that one joins by; None where no other is online."""
        contacts = contacts[alive[contacts] & (contacts != node)]
        if len(contacts) == 0:
            contacts = np.flatnonzero(alive)
            contacts = contacts[contacts != node]
        if len(contacts) == 0:
            return None
        draw = mix.interpreted(self.seed, _CONTACTS, self._joins)
        self._joins += 1
        return int(contacts[below.interpreted(draw, len(contacts))])


def _ends_of_sessions(changes: Transitions) -> npt.NDArray[np.float64]:
    """float64[changes]: when the node of each change has its next one; inf if it has none."""
    order = np.argsort(changes.node, kind="stable")
    same = changes.node[order][1:] == changes.node[order][:-1]
    ends_s = np.full(len(order), np.inf)
    ends_s[order[:-1][same]] = changes.time_s[order[1:][same]]
    return ends_s


# Overlays that stand from the beginning: everybody knows ring neighbours and fingers.
#
# A large overlay takes many rounds to form, fingers one after another (some eighty at 10^5 nodes).
# Where what happens then is of no interest, a run may begin with the ring, and with the fingers
# that `gossamer.protocol.peer.topology.fingers` would find; friends, guests and subscriptions at
# others are found and installed in the first rounds as ever.


def form_overlay(state: State, alive: npt.NDArray[np.bool_]) -> None:
    """Give all who are ``alive`` and stand on the ring their neighbours and fingers there.

    Changes links, successors, predecessors and arcs of these; draws nothing.
    """
    if state.params.ring_links == 0:
        return
    places = state.sampler.profile[:, IDENTIFIER]
    standing = np.flatnonzero(alive & (places < OFF_THE_RING))
    order = standing[np.argsort(places[standing], kind="stable")]
    state.sampler.profile[order, ARC_START] = places[np.roll(order, 1)]
    room = np.zeros(int(descriptor_words.interpreted(state)), np.int64)
    form_in_order.compiled(state, order.astype(np.int64), room)


@rule
def form_in_order(s: State, order: Any, words: Any) -> None:
    """Link the peers ``order``, by their places; ``words`` is room for a descriptor."""
    count = order.shape[0]
    ring = s.params.ring_links
    for i in range(count):
        p = order[i]
        for away in range(1, ring + 1):
            link_at(s, p, away - 1, order[(i + away) % count], words)
            link_at(s, p, ring + away - 1, order[(i - away) % count], words)
        for level in range(s.params.finger_levels):
            away = ring << (level + 1)
            # Fingers of both sides must not pass each other.
            if away + (away >> 1) < count:
                link_at(s, p, finger_slot(s, AFTER, level), order[(i + away) % count], words)
                link_at(s, p, finger_slot(s, BEFORE, level), order[(i - away) % count], words)
        settle_ring(s, p)


@rule
def link_at(s: State, p: int, k: int, q: int, words: Any) -> None:
    """Let ``q`` be the neighbour of ``p`` in slot ``k``, unless it is one already."""
    if q == p or slot_of(s, p, s.sampler.handle[q]) >= 0:
        return
    write_own_descriptor(s, q, words, 0)
    put_link(s, p, k, words, 0)


# What nodes want at present, where that changes in the course of a run.


class Interests:
    """Applies a drift of subscriptions, change after change; can be pickled between rounds.

    Args:
        workload: that subscriptions are drawn by.
        drift: what changes, and when; nothing does if None.
        nodes: how many there are.

    Attributes:
        since_s: float64[n], when each node last changed what it wants; -inf where never.
        until_s: float64[n], when it does so next, if that is at the next change; else inf.
    """

    def __init__(self, workload: Workload, drift: Drift | None, nodes: int) -> None:
        self.since_s = np.full(nodes, -np.inf)
        self.until_s = np.full(nodes, np.inf)
        self._workload = workload
        self._drift = drift
        self._boxes, self._constrained = workload.subscriptions(nodes)
        self._in_the_end = self._constrained.copy()
        self._late_at = np.zeros(nodes, np.int64)
        if drift is not None:
            self._late_at = late_changes(workload, drift, nodes)
            self._constrained[self._late_at > 0] = -1
        self._changes = 0
        self._next = self._foresee()

    @property
    def present(self) -> tuple[Int64s, Int64s]:
        """Boxes int64[n, S, 2A] and the attributes they constrain, int64[n, S] of bits."""
        return self._boxes, self._constrained

    def advance(self, time_s: float, subscribe: Subscribe) -> None:
        """Let nodes want what they want at a time."""
        if self._drift is None:
            return
        while self._changes < changes_before(self._drift, time_s):
            nodes, boxes = self._next
            self._boxes[nodes] = boxes
            late = np.flatnonzero(self._late_at == self._changes + 1)
            self._constrained[late] = self._in_the_end[late]
            changed = np.union1d(nodes, late)
            self.since_s[changed] = time_s
            for node in changed.tolist():
                wanted = self._constrained[node] >= 0
                subscribe(node, self._boxes[node, wanted], self._constrained[node, wanted])
            self._changes += 1
            self._next = self._foresee()

    def _foresee(self) -> tuple[Int64s, Int64s]:
        """Whose subscriptions the next change concerns, and what they are from then on."""
        if self._drift is None:
            return np.empty(0, np.int64), self._boxes[:0]
        change = self._changes + 1
        nodes, boxes = changed_boxes(
            self._workload, self._drift, change, self._boxes, self._constrained
        )
        self.until_s[:] = np.inf
        self.until_s[nodes] = change * self._drift.every_s
        return nodes, boxes
