"""Small protocols that are explored, beside the same in plain Python (`support.plain_search`)."""

import numpy as np

import gossamer.sim as gs
from gossamer.sim import eventually, invariant, rule

Hello = gs.message("Hello", hops=int)
Ping = gs.message("Ping", number=float)
Pong = gs.message("Pong")
Late = gs.message("Late", about=int)
Bye = gs.message("Bye")
Ring = gs.message("Ring", cancellable=1)
Stop = gs.message("Stop")


class Flood(gs.Protocol):
    """A rumor with draws, a bool and the greatest sender; nodes are alike."""

    best = gs.column(int, initial=-1)
    heard = gs.column(bool)

    tick = gs.Timer(rounds=1)

    alike = gs.symmetric_nodes()

    @gs.initialiser
    def one_knows(self, run):
        self.heard[0] = True

    def on_tick(self, me, net):
        if self.heard[me]:
            Hello.send(net, gs.draw_other(self, me), 1 + self.best[me])

    def on_hello(self, me, net, sender, hops):
        self.heard[me] = True
        self.best[me] = min(max(self.best[me], hops), 1)

    @invariant
    @rule
    def bounded(self, alive):
        """No node has counted beyond one."""
        for p in range(self.nodes):
            if self.best[p] > 1:
                return False
        return True

    @eventually
    def all_heard(self, alive):
        """Every node that is up hears the rumor."""
        return self.heard[alive].all()


class Watch(gs.Protocol):
    """Pairs that watch each other: timers to oneself, returns, nodes that come and go."""

    peer = gs.column(int, initial=-1)
    asked = gs.column(bool)
    late = gs.column(float)

    ask = gs.Timer(rounds=1)

    @gs.initialiser
    def first_pair(self, run):
        self.peer[:2] = 1, 0
        run.crash(range(2, self.nodes))

    def on_start(self, me, net, contact):
        self.asked[me] = False
        if contact >= 0:
            self.peer[me] = contact

    def on_ask(self, me, net):
        if self.peer[me] >= 0 and not self.asked[me]:
            self.asked[me] = True
            Ping.send(net, self.peer[me], 0.5)
            Late.after(net, 1.0, self.peer[me])

    def on_ping(self, me, net, sender, number):
        self.late[me] = number
        Pong.send(net, sender)

    def on_pong(self, me, net, sender):
        self.asked[me] = False

    def on_late(self, me, net, sender, about):
        if self.asked[me] and about == self.peer[me]:
            self.late[me] = 1.5
        self.asked[me] = False

    def on_leave(self, me, net):
        if self.peer[me] >= 0:
            Bye.send(net, self.peer[me])

    def on_bye(self, me, net, sender):
        if self.peer[me] == sender:
            self.peer[me] = -1

    def on_unreachable(self, me, net, to, kind):
        if self.peer[me] == to:
            self.peer[me] = -1

    @invariant
    def never_oneself(self, alive):
        return all(self.peer[p] != p for p in np.flatnonzero(alive))


def nobody_waits(self, alive):
    """No node that is up waits for an answer: false as soon as one asks."""
    return not self.asked[alive].any()


class Clock(gs.Protocol):
    """What the clock says, which goes on at any moment."""

    seen = gs.column(int, initial=-1)

    ask = gs.Timer(rounds=1)

    def on_ask(self, me, net):
        self.seen[me] = net.round

    @invariant
    def never_ahead(self, alive):
        return self.seen.max() <= 2


class Alarm(gs.Protocol):
    """A timer that is set by a message and cancelled by another one."""

    handle = gs.column(int)
    rings = gs.column(int)

    def on_start(self, me, net, contact):
        self.handle[me] = Ring.after(net, 5.0)
        if me == 0:
            Stop.send(net, 1)

    def on_stop(self, me, net, sender):
        gs.cancel(net, self.handle[me])

    def on_ring(self, me, net, sender):
        self.rings[me] += 1

    @invariant
    def rings_once(self, alive):
        return self.rings.max() <= 1

    @eventually
    def all_have_rung(self, alive):
        return self.rings.min() == 1
