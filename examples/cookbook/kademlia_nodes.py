"""Kademlia once more, an object a node; `kademlia.py` says what it is."""

from itertools import chain

from buckets import BUCKETS, apart, nearest, settled_tables
from kademlia import Find, Found

import gossamer.sim as gs


class Kademlia(gs.Node):
    k: int = gs.setting(20, low=1)
    alpha: int = gs.setting(3, low=1)
    settled: bool = True
    search = gs.Timer(rounds=1)

    def __init__(self):
        self.buckets = [[] for _ in range(BUCKETS)]
        self.hops = 0

    @gs.initialiser
    def settle(cls, run):
        if cls.settled:
            for node, table in zip(run.nodes, settled_tables(run, cls.k), strict=True):
                node.buckets = [row[row >= 0].tolist() for row in table.reshape(-1, cls.k)]

    def on_start(self, contact):
        self.learn(max(contact, 0))
        self.look_up(self.me)

    def on_search(self):
        self.look_up(self.draw_other())

    def on_find(self, sender, message):
        self.learn(sender)
        nodes = nearest(chain(*self.buckets), message.target, self.k)
        self.send(sender, Found(message.target, message.hops, nodes))

    def on_found(self, sender, message):
        self.learn(sender)
        if message.target == self.target:
            self.waiting -= 1
            self.consider(message.nodes, message.hops + 1)

    def learn(self, node):
        bucket = self.buckets[min(62 - apart(self.me, node).bit_length(), BUCKETS - 1)]
        if len(bucket) < self.k:
            self.put_into(bucket, node, self.k)

    def look_up(self, target):
        self.target, self.waiting, self.near, self.asked = target, 0, {}, set()
        self.consider(chain(*self.buckets), 1)

    def consider(self, nodes, hops):
        known = {node: hops for node in nodes if node != self.me} | self.near
        self.near = {node: known[node] for node in nearest(known, self.target, self.k)}
        self.hops = self.near.get(self.target, 0)
        for node in self.near:
            if not self.hops and self.waiting < self.alpha and node not in self.asked:
                self.asked.add(node)
                self.waiting += 1
                self.send(node, Find(self.target, self.near[node]))

    @gs.measure("hops", better="lower")
    def mean_hops(cls, run):
        hops = [node.hops for node in run.nodes if node.hops]
        return sum(hops) / max(len(hops), 1)

    @gs.measure("most hops", better="lower")
    def most_hops(cls, run):
        return max(node.hops for node in run.nodes)

    @gs.measure("found", better="higher")
    def found(cls, run):
        return sum(node.hops > 0 for node in run.nodes) / len(run.nodes)

    @classmethod
    def overlay(cls, run):
        return [(node.me, other) for node in run.nodes for other in chain(*node.buckets)]
