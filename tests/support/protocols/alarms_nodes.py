"""The alarms of `alarms.py` once more, an object a node."""

from alarms import MOST, PLACES, Alarm, Begun, Cancelled, Chosen, Left, Rang
from alarms import Alarms as Rules

import gossamer.sim as gs


class Alarms(gs.Node):
    crashes: bool = True

    act = gs.Timer(seconds=0.1, jitter=0.5)
    come_and_go, rang = Rules.come_and_go, Rules.rang

    def __init__(self):
        self.numbers = self.pending = 0
        self.handles = [(0, None)] * PLACES

    def on_start(self, contact):
        self.pending = 0
        self.log(Begun())

    def on_leave(self):
        self.log(Left(self.pending))

    def on_act(self):
        place = self.draw_below(PLACES)
        if self.draw_float() < 0.6:
            if self.pending < MOST:
                self.choose(place)
        else:
            number, handle = self.handles[place]
            was_pending = self.cancel(handle)
            self.pending -= was_pending
            self.log(Cancelled(number, was_pending))

    def on_ring(self, sender, message):
        self.pending -= 1
        self.log(Rang(message.number))
        if self.draw_float() < 0.3:
            self.choose(self.draw_below(PLACES))

    def choose(self, place):
        self.numbers += 1
        self.pending += 1
        delay_s = 0.4 * self.draw_float()
        self.log(Chosen(self.numbers, delay_s))
        self.handles[place] = self.numbers, self.after(delay_s, Alarm(self.numbers))

    @gs.measure("pending")
    def all_pending(cls, run):
        return sum(node.pending for node in run.nodes)
