"""Rumor mongering once more, an object a node; `rumor.py` says what it is."""

from rumor import NEVER, Answer, News

from gossamer.sim import Node, Timer, initialiser, measure


class Rumor(Node):
    k: int = 2

    push = Timer(rounds=1)

    def __init__(self):
        self.heard = NEVER
        self.hot = False
        self.useless = 0

    @initialiser
    def one_node_knows(cls, run):
        run.nodes[0].heard = 0
        run.nodes[0].hot = True

    def on_push(self):
        if self.hot and self.heard < self.round:
            self.send(self.draw_other(), News())

    def on_news(self, sender, message):
        if self.heard == NEVER:
            self.heard = self.round
            self.hot = True
        self.send(sender, Answer(useful=self.heard == self.round))

    def on_answer(self, sender, message):
        self.useless = 0 if message.useful else self.useless + 1
        if self.useless >= self.k:
            self.hot = False

    @measure("residue", better="lower")
    def residue(cls, run):
        return sum(node.heard == NEVER for node in run.nodes) / len(run.nodes)

    @measure("traffic", better="lower")
    def traffic(cls, run):
        return run.messages["news"] / len(run.nodes)
