"""Kademlia (Maymounkov, Mazieres, IPTPS 2002): lookups over k-buckets."""

from buckets import BUCKETS, fill, learn, note, settled_tables

from gossamer.sim import custom

Find = custom.message("Find", target=int, hops=int)
Found = custom.message("Found", target=int, hops=int, nodes=custom.items("k"))


class Kademlia(custom.Protocol):
    k: int = custom.setting(20, low=1)  # nodes in a bucket and in an answer
    alpha: int = custom.setting(3, low=1)  # questions under way
    settled: bool = True  # whether buckets are full at first, or nodes join one after another
    table = custom.column(int, lambda own: own.k * BUCKETS, initial=-1)
    near, offer = custom.column(int, "k", initial=-1), custom.column(int, "k", initial=-1)
    depth, asked = custom.column(int, "k"), custom.column(bool, "k")  # of those in `near`
    target, waiting, hops = custom.column(int), custom.column(int), custom.column(int)
    search = custom.Timer(rounds=1)

    @custom.initialiser
    def settle(self, run):
        if self.settled:
            self.table[:] = settled_tables(run, self.k)

    def on_start(self, me, net, contact):
        learn(self.table[me], self.k, me, max(contact, 0))
        look_up(self, me, net, me)

    def on_search(self, me, net):
        look_up(self, me, net, custom.draw_other(self, me))

    def on_find(self, me, net, sender, target, hops):
        learn(self.table[me], self.k, me, sender)
        fill(self.offer[me], target, self.table[me])
        Found.send(net, sender, target, hops, self.offer[me, : custom.count_in(self.offer[me])])

    def on_found(self, me, net, sender, target, hops, nodes):
        learn(self.table[me], self.k, me, sender)
        if target == self.target[me]:
            self.waiting[me] -= 1
            consider(self, me, net, nodes, hops + 1)

    @custom.measure("hops", better="lower")
    def mean_hops(self, run):
        """Hops of the lookups of the round that found their node, in the mean."""
        return self.hops.sum() / max((self.hops > 0).sum(), 1)

    @custom.measure("most hops", better="lower")
    def most_hops(self, run):
        return self.hops.max()

    @custom.measure("found", better="higher")
    def found(self, run):
        """Share of the lookups of the round that found their node."""
        return (self.hops > 0).mean()

    def overlay(self, run):
        return custom.links_in(self.table)


@custom.rule
def look_up(self, me, net, target):
    self.target[me], self.waiting[me], self.hops[me] = target, 0, 0
    self.near[me, :] = -1
    consider(self, me, net, self.table[me], 1)


@custom.rule
def consider(self, me, net, nodes, hops):
    """Take note of nodes, and ask the nearest until the target is found or all have answered."""
    near, depth, asked = self.near[me], self.depth[me], self.asked[me]
    for node in nodes:
        if node != me and note(near, depth, asked, self.target[me], node, hops):
            self.hops[me] = hops if node == self.target[me] else self.hops[me]
    for place in range(custom.count_in(near)):
        if self.hops[me] == 0 and self.waiting[me] < self.alpha and not asked[place]:
            asked[place] = True
            self.waiting[me] += 1
            Find.send(net, near[place], self.target[me], depth[place])
