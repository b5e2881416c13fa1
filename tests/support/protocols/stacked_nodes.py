"""`stacked` once more, an object a node."""

from stacked import Ask, Tell, Token
from stacked import Wander as Rules

from gossamer.sim import Node, Sampler, Timer, layer, measure
from gossamer.sim.custom.topologies.tman import TManNode


class Counter(Node):
    def __init__(self):
        self.count = 0

    def on_ask(self, sender, message):
        self.count += 1
        self.send(self.me, Tell(self.count))


class Wander(Node):
    counter = layer(Counter)

    begin = Timer(rounds=1)

    def __init__(self):
        self.told = 0

    def on_begin(self):
        peer = self.next_node()
        if peer >= 0:
            self.send(peer, Token(1))

    def on_token(self, sender, message):
        self.send(self.me, Ask(message.hops))

    def on_tell(self, sender, message):
        self.told = message.count

    crash_some, bring_them_back = Rules.crash_some, Rules.bring_them_back

    @measure("tokens", better="higher")
    def tokens(cls, run):
        return sum(node.told for node in run.nodes) / len(run.nodes)


class OverCyclon(Wander):
    peers = Sampler("cyclon", view_size=8, shuffle_length=3)

    def next_node(self):
        return self.peers.random()


class OverNewscast(OverCyclon):
    peers = Sampler("newscast", view_size=8)


class OverHyParView(OverCyclon):
    peers = Sampler("hyparview", view_size=14)


class Ring(TManNode):
    nearest, sent, partners = 6, 5, 3
    peers = Sampler("cyclon", view_size=8)

    def rank(self, base, node):
        ahead = (node - base) % self.nodes
        return min(ahead, self.nodes - ahead)


class OverTMan(Wander):
    ring = layer(Ring)

    def next_node(self):
        return self.draw_from(self.ring.near[:2])

    @measure("in line", better="higher")
    def in_line(cls, run):
        after = [(node.me + 1) % len(run.nodes) in node.ring.near[:2] for node in run.nodes]
        return sum(after) / len(after)
