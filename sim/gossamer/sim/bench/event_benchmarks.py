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
from typing import Any

import psutil

from gossamer.protocol.peer.prefetching import approach, hint
from gossamer.protocol.peer.state.state import make_state
from gossamer.protocol.peer.step import TIMERS, largest_step, step
from gossamer.sim.bench.measurement import Measurement, state_bytes
from gossamer.sim.bench.ping_protocol import START, forward_step, make_ping_counts
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
    seconds, before = [], engine.counts()["passed"]
    for _ in range(runs):
        begun = time.perf_counter()
        engine.run_cycle()
        seconds.append(time.perf_counter() - begun)
    records = (engine.counts()["passed"] - before) / runs / 1e6
    resident = psutil.Process().memory_info().rss / 2**30
    note = f"{records:.2f} million records a round, {resident:.2f} GiB resident"
    return Measurement(seconds, state_bytes(state) / nodes, note)


def measure_pings(windows: bool, nodes: int, runs: int) -> Measurement:
    """An event engine alone: as many pings under way as nodes, each a round long; one thread.

    Seconds are those of a million events.
    """

    def start_once(cycle: int) -> Int64s:
        return draw_phases(nodes if cycle == 0 else 0, 1, PERIOD, SEED)

    state = make_ping_counts(nodes)
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
    return Measurement(seconds, state_bytes(state) / nodes, note)


EVENT_BENCHMARKS: Mapping[str, Callable[[int, int], Measurement]] = {
    "events": partial(measure_pings, False),
    "events-windows": partial(measure_pings, True),
    **{
        f"{preset}-{name}": partial(measure_event_overlay, preset, threads)
        for preset in PRESETS
        for name, threads in (("wheel", None), ("windows-1", 1), ("windows", 0))
    },
}
# Those whose seconds are not for a cycle.
EVENT_UNITS = dict.fromkeys(("events", "events-windows"), "million events")
