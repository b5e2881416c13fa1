"""A protocol that says who knows whom: a ring that all are told of, and what a sampler knows."""

from gossamer.sim import custom


class Hello(custom.Message, size_bytes=8):
    turn: int


class Ring(custom.Protocol):
    stride: int = 1

    peers = custom.Sampler("newscast", view_size=6)
    heard = custom.column(int)
    successor = custom.column(int, initial=-1)
    say = custom.Timer(rounds=1)

    @custom.initialiser
    def close(self, run):
        count = len(self.successor)
        self.successor[:] = [(row + self.stride) % count for row in range(count)]

    def on_say(self, me, net):
        peer = custom.random_peer(self.peers, me, custom.draw(self, me))
        if peer >= 0:
            Hello.send(net, peer, 1)

    def on_hello(self, me, net, sender, turn):
        self.heard[me] += turn

    @custom.measure("heard", better="higher")
    def heard_by_all(self, run):
        return self.heard.mean()

    def overlay(self, run):
        return {"ring": custom.links_in(self.successor)}


class RingOfNodes(custom.Node):
    say = custom.Timer(rounds=1)

    def __init__(self):
        self.heard = 0

    def on_say(self):
        self.send((self.me + 1) % self.nodes, Hello(1))

    def on_hello(self, sender, message):
        self.heard += message.turn

    @custom.measure("heard", better="higher")
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
