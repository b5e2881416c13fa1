"""Overlays of samplers: their graphs, and how many nodes a broadcast reaches after failures.

After the HyParView paper (Leitao, Pereira, Rodrigues, DSN 2007, Sec. 5): nodes run in cycles until
the overlay has formed, a share of them fails at once, and nodes that are left broadcast messages.
"""

from __future__ import annotations

import copy
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.records import BODY, FROM, KIND, LENGTH, TO, USER, Outbox, Words
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.kernel.struct import Struct
from gossamer.protocol.peer.record_table.records import SAMPLE_TIMER
from gossamer.protocol.peer.sampling.descriptors import ACTIVE
from gossamer.protocol.peer.sampling.sampler import (
    EMPTY,
    SamplerState,
    broadcast,
    make_sampler,
    sample_step,
)
from gossamer.sim.custom.library import clustering, mean_path_length
from gossamer.sim.engine.cycle_engine import CycleEngine, fill_random_views, make_network
from gossamer.sim.studies.peers.measuring.overlay_measures import (
    sampled_in_degrees,
    undirected_view_graph,
)

# Broadcasts over the views of a sampler: how many nodes does a message reach?
#
# The measure of the HyParView paper (Sec. 5.2): a node that gets a message for the first time sends
# it on at once to those by whom its sampler takes part in broadcasts. A message that comes back
# lets the sampler react.


# The kind of a message; its body is the number of the broadcast and the hops so far.
MESSAGE = USER
NUMBER, HOPS = BODY, BODY + 1


class Broadcasts(Struct):
    """A sampler, and what its nodes heard.

    Attributes:
        sampler: whose views messages follow.
        heard: int64[n], the last message of each node, 0 for none.
        hops: int64[n], by how many hops it came.
    """

    sampler: SamplerState
    heard: npt.NDArray[np.int64]
    hops: npt.NDArray[np.int64]


def make_broadcasts(sampler: SamplerState) -> Broadcasts:
    """Nodes with a sampler that have heard nothing."""
    nodes = len(sampler.key)
    return Broadcasts(
        sampler=sampler, heard=np.zeros(nodes, np.int64), hops=np.zeros(nodes, np.int64)
    )


def broadcast_record(node: int, number: int) -> Words:
    """The command that lets a node begin a broadcast; its number is above those before."""
    record = np.zeros(BODY + 2, np.int64)
    record[[LENGTH, KIND, TO, FROM]] = len(record), MESSAGE, node, node
    record[NUMBER] = number
    return record


@rule
def broadcast_step(s: Broadcasts, p: int, now: int, words: Any, at: int, out: Outbox) -> None:
    """The one door of a node that samples peers and passes messages on."""
    if words[at + KIND] != MESSAGE:
        sample_step(s.sampler, p, now, words, at, out)
    elif words[at + NUMBER] > s.heard[p]:
        s.heard[p] = words[at + NUMBER]
        s.hops[p] = words[at + HOPS]
        words[at + HOPS] += 1
        broadcast(s.sampler, p, now, words, at, out)


# Views of 35 descriptors, the paper's 5 and 30, and shuffles of 8 (Sec. 5.1).
VIEW_SIZE: Final = 35
SHUFFLE_LENGTH: Final = 8
# From how many nodes path lengths are measured.
SOURCES: Final = 50


class Graph(NamedTuple):
    """The graph of the views by which broadcasts travel.

    Attributes:
        clustering: mean clustering coefficient.
        path_length: mean hops between two nodes, infinite where it is not connected.
        in_degree, in_degree_sd: mean and standard deviation, by how many a node is known.
        full: share of the nodes that have the most frequent in-degree.
    """

    clustering: float
    path_length: float
    in_degree: float
    in_degree_sd: float
    full: float


class Overlay:
    """Nodes that run a sampler alone, in the cycle engine, from random views.

    Args:
        name: of the sampler.
        nodes: how many.
        seed: of everything drawn.
        view_size: descriptors in a view.

    Attributes:
        sampler: the state of the nodes.
        alive: bool[n], which of them are up.
    """

    def __init__(self, name: str, nodes: int, seed: int, view_size: int = VIEW_SIZE) -> None:
        sampler = make_sampler(nodes, name, view_size, min(SHUFFLE_LENGTH, view_size), 0, seed)
        network = make_network(nodes)
        self.sampler = sampler
        self.alive = network.alive
        fill_random_views(sampler, network.alive, seed, view_size)
        state = make_broadcasts(sampler)
        state.specialise_for_sizes()
        self._engine = CycleEngine(state, broadcast_step, (SAMPLE_TIMER,), network, seed)
        self._draws = np.random.Generator(np.random.Philox(key=[seed, nodes]))
        self._messages = 0

    def run(self, cycles: int) -> None:
        """Let so many cycles pass."""
        for _ in range(cycles):
            self._engine.run_cycle()

    def fork(self) -> Overlay:
        """A copy that draws otherwise from here on."""
        other = copy.deepcopy(self)
        other._draws = np.random.Generator(np.random.Philox(int(self._draws.integers(1 << 62))))
        return other

    def fail(self, share: float) -> None:
        """Take down a share of the nodes that are up, drawn at random."""
        up = np.flatnonzero(self.alive)
        self.alive[self._draws.permutation(up)[: round(share * len(up))]] = False

    def broadcast(self) -> tuple[float, int]:
        """Let a random node broadcast: which share of those up it reaches, and its most hops."""
        self._messages += 1
        node = int(self._draws.choice(np.flatnonzero(self.alive)))
        self._engine.inject(broadcast_record(node, self._messages))
        heard = self.alive & (self._engine.state.heard == self._messages)
        return heard.sum() / self.alive.sum(), int(self._engine.state.hops[heard].max())

    def broadcasts(self, count: int) -> list[float]:
        """The shares that so many broadcasts reach, one after another within a cycle."""
        return [self.broadcast()[0] for _ in range(count)]

    def graph(self) -> Graph:
        """The graph of the views of the nodes that are up: of neighbours where there are such."""
        sampler = broadcast_views(self.sampler)
        graph = undirected_view_graph(sampler, self.alive)
        degrees = sampled_in_degrees(sampler, self.alive)
        sources = self._draws.permutation(graph.shape[0])[:SOURCES]
        return Graph(
            clustering(graph),
            mean_path_length(graph, sources),
            float(degrees.mean()),
            float(degrees.std()),
            float(np.bincount(degrees).max() / len(degrees)),
        )


def broadcast_views(sampler: SamplerState) -> SamplerState:
    """A copy of a sampler whose views hold neighbours alone, where it has such."""
    linked = copy.deepcopy(sampler)
    if sampler.active_slots > 0:
        linked.views[(linked.views & ACTIVE) == 0] = EMPTY
    return linked
