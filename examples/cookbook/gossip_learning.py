"""Gossip learning (Ormandi, Hegedus, Jelasity, CCPE 25, 2013): linear models walk about.

A node has one example. It lets every model that comes learn from it, by a step of Pegasos
(Shalev-Shwartz et al., ICML 2007), as the model is (RW) or merged with the one before it (MU).
"""

import numpy as np

import gossamer.sim as gs

FEATURES, TESTS = 10, 1000

Model = gs.message("Model", age=int, weights=gs.items(FEATURES, float))


class Learning(gs.Protocol):
    merges: bool = True
    regularisation: float = gs.setting(0.01, low=1e-6)
    noise: float = gs.setting(0.05, low=0, high=0.5)  # share of the examples that are wrong

    peers = gs.Sampler("newscast", view_size=20)

    x, y = gs.column(float, FEATURES), gs.column(float)
    weights, last = gs.column(float, FEATURES), gs.column(float, FEATURES)
    age, last_age = gs.column(int), gs.column(int)

    walk = gs.Timer(rounds=1)

    @gs.initialiser
    def give_examples(self, run):
        x, y = examples(run, self.noise)
        self.x[:], self.y[:] = x[: self.nodes], y[: self.nodes]

    def on_walk(self, me, net):
        peer = gs.random_peer(self.peers, me, gs.draw(self, me))
        if peer >= 0:
            Model.send(net, peer, self.age[me], self.weights[me])

    def on_model(self, me, net, sender, age, weights):
        margin = 0.0
        for i in range(FEATURES):
            self.weights[me, i] = (weights[i] + self.last[me, i]) / 2 if self.merges else weights[i]
            self.last[me, i] = weights[i]
            margin += self.weights[me, i] * self.x[me, i] * self.y[me]
        self.age[me] = 1 + (max(age, self.last_age[me]) if self.merges else age)
        self.last_age[me] = age
        rate = 1 / (self.regularisation * self.age[me])
        for i in range(FEATURES):
            self.weights[me, i] *= 1 - 1 / self.age[me]
            if margin < 1:
                self.weights[me, i] += rate * self.x[me, i] * self.y[me]

    @gs.measure("error", better="lower")
    def error(self, run):
        """Share of new examples that a node's model takes for what they are not, in the mean."""
        return error_of(self.weights, run, self.noise)

    @gs.measure("age")
    def mean_age(self, run):
        """Examples that a model has learned from on its walk, in the mean."""
        return self.age.mean()


def examples(run, noise):
    """An example a node, then `TESTS` for tests: features, and on which side of a plane it is."""
    random = np.random.default_rng(run.seed)
    x = random.normal(size=(len(run.nodes) + TESTS, FEATURES))
    y = np.where(x @ random.normal(size=FEATURES) > 0, 1.0, -1.0)
    return x, np.where(random.random(len(y)) < noise, -y, y)


def error_of(weights, run, noise):
    x, y = (each[-TESTS:] for each in examples(run, noise))
    return np.mean((weights @ x.T > 0) != (y > 0))
