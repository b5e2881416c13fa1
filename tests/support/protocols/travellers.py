"""A protocol that asks everything of its world: attributes, sizes, leaving, growth."""

from typing import Any

from gossamer.sim import custom


class Parcel(custom.Message, size_bytes=200):
    hops: int
    content: Any = custom.items(60)


class Farewell(custom.Message, size_bytes=30):
    """The sender leaves."""


class Travellers(custom.Protocol):
    peers = custom.Sampler("cyclon", view_size=6)

    strength = custom.attribute(int, {"whole": [1, 3]})
    weight = custom.attribute(float)
    heavy = custom.attribute(bool, [False, True])

    carried = custom.column(int)
    chain = custom.column(float)
    farewells = custom.column(int)
    returned = custom.column(int)
    starts = custom.column(int)
    store = custom.column(int, 60)

    go = custom.Timer(rounds=1)

    def on_start(self, me, net, contact):
        self.starts[me] = net.life
        if contact >= 0:
            Parcel.send(net, contact, 2, self.store[me, :1])

    def on_leave(self, me, net):
        Farewell.send(net, custom.draw_other(self, me))

    def on_go(self, me, net):
        for _ in range(self.strength[me]):
            peer = custom.random_peer(self.peers, me, custom.draw(self, me))
            if peer >= 0:
                length = 40 if self.heavy[me] else 5
                Parcel.send(net, peer, 0, self.store[me, :length])

    def on_parcel(self, me, net, sender, hops, content):
        self.carried[me] += 1
        self.chain[me] = 0.9 * self.chain[me] + net.now * self.weight[me] + sender + len(content)
        if hops < 2:
            Parcel.send(net, custom.draw_other(self, me), hops + 1, content)

    def on_farewell(self, me, net, sender):
        self.farewells[me] += 1

    def on_unreachable(self, me, net, to, kind):
        self.returned[me] += 1

    @custom.control(once=3)
    def some_leave(self, run):
        run.leave(range(0, len(run.nodes), 7))

    @custom.control(begin=4, every=3)
    def more_join(self, run):
        run.grow(5)

    @custom.control(once=8)
    def some_return(self, run):
        run.start(range(0, len(run.nodes), 14))

    @custom.measure("chain")
    def chain_mean(self, run):
        """Depends on everything that nodes took."""
        return self.chain.mean()

    @custom.measure("farewells")
    def farewells_sum(self, run):
        return self.farewells.sum()

    @custom.measure("returned")
    def returned_sum(self, run):
        return self.returned.sum()

    @custom.measure("started again")
    def started_again(self, run):
        """Share of the nodes that have come up more than once."""
        return (self.starts > 1).mean()

    @custom.measure("carried")
    def carried_mean(self, run):
        return self.carried.mean()
