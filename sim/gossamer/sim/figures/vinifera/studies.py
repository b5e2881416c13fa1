"""The runs behind Fig. 3 to 5 of the Vinifera paper (Sec. V), and the workload they share.

The paper gives neither the width of ranges nor event rates nor the exponent of its "Zipf-like
distribution over the attribute space". They are chosen here once, for all figures, such that the
baseline of 1,000 nodes shows the two numbers that the paper gives for it: more than 80 % traffic
overhead with random subscriptions (Fig. 4(a)) and 32 to 40 % with skewed ones (Fig. 3(a), 4(a)).
Several workloads do that, and the choice among them was made when Vinifera's numbers for them were
known as well: see docs/figures.md, which gives those of the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import attrs

from gossamer.sim.errors import ScenarioError
from gossamer.sim.figures.common.points import Point
from gossamer.sim.studies.peers.inputs.scenario import (
    Churn,
    Events,
    Scenario,
    Subscriptions,
    System,
)
from gossamer.sim.studies.worlds.network import Link

RANDOM, SKEWED = "random", "skewed"
KINDS = (RANDOM, SKEWED)
PAPER, BASELINE, RESILIENT = "paper", "baseline", "resilient"

# The calibration. A range takes up this share of the attribute space, whatever the number of
# attributes, so that an event matches about as many subscriptions with five as with one: with a
# fixed width an event of two attributes would match none.
VOLUME = 0.0075
PLACES, EXPONENT, SPREAD = 20, 1.5, 0.001

FRIENDS, FRIENDS_LARGE, SIZES, ATTRIBUTES = "friends", "friends_10000", "sizes", "attributes"
RATES, CHURN = "rates", "churn"

LINKS = 8  # K_sw + K_f, besides two ring links (Sec. V-A)
CAPACITY = 10  # X: event messages a node takes in a round (Sec. V-D gives none)
ROUND_S = 60.0
HOUR_S = 3600.0

# Large enough that tables never merge in the baseline's root at 1,000 nodes; the attributes of a
# 10,000 node table would not fit in memory, but ranges of one attribute overlap and join.
ROOMY: Mapping[str, int] = {"boxes_per_neighbour": 1024, "routing_table_entries": 2048}
ROOMY_LARGE: Mapping[str, int] = {"boxes_per_neighbour": 256, "routing_table_entries": 1024}
# Tables of so many nodes would not fit into memory otherwise; none has to merge an entry.
ROOMY_HUGE: Mapping[str, int] = {"boxes_per_neighbour": 64, "routing_table_entries": 256}
# From here on one round after another is needed until fingers reach every peer.
LARGE, HUGE = 5000, 30_000
PER_ROUND = 20

REAL_TRACE = "skype.avt.gz"
BUNDLED_TRACE = "flash_crowd.avt.gz"


@attrs.frozen(kw_only=True)
class Plan:
    """How much of the paper's experiments is run; by default those of a full run.

    Attributes:
        seeds: of every point up to `LARGE` nodes; larger ones run with the first only.
        events: events of a point.
        friends: numbers of friend links.
        sizes: numbers of nodes.
        large: number of nodes of the second friend study, None for none.
        attributes: numbers of attributes.
        attribute_nodes: number of nodes with several attributes. Tables grow with the share of
            nodes that a range of `VOLUME` reaches on one attribute, 38 % with five.
        rates: publication rates, in X a round.
        churn_hours: the part of the real trace, from and to.
        bundled_hours: how much is played of the bundled trace, at most.
    """

    seeds: tuple[int, ...] = (1, 2, 3)
    events: int = 2000
    friends: tuple[int, ...] = (0, 1, 2, 3, 4, 5, 6, 7, 8)
    sizes: tuple[int, ...] = (500, 1000, 2000, 5000, 10_000)
    large: int | None = 10_000
    attributes: tuple[int, ...] = (1, 2, 3, 4, 5)
    attribute_nodes: int = 500
    rates: tuple[float, ...] = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0)
    # A week with the flash crowds of hours 147 and 252.
    churn_hours: tuple[float, float] = (132.0, 300.0)
    bundled_hours: float = 6.0


FULL = Plan()
QUICK = Plan(
    seeds=(1,),
    events=600,
    friends=(0, 4, 8),
    sizes=(500, 1000),
    large=None,
    attributes=(1, 2, 3, 5),
    attribute_nodes=300,
    rates=(0.5, 2.0, 5.0),
    churn_hours=(250.0, 256.0),
    bundled_hours=3.0,  # its flash crowd is at hour 1
)


@attrs.frozen(kw_only=True)
class Trace:
    """The churn trace that is played.

    Attributes:
        churn: the part of it.
        first_hour: of the part, on the clock of the trace.
        description: in words, for the reader of a claim.
    """

    churn: Churn
    first_hour: float
    description: str


def workload(kind: str, attributes: int = 1, **fields: Any) -> Subscriptions:
    """The calibrated workload, with fields of it changed."""
    common = {
        "kind": kind,
        "attributes": attributes,
        "width": VOLUME ** (1 / attributes),
        "places": PLACES,
        "exponent": EXPONENT,
        "spread": SPREAD,
    }
    return Subscriptions(**{**common, **fields})


def most_popular_share() -> float:
    """Share of skewed subscriptions, and of events, at the most popular place (Zipf)."""
    return float(1 / sum(rank**-EXPONENT for rank in range(1, PLACES + 1)))


def plan_points(plan: Plan, trace: Trace) -> list[Point]:
    """All points of a plan, cheap ones first."""
    return [
        *_friend_points(plan, 1000, FRIENDS),
        *_size_points(plan),
        *_rate_points(plan),
        *(_friend_points(plan, plan.large, FRIENDS_LARGE) if plan.large else ()),
        *_churn_points(plan, trace),
        *_attribute_points(plan),
    ]


def _friend_points(plan: Plan, nodes: int, study: str) -> Iterator[Point]:
    """Fig. 3: K_f friend links and 8 - K_f small-world links; the baseline has no friends."""
    for kind, seed in _kinds_and_seeds(plan, nodes):
        point = partial(steady_point, plan.events, study, kind=kind, seed=seed, nodes=nodes)
        for friends in plan.friends:
            links = {"friend_links": friends, "small_world_links": LINKS - friends}
            yield point(PAPER, x=friends, settings=links)
        yield point(BASELINE, settings={"small_world_links": LINKS})


def _both(plan: Plan, study: str, x: float, nodes: int, **fields: Any) -> Iterator[Point]:
    """Vinifera and the baseline at a place, with both kinds of subscriptions."""
    attributes = fields.pop("attributes", 1)
    for kind, seed in _kinds_and_seeds(plan, nodes):
        asked = workload(kind, attributes)
        for system in (PAPER, BASELINE):
            yield steady_point(
                plan.events,
                study,
                system,
                kind,
                seed,
                x=x,
                nodes=nodes,
                subscriptions=asked,
                **fields,
            )


def _size_points(plan: Plan) -> Iterator[Point]:
    """Fig. 4(a), 4(b): K_sw = 0, K_f = log2(N) - 2, as the presets have it."""
    for nodes in plan.sizes:
        yield from _both(plan, SIZES, nodes, nodes)


def _attribute_points(plan: Plan) -> Iterator[Point]:
    """Fig. 4(c), 4(d), 4(e)."""
    for number in plan.attributes:
        yield from _both(plan, ATTRIBUTES, number, plan.attribute_nodes, attributes=number)


def _rate_points(plan: Plan) -> Iterator[Point]:
    """Fig. 4(f): 40 rounds of events at a rate in X, the capacity of a node."""
    for rate in plan.rates:
        events = Events(per_round=rate * CAPACITY, warm_up_rounds=40)
        network = Link(event_capacity=CAPACITY)
        yield from _both(plan, RATES, rate, 1000, events=events, rounds=80, network=network)


def _churn_points(plan: Plan, trace: Trace) -> Iterator[Point]:
    """Fig. 5, with the resilient preset beside the paper's."""
    for kind in KINDS:
        for system in (PAPER, BASELINE, RESILIENT):
            yield churn_point(CHURN, system, kind, plan.seeds[0], trace.churn)


