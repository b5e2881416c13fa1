"""HyParView (Leitao, Pereira, Rodrigues, DSN 2007): few neighbours, and many to replace them."""

import gossamer.sim as gs

Join = gs.message("Join", newcomer=int, steps=int)  # of its walk that are left
Neighbour = gs.message("Neighbour", urgent=bool)  # not to be refused
Disconnect = gs.message("Disconnect")
Shuffle = gs.message("Shuffle", origin=int, steps=int, nodes=gs.items(8))


class HyParView(gs.Protocol):
    active = gs.column(int, 5, initial=-1)
    passive = gs.column(int, 30, initial=-1)
    sample = gs.column(int, 8, initial=-1)
    exchange = gs.Timer(rounds=1)

    def on_start(self, me, net, contact):
        known = max(contact, 0)  # in the beginning nodes join one after another through node 0
        if known != me:
            Join.send(net, known, me, 7)

    def on_join(self, me, net, sender, newcomer, steps):
        onward = gs.draw_but(self, me, self.active[me], sender) if 0 < steps < 7 else -1
        if steps == 3:
            gs.put_into(self, me, self.passive[me], newcomer)
        if onward >= 0:
            Join.send(net, onward, newcomer, steps - 1)
        else:
            Neighbour.send(net, newcomer, True)
        for node in self.active[me]:
            if steps == 7 and node >= 0 and node != newcomer:
                Join.send(net, node, newcomer, 6)

    def on_neighbour(self, me, net, sender, urgent):
        welcome = urgent or self.active[me, 4] < 0
        if welcome and sender != me and not gs.holds(self.active[me], sender):
            gone = gs.put_into(self, me, self.active[me], sender)
            if gone >= 0:
                Disconnect.send(net, gone)
                gs.put_into(self, me, self.passive[me], gone)
            Neighbour.send(net, sender, True)

    def on_disconnect(self, me, net, sender):
        if gs.remove_from(self.active[me], sender):
            gs.put_into(self, me, self.passive[me], sender)

    def on_unreachable(self, me, net, to, kind):
        gs.remove_from(self.active[me], to)
        gs.remove_from(self.passive[me], to)
        ask(self, me, net)

    def on_exchange(self, me, net):
        ask(self, me, net)
        self.sample[me, :] = -1
        gs.add_to(self.sample[me], me)
        for k in range(7):
            row = self.active[me] if k < 3 else self.passive[me]
            gs.add_to(self.sample[me], gs.draw_from(self, me, row))
        partner = gs.draw_from(self, me, self.active[me])
        if partner >= 0:
            Shuffle.send(net, partner, me, 6, self.sample[me, : gs.count_in(self.sample[me])])

    def on_shuffle(self, me, net, sender, origin, steps, nodes):
        onward = gs.draw_but(self, me, self.active[me], sender) if steps > 0 else -1
        if onward >= 0:
            Shuffle.send(net, onward, origin, steps - 1, nodes)
        else:
            if steps >= 0:  # the end of the walk; -1 is an answer
                most = min(len(nodes), gs.count_in(self.passive[me]))
                Shuffle.send(net, origin, me, -1, self.passive[me, :most])
            for node in nodes:
                gs.put_into(self, me, self.passive[me], node)


@gs.rule
def ask(self, me, net):
    node = gs.draw_from(self, me, self.passive[me])
    if node >= 0 and self.active[me, 4] < 0:
        Neighbour.send(net, node, self.active[me, 0] < 0)
