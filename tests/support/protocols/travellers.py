"""A protocol that asks everything of its world: attributes, sizes, leaving, growth."""

from typing import Any

import gossamer.sim as gs


class Parcel(gs.Message, size_bytes=200):
    hops: int
    content: Any = gs.items(60)


class Farewell(gs.Message, size_bytes=30):
    """The sender leaves."""


class Travellers(gs.Protocol):
    peers = gs.Sampler("cyclon", view_size=6)

    strength = gs.attribute(int, {"whole": [1, 3]})
    weight = gs.attribute(float)
    heavy = gs.attribute(bool, [False, True])

    carried = gs.column(int)
    chain = gs.column(float)
    farewells = gs.column(int)
    returned = gs.column(int)
    starts = gs.column(int)
    store = gs.column(int, 60)

    go = gs.Timer(rounds=1)

    def on_start(self, me, net, contact):
        self.starts[me] = net.life
        if contact >= 0:
            Parcel.send(net, contact, 2, self.store[me, :1])

    def on_leave(self, me, net):
        Farewell.send(net, gs.draw_other(self, me))

    def on_go(self, me, net):
        for _ in range(self.strength[me]):
            peer = gs.random_peer(self.peers, me, gs.draw(self, me))
            if peer >= 0:
                length = 40 if self.heavy[me] else 5
                Parcel.send(net, peer, 0, self.store[me, :length])

    def on_parcel(self, me, net, sender, hops, content):
        self.carried[me] += 1
        self.chain[me] = 0.9 * self.chain[me] + net.now * self.weight[me] + sender + len(content)
        if hops < 2:
            Parcel.send(net, gs.draw_other(self, me), hops + 1, content)

    def on_farewell(self, me, net, sender):
        self.farewells[me] += 1

    def on_unreachable(self, me, net, to, kind):
        self.returned[me] += 1

    @gs.control(once=3)
    def some_leave(self, run):
        run.leave(range(0, len(run.nodes), 7))

    @gs.control(begin=4, every=3)
    def more_join(self, run):
        run.grow(5)

    @gs.control(once=8)
    def some_return(self, run):
        run.start(range(0, len(run.nodes), 14))

    @gs.measure("chain")
    def chain_mean(self, run):
        """Depends on everything that nodes took."""
        return self.chain.mean()

    @gs.measure("farewells")
    def farewells_sum(self, run):
        return self.farewells.sum()

    @gs.measure("returned")
    def returned_sum(self, run):
        return self.returned.sum()

    @gs.measure("started again")
    def started_again(self, run):
        """Share of the nodes that have come up more than once."""
        return (self.starts > 1).mean()

    @gs.measure("carried")
    def carried_mean(self, run):
        return self.carried.mean()
