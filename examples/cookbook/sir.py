"""SIR epidemics (Kermack, McKendrick, Proc. R. Soc. A 115, 1927): who is ever infected?

An infected node meets a random one in every round, infects it with probability beta if it is
susceptible, and then recovers with probability gamma. It thus has 1 / gamma meetings on average,
that in the round of its recovery included: R0 = beta / gamma, in rounds as in their equations.
"""

import gossamer.sim as gs

SUSCEPTIBLE, INFECTED, RECOVERED = range(3)


class Germ(gs.Message, size_bytes=1):
    """What infects."""


class Epidemic(gs.Protocol):
    beta: float = gs.setting(0.2, low=0, high=1)
    gamma: float = gs.setting(0.1, low=0, high=1)
    cases: int = gs.setting(20, low=1)  # infected at first: enough that chance ends no epidemic

    health = gs.column(int, initial=SUSCEPTIBLE)

    meet = gs.Timer(rounds=1)

    @gs.initialiser
    def first_cases(self, run):
        self.health[: self.cases] = INFECTED

    def on_meet(self, me, net):
        if self.health[me] == INFECTED:
            other = gs.draw_other(self, me)
            if gs.draw_float(self, me) < self.beta:
                Germ.send(net, other)
            if gs.draw_float(self, me) < self.gamma:
                self.health[me] = RECOVERED

    def on_germ(self, me, net, sender):
        if self.health[me] == SUSCEPTIBLE:
            self.health[me] = INFECTED

    @gs.observer
    def end(self, run):
        if not (self.health == INFECTED).any():
            run.stop("nobody is infected any more")

    @gs.measure("ever infected")
    def ever_infected(self, run):
        """Share of the nodes that are or were infected."""
        return (self.health != SUSCEPTIBLE).mean()

    @gs.measure("infected")
    def infected(self, run):
        """Share of the nodes that are infected."""
        return (self.health == INFECTED).mean()
