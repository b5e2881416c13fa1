"""Lookups over T-Chord, and their hops (Stoica et al., SIGCOMM 2001, Sec. 6.3, Fig. 10)."""

from tchord import LEAVES, TChord, way

from gossamer.sim import custom

Lookup = custom.message("Lookup", target=int, hops=int)


class Lookups(custom.Protocol):
    begin: int = custom.setting(15, low=0)  # the first round with lookups
    ring = custom.layer(TChord)

    found = custom.column(int)  # lookups that ended here in the round
    hops = custom.column(int)  # of these
    search = custom.Timer(rounds=1)

    @custom.control()
    def forget(self, run):
        self.found[:] = 0
        self.hops[:] = 0

    def on_search(self, me, net):
        if net.round >= self.begin:
            Lookup.send(net, me, custom.draw_other(self, me), 0)

    def on_lookup(self, me, net, sender, target, hops):
        if me == target:
            self.found[me] += 1
            self.hops[me] += hops
            return
        nearest = -1
        for node in self.ring.table[me, LEAVES:]:  # fingers, shorter ones first
            if node >= 0 and way(me, node) <= way(me, target):
                nearest = node
        if nearest >= 0:
            Lookup.send(net, nearest, target, hops + 1)

    @custom.measure("hops", better="lower")
    def mean_hops(self, run):
        """Hops of the lookups that found their node, in the mean of the round."""
        return self.hops.sum() / max(self.found.sum(), 1)

    @custom.measure("found", better="higher")
    def share_found(self, run):
        """Lookups of the round that found their node, a node."""
        return self.found.mean()

    @custom.measure("unfinished", better="lower")
    def unfinished(self, run):
        """Share of the nodes that lack their successor or a finger."""
        return TChord.unfinished(self.ring, run)

    def overlay(self, run):
        table = self.ring.table
        parts = {"neighbour": table[:, :2], "finger": table[:, LEAVES:]}
        return {kind: custom.links_in(part) for kind, part in parts.items()}
