"""Benchmarks of protocols of one's own: a question and an answer, as plain nodes and as rules."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from statistics import median
from typing import Any, Final

from gossamer.sim.bench.measurement import Measurement, state_bytes
from gossamer.sim.custom import Message, Net, Node, Protocol, Timer, column, draw_other
from gossamer.sim.custom.conditions import Conditions
from gossamer.sim.custom.plain.driver import PlainDriver
from gossamer.sim.custom.rule_driver import RuleDriver
from gossamer.sim.engine.latency import constant_latency

# The same small protocol in both ways of writing: once a round a question, and its answer.


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


SEED: Final = 1
# Plain nodes are objects, of which nobody wants a million.
MOST_PLAIN_NODES: Final = 10_000


def measure_gossip(plain: bool, nodes: int, runs: int) -> Measurement:
    """A question and an answer a node and round, written as plain nodes or as rules.

    Seconds are those of a million events: timers and messages.
    """
    nodes = min(nodes, MOST_PLAIN_NODES) if plain else nodes
    conditions = Conditions(nodes=nodes, seed=SEED, latency=constant_latency(100))
    made = PlainDriver if plain else RuleDriver
    driver: Any = made((NodeGossip if plain else RuleGossip).declared, {}, conditions)
    driver.begin()
    driver.run_until(2 * conditions.round_ticks)
    seconds = []
    for _ in range(runs):
        before = sum(driver.traffic().messages.values())
        begun = time.perf_counter()
        driver.run_until(driver.tick + 4 * conditions.round_ticks)
        taken = time.perf_counter() - begun
        events = sum(driver.traffic().messages.values()) - before + 4 * nodes
        seconds.append(taken * 1e6 / events)
    note = f"{1 / median(seconds):.2f} million events a second of {nodes:,} nodes"
    return Measurement(seconds, 0 if plain else state_bytes(driver.state) / nodes, note)


GOSSIP_BENCHMARKS: Final[Mapping[str, Callable[[int, int], Measurement]]] = {
    "gossip-rules": partial(measure_gossip, False),
    "gossip-nodes": partial(measure_gossip, True),
}
GOSSIP_UNITS: Final = dict.fromkeys(GOSSIP_BENCHMARKS, "million events")
