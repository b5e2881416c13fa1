"""Lookups over T-Chord, and their hops (Stoica et al., SIGCOMM 2001, Sec. 6.3, Fig. 10)."""

from tchord import LEAVES, TChord, way

import gossamer.sim as gs

Lookup = gs.message("Lookup", target=int, hops=int)


class Lookups(gs.Protocol):
    begin: int = gs.setting(15, low=0)  # the first round with lookups
    ring = gs.layer(TChord)

    found = gs.column(int)  # lookups that ended here in the round
    hops = gs.column(int)  # of these
    search = gs.Timer(rounds=1)

    @gs.control()
    def forget(self, run):
        self.found[:] = 0
        self.hops[:] = 0

    def on_search(self, me, net):
        if net.round >= self.begin:
            Lookup.send(net, me, gs.draw_other(self, me), 0)

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

    @gs.measure("hops", better="lower")
    def mean_hops(self, run):
        """Hops of the lookups that found their node, in the mean of the round."""
        return self.hops.sum() / max(self.found.sum(), 1)

    @gs.measure("found", better="higher")
    def share_found(self, run):
        """Lookups of the round that found their node, a node."""
        return self.found.mean()

    @gs.measure("unfinished", better="lower")
    def unfinished(self, run):
        """Share of the nodes that lack their successor or a finger."""
        return TChord.unfinished(self.ring, run)

    def overlay(self, run):
        table = self.ring.table
        parts = {"neighbour": table[:, :2], "finger": table[:, LEAVES:]}
        return {kind: gs.links_in(part) for kind, part in parts.items()}
