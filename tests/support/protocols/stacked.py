"""Errands between protocols on a node, over each of the shipped samplers and over T-Man."""

import numpy as np

from gossamer.sim import custom
from gossamer.sim.custom.topologies.tman import tman


class Token(custom.Message):
    hops: int


class Ask(custom.Message, size_bytes=0):
    """To the counter on the same node: another token came."""

    hops: int


class Tell(custom.Message, size_bytes=0):
    """From the counter to whoever is above it: so many came."""

    count: int


class Counter(custom.Protocol):
    """A protocol below, which is sent messages by the one above it, and answers."""

    count = custom.column(int)

    def on_ask(self, me, net, sender, hops):
        self.count[me] += 1
        Tell.send(net, me, self.count[me])


class Wander(custom.Protocol):
    """What runs over all of them; those derived from it say how a token goes on."""

    counter = custom.layer(Counter)

    told = custom.column(int)

    def on_token(self, me, net, sender, hops):
        Ask.send(net, me, hops)

    def on_tell(self, me, net, sender, count):
        self.told[me] = count

    @custom.control(once=4)
    def crash_some(self, run):
        run.crash(range(0, len(run.nodes), 6))

    @custom.control(once=7)
    def bring_them_back(self, run):
        run.start(range(0, len(run.nodes), 6))

    @custom.measure("tokens", better="higher")
    def tokens(self, run):
        return self.told.mean()


class OverCyclon(Wander):
    peers = custom.Sampler("cyclon", view_size=8, shuffle_length=3)

    begin = custom.Timer(rounds=1)

    def on_begin(self, me, net):
        peer = custom.random_peer(self.peers, me, custom.draw(self, me))
        if peer >= 0:
            Token.send(net, peer, 1)


class OverNewscast(OverCyclon):
    peers = custom.Sampler("newscast", view_size=8)


class OverHyParView(OverCyclon):
    peers = custom.Sampler("hyparview", view_size=14)


@custom.rule
def along(state, base, node):
    """On a ring of all rows."""
    ahead = (node - base) % state.nodes
    return min(ahead, state.nodes - ahead)


class OverTMan(Wander):
    ring = custom.layer(tman(along, nearest=6, sent=5, partners=3, sampler="cyclon", view_size=8))

    begin = custom.Timer(rounds=1)

    def on_begin(self, me, net):
        peer = custom.draw_from(self, me, self.ring.near[me, :2])
        if peer >= 0:
            Token.send(net, peer, 1)

    @custom.measure("in line", better="higher")
    def in_line(self, run):
        """Share of the nodes that have the next one among their nearest two."""
        after = (np.arange(self.nodes) + 1) % self.nodes
        return (self.ring.near[:, :2] == after[:, None]).any(axis=1).mean()
