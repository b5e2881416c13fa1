"""The runs behind V1 to V10 with `kindred` beside the others, its growth, and its ablation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import attrs

from gossamer.sim.figures.common.points import Point
from gossamer.sim.figures.kindred.setup import (
    KINDRED,
    SYSTEMS,
    Data,
    Plan,
    any_point,
    kinds_and_seeds,
    seeds_of,
    steady_point,
    workload,
)
from gossamer.sim.figures.kindred.workloads import workload_points
from gossamer.sim.figures.vinifera.studies import (
    ATTRIBUTES,
    BASELINE,
    CAPACITY,
    CHURN,
    FRIENDS,
    HOUR_S,
    KINDS,
    LINKS,
    PAPER,
    RATES,
    RESILIENT,
    ROOMY_LARGE,
    SIZES,
)
from gossamer.sim.studies.peers.inputs.scenario import FORMED, Churn, Events
from gossamer.sim.studies.worlds.network import Link

MONTH, FAST, BACKWARDS, SILENT = "month", "fast", "backwards", "silent"
ABLATION, ABLATION_RANGES = "ablation", "ablation_ranges"
ABLATION_ATTRIBUTES, ABLATION_SILENT = "ablation_attributes", "ablation_silent"

# Each idea turned off by itself, by the name of the system that lacks it.
WITHOUT: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "no-placement": {"placement": "drawn"},
        # As many links as fingers, at harmonic distances.
        "no-fingers": {"finger_levels": 0, "small_world_links": 14},
        "no-nearest-routing": {"nearest_routing": False},
        "no-entering": {"enter_on_the_way": False},
        "no-key": {"rendezvous": "value"},
        "no-guests": {"guest_links": 0},
        "no-suspicion": {"suspect_rounds": 0},
    }
)
IDEAS: Final[Mapping[str, str]] = MappingProxyType(
    {
        KINDRED: "nothing left out",
        "no-placement": "places by interest",
        "no-fingers": "fingers by rank",
        "no-nearest-routing": "routing both ways",
        "no-entering": "entering on the way",
        "no-key": "routing key",
        "no-guests": "guests",
        "no-suspicion": "suspicion",
    }
)
# Of these ideas the standard workload shows what they bring; guests need several ranges a node,
# suspicion silent failures.
SHOWN_BY_STANDARD: Final = tuple(
    name for name in WITHOUT if name not in ("no-guests", "no-suspicion")
)


def plan_points(plan: Plan, data: Data) -> list[Point]:
    """All points of a plan, cheap ones first."""
    return [
        *_friend_points(plan),
        *_rate_points(plan),
        *_ablation_points(plan),
        *workload_points(plan),
        *_attribute_points(plan),
        *_size_points(plan),
        *_churn_points(plan, data),
        *(_real_points(plan, data.real) if data.real is not None else ()),
        *_larger_points(plan),
    ]


def _friend_points(plan: Plan) -> Iterator[Point]:
    """Fig. 3: of eight links the paper's presets have f to friends; `kindred` has them besides."""
    for kind, seed in kinds_and_seeds(plan):
        for friends in plan.friends:
            shared = {"friend_links": friends, "small_world_links": LINKS - friends}
            for system in (PAPER, RESILIENT):
                yield steady_point(plan, FRIENDS, system, kind, seed, x=friends, settings=shared)
            own = {"friend_links": friends}
            yield steady_point(plan, FRIENDS, KINDRED, kind, seed, x=friends, settings=own)
        links = {"small_world_links": LINKS}
        yield steady_point(plan, FRIENDS, BASELINE, kind, seed, settings=links)


def _size_points(plan: Plan) -> Iterator[Point]:
    """Fig. 4(a), 4(b)."""
    for nodes in plan.sizes:
        for system in SYSTEMS:
            for kind in KINDS:
                for seed in seeds_of(plan, nodes, system):
                    yield steady_point(plan, SIZES, system, kind, seed, x=nodes, nodes=nodes)


def _larger_points(plan: Plan) -> Iterator[Point]:
    """They begin with the overlay formed: so many nodes find their places in a hundred rounds."""
    for nodes in plan.larger:
        for kind in KINDS:
            for seed in seeds_of(plan, nodes):
                yield steady_point(
                    plan, SIZES, KINDRED, kind, seed, x=nodes, nodes=nodes, start=FORMED
                )


