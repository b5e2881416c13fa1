"""What a node of SWIM knows of failures, and tells of them (Das, Gupta, Motivala, DSN 2002)."""

import numpy as np

import gossamer.sim as gs

KNOWN, NEWS = 100, 6  # failures that a node knows at most; of these in a message

Learned = gs.message("Learned", failed=int)  # logged: a node knows of a failure


@gs.rule
def learn(self, me, net, nodes):
    """Take note of nodes that have failed."""
    for node in nodes:
        if gs.add_to(self.failed[me], node):
            self.told[me, gs.count_in(self.failed[me]) - 1] = 0
            Learned.log(net, node)


@gs.rule
def member(self, me, but):
    """A random node that is not known to have failed, nor is ``but``; me where nobody is left."""
    left = self.nodes - 1 - gs.count_in(self.failed[me]) + gs.holds(self.failed[me], me)
    if left <= (but >= 0):
        return me
    node = gs.draw_other(self, me)
    while node == but or gs.holds(self.failed[me], node):
        node = gs.draw_other(self, me)
    return node


@gs.rule
def choose_news(self, me):
    """Fill `news` with the failures that were told the least, and seldom enough; how many."""
    self.news[me, :] = -1
    for count in range(NEWS):
        best = -1
        for place in range(gs.count_in(self.failed[me])):
            fewer = self.told[me, place] < (self.repeats if best < 0 else self.told[me, best])
            if fewer and not gs.holds(self.news[me], self.failed[me, place]):
                best = place
        if best < 0:
            return count
        self.told[me, best] += 1
        self.news[me, count] = self.failed[me, best]
    return NEWS


def rounds_learned(run):
    """Of each failed node whose failure is known, in which rounds the others learned of it."""
    log = run.log(Learned)
    up = run.alive[log["node"]]
    rounds = [log["round"][up & (log["failed"] == row)] for row in np.flatnonzero(~run.alive)]
    return [each for each in rounds if len(each)]
