"""Alarms that nodes set and cancel at random, by handles that may be stale, and a log of it all."""

from gossamer.sim import custom

PLACES, MOST = 16, 6  # handles that a node remembers, and alarms that it has pending at most

Alarm = custom.message("Ring", number=int, cancellable=MOST)
Begun = custom.message("CameUp")  # which its module has under another name
Left = custom.message("Left", pending=int)
Chosen = custom.message("Chosen", number=int, delay_s=float)
Cancelled = custom.message("Cancelled", number=int, was_pending=bool)
Rang = custom.message("Rang", number=int)


class Alarms(custom.Protocol):
    crashes: bool = True

    numbers = custom.column(int)
    pending = custom.column(int)
    number, handle = custom.column(int, PLACES), custom.column(int, PLACES)
    act = custom.Timer(seconds=0.1, jitter=0.5)

    @custom.control(begin=1)
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
        place = custom.draw_below(self, me, PLACES)
        if custom.draw_float(self, me) < 0.6:
            if self.pending[me] < MOST:
                choose(self, me, net, place)
        else:
            cancel(self, me, net, place)

    def on_ring(self, me, net, sender, number):
        self.pending[me] -= 1
        Rang.log(net, number)
        if custom.draw_float(self, me) < 0.3:
            choose(self, me, net, custom.draw_below(self, me, PLACES))

    @custom.measure("rang")
    def rang(self, run):
        return len(run.log(Rang)["node"])

    @custom.measure("pending")
    def all_pending(self, run):
        return self.pending.sum()


@custom.rule
def choose(self, me, net, place):
    self.numbers[me] += 1
    self.pending[me] += 1
    delay_s = 0.4 * custom.draw_float(self, me)
    Chosen.log(net, self.numbers[me], delay_s)
    self.number[me, place] = self.numbers[me]
    self.handle[me, place] = Alarm.after(net, delay_s, self.numbers[me])


@custom.rule
def cancel(self, me, net, place):
    was_pending = custom.cancel(net, self.handle[me, place])
    if was_pending:
        self.pending[me] -= 1
    Cancelled.log(net, self.number[me, place], was_pending)
