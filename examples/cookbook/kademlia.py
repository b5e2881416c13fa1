"""Kademlia (Maymounkov, Mazieres, IPTPS 2002): lookups over k-buckets."""

from buckets import BUCKETS, fill, learn, note, settled_tables

import gossamer.sim as gs

Find = gs.message("Find", target=int, hops=int)
Found = gs.message("Found", target=int, hops=int, nodes=gs.items("k"))


class Kademlia(gs.Protocol):
    k: int = gs.setting(20, low=1)  # nodes in a bucket and in an answer
    alpha: int = gs.setting(3, low=1)  # questions under way
    settled: bool = True  # whether buckets are full at first, or nodes join one after another
    table = gs.column(int, lambda own: own.k * BUCKETS, initial=-1)
    near, offer = gs.column(int, "k", initial=-1), gs.column(int, "k", initial=-1)
    depth, asked = gs.column(int, "k"), gs.column(bool, "k")  # of those in `near`
    target, waiting, hops = gs.column(int), gs.column(int), gs.column(int)
    search = gs.Timer(rounds=1)

    @gs.initialiser
    def settle(self, run):
        if self.settled:
            self.table[:] = settled_tables(run, self.k)

    def on_start(self, me, net, contact):
        learn(self.table[me], self.k, me, max(contact, 0))
        look_up(self, me, net, me)

    def on_search(self, me, net):
        look_up(self, me, net, gs.draw_other(self, me))

    def on_find(self, me, net, sender, target, hops):
        learn(self.table[me], self.k, me, sender)
        fill(self.offer[me], target, self.table[me])
        Found.send(net, sender, target, hops, self.offer[me, : gs.count_in(self.offer[me])])

    def on_found(self, me, net, sender, target, hops, nodes):
        learn(self.table[me], self.k, me, sender)
        if target == self.target[me]:
            self.waiting[me] -= 1
            consider(self, me, net, nodes, hops + 1)

    @gs.measure("hops", better="lower")
    def mean_hops(self, run):
        """Hops of the lookups of the round that found their node, in the mean."""
        return self.hops.sum() / max((self.hops > 0).sum(), 1)

    @gs.measure("most hops", better="lower")
    def most_hops(self, run):
        return self.hops.max()

    @gs.measure("found", better="higher")
    def found(self, run):
        """Share of the lookups of the round that found their node."""
        return (self.hops > 0).mean()

    def overlay(self, run):
        return gs.links_in(self.table)


@gs.rule
def look_up(self, me, net, target):
    self.target[me], self.waiting[me], self.hops[me] = target, 0, 0
    self.near[me, :] = -1
    consider(self, me, net, self.table[me], 1)


@gs.rule
def consider(self, me, net, nodes, hops):
    """Take note of nodes, and ask the nearest until the target is found or all have answered."""
    near, depth, asked = self.near[me], self.depth[me], self.asked[me]
    for node in nodes:
        if node != me and note(near, depth, asked, self.target[me], node, hops):
            self.hops[me] = hops if node == self.target[me] else self.hops[me]
    for place in range(gs.count_in(near)):
        if self.hops[me] == 0 and self.waiting[me] < self.alpha and not asked[place]:
            asked[place] = True
            self.waiting[me] += 1
            Find.send(net, near[place], self.target[me], depth[place])
