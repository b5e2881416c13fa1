"""Who is online when: joins and leaves applied to the rows of a simulation."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gossamer.protocol.draws import below, mix
from gossamer.protocol.peer import join_record, restart
from gossamer.protocol.state import State
from gossamer.sim.churn import ChurnTrace, read_trace
from gossamer.sim.driver import Driver
from gossamer.sim.initialisers import fill_random_views
from gossamer.sim.scenario import Churn, Scenario

_CONTACTS = 0x636F6E74616374


def load_trace(churn: Churn) -> ChurnTrace:
    """The trace that a scenario asks for, cut, repeated and scaled."""
    trace = read_trace(churn.trace)
    if churn.start_s > 0 or churn.end_s is not None:
        trace = trace.cut(churn.start_s, min(churn.end_s or trace.duration_s, trace.duration_s))
    if churn.repeat > 1:
        trace = trace.looped(churn.repeat)
    return trace.scaled(churn.time_scale) if churn.time_scale != 1.0 else trace


def size_of(scenario: Scenario, trace: ChurnTrace | None) -> tuple[int, int]:
    """Number of nodes and of rounds of a run."""
    if trace is None:
        assert scenario.nodes is not None
        assert scenario.rounds is not None
        return scenario.nodes, scenario.rounds
    nodes = min(scenario.nodes or len(trace.names), len(trace.names))
    length = int(np.ceil(trace.duration_s / scenario.round_s))
    return nodes, min(scenario.rounds or length, length)


class Population:
    """Applies a churn trace, or keeps everybody online.

    Attributes:
        joined_s, left_s: float64[n], when each node last joined and left; -inf where never.
    """

    def __init__(self, nodes: int, trace: ChurnTrace | None, seed: int) -> None:
        self.seed = seed
        self.joined_s = np.full(nodes, -np.inf)
        self.left_s = np.full(nodes, -np.inf)
        self._applied = 0
        self._joins = 0
        if trace is None:
            self._time_s = np.empty(0)
            self._node: npt.NDArray[Any] = np.empty(0, np.int32)
            self._up: npt.NDArray[np.bool_] = np.empty(0, np.bool_)
        else:
            self._time_s, self._node, self._up = trace.limited(nodes).transitions()

    def start(self, state: State, alive: npt.NDArray[np.bool_]) -> None:
        """Put the nodes of time 0 online, each with a random view of the others."""
        if len(self._time_s) == 0:
            alive[:] = True
        else:
            alive[:] = False
            first = int(np.searchsorted(self._time_s, 0.0, side="right"))
            alive[self._node[:first][self._up[:first]]] = True
            self.joined_s[alive] = 0.0
            self._applied = first
        fill_random_views(state.sampler, alive, self.seed, state.sampler.view_size)

    def advance(self, engine: Driver, until_s: float) -> None:
        """Apply all joins and leaves before ``until_s``."""
        last = int(np.searchsorted(self._time_s, until_s, side="left"))
        if last == self._applied:
            return
        alive = engine.network.alive
        contacts = np.flatnonzero(alive)
        for i in range(self._applied, last):
            node = int(self._node[i])
            if not self._up[i]:
                alive[node] = False
                self.left_s[node] = self._time_s[i]
                continue
            alive[node] = True
            self.joined_s[node] = self._time_s[i]
            self._join(engine, node, contacts)
        self._applied = last

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
