"""SWIM once more, an object a node; `swim.py` says what it is."""

import numpy as np
from membership import KNOWN, NEWS, Learned, rounds_learned
from swim import FAILURE, Ack, Ping, Request, Timeout

import gossamer.sim as gs


class Swim(gs.Node):
    proxies: int = gs.setting(3, low=0)
    timeout_s: float = 0.2
    repeats: int = gs.setting(20, low=1)
    fails: int = gs.setting(50, low=0, high=KNOWN)
    period = gs.Timer(rounds=1, phase=0)

    def __init__(self):
        self.told, self.target, self.declared = {}, None, 0  # told: by failed node, how often

    @gs.control(once=FAILURE)
    def fail(cls, run):
        run.crash(run.random().permutation(len(run.nodes))[: cls.fails])

    def on_period(self):
        if self.target is not None:
            self.declared += 1
            self.learn([self.target])
        self.target = self.member()
        self.send(self.target, Ping(self.me, self.news()))
        self.after(self.timeout_s, Timeout())

    def on_timeout(self, sender, message):
        for _ in range(self.proxies if self.target is not None else 0):
            self.send(self.member(but=self.target), Request(self.target, self.news()))

    def on_request(self, sender, message):
        self.learn(message.failed)
        self.send(message.target, Ping(sender, self.news()))

    def on_ping(self, sender, message):
        self.learn(message.failed)
        self.send(sender, Ack(self.me, message.origin, self.news()))

    def on_ack(self, sender, message):
        self.learn(message.failed)
        if message.origin != self.me:
            self.send(message.origin, Ack(message.target, message.origin, self.news()))
        elif message.target == self.target:
            self.target = None

    def learn(self, nodes):
        for node in nodes:
            if node not in self.told and len(self.told) < KNOWN:
                self.told[node] = 0
                self.log(Learned(node))

    def member(self, but=None):
        if self.nodes - 1 - len(self.told) + (self.me in self.told) <= (but is not None):
            return self.me
        node = self.draw_other()
        while node == but or node in self.told:
            node = self.draw_other()
        return node

    def news(self):
        fresh = sorted((n for n in self.told if self.told[n] < self.repeats), key=self.told.get)
        self.told.update((node, self.told[node] + 1) for node in fresh[:NEWS])
        return fresh[:NEWS]

    @gs.measure("detection", better="lower")
    def detection(cls, run):
        return np.mean([rounds.min() - FAILURE for rounds in rounds_learned(run)] or 0)

    @gs.measure("known", better="higher")
    def known(cls, run):
        return sum(map(len, rounds_learned(run))) / max(run.alive.sum() * (~run.alive).sum(), 1)

    @gs.measure("declared", better="lower")
    def declared_failed(cls, run):
        return sum(node.declared for node in run.nodes) / (len(run.nodes) * max(run.round, 1))
