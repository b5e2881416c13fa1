"""Errands between protocols on a node, over each of the shipped samplers and over T-Man."""

import numpy as np

import gossamer.sim as gs
from gossamer.sim.custom.topologies.tman import tman


class Token(gs.Message):
    hops: int


class Ask(gs.Message, size_bytes=0):
    """To the counter on the same node: another token came."""

    hops: int


class Tell(gs.Message, size_bytes=0):
    """From the counter to whoever is above it: so many came."""

    count: int


class Counter(gs.Protocol):
    """A protocol below, which is sent messages by the one above it, and answers."""

    count = gs.column(int)

    def on_ask(self, me, net, sender, hops):
        self.count[me] += 1
        Tell.send(net, me, self.count[me])


class Wander(gs.Protocol):
    """What runs over all of them; those derived from it say how a token goes on."""

    counter = gs.layer(Counter)

    told = gs.column(int)

    def on_token(self, me, net, sender, hops):
        Ask.send(net, me, hops)

    def on_tell(self, me, net, sender, count):
        self.told[me] = count

    @gs.control(once=4)
    def crash_some(self, run):
        run.crash(range(0, len(run.nodes), 6))

    @gs.control(once=7)
    def bring_them_back(self, run):
        run.start(range(0, len(run.nodes), 6))

    @gs.measure("tokens", better="higher")
    def tokens(self, run):
        return self.told.mean()


class OverCyclon(Wander):
    peers = gs.Sampler("cyclon", view_size=8, shuffle_length=3)

    begin = gs.Timer(rounds=1)

    def on_begin(self, me, net):
        peer = gs.random_peer(self.peers, me, gs.draw(self, me))
        if peer >= 0:
            Token.send(net, peer, 1)


class OverNewscast(OverCyclon):
    peers = gs.Sampler("newscast", view_size=8)


class OverHyParView(OverCyclon):
    peers = gs.Sampler("hyparview", view_size=14)


@gs.rule
def along(state, base, node):
    """On a ring of all rows."""
    ahead = (node - base) % state.nodes
    return min(ahead, state.nodes - ahead)


class OverTMan(Wander):
    ring = gs.layer(tman(along, nearest=6, sent=5, partners=3, sampler="cyclon", view_size=8))

    begin = gs.Timer(rounds=1)

    def on_begin(self, me, net):
        peer = gs.draw_from(self, me, self.ring.near[me, :2])
        if peer >= 0:
            Token.send(net, peer, 1)

    @gs.measure("in line", better="higher")
    def in_line(self, run):
        """Share of the nodes that have the next one among their nearest two."""
        after = (np.arange(self.nodes) + 1) % self.nodes
        return (self.ring.near[:, :2] == after[:, None]).any(axis=1).mean()
