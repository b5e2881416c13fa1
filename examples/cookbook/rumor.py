"""Rumor mongering (Demers et al., PODC 1987, Sec. 1.4): push, with feedback and a counter."""

from gossamer.sim import Message, Protocol, Timer, column, draw_other, initialiser, measure

NEVER = -1


class News(Message, size_bytes=100):
    """The rumor."""


class Answer(Message, size_bytes=1):
    """Whether the rumor was news in this round."""

    useful: bool


class Rumor(Protocol):
    k: int = 2  # a setting: useless pushes in a row until a node loses interest

    heard = column(int, initial=NEVER)  # in which round
    hot = column(bool)
    useless = column(int)

    push = Timer(rounds=1)

    @initialiser
    def one_node_knows(self, run):
        self.heard[0] = 0
        self.hot[0] = True

    def on_push(self, me, net):
        if self.hot[me] and self.heard[me] < net.round:
            News.send(net, draw_other(self, me))

    def on_news(self, me, net, sender):
        if self.heard[me] == NEVER:
            self.heard[me] = net.round
            self.hot[me] = True
        Answer.send(net, sender, self.heard[me] == net.round)

    def on_answer(self, me, net, sender, useful):
        self.useless[me] = 0 if useful else self.useless[me] + 1
        if self.useless[me] >= self.k:
            self.hot[me] = False

    @measure("residue", better="lower")
    def residue(self, run):
        """Share of the nodes that have not heard the rumor."""
        return (self.heard == NEVER).mean()

    @measure("traffic", better="lower")
    def traffic(self, run):
        """Rumors sent for each node."""
        return run.messages["news"] / len(run.nodes)
