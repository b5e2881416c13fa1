"""A protocol that does a bit of everything: rules, over Newscast and a protocol of its own."""

from typing import Any

import gossamer.sim as gs


class Heard(gs.Message, size_bytes=4):
    """Says that a node lives."""


class Errand(gs.Message):
    """Something to do, and who has had it before."""

    weight: float
    urgent: bool
    hops: int
    seen: Any = gs.items(4)


class Reminder(gs.Message, size_bytes=0):
    """To oneself: pass the errand on."""

    hops: int


class Hearts(gs.Protocol):
    every_s: float = 0.7

    beats = gs.column(int)

    beat = gs.Timer(seconds="every_s", jitter=0.2)

    def on_beat(self, me, net):
        Heard.send(net, (me + 1) % self.nodes)

    def on_heard(self, me, net, sender):
        self.beats[me] += 1


class Errands(gs.Protocol):
    """Errands wander from peer to peer."""

    patience: int = gs.setting(3, low=1, high=50)
    wait_s: float = 0.25

    peers = gs.Sampler("newscast", view_size=8)
    hearts = gs.layer(Hearts, every_s=0.9)

    done = gs.column(int)
    started = gs.column(int)
    returned = gs.column(int)
    last_s = gs.column(float)
    weight = gs.column(float)
    trail = gs.column(int, 4, initial=-1)
    length = gs.column(int)

    begin = gs.Timer(rounds=2, phase=0.5)

    @gs.initialiser
    def weigh(self, run):
        self.weight[:] = 1.5

    def on_start(self, me, net, contact):
        self.started[me] += 1

    def on_begin(self, me, net):
        if gs.draw_float(self, me) < 0.5:
            peer = gs.random_peer(self.peers, me, gs.draw(self, me))
            if peer >= 0:
                Errand.send(net, peer, self.weight[me], True, 1, self.trail[me, :0])

    def on_errand(self, me, net, sender, weight, urgent, hops, seen):
        self.done[me] += 1
        self.last_s[me] = gs.seconds(net)
        self.weight[me] = (self.weight[me] + weight) / 2
        self.length[me] = min(len(seen), 3) + 1
        for i in range(self.length[me] - 1):
            self.trail[me, i] = seen[len(seen) - self.length[me] + 1 + i]
        self.trail[me, self.length[me] - 1] = sender
        if hops < self.patience:
            Reminder.after(net, self.wait_s * (1 + self.hearts.beats[me] % 3), hops)

    def on_reminder(self, me, net, sender, hops):
        peer = gs.random_peer(self.peers, me, gs.draw(self, me))
        if peer >= 0:
            Errand.send(
                net, peer, self.weight[me], False, hops + 1, self.trail[me, : self.length[me]]
            )

    def on_unreachable(self, me, net, to, kind):
        if kind == Errand.kind:
            self.returned[me] += 1

    @gs.control(once=6)
    def crash_some(self, run):
        run.crash(range(0, len(run.nodes), 5))

    @gs.control(begin=9, every=2)
    def bring_one_back(self, run):
        run.start([(run.round - 9) * 5 % len(run.nodes)])

    @gs.observer(begin=20)
    def end(self, run):
        if self.done.min() > 2:
            run.stop("everybody has done something")

    @gs.measure("errands done")
    def done_mean(self, run):
        return self.done.mean()
