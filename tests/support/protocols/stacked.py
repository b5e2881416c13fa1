"""Errands between protocols on a node, over each of the shipped samplers and over T-Man."""

import numpy as np

from gossamer.sim.custom import (
    Message,
    Protocol,
    Sampler,
    Timer,
    column,
    control,
    draw,
    draw_from,
    layer,
    measure,
    random_peer,
    rule,
)
from gossamer.sim.custom.topologies.tman import tman


class Token(Message):
    hops: int


class Ask(Message, size_bytes=0):
    """To the counter on the same node: another token came."""

    hops: int


class Tell(Message, size_bytes=0):
    """From the counter to whoever is above it: so many came."""

    count: int


class Counter(Protocol):
    """A protocol below, which is sent messages by the one above it, and answers."""

    count = column(int)

    def on_ask(self, me, net, sender, hops):
        self.count[me] += 1
        Tell.send(net, me, self.count[me])


class Wander(Protocol):
    """What runs over all of them; those derived from it say how a token goes on."""

    counter = layer(Counter)

    told = column(int)

    def on_token(self, me, net, sender, hops):
        Ask.send(net, me, hops)

    def on_tell(self, me, net, sender, count):
        self.told[me] = count

    @control(once=4)
    def crash_some(self, run):
        run.crash(range(0, len(run.nodes), 6))

    @control(once=7)
    def bring_them_back(self, run):
        run.start(range(0, len(run.nodes), 6))

    @measure("tokens", better="higher")
    def tokens(self, run):
        return self.told.mean()


class OverSampler(Wander):
    peers = Sampler("cyclon", view_size=8)

    begin = Timer(rounds=1)

    def on_begin(self, me, net):
        peer = random_peer(self.peers, me, draw(self, me))
        if peer >= 0:
            Token.send(net, peer, 1)


class OverCyclon(OverSampler):
    peers = Sampler("cyclon", view_size=8, shuffle_length=3)


class OverNewscast(OverSampler):
    peers = Sampler("newscast", view_size=8)


class OverHyParView(OverSampler):
    peers = Sampler("hyparview", view_size=14)


@rule
def along(state, base, node):
    """On a ring of all rows."""
    ahead = (node - base) % state.nodes
    return min(ahead, state.nodes - ahead)


class OverTMan(Wander):
    ring = layer(tman(along, nearest=6, sent=5, partners=3, sampler="cyclon", view_size=8))

    begin = Timer(rounds=1)

    def on_begin(self, me, net):
        peer = draw_from(self, me, self.ring.near[me, :2])
        if peer >= 0:
            Token.send(net, peer, 1)

    @measure("in line", better="higher")
    def in_line(self, run):
        """Share of the nodes that have the next one among their nearest two."""
        after = (np.arange(self.nodes) + 1) % self.nodes
        return (self.ring.near[:, :2] == after[:, None]).any(axis=1).mean()
