"""`travellers` once more, an object a node."""

from travellers import Farewell, Parcel
from travellers import Travellers as Rules

from gossamer.sim import Node, Sampler, Timer, attribute, measure


class Travellers(Node):
    peers = Sampler("cyclon", view_size=6)

    strength = attribute(int, {"whole": [1, 3]})
    weight = attribute(float)
    heavy = attribute(bool, [False, True])

    go = Timer(rounds=1)

    def __init__(self):
        self.carried = self.farewells = self.returned = self.seen = 0
        self.chain = 0.0

    def on_start(self, contact):
        self.seen = self.starts
        if contact >= 0:
            self.send(contact, Parcel(2, [0]))

    def on_leave(self):
        self.send(self.draw_other(), Farewell())

    def on_go(self):
        for _ in range(self.strength):
            peer = self.peers.random()
            if peer >= 0:
                self.send(peer, Parcel(0, [0] * (40 if self.heavy else 5)))

    def on_parcel(self, sender, message):
        self.carried += 1
        self.chain = 0.9 * self.chain + self.now * self.weight + sender + len(message.content)
        if message.hops < 2:
            self.send(self.draw_other(), Parcel(message.hops + 1, message.content))

    def on_farewell(self, sender, message):
        self.farewells += 1

    def on_unreachable(self, to, message):
        self.returned += 1

    some_leave, more_join, some_return = Rules.some_leave, Rules.more_join, Rules.some_return

    @measure("chain")
    def chain_mean(cls, run):
        return sum(node.chain for node in run.nodes) / len(run.nodes)

    @measure("farewells")
    def farewells_sum(cls, run):
        return sum(node.farewells for node in run.nodes)

    @measure("returned")
    def returned_sum(cls, run):
        return sum(node.returned for node in run.nodes)

    @measure("started again")
    def started_again(cls, run):
        return sum(node.seen > 1 for node in run.nodes) / len(run.nodes)

    @measure("carried")
    def carried_mean(cls, run):
        return sum(node.carried for node in run.nodes) / len(run.nodes)
