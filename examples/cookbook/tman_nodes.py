"""T-Man once more, an object a node; `tman.py` says what it is."""

import numpy as np
from tman import AROUND, PSI, M, Reply, Request

import gossamer.sim as gs


class Torus(gs.Node):
    peers = gs.Sampler("newscast", view_size=20)

    exchange = gs.Timer(rounds=1)

    def __init__(self):
        self.near = []

    def rank(self, base, other):
        side = round(self.nodes**0.5)
        across, down = abs(base % side - other % side), abs(base // side - other // side)
        return min(across, side - across) + min(down, side - down), other

    def nearest(self, nodes, base, most):
        others = {*nodes} - {base}
        return sorted(others, key=lambda node: self.rank(base, node))[:most]

    def merge(self, nodes):
        self.near = self.nearest([*self.near, *nodes], self.me, 100)

    def on_start(self, contact):
        self.merge(self.peers)

    def on_exchange(self):
        partner = self.draw_from(self.near[:PSI])
        if partner >= 0:
            self.send(partner, Request(self.nearest([self.me, *self.near], partner, M)))

    def on_request(self, sender, message):
        self.send(sender, Reply(self.nearest([self.me, *self.near], sender, M)))
        self.merge(message.nodes)

    def on_reply(self, sender, message):
        self.merge(message.nodes)

    @gs.measure("missing links", better="lower")
    def missing(cls, run):
        side = round(len(run.nodes) ** 0.5)
        held = [
            (node.me + dx) % side + (node.me // side + dy) % side * side in node.near[:4]
            for node in run.nodes
            for dx, dy in AROUND
        ]
        return 1 - np.mean(held)

    @classmethod
    def overlay(cls, run):
        return {"nearest": [(node.me, near) for node in run.nodes for near in node.near[:4]]}
