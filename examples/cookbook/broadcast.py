"""Broadcasts over HyParView, and the failures that they meet (its paper, Sec. 5)."""

import numpy as np
from hyparview import HyParView

import gossamer.sim as gs


class News(gs.Message, size_bytes=100):
    number: int
    hops: int


class Broadcast(gs.Protocol):
    fails: float = gs.setting(0.0, low=0, high=1)  # share of the nodes, in round 50
    below = gs.layer(HyParView)

    begins = gs.column(bool)
    heard = gs.column(int)  # the number of the last one
    hops = gs.column(int)
    publish = gs.Timer(rounds=1)

    @gs.control(once=50)
    def fail(self, run):
        count = round(self.fails * len(run.nodes))
        run.crash(run.random(1).permutation(len(run.nodes))[:count])

    @gs.control(begin=50)
    def choose(self, run):
        self.begins[run.random(2).choice(np.flatnonzero(run.alive))] = True

    def on_publish(self, me, net):
        if self.begins[me]:
            self.begins[me] = False
            pass_on(self, me, net, me, net.round, 0)

    def on_news(self, me, net, sender, number, hops):
        if self.heard[me] < number:
            pass_on(self, me, net, sender, number, hops)

    @gs.measure("reliability", better="higher")
    def reliability(self, run):
        """Share of the nodes that are up that heard the last broadcast."""
        return (self.heard[run.alive] == run.round - 1).mean() if run.round > 50 else 0

    @gs.measure("last delivery")
    def last_delivery(self, run):
        """Hops to the node that heard the last broadcast last."""
        return self.hops[run.alive & (self.heard == run.round - 1)].max(initial=0)

    @gs.measure("degree")
    def degree(self, run):
        """Neighbours of a node that is up."""
        return (self.below.active[run.alive] >= 0).sum(axis=1).mean()

    @gs.measure("clustering", better="lower")
    def clustering(self, run):
        """Clustering coefficient of the graph of neighbours."""
        return gs.clustering(gs.graph_of(self.below.active, run.alive))

    @gs.measure("path length", better="lower")
    def path_length(self, run):
        """Hops between two nodes, in the mean over ten of them."""
        graph = gs.graph_of(self.below.active, run.alive)
        return gs.mean_path_length(graph, np.arange(10))

    def overlay(self, run):
        return {"neighbour": gs.links_in(self.below.active)}


@gs.rule
def pass_on(self, me, net, sender, number, hops):
    self.heard[me] = number
    self.hops[me] = hops
    for node in self.below.active[me]:
        if node >= 0 and node != sender:
            News.send(net, node, number, hops + 1)
