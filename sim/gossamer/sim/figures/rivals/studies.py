"""The runs of `kindred` and its rivals: eleven workloads, ten seeds, the same for all.

Workloads are those of the figures of `kindred` (a fifth of the interests replaced every ten
minutes, half of the nodes in an hour, nested ranges with events anywhere), and three more: a flash
crowd, a twentieth of the nodes that die at once, and messages that take a log-normal time of 50 ms.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import attrs
import numpy as np

from gossamer.sim.churn import ChurnTrace, write_trace
from gossamer.sim.figures.common.points import CHECKOUT, Floats, Outcome, Point, measure_record
from gossamer.sim.figures.kindred.studies import KINDRED, OTHERS, Other
from gossamer.sim.figures.kindred.studies import Plan as KindredPlan
from gossamer.sim.figures.vinifera.studies import (
    BASELINE,
    BUNDLED_TRACE,
    HOUR_S,
    PER_ROUND,
    RANDOM,
    ROOMY,
    ROUND_S,
    VOLUME,
    warm_up_of,
)
from gossamer.sim.studies.peers.inputs.scenario import Churn, Events, Scenario, System
from gossamer.sim.studies.peers.study import simulate
from gossamer.sim.studies.worlds.network import Link
from gossamer.sim.study.contract import Execution

SCRIBE, MERCURY, POLDERCAST = "scribe", "mercury", "poldercast"
GOSSIPSUB, PLUMTREE = "gossipsub", "plumtree"
RIVALS: Final[Mapping[str, str]] = MappingProxyType(
    {
        SCRIBE: "scribe.py:Scribe",
        MERCURY: "mercury.py:Mercury",
        POLDERCAST: "poldercast.py:PolderCast",
        GOSSIPSUB: "gossipsub.py:GossipSub",
        PLUMTREE: "plumtree.py:Plumtree",
    }
)
SYSTEMS: Final = (KINDRED, BASELINE, *RIVALS)
# The least that any routing over as many links as `kindred` has could need.
BOUND: Final = "bound"

STANDARD, ATTRIBUTES, CROWD = "standard", "attributes", "crowd"
LEAVING, LATENCIES = "leaving", "latencies"
# Who dies at once, and the median of the latencies of one message.
_SHARE: Final = 0.05
_LATENCY_S: Final = 0.05
# Of the bundled trace; its flash crowd is at hour 1.
_CROWD_HOURS: Final = 3.0


@attrs.frozen(kw_only=True)
class Plan:
    """How much is run; by default what a full run has.

    Attributes:
        seeds: of every point.
        nodes, events: of a point.
        studies: names of the workloads; None for all.
    """

    seeds: tuple[int, ...] = tuple(range(1, 11))
    nodes: int = 1000
    events: int = 1000
    studies: tuple[str, ...] | None = None

    @property
    def shared(self) -> KindredPlan:
        """What workloads read of it."""
        return KindredPlan(seeds=self.seeds, nodes=self.nodes, events=self.events)


FULL: Final = Plan()
QUICK: Final = Plan(seeds=(1,), nodes=100, events=100)


def _taken(study: str, **changes: Any) -> Other:
    (found,) = (other for other in OTHERS if other.study == study)
    return attrs.evolve(found, **changes)


WORKLOADS: Final = (
    Other(study=STANDARD, label="one range a node"),
    _taken("nested", label="nested ranges"),
    _taken("thin", label="one of 2,000 topics"),
    _taken("topics", label="eight of 50 topics"),
    Other(
        study=ATTRIBUTES,
        label="three attributes",
        kinds=(RANDOM,),
        subscriptions={"attributes": 3, "width": VOLUME ** (1 / 3)},
    ),
    _taken("replaced", label="interests that drift", kinds=(RANDOM,)),
    _taken("turnover", label="turnover", kinds=(RANDOM,)),
    Other(study=CROWD, label="flash crowd", kinds=(RANDOM,)),
    Other(study=LEAVING, label="a twentieth dies at once", kinds=(RANDOM,)),
    Other(
        study=LATENCIES,
        label="latencies",
        kinds=(RANDOM,),
        fields=lambda _plan: {
            "engine": "event",
            "network": Link(latency="lognormal", latency_s=_LATENCY_S),
        },
    ),
)


@attrs.frozen(kw_only=True)
class RivalPoint(Point):
    """A run of a system under a workload."""

    def run(self) -> Outcome:
        """Run it; beside what others measure there are bytes, and of `kindred` ``bound_hops``."""
        record = simulate(self.scenario, execution=Execution(workers=1)).systems[self.system]
        outcome = measure_record(self, record, ("bytes_per_node_and_second",))
        bound = math.nan
        if self.system == KINDRED:
            degree = float(record.nodes["in_degree"].mean())
            bound = least_hops(record.events["expected"], degree)
        return attrs.evolve(outcome, measures={**outcome.measures, "bound_hops": bound})


def least_hops(expected: Floats, degree: float) -> float:
    """The least mean of hops that deliveries could take if each node sent to ``degree`` others.

    Only those who want an event take it, and each tree is as broad as it can be.

    Args:
        expected: of each event, how many want it.
        degree: links of a node, at least 1.
    """
    hops = counted = 0.0
    for wanting in expected:
        left, width, depth = float(wanting), degree, 1
        while left > 0:
            here = min(left, width)
            hops, left = hops + here * depth, left - here
            width, depth = width * max(degree - 1, 1.0), depth + 1
        counted += float(wanting)
    return hops / counted if counted else math.nan


def plan_points(plan: Plan, folder: Path) -> list[Point]:
    """All points of a plan.

    Args:
        plan: what is run.
        folder: of the trace that is made, which stays until all have been run.
    """
    return list(_points(plan, folder))


def _points(plan: Plan, folder: Path) -> Iterator[Point]:
    for other in WORKLOADS:
        if plan.studies is not None and other.study not in plan.studies:
            continue
        x = other.places[0]
        for kind, seed, system in product(other.kinds, plan.seeds, SYSTEMS):
            warm_up = warm_up_of(plan.nodes)
            fields: dict[str, Any] = {
                "nodes": plan.nodes,
                "rounds": warm_up + -(-plan.events // PER_ROUND),
                "events": Events(per_round=PER_ROUND, warm_up_rounds=warm_up),
                **other.scenario_fields(plan.shared, kind, x),
                **_churn(plan, other.study, folder),
            }
            scenario = Scenario(
                name=other.study,
                seed=seed,
                systems=(system_of(system, plan.nodes, other.study),),
                round_s=ROUND_S,
                measure_every=50,
                **fields,
            )
            yield RivalPoint(
                study=other.study, system=system, kind=kind, x=float(x), scenario=scenario
            )


def system_of(name: str, nodes: int, study: str) -> System:
    """A system with tables that hold what there is to hold."""
    if name not in RIVALS:
        return System(name=name, settings=dict(ROOMY))
    settings: dict[str, Any] = {}
    if name == SCRIBE:
        # A topic a cell: where there are topics, one for each.
        settings = {"children": 2 * nodes, "cell_bits": 11 if study == "thin" else 6}
    elif name == MERCURY:
        settings = {"stored": max(256, nodes)}
    protocol = str(CHECKOUT / "examples" / "rivals" / RIVALS[name])
    return System(name=name, protocol=protocol, settings=settings)


def _churn(plan: Plan, study: str, folder: Path) -> Mapping[str, Any]:
    """What makes nodes come and go, of the workloads in which they do by a trace."""
    if study == CROWD:
        trace = CHECKOUT / "traces" / BUNDLED_TRACE
        churn = Churn(trace=trace, end_s=_CROWD_HOURS * HOUR_S)
        events = Events(per_round=4, warm_up_rounds=20)
        return {"nodes": None, "rounds": None, "churn": churn, "events": events}
    if study == LEAVING:
        rounds = warm_up_of(plan.nodes) + -(-plan.events // PER_ROUND)
        trace = _leaving(plan.nodes, rounds, folder)
        return {"nodes": None, "rounds": None, "churn": Churn(trace=trace)}
    return {}


def _leaving(nodes: int, rounds: int, folder: Path) -> Path:
    """A trace by which a twentieth of the nodes leaves at once, half way through the events."""
    path = folder / f"leaving-{nodes}-{rounds}.avt.gz"
    if not path.exists():
        ends_s = np.full(nodes, rounds * ROUND_S)
        last = (rounds + warm_up_of(nodes)) // 2 + 0.25
        ends_s[: int(_SHARE * nodes)] = last * ROUND_S
        names = tuple(f"n{i}" for i in range(nodes))
        trace = ChurnTrace(names, np.arange(nodes), np.zeros(nodes), ends_s, rounds * ROUND_S)
        folder.mkdir(parents=True, exist_ok=True)
        write_trace(trace, path)
    return path
