"""SWIM (Das, Gupta, Motivala, DSN 2002): probes find who has failed, and carry the news."""

import numpy as np
from membership import KNOWN, NEWS, choose_news, learn, member, rounds_learned

import gossamer.sim as gs

FAILURE = 5  # the round in which nodes fail

Ping = gs.message("Ping", origin=int, failed=gs.items(NEWS))
Request = gs.message("Request", target=int, failed=gs.items(NEWS))
Ack = gs.message("Ack", target=int, origin=int, failed=gs.items(NEWS))
Timeout = gs.message("Timeout")


class Swim(gs.Protocol):
    proxies: int = gs.setting(3, low=0)
    timeout_s: float = 0.2  # of a direct answer; one through proxies has the rest of the period
    repeats: int = gs.setting(20, low=1)  # how often a node tells one: 3 ln N for N = 1,000
    fails: int = gs.setting(50, low=0, high=KNOWN)  # how many nodes

    failed, told = gs.column(int, KNOWN, initial=-1), gs.column(int, KNOWN)
    news = gs.column(int, NEWS, initial=-1)
    target = gs.column(int, initial=-1)  # until it has answered
    declared = gs.column(int)
    period = gs.Timer(rounds=1, phase=0)

    @gs.control(once=FAILURE)
    def fail(self, run):
        run.crash(run.random().permutation(self.nodes)[: self.fails])

    def on_period(self, me, net):
        if self.target[me] >= 0:
            self.declared[me] += 1
            learn(self, me, net, self.target[me : me + 1])
        self.target[me] = member(self, me, -1)
        Ping.send(net, self.target[me], me, self.news[me, : choose_news(self, me)])
        Timeout.after(net, self.timeout_s)

    def on_timeout(self, me, net, sender):
        for _ in range(self.proxies if self.target[me] >= 0 else 0):
            proxy, count = member(self, me, self.target[me]), choose_news(self, me)
            Request.send(net, proxy, self.target[me], self.news[me, :count])

    def on_request(self, me, net, sender, target, failed):
        learn(self, me, net, failed)
        Ping.send(net, target, sender, self.news[me, : choose_news(self, me)])

    def on_ping(self, me, net, sender, origin, failed):
        learn(self, me, net, failed)
        Ack.send(net, sender, me, origin, self.news[me, : choose_news(self, me)])

    def on_ack(self, me, net, sender, target, origin, failed):
        learn(self, me, net, failed)
        if origin != me:
            Ack.send(net, origin, target, origin, self.news[me, : choose_news(self, me)])
        elif target == self.target[me]:
            self.target[me] = -1

    @gs.measure("detection", better="lower")
    def detection(self, run):
        """Periods from a failure until a node detects it, in the mean."""
        return np.mean([rounds.min() - FAILURE for rounds in rounds_learned(run)] or 0)

    @gs.measure("known", better="higher")
    def known(self, run):
        """Share of the failures that a node knows of, in the mean."""
        pairs = run.alive.sum() * (~run.alive).sum()
        return sum(map(len, rounds_learned(run))) / max(pairs, 1)

    @gs.measure("declared", better="lower")
    def declared_failed(self, run):
        """Share of the probes whose target was declared failed."""
        return self.declared.sum() / (self.nodes * max(run.round, 1))
