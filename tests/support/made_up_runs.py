"""Runs that never happened, made from a seed: records of plausible shape, and some to look at."""

from __future__ import annotations

import attrs
import numpy as np

from gossamer.protocol.peer.space.ring import RING
from gossamer.sim.studies.peers.measuring.records import OverlaySnapshot, RunRecord, SystemRecord
from gossamer.sim.study.records import Measure, Table
from gossamer.sim.study.watching import NODE, Course, Curve, Overlay, links_table

Draws = np.random.Generator
SUMMED = ("expected", "delivered", "received", "uninterested")


def made_up_run(
    seed: int = 1,
    nodes: int = 60,
    cycles: int = 40,
    period_s: float = 60.0,
    names: tuple[str, ...] = ("kindred", "baseline"),
) -> RunRecord:
    """A run of the systems ``names``, all numbers drawn from ``seed``."""
    return RunRecord(
        scenario={"name": "made up", "nodes": nodes, "period_s": period_s},
        scenario_text='name = "made up" # <not> & real\n',
        seed=seed,
        versions={"gossamer": "0.0", "python": "3.11"},
        wall_s=1.5,
        peak_rss_bytes=64 * 2**20,
        systems={
            name: made_up_system(name, seed + index, nodes, cycles, period_s)
            for index, name in enumerate(names)
        },
    )


def made_up_system(name: str, seed: int, nodes: int, cycles: int, period_s: float) -> SystemRecord:
    """One system, with one event a cycle; the baseline is given the worse numbers."""
    draw = np.random.default_rng(seed)
    poor = name == "baseline"
    events = _events(draw, nodes, cycles, period_s, poor)
    deliveries = _deliveries(draw, nodes, events, 7 if poor else 3)
    overlay = _overlay(draw, nodes, friends=0 if poor else 6)
    return SystemRecord(
        name=name,
        settings={"links": 10, "friend_links": 0 if poor else 8},
        events=events,
        deliveries=deliveries,
        nodes=_nodes(draw, nodes, overlay, poor),
        cycles=_cycles(draw, nodes, events, deliveries, poor),
        overlay=overlay,
        totals={"messages_lost": int(draw.integers(100))},
    )


