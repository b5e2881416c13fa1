"""Lookups over T-Chord once more, an object a node; `lookup.py` says what they are."""

from lookup import Lookup
from tchord import way
from tchord_nodes import TChord, unfinished

import gossamer.sim as gs


class Lookups(gs.Node):
    begin: int = gs.setting(15, low=0)
    ring = gs.layer(TChord)

    search = gs.Timer(rounds=1)

    def __init__(self):
        self.found = self.hops = 0

    @gs.control()
    def forget(cls, run):
        for node in run.nodes:
            node.found = node.hops = 0

    def on_search(self):
        if self.round >= self.begin:
            self.send(self.me, Lookup(self.draw_other(), 0))

    def on_lookup(self, sender, message):
        if self.me == message.target:
            self.found += 1
            self.hops += message.hops
            return
        distance = way(self.me, message.target)
        before = [node for node in self.ring.fingers.values() if way(self.me, node) <= distance]
        if before:
            nearest = max(before, key=lambda node: way(self.me, node))
            self.send(nearest, Lookup(message.target, message.hops + 1))

    @gs.measure("hops", better="lower")
    def mean_hops(cls, run):
        found = sum(node.found for node in run.nodes)
        return sum(node.hops for node in run.nodes) / max(found, 1)

    @gs.measure("found", better="higher")
    def share_found(cls, run):
        return sum(node.found for node in run.nodes) / len(run.nodes)

    @gs.measure("unfinished", better="lower")
    def unfinished(cls, run):
        return unfinished([node.ring for node in run.nodes], run)

    @classmethod
    def overlay(cls, run):
        rings = {node.me: node.ring for node in run.nodes}
        near = [(me, other) for me, ring in rings.items() for other in ring.leaves[:2]]
        far = [(me, other) for me, ring in rings.items() for other in ring.fingers.values()]
        return {"neighbour": near, "finger": far}
