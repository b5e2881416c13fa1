"""Gossip learning once more, an object a node; `gossip_learning.py` says what it is."""

import numpy as np
from gossip_learning import FEATURES, Model, error_of, examples

import gossamer.sim as gs


class Learning(gs.Node):
    merges: bool = True
    regularisation: float = gs.setting(0.01, low=1e-6)
    noise: float = gs.setting(0.05, low=0, high=0.5)

    peers = gs.Sampler("newscast", view_size=20)

    walk = gs.Timer(rounds=1)

    def __init__(self):
        self.weights = self.last = np.zeros(FEATURES)
        self.age = self.last_age = 0

    @gs.initialiser
    def give_examples(cls, run):
        for node, x, y in zip(run.nodes, *examples(run, cls.noise), strict=False):
            node.x, node.y = x, float(y)

    def on_walk(self):
        peer = self.peers.random()
        if peer >= 0:
            self.send(peer, Model(self.age, self.weights))

    def on_model(self, sender, message):
        weights, age = message.weights, message.age
        self.weights = (weights + self.last) / 2 if self.merges else weights
        self.age = 1 + (max(age, self.last_age) if self.merges else age)
        self.last, self.last_age = weights, age
        # One after another, as rules add: NumPy's sums differ in the last bit.
        margin = np.cumsum(self.weights * self.x * self.y)[-1]
        self.weights = self.weights * (1 - 1 / self.age)
        if margin < 1:
            rate = 1 / (self.regularisation * self.age)
            self.weights = self.weights + rate * self.x * self.y

    @gs.measure("error", better="lower")
    def error(cls, run):
        return error_of(np.array([node.weights for node in run.nodes]), run, cls.noise)

    @gs.measure("age")
    def mean_age(cls, run):
        return sum(node.age for node in run.nodes) / len(run.nodes)
