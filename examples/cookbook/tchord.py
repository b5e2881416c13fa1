"""T-Chord (Montresor, Jelasity, Babaoglu, P2P 2005): the fingers of Chord from random views."""

import numpy as np

import gossamer.sim as gs

BITS, LEAVES, PSI = 32, 20, 10  # bits of identifiers; ring neighbours, partners among them
WIDTH = LEAVES + BITS

Nodes = gs.message("Nodes", wanted=bool, nodes=gs.items(WIDTH))


class TChord(gs.Protocol):
    peers = gs.Sampler("newscast", view_size=20)

    table = gs.column(int, WIDTH, initial=-1)  # leaves, then a node from 2^j to 2^(j+1) on
    offer = gs.column(int, WIDTH, initial=-1)
    sent = gs.column(int, WIDTH, initial=-1)
    exchange = gs.Timer(rounds=1)

    def on_exchange(self, me, net):
        for place in range(gs.peers_known(self.peers, me)):
            learn(self.table[me], me, gs.peer_at(self.peers, me, place))
        tell(self, me, net, gs.draw_from(self, me, self.table[me, :PSI]), True)

    def on_nodes(self, me, net, sender, wanted, nodes):
        if wanted:
            tell(self, me, net, sender, False)
        for node in nodes:
            learn(self.table[me], me, node)

    @gs.measure("unfinished", better="lower")
    def unfinished(self, run):
        """Share of the nodes that lack their successor or a finger."""
        places, steps = gs.mix_many(0, np.arange(self.nodes), 0) >> 62 - BITS, 1 << np.arange(BITS)
        order, ends = np.argsort(places), (places[:, None] + steps) % (1 << BITS)
        first = order[np.searchsorted(places[order], ends) % self.nodes]
        ahead = (places[first] - places[:, None]) % (1 << BITS)
        lacks = (self.table[:, LEAVES:] < 0) & (steps <= ahead) & (ahead < 2 * steps)
        return (lacks.any(axis=1) | (self.table != first[:, :1]).all(axis=1)).mean()


@gs.rule
def way(base, node):
    """How far a node is ahead of another on the ring; identifiers are hashes of rows."""
    return ((gs.mix(0, node, 0) >> 62 - BITS) - (gs.mix(0, base, 0) >> 62 - BITS)) % (1 << BITS)


@gs.rule
def learn(table, base, node):
    """Let a node that is another one's leaf or finger into its table."""
    if node < 0 or node == base:
        return
    finger, leaf = LEAVES, LEAVES
    while way(base, node) >> finger - LEAVES + 1:
        finger += 1
    if table[finger] < 0 or way(base, node) < way(base, table[finger]):
        table[finger] = node
    while leaf > 0 and (table[leaf - 1] < 0 or nearer(base, node, table[leaf - 1])):
        leaf -= 1
    if leaf < LEAVES and (leaf == 0 or table[leaf - 1] != node):
        gs.insert_at(table[:LEAVES], leaf, node)


@gs.rule
def nearer(base, one, other):
    return min(way(base, one), way(one, base)) < min(way(base, other), way(other, base))


@gs.rule
def tell(self, me, net, to, wanted):
    """Send a node those whom it would keep of all that I know."""
    self.offer[me, :] = self.sent[me, :] = -1
    learn(self.offer[me], to, me)
    for node in self.table[me]:
        learn(self.offer[me], to, node)
    for node in self.offer[me]:
        gs.add_to(self.sent[me], node)
    Nodes.send(net, to, wanted, self.sent[me, : gs.count_in(self.sent[me])])
