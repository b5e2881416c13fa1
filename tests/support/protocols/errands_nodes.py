"""`errands` once more, an object a node."""

from errands import Errand, Heard, Reminder
from errands import Errands as Rules

from gossamer.sim import Node, Sampler, Timer, initialiser, layer, measure, observer


class Hearts(Node):
    every_s: float = 0.7

    beat = Timer(seconds="every_s", jitter=0.2)

    def __init__(self):
        self.beats = 0

    def on_timer(self, name):
        assert name == "beat"
        self.send((self.me + 1) % self.nodes, Heard())

    def on_heard(self, sender, message):
        self.beats += 1


class Errands(Node):
    patience: int = 3
    wait_s: float = 0.25

    peers = Sampler("newscast", view_size=8)
    hearts = layer(Hearts, every_s=0.9)

    begin = Timer(rounds=2, phase=0.5)

    def __init__(self):
        self.done = self.started = self.returned = 0
        self.weight = 0.0
        self.trail = []

    @initialiser
    def weigh(cls, run):
        for node in run.nodes:
            node.weight = 1.5

    def on_start(self, contact):
        self.started += 1

    def on_begin(self):
        if self.draw_float() < 0.5:
            self.pass_on(True, 1, [])

    def pass_on(self, urgent, hops, seen):
        peer = self.peers.random()
        if peer >= 0:
            self.send(peer, Errand(self.weight, urgent, hops, seen))

    def on_errand(self, sender, message):
        self.done += 1
        self.last_s = self.now_s
        self.weight = (self.weight + message.weight) / 2
        self.trail = [*list(message.seen)[-3:], sender]
        if message.hops < self.patience:
            self.after(self.wait_s * (1 + self.hearts.beats % 3), Reminder(message.hops))

    def on_reminder(self, sender, message):
        self.pass_on(False, message.hops + 1, self.trail)

    def on_unreachable(self, to, message):
        if isinstance(message, Errand):
            self.returned += 1

    crash_some, bring_one_back = Rules.crash_some, Rules.bring_one_back

    @observer(begin=20)
    def end(cls, run):
        if min(node.done for node in run.nodes) > 2:
            run.stop("everybody has done something")

    @measure("errands done")
    def done_mean(cls, run):
        return sum(node.done for node in run.nodes) / len(run.nodes)