def churn_point(
    study: str,
    system: str,
    kind: str,
    seed: int,
    churn: Churn,
    settings: Mapping[str, Any] = MappingProxyType({}),
    **fields: Any,
) -> Point:
    """A point under churn, as long as its trace."""
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


def _kinds_and_seeds(plan: Plan, nodes: int) -> Iterator[tuple[str, int]]:
    for kind in KINDS:
        for seed in plan.seeds if nodes < LARGE else plan.seeds[:1]:
            yield kind, seed


def steady_point(
    published: int,
    /,
    study: str,
    system: str,
    kind: str,
    seed: int,
    *,
    nodes: int,
    settings: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Point:
    """A point without churn: the overlay settles, then so many events, `PER_ROUND` a round."""
    warm_up = warm_up_of(nodes)
    standard: dict[str, Any] = {
        "nodes": nodes,
        "rounds": warm_up + -(-published // PER_ROUND),
        "events": Events(per_round=PER_ROUND, warm_up_rounds=warm_up),
        "subscriptions": workload(kind),
    }
    room = ROOMY if nodes < LARGE else ROOMY_LARGE if nodes < HUGE else ROOMY_HUGE
    chosen = {**room, **(settings or {})}
    return any_point(study, system, kind, seed, settings=chosen, **{**standard, **fields})


def warm_up_of(nodes: int) -> int:
    """Rounds in which an overlay settles, see docs/figures.md."""
    if nodes < LARGE:
        return 40
    return 60 if nodes < HUGE else 80


def any_point(
    study: str,
    system: str,
    kind: str,
    seed: int,
    *,
    x: float = 0.0,
    settings: Mapping[str, Any],
    **fields: Any,
) -> Point:
    """A point of a study of a preset, or of one without some of its ideas."""
    chosen = System(name=system, settings=dict(settings))
    standard = {"systems": (chosen,), "round_s": ROUND_S, "measure_every": 50}
    scenario = Scenario(**{"name": study, "seed": seed, **standard, **fields})
    return Point(study=study, system=system, kind=kind, x=float(x), scenario=scenario)


def find_trace(plan: Plan, checkout: Path) -> Trace:
    """The Skype trace in ``shared/data`` beside the checkout, or else the bundled one.

    Raises:
        ScenarioError: neither is there, or what is there is no trace.
    """
    real = checkout.parent / "shared" / "data" / REAL_TRACE
    if real.exists():
        begin, end = plan.churn_hours
        return Trace(
            churn=Churn(trace=real, start_s=begin * HOUR_S, end_s=end * HOUR_S),
            first_hour=begin,
            description=f"hours {begin:g} to {end:g} of the Skype trace, rounds of {ROUND_S:g} s",
        )
    bundled = checkout / "traces" / BUNDLED_TRACE
    if not bundled.exists():
        expected = f"the bundled trace, or {REAL_TRACE} in shared/data beside the checkout"
        raise ScenarioError(str(bundled), "churn.trace", None, expected, found="missing")
    return Trace(
        churn=Churn(trace=bundled, end_s=plan.bundled_hours * HOUR_S),
        first_hour=0.0,
        description=(
            f"{plan.bundled_hours:g} h of the bundled synthetic trace, as {REAL_TRACE} is not "
            f"beside the checkout; rounds of {ROUND_S:g} s"
        ),
    )
