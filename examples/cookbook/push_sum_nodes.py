"""Push-sum once more, an object a node; `push_sum.py` says what it is."""

from push_sum import Share

from gossamer.sim import Node, Timer, initialiser, measure


class PushSum(Node):
    push = Timer(rounds=1)

    def __init__(self):
        self.total, self.weight = 0.0, 1.0

    @initialiser
    def draw_values(cls, run):
        for node, value in zip(run.nodes, run.random().random(len(run.nodes)), strict=True):
            node.total = float(value)

    def on_push(self):
        self.total /= 2
        self.weight /= 2
        self.send(self.draw_other(), Share(self.total, self.weight))

    def on_share(self, sender, message):
        self.total += message.total
        self.weight += message.weight

    @measure("variance", better="lower")
    def variance(cls, run):
        values = [node.total / node.weight for node in run.nodes]
        mean = sum(values) / len(values)
        return sum((value - mean) ** 2 for value in values) / len(values)

    @measure("mass")
    def mass(cls, run):
        return sum(node.weight for node in run.nodes)