def _events(draw: Draws, nodes: int, cycles: int, period_s: float, poor: bool) -> Table:
    expected = draw.integers(1, max(nodes // 3, 2), cycles, dtype=np.int32)
    delivered = draw.binomial(expected, 0.8 if poor else 0.998).astype(np.int32)
    uninterested = (delivered * (0.9 if poor else 0.15)).astype(np.int32)
    return {
        "event": np.arange(cycles, dtype=np.int64),
        "cycle": np.arange(cycles, dtype=np.int32),
        "time_s": np.arange(cycles) * float(period_s),
        "publisher": draw.integers(0, nodes, cycles, dtype=np.int32),
        "expected": expected,
        "delivered": delivered,
        "received": delivered + uninterested,
        "uninterested": uninterested,
        **dict.fromkeys(("duplicates", "false_positives"), np.zeros(cycles, np.int32)),
    }


def _deliveries(draw: Draws, nodes: int, events: Table, hops: int) -> Table:
    counts = events["delivered"]
    tree_hops = draw.poisson(hops - 1, int(counts.sum())).astype(np.int16)
    nodes_of_events = [draw.choice(nodes, count, replace=False) for count in counts]
    return {
        "event": np.repeat(events["event"], counts),
        "node": np.concatenate([*nodes_of_events, []]).astype(np.int32),
        "hops": tree_hops + np.int16(1),
        "tree_hops": tree_hops,
        "time_s": np.repeat(events["time_s"], counts),
    }


def _nodes(draw: Draws, nodes: int, overlay: OverlaySnapshot, poor: bool) -> Table:
    load = draw.beta(0.3, 1.5, nodes) if poor else draw.beta(2, 30, nodes)
    targets = overlay.links["target"]
    return {
        "node": np.arange(nodes, dtype=np.int32),
        "load": load,
        "received": draw.integers(0, 500, nodes),
        "uninterested": draw.integers(0, 100, nodes),
        "forwarded": draw.integers(0, 500, nodes),
        "routing_table_entries": draw.integers(0, 40, nodes, dtype=np.int32),
        "identifier": overlay.nodes["identifier"],
        "in_degree": np.bincount(targets, minlength=nodes).astype(np.int32),
    }


def _cycles(draw: Draws, nodes: int, events: Table, deliveries: Table, poor: bool) -> Table:
    cycles = len(events["cycle"])
    settling = 1 - np.exp(-np.arange(cycles) / 6)
    hops = np.bincount(deliveries["event"], deliveries["hops"], cycles).astype(np.int64)
    return {
        "cycle": events["cycle"],
        "time_s": events["time_s"],
        "population": draw.integers(nodes // 2, nodes + 1, cycles, dtype=np.int32),
        "control_messages": draw.integers(2 * nodes, 4 * nodes, cycles),
        "events": np.ones(cycles, dtype=np.int32),
        **{name: events[name].astype(np.int64) for name in SUMMED},
        "hops_sum": hops,
        "routing_table_entries": draw.integers(5 * nodes, 9 * nodes, cycles),
        "ring_correct": settling,
        "friend_utility": np.full(cycles, np.nan) if poor else 0.95 * settling,
    }


def _overlay(draw: Draws, nodes: int, friends: int) -> OverlaySnapshot:
    """A ring with small-world links and links among nodes of nearby interest."""
    identifiers = draw.integers(0, RING, nodes)
    low = draw.integers(0, RING - RING // 10, nodes)
    primary = draw.integers(0, 2, nodes, dtype=np.int32)
    ring = np.argsort(identifiers)
    small = 2 + (0 if friends else 6)
    by_interest = np.lexsort((low, primary))
    rank = np.arange(nodes)
    steps = draw.integers(1, max(nodes // 12, 2), nodes * friends)
    sources = [ring, np.repeat(rank, small), np.repeat(by_interest, friends)]
    targets = [
        np.roll(ring, -1),
        draw.integers(0, nodes, nodes * small),
        by_interest[(np.repeat(rank, friends) + steps) % nodes],
    ]
    kinds = [np.full(len(part), kind) for kind, part in enumerate(sources)]
    return OverlaySnapshot(
        nodes={"identifier": identifiers, "primary": primary, "low": low, "high": low + RING // 10},
        links={
            "source": np.concatenate(sources).astype(np.int32),
            "target": np.concatenate(targets).astype(np.int32),
            "kind": np.concatenate(kinds).astype(np.int8),
        },
    )


# A run that can be looked at.


KINDS = ("ring", "friend & foe")


def made_up_overlay(nodes: int, degree: int = 8, seed: int = 1) -> Overlay:
    """An overlay of every second node of twice as many, with links of two kinds."""
    draw = np.random.default_rng(seed)
    numbers = np.arange(0, 2 * nodes, 2)
    rows = np.repeat(np.arange(nodes), degree)
    near = (rows + draw.integers(1, 40, len(rows))) % nodes
    return Overlay(
        nodes={NODE: numbers.astype(np.int32), "place": draw.random(nodes)},
        links=links_table(numbers[rows], numbers[near], draw.integers(0, 2, len(rows))),
        kinds=KINDS,
    )


def made_up_course(rounds: int, nodes: int = 100) -> Course:
    """A course with one curve, which is not known before round 10."""
    number = np.arange(1, rounds + 1)
    values = np.where(number < 10, np.nan, 1.0 / number)
    about = Measure("doubt", "doubt", "ratio", "lower", "What is left of it.")
    up = np.full(rounds, nodes, np.float64)
    return Course(number, number.astype(np.float64) * 60.0, up, (Curve(about, values),))


@attrs.define
class WatchedRun:
    """One system after some of its rounds."""

    name: str
    round: int
    rounds: int
    size: int
    looks: int = 0  # how often it was looked at

    @property
    def is_finished(self) -> bool:
        return self.round >= self.rounds

    def course(self) -> Course:
        self.looks += 1
        return made_up_course(self.round, self.size)

    def overlay(self) -> Overlay | None:
        return made_up_overlay(self.size, seed=self.round)
