"""T-Chord once more, an object a node; `tchord.py` says what it is."""

from types import SimpleNamespace

import numpy as np
from tchord import BITS, LEAVES, PSI, WIDTH, Nodes, way
from tchord import TChord as Rules

import gossamer.sim as gs


class TChord(gs.Node):
    peers = gs.Sampler("newscast", view_size=20)

    exchange = gs.Timer(rounds=1)

    def __init__(self):
        self.leaves, self.fingers = [], {}

    def on_exchange(self):
        self.learn(self.peers)
        self.tell(self.draw_from(self.leaves[:PSI]), True)

    def on_nodes(self, sender, message):
        if message.wanted:
            self.tell(sender, False)
        self.learn(message.nodes)

    def learn(self, nodes):
        self.leaves, self.fingers = chosen([*self.leaves, *self.fingers.values(), *nodes], self.me)

    def tell(self, to, wanted):
        leaves, fingers = chosen([self.me, *self.leaves, *self.fingers.values()], to)
        nodes = dict.fromkeys([*leaves, *(fingers[j] for j in sorted(fingers))])
        self.send(to, Nodes(wanted, list(nodes)))

    @gs.measure("unfinished", better="lower")
    def unfinished(cls, run):
        return unfinished(run.nodes, run)


def chosen(nodes, base):
    """The leaves and fingers that a node has if it knows these."""
    ahead = {node: way(base, node) for node in nodes if node != base}
    nearest = sorted(ahead, key=lambda node: min(ahead[node], (1 << BITS) - ahead[node]))
    fingers = {}
    for node in sorted(ahead, key=ahead.get):
        fingers.setdefault(ahead[node].bit_length() - 1, node)
    return nearest[:LEAVES], fingers


def unfinished(nodes, run):
    """Share of the nodes that lack their successor or a finger: of the tables that rules have."""
    table = np.full((len(nodes), WIDTH), -1)
    for row, node in zip(table, nodes, strict=True):
        row[: len(node.leaves)] = node.leaves
        row[[LEAVES + j for j in node.fingers]] = list(node.fingers.values())
    return Rules.unfinished(SimpleNamespace(table=table, nodes=len(nodes)), run)
