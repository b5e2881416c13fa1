"""A protocol that says who knows whom: a ring that all are told of, and what a sampler knows."""

import gossamer.sim as gs


class Hello(gs.Message, size_bytes=8):
    turn: int


class Ring(gs.Protocol):
    stride: int = 1

    peers = gs.Sampler("newscast", view_size=6)
    heard = gs.column(int)
    successor = gs.column(int, initial=-1)
    say = gs.Timer(rounds=1)

    @gs.initialiser
    def close(self, run):
        count = len(self.successor)
        self.successor[:] = [(row + self.stride) % count for row in range(count)]

    def on_say(self, me, net):
        peer = gs.random_peer(self.peers, me, gs.draw(self, me))
        if peer >= 0:
            Hello.send(net, peer, 1)

    def on_hello(self, me, net, sender, turn):
        self.heard[me] += turn

    @gs.measure("heard", better="higher")
    def heard_by_all(self, run):
        return self.heard.mean()

    def overlay(self, run):
        return {"ring": gs.links_in(self.successor)}


class RingOfNodes(gs.Node):
    say = gs.Timer(rounds=1)

    def __init__(self):
        self.heard = 0

    def on_say(self):
        self.send((self.me + 1) % self.nodes, Hello(1))

    def on_hello(self, sender, message):
        self.heard += message.turn

    @gs.measure("heard", better="higher")
    def heard_by_all(cls, run):
        return sum(node.heard for node in run.nodes) / len(run.nodes)

    @classmethod
    def overlay(cls, run):
        count = len(run.nodes)
        return [(row, (row + 1) % count) for row in range(count)]


class Wrong(RingOfNodes):
    @classmethod
    def overlay(cls, run):
        return [(0, len(run.nodes))]
