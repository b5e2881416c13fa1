"""A protocol that asks everything of its world: attributes, sizes, leaving, growth."""

from typing import Any

from gossamer.sim.custom import (
    Message,
    Protocol,
    Sampler,
    Timer,
    attribute,
    column,
    control,
    draw,
    draw_other,
    items,
    measure,
    random_peer,
)


class Parcel(Message, size_bytes=200):
    hops: int
    content: Any = items(60)


class Farewell(Message, size_bytes=30):
    """The sender leaves."""


class Travellers(Protocol):
    peers = Sampler("cyclon", view_size=6)

    strength = attribute(int, {"whole": [1, 3]})
    weight = attribute(float)
    heavy = attribute(bool, [False, True])

    carried = column(int)
    chain = column(float)
    farewells = column(int)
    returned = column(int)
    starts = column(int)
    store = column(int, 60)

    go = Timer(rounds=1)

    def on_start(self, me, net, contact):
        self.starts[me] = net.life
        if contact >= 0:
            Parcel.send(net, contact, 2, self.store[me, :1])

    def on_leave(self, me, net):
        Farewell.send(net, draw_other(self, me))

    def on_go(self, me, net):
        for _ in range(self.strength[me]):
            peer = random_peer(self.peers, me, draw(self, me))
            if peer >= 0:
                length = 40 if self.heavy[me] else 5
                Parcel.send(net, peer, 0, self.store[me, :length])

    def on_parcel(self, me, net, sender, hops, content):
        self.carried[me] += 1
        self.chain[me] = 0.9 * self.chain[me] + net.now * self.weight[me] + sender + len(content)
        if hops < 2:
            Parcel.send(net, draw_other(self, me), hops + 1, content)

    def on_farewell(self, me, net, sender):
        self.farewells[me] += 1

    def on_unreachable(self, me, net, to, kind):
        self.returned[me] += 1

    @control(once=3)
    def some_leave(self, run):
        run.leave(range(0, len(run.nodes), 7))

    @control(begin=4, every=3)
    def more_join(self, run):
        run.grow(5)

    @control(once=8)
    def some_return(self, run):
        run.start(range(0, len(run.nodes), 14))

    @measure("chain")
    def chain_mean(self, run):
        """Depends on everything that nodes took."""
        return self.chain.mean()

    @measure("farewells")
    def farewells_sum(self, run):
        return self.farewells.sum()

    @measure("returned")
    def returned_sum(self, run):
        return self.returned.sum()

    @measure("started again")
    def started_again(self, run):
        """Share of the nodes that have come up more than once."""
        return (self.starts > 1).mean()

    @measure("carried")
    def carried_mean(self, run):
        return self.carried.mean()
