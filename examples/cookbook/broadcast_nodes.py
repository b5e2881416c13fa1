"""Broadcasts over HyParView once more, an object a node; `broadcast.py` says what they are."""

import numpy as np
from broadcast import News
from hyparview_nodes import HyParView

import gossamer.sim as gs


class Broadcast(gs.Node):
    fails: float = gs.setting(0.0, low=0, high=1)
    below = gs.layer(HyParView)

    publish = gs.Timer(rounds=1)

    def __init__(self):
        self.begins = False
        self.heard = self.hops = 0

    @gs.control(once=50)
    def fail(cls, run):
        count = round(run.nodes[0].fails * len(run.nodes))
        run.crash(run.random(1).permutation(len(run.nodes))[:count])

    @gs.control(begin=50)
    def choose(cls, run):
        run.nodes[run.random(2).choice(np.flatnonzero(run.alive))].begins = True

    def on_publish(self):
        if self.begins:
            self.begins = False
            self.pass_on(self.me, self.round, 0)

    def on_news(self, sender, message):
        if self.heard < message.number:
            self.pass_on(sender, message.number, message.hops)

    def pass_on(self, sender, number, hops):
        self.heard, self.hops = number, hops
        for node in self.below.active:
            if node != sender:
                self.send(node, News(number, hops + 1))

    @gs.measure("reliability", better="higher")
    def reliability(cls, run):
        heard = np.array([node.heard for node in run.nodes])
        return (heard[run.alive] == run.round - 1).mean() if run.round > 50 else 0

    @gs.measure("last delivery")
    def last_delivery(cls, run):
        heard = [node for node in run.nodes if run.alive[node.me] and node.heard == run.round - 1]
        return max((node.hops for node in heard), default=0)

    @gs.measure("degree")
    def degree(cls, run):
        return np.mean([len(node.below.active) for node in run.nodes if run.alive[node.me]])

    @gs.measure("clustering", better="lower")
    def clustering(cls, run):
        known = [node.below.active for node in run.nodes]
        return gs.clustering(gs.graph_of(known, run.alive))

    @gs.measure("path length", better="lower")
    def path_length(cls, run):
        known = [node.below.active for node in run.nodes]
        return gs.mean_path_length(gs.graph_of(known, run.alive), np.arange(10))

    @classmethod
    def overlay(cls, run):
        return {"neighbour": [(node.me, to) for node in run.nodes for to in node.below.active]}
