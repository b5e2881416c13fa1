"""T-Man (Jelasity, Montresor, Babaoglu, Computer Networks 53, 2009): a torus from random views."""

import numpy as np

import gossamer.sim as gs

M, PSI = 20, 10  # descriptors in a message; partners are drawn from so many of the nearest
AROUND = ((1, 0), (-1, 0), (0, 1), (0, -1))

Request = gs.message("Request", nodes=gs.items(M))
Reply = gs.message("Reply", nodes=gs.items(M))


class Torus(gs.Protocol):
    peers = gs.Sampler("newscast", view_size=20)

    near = gs.column(int, 100, initial=-1)  # the nearest first
    chosen = gs.column(int, M, initial=-1)

    exchange = gs.Timer(rounds=1)

    def on_start(self, me, net, contact):
        for place in range(gs.peers_known(self.peers, me)):
            insert(self.near[me], self.nodes, me, gs.peer_at(self.peers, me, place))

    def on_exchange(self, me, net):
        partner = gs.draw_from(self, me, self.near[me, :PSI])
        if partner >= 0:
            choose(self, me, partner)
            Request.send(net, partner, self.chosen[me, : gs.count_in(self.chosen[me])])

    def on_request(self, me, net, sender, nodes):
        choose(self, me, sender)
        Reply.send(net, sender, self.chosen[me, : gs.count_in(self.chosen[me])])
        for node in nodes:
            insert(self.near[me], self.nodes, me, node)

    def on_reply(self, me, net, sender, nodes):
        for node in nodes:
            insert(self.near[me], self.nodes, me, node)

    @gs.measure("missing links", better="lower")
    def missing(self, run):
        """Share of the links of the torus that nodes do not have among their nearest four."""
        side = round(self.nodes**0.5)
        x, y = np.arange(self.nodes) % side, np.arange(self.nodes) // side
        steps = [((x + dx) % side + (y + dy) % side * side) for dx, dy in AROUND]
        held = [(self.near[:, :4] == step[:, None]).any(axis=1) for step in steps]
        return 1 - np.mean(held)

    def overlay(self, run):
        return {"nearest": gs.links_in(self.near[:, :4])}


@gs.rule
def rank(nodes, base, other):
    """How far another node is on the torus; of two as far the lower row is first."""
    side = round(nodes**0.5)
    across, down = abs(base % side - other % side), abs(base // side - other // side)
    return (min(across, side - across) + min(down, side - down)) * nodes + other


@gs.rule
def insert(row, nodes, base, node):
    """Insert a node into a row where the nearest to ``base`` come first."""
    place, new = len(row), rank(nodes, base, node)
    while place > 0 and (row[place - 1] < 0 or new < rank(nodes, base, row[place - 1])):
        place -= 1
    if 0 <= node != base and place < len(row) and (place == 0 or row[place - 1] != node):
        gs.insert_at(row, place, node)


@gs.rule
def choose(self, me, to):
    """Choose the nodes that are the nearest to another one, me among them."""
    self.chosen[me, :] = -1
    insert(self.chosen[me], self.nodes, to, me)
    for node in self.near[me]:
        insert(self.chosen[me], self.nodes, to, node)
