"""Who is online when: joins and leaves applied to the rows of a simulation."""

from __future__ import annotations

import attrs
import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.draws import below, mix
from gossamer.protocol.peer.state.state import State
from gossamer.protocol.peer.step import join_record, restart
from gossamer.sim.churn import LONGEST_S, ChurnTrace, Transitions, read_trace
from gossamer.sim.churn.turnover import make_turnover
from gossamer.sim.engine.initialisers import fill_random_views
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.peers.inputs.scenario import MOST_ROUNDS, Churn, Scenario
from gossamer.sim.studies.peers.running.driver import Driver
from gossamer.sim.study.scenario_checks import check

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

    def start(self, state: State, alive: npt.NDArray[np.bool_]) -> None:
        """Put the nodes of time 0 online, each with a random view of the others."""
        if self._changes is None:
            alive[:] = True
        else:
            alive[:] = False
            self._applied = changes_until(self._changes, 0.0)
            for i in range(self._applied):
                alive[self._note(i)] = True
        fill_random_views(state.sampler, alive, self.seed, state.sampler.view_size)

    def advance(self, engine: Driver, until_s: float) -> None:
        """Apply all joins and leaves up to ``until_s``, those at that very time included."""
        if self._changes is None:
            return
        last = changes_until(self._changes, until_s)
        if last == self._applied:
            return
        alive = engine.network.alive
        contacts = np.flatnonzero(alive)
        for i in range(self._applied, last):
            node = self._note(i)
            alive[node] = self._changes.up[i]
            if alive[node]:
                self._join(engine, node, contacts)
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

    def _join(self, engine: Driver, node: int, contacts: npt.NDArray[np.int64]) -> None:
        state = engine.state
        restart.run(state, node)
        contacts = contacts[engine.network.alive[contacts] & (contacts != node)]
        if len(contacts) == 0:
            contacts = np.flatnonzero(engine.network.alive)
            contacts = contacts[contacts != node]
        if len(contacts) == 0:
            return
        draw = mix.interpreted(self.seed, _CONTACTS, self._joins)
        self._joins += 1
        contact = int(contacts[below.interpreted(draw, len(contacts))])
        engine.inject(join_record(node, contact, state.sampler.profile[contact]))


def _ends_of_sessions(changes: Transitions) -> npt.NDArray[np.float64]:
    """float64[changes]: when the node of each change has its next one; inf if it has none."""
    order = np.argsort(changes.node, kind="stable")
    same = changes.node[order][1:] == changes.node[order][:-1]
    ends_s = np.full(len(order), np.inf)
    ends_s[order[:-1][same]] = changes.time_s[order[1:][same]]
    return ends_s