def _attribute_points(plan: Plan) -> Iterator[Point]:
    """Fig. 4(c), 4(d), 4(e); of `kindred` the key has as many intervals as docs/kindred.md says."""
    for attributes in plan.attributes:
        for kind, seed in kinds_and_seeds(plan):
            for system in SYSTEMS:
                yield steady_point(
                    plan,
                    ATTRIBUTES,
                    system,
                    kind,
                    seed,
                    x=attributes,
                    nodes=plan.attribute_nodes,
                    subscriptions=workload(kind, attributes),
                    settings={"key_intervals": 4} if system == KINDRED else None,
                )


def _rate_points(plan: Plan) -> Iterator[Point]:
    """Fig. 4(f): events at a rate in X, the capacity of a node."""
    for rate in plan.rates:
        for kind, seed in kinds_and_seeds(plan):
            for system in SYSTEMS:
                yield steady_point(
                    plan,
                    RATES,
                    system,
                    kind,
                    seed,
                    x=rate,
                    events=Events(per_round=rate * CAPACITY, warm_up_rounds=40),
                    rounds=40 + plan.rate_rounds,
                    network=Link(event_capacity=CAPACITY),
                )


def _churn_points(plan: Plan, data: Data) -> Iterator[Point]:
    """Fig. 5."""
    for kind in KINDS:
        for system in SYSTEMS:
            yield _churn_point(CHURN, system, kind, plan.seeds[0], data.trace.churn)


def _real_points(plan: Plan, real: Churn) -> Iterator[Point]:
    """The whole month; the same faster and backwards; and failures that nobody is told of."""
    seed = plan.seeds[0]
    fast, back = attrs.evolve(real, time_scale=0.25), attrs.evolve(real, backwards=True)
    for kind in KINDS if plan.month else ():
        for system in (KINDRED, BASELINE):
            yield _churn_point(MONTH, system, kind, seed, real)
        yield _churn_point(FAST, KINDRED, kind, seed, fast)
    # Crowds leave at once then, which hits one seed harder than another.
    for kind, seed in kinds_and_seeds(plan) if plan.month else ():
        yield _churn_point(BACKWARDS, KINDRED, kind, seed, back)
    if plan.silence is not None:
        begin, end = plan.silence
        part = attrs.evolve(real, start_s=begin * HOUR_S, end_s=end * HOUR_S)
        silent = Link(reports_unreachable=False)
        for kind, seed in kinds_and_seeds(plan):
            for system in SYSTEMS:
                yield _churn_point(SILENT, system, kind, seed, part, network=silent)
            yield _churn_point(
                ABLATION_SILENT,
                "no-suspicion",
                kind,
                seed,
                part,
                network=silent,
                settings=WITHOUT["no-suspicion"],
            )


def _churn_point(
    study: str,
    system: str,
    kind: str,
    seed: int,
    churn: Churn,
    settings: Mapping[str, Any] = MappingProxyType({}),
    **fields: Any,
) -> Point:
    return any_point(
        study,
        system,
        kind,
        seed,
        settings={**ROOMY_LARGE, **settings},
        churn=churn,
        events=Events(per_round=2, warm_up_rounds=20),
        subscriptions=workload(kind),
        **fields,
    )


def _ablation_points(plan: Plan) -> Iterator[Point]:
    """`kindred` with each of its ideas turned off by itself, where it matters."""
    for kind, seed in kinds_and_seeds(plan):
        for system in (KINDRED, *SHOWN_BY_STANDARD):
            yield _ablated(plan, ABLATION, system, kind, seed)
        three = workload(kind, per_node=3)
        for system in (KINDRED, "no-guests"):
            yield _ablated(plan, ABLATION_RANGES, system, kind, seed, x=3, subscriptions=three)
        for system in (KINDRED, "no-key"):
            yield _ablated(
                plan,
                ABLATION_ATTRIBUTES,
                system,
                kind,
                seed,
                x=3,
                nodes=plan.attribute_nodes,
                subscriptions=workload(kind, 3),
                key_intervals=4,
            )


def _ablated(
    plan: Plan,
    study: str,
    system: str,
    kind: str,
    seed: int,
    *,
    key_intervals: int | None = None,
    **fields: Any,
) -> Point:
    settings = dict(WITHOUT.get(system, {}))
    if key_intervals is not None:
        settings["key_intervals"] = key_intervals
    return steady_point(plan, study, system, kind, seed, settings=settings, **fields)
