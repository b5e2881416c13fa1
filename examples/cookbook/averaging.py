"""Averaging over Newscast: PeerSim's own example (Jelasity, Montresor, Babaoglu, TOCS 2005).

A node sends its value to a peer of its view, which answers with its own; both take the mean. In the
cycle engine an exchange is whole before the next begins, so that the average never changes.
"""

from gossamer.sim import (
    Message,
    Protocol,
    Sampler,
    Timer,
    column,
    draw,
    initialiser,
    measure,
    random_peer,
)


class Push(Message):
    """The value of a node that asks for another's."""

    value: float


class Pull(Message):
    """The value that the asked one had."""

    value: float


class Averaging(Protocol):
    newscast = Sampler("newscast", view_size=20)

    value = column(float)

    exchange = Timer(rounds=1)

    @initialiser
    def spread_values(self, run):
        self.value[:] = range(len(run.nodes))

    def on_exchange(self, me, net):
        peer = random_peer(self.newscast, me, draw(self, me))
        if peer >= 0:
            Push.send(net, peer, self.value[me])

    def on_push(self, me, net, sender, value):
        Pull.send(net, sender, self.value[me])
        self.value[me] = (self.value[me] + value) / 2

    def on_pull(self, me, net, sender, value):
        self.value[me] = (self.value[me] + value) / 2

    @measure("variance", better="lower")
    def variance(self, run):
        """Variance of the values."""
        return self.value.var()

    @measure("mean", kind="number")
    def mean(self, run):
        """Mean of the values, which never changes."""
        return self.value.mean()
