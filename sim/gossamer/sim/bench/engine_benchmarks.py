"""Benchmarks of the event engines: whole overlays over links that take a tenth of a round.

The same run in three ways: by the event engine, by the windows engine on one thread, and on all
cores. What they compute is the same in the last two.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from functools import partial
from statistics import median
from typing import Any, Final, NamedTuple

import numpy as np
import psutil

from gossamer.protocol.kernel.draws import below, mix
from gossamer.protocol.kernel.records import BODY, USER, Outbox, Words, close_record, open_record
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.kernel.struct import Struct
from gossamer.protocol.peer.prefetching import approach, hint
from gossamer.protocol.peer.state.state import make_state
from gossamer.protocol.peer.step import TIMERS, largest_step, step
from gossamer.sim.custom.conditions import Conditions
from gossamer.sim.custom.language.context import Net
from gossamer.sim.custom.language.members import Timer, column
from gossamer.sim.custom.language.messages import Message
from gossamer.sim.custom.library import draw_other
from gossamer.sim.custom.node import Node
from gossamer.sim.custom.plain_driver import PlainDriver
from gossamer.sim.custom.protocol import Protocol
from gossamer.sim.custom.rule_driver import RuleDriver
from gossamer.sim.engine.cycle_engine import fill_random_views, make_network
from gossamer.sim.engine.event_engine import EventEngine, draw_phases
from gossamer.sim.engine.latency import Int64s, constant_latency
from gossamer.sim.engine.link_conditions import make_link_conditions
from gossamer.sim.engine.windows.window_engine import WindowEngine
from gossamer.sim.engine.windows.worker_threads import spread_over_cores
from gossamer.sim.studies.peers.inputs.scenario import Events, Subscriptions, System
from gossamer.sim.studies.peers.inputs.workload import Workload
from gossamer.sim.studies.peers.running.collector import CollectorParts, make_collector, observe
from gossamer.sim.studies.peers.running.system_run import subscribe_all


class Measurement(NamedTuple):
    """Seconds of every repetition, bytes of state a node, a word, and what the seconds are for."""

    seconds: list[float]
    bytes_a_node: float
    note: str = ""
    unit: str = "cycle"


def time_cycles(engine: Any, warm_up: int, cycles: int) -> list[float]:
    """Seconds of each of so many cycles, after others to warm up."""
    for _ in range(warm_up):
        engine.run_cycle()
    seconds = []
    for _ in range(cycles):
        begun = time.perf_counter()
        engine.run_cycle()
        seconds.append(time.perf_counter() - begun)
    return seconds


def state_bytes(state: Struct) -> int:
    """Bytes of all arrays of a struct, those of structs inside it included."""
    total = 0
    for value in vars(state).values():
        if isinstance(value, np.ndarray):
            total += value.nbytes
        elif isinstance(value, Struct):
            total += state_bytes(value)
    return total


PERIOD, LATENCY, SEED = 1000, 100, 1
WARM_UP_ROUNDS = 8
EVENTS_A_RUN = 4_000_000
PRESETS = ("resilient", "kindred")


def measure_event_overlay(preset: str, threads: int | None, nodes: int, runs: int) -> Measurement:
    """Rounds of a preset with its collector, each node with a range over some 500 others.

    Args:
        preset: of the settings.
        threads: of the windows engine, 0 for all cores; None for the event engine.
        nodes: how many.
        runs: rounds that are timed.
    """
    spec = Subscriptions(kind="random", width=min(1.0, 500 / nodes))
    settings = System(name=preset, preset=preset).settings_for(nodes, spec, Events(), SEED)
    state, network = make_state(settings, nodes), make_network(nodes)
    subscribe_all(state, settings, *Workload(spec, SEED).subscriptions(nodes))
    fill_random_views(state.sampler, network.alive, SEED, state.sampler.view_size)
    common: dict[str, Any] = {
        "period": PERIOD,
        "links": make_link_conditions(nodes, seed=SEED, latency=constant_latency(LATENCY)),
        "observe": observe,
        "collector": make_collector(nodes, 1, 1, 1),
        "reserve": largest_step(settings),
    }
    parts = (state, step, TIMERS, network, SEED)
    engine: EventEngine | WindowEngine
    if threads is None:
        engine = EventEngine(*parts, hint=hint, **common)
    else:
        cores = spread_over_cores(threads or os.cpu_count() or 1)
        engine = WindowEngine(
            *parts, approach=approach, collectors=CollectorParts(), cores=cores, **common
        )
    for _ in range(WARM_UP_ROUNDS):
        engine.run_cycle()
    before = engine.counts()["passed"]
    seconds = time_cycles(engine, 0, runs)
    records = (engine.counts()["passed"] - before) / runs / 1e6
    resident = psutil.Process().memory_info().rss / 2**30
    note = f"{records:.2f} million records a round, {resident:.2f} GiB resident"
    return Measurement(seconds, state_bytes(state) / nodes, note)


# The simplest protocol there is, to measure what an engine itself costs.

START = 1
PING = USER


class PingCounts(Struct):
    """What n nodes have seen: int64[n], pings taken."""

    taken: Int64s


@rule
def forward_step(
    state: PingCounts,
    p: int,
    now: int,  # noqa: ARG001  (as every step)
    words: Words,  # noqa: ARG001
    at: int,  # noqa: ARG001
    out: Outbox,
) -> None:
    """Whatever comes, send a ping to a random node: as many go on for ever as were started."""
    state.taken[p] += 1
    other = below(mix(1, p, state.taken[p]), len(state.taken))
    ping = open_record(out, PING, other, p, 1)
    out.words[ping + BODY] = state.taken[p]
    close_record(out, ping, 1)


def measure_pings(windows: bool, nodes: int, runs: int) -> Measurement:
    """An event engine alone: as many pings under way as nodes, each a round long; one thread.

    Seconds are those of a million events.
    """

    def start_once(cycle: int) -> Int64s:
        return draw_phases(nodes if cycle == 0 else 0, 1, PERIOD, SEED)

    state = PingCounts(taken=np.zeros(nodes, np.int64))
    make: Any = WindowEngine if windows else EventEngine
    engine = make(
        state,
        forward_step,
        (START,),
        make_network(nodes),
        SEED,
        period=PERIOD,
        firing_ticks=start_once,
        links=make_link_conditions(nodes, latency=constant_latency(PERIOD)),
        reserve=64,
    )
    engine.run_until(4 * PERIOD)
    seconds = []
    for _ in range(runs):
        before = engine.counts()["passed"]
        begun = time.perf_counter()
        engine.run_until(engine.tick + max(EVENTS_A_RUN // nodes, 1) * PERIOD)
        taken = time.perf_counter() - begun
        seconds.append(taken * 1e6 / (engine.counts()["passed"] - before))
    note = f"{1 / median(seconds):.1f} million events a second"
    return Measurement(seconds, state_bytes(state) / nodes, note, "million events")


EVENT_BENCHMARKS: Mapping[str, Callable[[int, int], Measurement]] = {
    "events": partial(measure_pings, False),
    "events-windows": partial(measure_pings, True),
    **{
        f"{preset}-{name}": partial(measure_event_overlay, preset, threads)
        for preset in PRESETS
        for name, threads in (("wheel", None), ("windows-1", 1), ("windows", 0))
    },
}


# Protocols of one's own, the same small one in both ways of writing: once a round a question, and
# its answer.


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
        self.asked[me] += 1
        Question.send(net, draw_other(self, me), self.asked[me])

    def on_question(self, _me: int, net: Net, sender: int, number: int) -> None:
        Answer.send(net, sender, number)

    def on_answer(self, me: int, _net: Net, _sender: int, _number: int) -> None:
        self.answered[me] += 1


class NodeGossip(Node):
    """As an object a node."""

    ask = Timer(rounds=1)

    def __init__(self) -> None:
        self.asked = 0
        self.answered = 0

    def on_ask(self) -> None:
        self.asked += 1
        self.send(self.draw_other(), Question(self.asked))

    def on_question(self, sender: int, message: Question) -> None:
        self.send(sender, Answer(message.number))

    def on_answer(self, _sender: int, _message: Answer) -> None:
        self.answered += 1


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
    size = 0 if plain else state_bytes(driver.state) / nodes
    return Measurement(seconds, size, note, "million events")


GOSSIP_BENCHMARKS: Final[Mapping[str, Callable[[int, int], Measurement]]] = {
    "gossip-rules": partial(measure_gossip, False),
    "gossip-nodes": partial(measure_gossip, True),
}
