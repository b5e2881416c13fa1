"""The same small protocol in both ways of writing: once a round a question, and its answer."""

from __future__ import annotations

from typing import Any

from gossamer.sim.custom import Message, Net, Node, Protocol, Timer, column, draw_other


class Question(Message, size_bytes=8):
    """Asks a random node."""

    number: int


class Answer(Message, size_bytes=8):
    """Says what was asked."""

    number: int


class RuleGossip(Protocol):
    """As rules."""

    asked: Any = column(int)
    answered: Any = column(int)

    ask = Timer(rounds=1)

    def on_ask(self, me: int, net: Net) -> None:
        """Ask somebody."""
        self.asked[me] += 1
        Question.send(net, draw_other(self, me), self.asked[me])

    def on_question(self, _me: int, net: Net, sender: int, number: int) -> None:
        """Answer."""
        Answer.send(net, sender, number)

    def on_answer(self, me: int, _net: Net, _sender: int, _number: int) -> None:
        """Count."""
        self.answered[me] += 1


class NodeGossip(Node):
    """As an object a node."""

    ask = Timer(rounds=1)

    def __init__(self) -> None:
        self.asked = 0
        self.answered = 0

    def on_ask(self) -> None:
        """Ask somebody."""
        self.asked += 1
        self.send(self.draw_other(), Question(self.asked))

    def on_question(self, sender: int, message: Question) -> None:
        """Answer."""
        self.send(sender, Answer(message.number))

    def on_answer(self, _sender: int, _message: Answer) -> None:
        """Count."""
        self.answered += 1
