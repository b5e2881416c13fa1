"""Push-sum (Kempe, Dobra, Gehrke, FOCS 2003, Algorithm 1): every node learns the average."""

from gossamer.sim import Message, Protocol, Timer, column, draw_other, initialiser, measure


class Share(Message):
    """Half of a value and of its weight."""

    total: float
    weight: float


class PushSum(Protocol):
    total = column(float)
    weight = column(float, initial=1.0)

    push = Timer(rounds=1)

    @initialiser
    def draw_values(self, run):
        self.total[:] = run.random().random(len(run.nodes))

    def on_push(self, me, net):
        self.total[me] /= 2
        self.weight[me] /= 2
        Share.send(net, draw_other(self, me), self.total[me], self.weight[me])

    def on_share(self, me, net, sender, total, weight):
        self.total[me] += total
        self.weight[me] += weight

    @measure("variance", better="lower")
    def variance(self, run):
        """Variance of what nodes take for the average."""
        return (self.total / self.weight).var()

    @measure("mass")
    def mass(self, run):
        """All weight that nodes have; what is missing is under way."""
        return self.weight.sum()
