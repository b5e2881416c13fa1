"""HyParView once more, an object a node; `hyparview.py` says what it is."""

from hyparview import Disconnect, Join, Neighbour, Shuffle

from gossamer.sim import Node, Timer


class HyParView(Node):
    exchange = Timer(rounds=1)

    def __init__(self):
        self.active = []
        self.passive = []

    def on_start(self, contact):
        known = max(contact, 0)
        if known != self.me:
            self.send(known, Join(self.me, 7))

    def on_join(self, sender, message):
        newcomer, steps = message.newcomer, message.steps
        onward = self.draw_from(self.active, but=sender) if 0 < steps < 7 else -1
        if steps == 3:
            self.keep(newcomer)
        if onward >= 0:
            self.send(onward, Join(newcomer, steps - 1))
        else:
            self.send(newcomer, Neighbour(urgent=True))
        for node in self.active:
            if steps == 7 and node != newcomer:
                self.send(node, Join(newcomer, 6))

    def on_neighbour(self, sender, message):
        welcome = message.urgent or len(self.active) < 5
        if welcome and sender != self.me and sender not in self.active:
            gone = self.put_into(self.active, sender, 5)
            if gone >= 0:
                self.send(gone, Disconnect())
                self.keep(gone)
            self.send(sender, Neighbour(urgent=True))

    def on_disconnect(self, sender, message):
        if sender in self.active:
            self.active.remove(sender)
            self.keep(sender)

    def on_unreachable(self, to, message):
        for view in (self.active, self.passive):
            if to in view:
                view.remove(to)
        self.ask()

    def on_exchange(self):
        self.ask()
        drawn = [self.draw_from(self.active if k < 3 else self.passive) for k in range(7)]
        partner = self.draw_from(self.active)
        if partner >= 0:
            sample = dict.fromkeys([self.me, *(node for node in drawn if node >= 0)])
            self.send(partner, Shuffle(self.me, 6, list(sample)))

    def on_shuffle(self, sender, message):
        origin, steps, nodes = message.origin, message.steps, message.nodes
        onward = self.draw_from(self.active, but=sender) if steps > 0 else -1
        if onward >= 0:
            self.send(onward, Shuffle(origin, steps - 1, nodes))
        else:
            if steps >= 0:
                self.send(origin, Shuffle(self.me, -1, self.passive[: len(nodes)]))
            for node in nodes:
                self.keep(node)

    def keep(self, node):
        self.put_into(self.passive, node, 30)

    def ask(self):
        node = self.draw_from(self.passive)
        if node >= 0 and len(self.active) < 5:
            self.send(node, Neighbour(urgent=not self.active))
