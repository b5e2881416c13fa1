"""Alarms that nodes set and cancel at random, by handles that may be stale, and a log of it all."""

import gossamer.sim as gs

PLACES, MOST = 16, 6  # handles that a node remembers, and alarms that it has pending at most

Alarm = gs.message("Ring", number=int, cancellable=MOST)
Begun = gs.message("CameUp")  # which its module has under another name
Left = gs.message("Left", pending=int)
Chosen = gs.message("Chosen", number=int, delay_s=float)
Cancelled = gs.message("Cancelled", number=int, was_pending=bool)
Rang = gs.message("Rang", number=int)


class Alarms(gs.Protocol):
    crashes: bool = True

    numbers = gs.column(int)
    pending = gs.column(int)
    number, handle = gs.column(int, PLACES), gs.column(int, PLACES)
    act = gs.Timer(seconds=0.1, jitter=0.5)

    @gs.control(begin=1)
    def come_and_go(self, run):
        if self.crashes:
            random = run.random()
            run.start([row for row in range(len(run.nodes)) if random.random() < 0.5])
            run.crash([row for row in range(len(run.nodes)) if random.random() < 0.15])
            run.leave([row for row in range(len(run.nodes)) if random.random() < 0.15])

    def on_start(self, me, net, contact):
        self.pending[me] = 0
        Begun.log(net)

    def on_leave(self, me, net):
        Left.log(net, self.pending[me])

    def on_act(self, me, net):
        place = gs.draw_below(self, me, PLACES)
        if gs.draw_float(self, me) < 0.6:
            if self.pending[me] < MOST:
                choose(self, me, net, place)
        else:
            cancel(self, me, net, place)

    def on_ring(self, me, net, sender, number):
        self.pending[me] -= 1
        Rang.log(net, number)
        if gs.draw_float(self, me) < 0.3:
            choose(self, me, net, gs.draw_below(self, me, PLACES))

    @gs.measure("rang")
    def rang(self, run):
        return len(run.log(Rang)["node"])

    @gs.measure("pending")
    def all_pending(self, run):
        return self.pending.sum()


@gs.rule
def choose(self, me, net, place):
    self.numbers[me] += 1
    self.pending[me] += 1
    delay_s = 0.4 * gs.draw_float(self, me)
    Chosen.log(net, self.numbers[me], delay_s)
    self.number[me, place] = self.numbers[me]
    self.handle[me, place] = Alarm.after(net, delay_s, self.numbers[me])


@gs.rule
def cancel(self, me, net, place):
    was_pending = gs.cancel(net, self.handle[me, place])
    if was_pending:
        self.pending[me] -= 1
    Cancelled.log(net, self.number[me, place], was_pending)
