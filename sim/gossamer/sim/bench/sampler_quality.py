"""Overlays of samplers: their graphs, and how many nodes a broadcast reaches after failures.

After the HyParView paper (Leitao, Pereira, Rodrigues, DSN 2007, Sec. 5): nodes run in cycles until
the overlay has formed, a share of them fails at once, and nodes that are left broadcast messages.
"""

from __future__ import annotations

import copy
from typing import Final, NamedTuple

import numpy as np

from gossamer.protocol.peer.record_table.records import SAMPLE_TIMER
from gossamer.protocol.peer.sampling.descriptors import ACTIVE
from gossamer.protocol.peer.sampling.sampler import EMPTY, SamplerState, make_sampler
from gossamer.sim.bench.broadcast_protocol import broadcast_record, broadcast_step, make_broadcasts
from gossamer.sim.custom.library.graphs import clustering, mean_path_length
from gossamer.sim.engine.cycle_engine import CycleEngine, make_network
from gossamer.sim.engine.initialisers import fill_random_views
from gossamer.sim.studies.peers.measuring.graph_measures import in_degrees, undirected_view_graph

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
        degrees = in_degrees(sampler, self.alive)
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
