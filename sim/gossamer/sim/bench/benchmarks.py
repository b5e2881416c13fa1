"""Benchmarks: what a cycle costs and a node takes, protocol by protocol.

Each measures one thing at one size and returns the seconds of several repetitions, after a warm-up
that compilation falls into. Figures depend on the machine; `machine` says which it was.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import median
from typing import Any

import numpy as np
import psutil

from gossamer.protocol.kernel.records import KIND, TO, UNREACHABLE, Outbox, dispatch
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.peer.prefetching import approach, hint
from gossamer.protocol.peer.record_table.records import OVERLAY_TIMER, SAMPLE_TIMER
from gossamer.protocol.peer.sampling.sampler import (
    make_sampler,
    sample_hint,
    sample_step,
    sample_unreachable,
)
from gossamer.protocol.peer.settings.config import SAMPLERS, Settings
from gossamer.protocol.peer.settings.presets import kindred
from gossamer.protocol.peer.settings.profile import coarse_range
from gossamer.protocol.peer.state.links import drop_link
from gossamer.protocol.peer.state.state import State, make_state
from gossamer.protocol.peer.step import TIMERS, largest_step, step
from gossamer.protocol.peer.topology.tman import GOSSIP, overlay_hint
from gossamer.sim.bench.engine_benchmarks import (
    EVENT_BENCHMARKS,
    GOSSIP_BENCHMARKS,
    SEED,
    Measurement,
    state_bytes,
    time_cycles,
)
from gossamer.sim.engine.cycle_engine import CycleEngine, fill_random_views, make_network
from gossamer.sim.studies.peers.inputs.scenario import Subscriptions
from gossamer.sim.studies.peers.inputs.workload import Workload
from gossamer.sim.studies.peers.measuring.overlay_measures import mean_friend_utility
from gossamer.sim.studies.peers.running.population import form_overlay
from gossamer.sim.studies.peers.running.system_run import subscribe_all
from gossamer.sim.study.tasks import Progress

# Peer sampling and topology management alone: Vinifera without its content layer.
take_gossip = dispatch(GOSSIP)


@rule
def overlay_step(s: State, p: int, now: int, words: Any, at: int, out: Outbox) -> None:
    """The one door of a peer that only keeps neighbours; the rules are those of `peer.step`."""
    kind = words[at + KIND]
    if not take_gossip(kind, s, p, now, words, at, out) and kind >= UNREACHABLE:
        sample_unreachable(s.sampler, p, now, words, at, out)
        drop_link(s, p, words[at + TO])


SIZES = (10_000, 100_000, 1_000_000)
QUICK_SIZES = (10_000,)
# Of what is counted, in progress.
NAME = "benchmarks"


def run_benchmarks(
    names: Sequence[str],
    sizes: Sequence[int],
    *,
    quick: bool,
    progress: Progress = lambda _name, _done, _all: None,
) -> list[dict[str, Any]]:
    """Run benchmarks and return the rows of `bench.json`.

    Args:
        names: keys of `BENCHMARKS`.
        sizes: numbers of nodes; the usual ones if empty.
        quick: the smallest usual size and few repetitions.
        progress: called with "benchmarks", those done and all; before the first and after each.
    """
    sizes = sizes or (QUICK_SIZES if quick else SIZES)
    rows: list[dict[str, Any]] = []
    progress(NAME, 0, len(names) * len(sizes))
    for name in names:
        for size in sizes:
            found = BENCHMARKS[name](size, 3 if quick else 7)
            rows.append(
                {
                    "name": name,
                    "size": size,
                    "median_s": median(found.seconds),
                    "runs": len(found.seconds),
                    "bytes": round(found.bytes_a_node),
                    "unit": found.unit,
                    "note": found.note,
                    "machine": machine(),
                }
            )
            progress(NAME, len(rows), len(names) * len(sizes))
    return rows


def machine() -> str:
    """The shape of this machine: processor, cores, memory."""
    gigabytes = psutil.virtual_memory().total / 2**30
    return f"{platform.machine()}, {os.cpu_count()} cores, {gigabytes:.0f} GiB"


def measure_sampler(name: str, nodes: int, cycles: int) -> Measurement:
    """A bare sampler: views of 20, shuffles of 8, no profiles."""
    sampler = make_sampler(nodes, name, 20, 8, 0, SEED)
    sampler.specialise_for_sizes()
    network = make_network(nodes)
    fill_random_views(sampler, network.alive, SEED, 20)
    engine = CycleEngine(sampler, sample_step, (SAMPLE_TIMER,), network, SEED, hint=sample_hint)
    return Measurement(time_cycles(engine, 10, cycles), state_bytes(sampler) / nodes)


def measure_tman(nodes: int, cycles: int) -> Measurement:
    """Cyclon and T-Man with 16 links chosen by Function I over random intervals.

    The interval of a node lies between two uniform draws. After 40 cycles the mean utility of its
    links says whether they are the right ones.
    """
    settings = Settings(
        ring_links=0,
        friend_links=16,
        load_shifting=False,
        routing_table_entries=8,
        boxes_per_neighbour=2,
        event_memory=1,
        failures_remembered=0,
        failure_age=1 << 20,
        seed=SEED,
    )
    state = make_state(settings, nodes)
    draws = np.random.Generator(np.random.Philox(key=SEED))
    ends = np.sort(draws.integers(0, 1 << 62, (nodes, 2)), axis=1)
    state.constrained[:] = 1
    state.subscriptions[:, 0] = ends
    state.sampler.profile[:, settings.first_range] = coarse_range(ends[:, 0], ends[:, 1])
    state.specialise_for_sizes()
    network = make_network(nodes)
    fill_random_views(state.sampler, network.alive, SEED, 20)
    engine = CycleEngine(
        state,
        overlay_step,
        (SAMPLE_TIMER, OVERLAY_TIMER),
        network,
        SEED,
        hint=overlay_hint,
        reserve=largest_step(settings),
    )
    seconds = time_cycles(engine, 40 - cycles, cycles)
    utility = mean_friend_utility(state, network.alive)
    return Measurement(seconds, state_bytes(state) / nodes, f"mean utility {utility:.4f}")


def scale_settings(_nodes: int) -> Settings:
    """Vinifera as the large runs configure it: bounded tables, eight friends, six long links."""
    return Settings(
        ring_links=2,
        small_world_links=6,
        friend_links=8,
        heartbeat_rounds=4,
        stabilise=True,
        boxes_per_neighbour=8,
        routing_table_entries=128,
        event_memory=32,
        seed=SEED,
    )


def kindred_scale_settings(nodes: int) -> Settings:
    """The preset `kindred` with tables bounded as those of `scale_settings`."""
    return kindred(
        nodes, boxes_per_neighbour=8, routing_table_entries=128, event_memory=32, seed=SEED
    )


def measure_overlay(
    settings_for: Callable[[int], Settings], warm_up: int, formed: bool, nodes: int, cycles: int
) -> Measurement:
    """A whole protocol, installation every cycle that it has, once the overlay has formed.

    It is ``formed`` from the beginning where its links follow from places alone.
    """
    settings = settings_for(nodes)
    state = make_state(settings, nodes)
    # Each has a range over about five hundred rendezvous nodes.
    spec = Subscriptions(kind="random", width=min(1.0, 500 / nodes))
    subscribe_all(state, settings, *Workload(spec, SEED).subscriptions(nodes))
    network = make_network(nodes)
    fill_random_views(state.sampler, network.alive, SEED, 20)
    if formed:
        form_overlay(state, network.alive)
    engine = CycleEngine(
        state,
        step,
        TIMERS,
        network,
        SEED,
        hint=hint,
        approach=approach,
        reserve=largest_step(settings),
    )
    seconds = time_cycles(engine, warm_up, cycles)
    return Measurement(seconds, state_bytes(state) / nodes)


BENCHMARKS: Mapping[str, Callable[[int, int], Measurement]] = {
    **{name: partial(measure_sampler, name) for name in SAMPLERS},
    "tman": measure_tman,
    "paper": partial(measure_overlay, scale_settings, 20, False),
    "kindred": partial(measure_overlay, kindred_scale_settings, 10, True),
    **EVENT_BENCHMARKS,
    **GOSSIP_BENCHMARKS,
}
