"""SIR epidemics once more, an object a node; `sir.py` says what they are."""

from sir import INFECTED, RECOVERED, SUSCEPTIBLE, Germ

import gossamer.sim as gs


class Epidemic(gs.Node):
    beta: float = gs.setting(0.2, low=0, high=1)
    gamma: float = gs.setting(0.1, low=0, high=1)
    cases: int = gs.setting(20, low=1)

    meet = gs.Timer(rounds=1)

    def __init__(self):
        self.health = SUSCEPTIBLE

    @gs.initialiser
    def first_cases(cls, run):
        for node in run.nodes[: cls.cases]:
            node.health = INFECTED

    def on_meet(self):
        if self.health == INFECTED:
            other = self.draw_other()
            if self.draw_float() < self.beta:
                self.send(other, Germ())
            if self.draw_float() < self.gamma:
                self.health = RECOVERED

    def on_germ(self, sender, message):
        if self.health == SUSCEPTIBLE:
            self.health = INFECTED

    @gs.observer
    def end(cls, run):
        if all(node.health != INFECTED for node in run.nodes):
            run.stop("nobody is infected any more")

    @gs.measure("ever infected")
    def ever_infected(cls, run):
        return sum(node.health != SUSCEPTIBLE for node in run.nodes) / len(run.nodes)

    @gs.measure("infected")
    def infected(cls, run):
        return sum(node.health == INFECTED for node in run.nodes) / len(run.nodes)
