"""Averaging over Newscast once more, an object a node; `averaging.py` says what it is."""

from averaging import Pull, Push

from gossamer.sim import Node, Sampler, Timer, initialiser, measure


class Averaging(Node):
    newscast = Sampler("newscast", view_size=20)

    exchange = Timer(rounds=1)

    @initialiser
    def spread_values(cls, run):
        for node in run.nodes:
            node.value = float(node.me)

    def on_exchange(self):
        peer = self.newscast.random()
        if peer >= 0:
            self.send(peer, Push(self.value))

    def on_push(self, sender, message):
        self.send(sender, Pull(self.value))
        self.value = (self.value + message.value) / 2

    def on_pull(self, sender, message):
        self.value = (self.value + message.value) / 2

    @measure("variance", better="lower")
    def variance(cls, run):
        mean = cls.mean(cls, run)
        return sum((node.value - mean) ** 2 for node in run.nodes) / len(run.nodes)

    @measure("mean", kind="number")
    def mean(cls, run):
        return sum(node.value for node in run.nodes) / len(run.nodes)
