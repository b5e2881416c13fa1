"""Benchmarks of protocols of one's own: a question and an answer, as plain nodes and as rules."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from statistics import median
from typing import Any, Final

from gossamer.sim.bench.gossip_protocols import NodeGossip, RuleGossip
from gossamer.sim.bench.measurement import Measurement, state_bytes
from gossamer.sim.custom.conditions import Conditions
from gossamer.sim.custom.plain.driver import PlainDriver
from gossamer.sim.custom.rule_driver import RuleDriver
from gossamer.sim.engine.latency import constant_latency

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
