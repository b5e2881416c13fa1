"""The runs of `kindred` beside the others: workloads, V1 to V10, its growth, and its ablation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import product
from types import MappingProxyType
from typing import Any, Final

import attrs

from gossamer.sim.figures.common.points import Point
from gossamer.sim.figures.kindred.setup import (
    KINDRED,
    SYSTEMS,
    Data,
    Plan,
    kinds_and_seeds,
    seeds_of,
    steady_point,
)
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
    PER_ROUND,
    RANDOM,
    RATES,
    RESILIENT,
    ROUND_S,
    SIZES,
    SKEWED,
    churn_point,
    warm_up_of,
    workload,
)
from gossamer.sim.studies.peers.inputs.changes import Drift, Turnover
from gossamer.sim.studies.peers.inputs.scenario import FORMED, Churn, Events
from gossamer.sim.studies.peers.inputs.scenario import TOPICS as TOPIC_KIND
from gossamer.sim.studies.worlds.network import Link

RANGES, TOPICS, SUBSCRIBERS = "ranges", "topics", "subscribers"
WIDTHS, NESTED, STRIPES, THIN = "widths", "nested", "stripes", "thin"
ELSEWHERE, PUBLISHERS, TURNOVER = "elsewhere", "publishers", "turnover"
REPLACED, SHIFTED, MOVING_EVENTS = "replaced", "shifted", "moving_events"

# An hour of interests that change every ten minutes: six times as fast as by the hour.
_CHANGE_S: Final = 600.0


@attrs.frozen(kw_only=True)
class Other:
    """A workload.

    Attributes:
        study: its name.
        label: for tables; {x} is the value of what it varies.
        kinds: of subscriptions it is run with.
        places: values of x.
        varied: what x is, of the subscriptions.
        subscriptions: what else is different about these.
        fields: of the scenario, of a plan.
    """

    study: str
    label: str
    kinds: tuple[str, ...] = KINDS
    places: tuple[int, ...] = (0,)
    varied: str = ""
    subscriptions: Mapping[str, Any] = MappingProxyType({})
    fields: Callable[[Plan], Mapping[str, Any]] = lambda _plan: {}

    def scenario_fields(self, plan: Plan, kind: str, x: int) -> Mapping[str, Any]:
        """The fields of a scenario in which it differs from the standard one."""
        varied = {self.varied: x} if self.varied else {}
        fields = self.fields(plan)
        return {"subscriptions": workload(kind, **{**self.subscriptions, **varied}), **fields}


def _few_publishers(plan: Plan) -> Mapping[str, Any]:
    few = Events(
        per_round=PER_ROUND,
        warm_up_rounds=warm_up_of(plan.nodes),
        publishers=0.01,
        publisher_exponent=1.0,
    )
    return {"events": few}


def _turnover(plan: Plan) -> Mapping[str, Any]:
    return {"turnover": Turnover(share=0.5), "nodes": 2 * plan.nodes}


def _drifting(drift: Drift) -> Callable[[Plan], Mapping[str, Any]]:
    """As many events as elsewhere, over ten changes."""

    def fields(plan: Plan) -> Mapping[str, Any]:
        warm_up = warm_up_of(plan.nodes)
        rounds = round(10 * _CHANGE_S / ROUND_S)
        per_round = plan.events / rounds
        return {
            "drift": drift,
            "rounds": warm_up + rounds,
            "events": Events(per_round=per_round, warm_up_rounds=warm_up),
        }

    return fields


OTHERS: Final = (
    Other(study=RANGES, label="{x:g} unrelated ranges a node", places=(3, 8), varied="per_node"),
    Other(
        study=TOPICS,
        label="eight of fifty topics a node",
        kinds=(TOPIC_KIND,),
        subscriptions={"places": 50, "per_node": 8, "exponent": 1.0},
    ),
    Other(
        study=THIN,
        label="one of 2,000 topics a node, all as popular",
        kinds=(TOPIC_KIND,),
        subscriptions={"places": 2000, "exponent": 0.0},
    ),
    Other(
        study=SUBSCRIBERS,
        label="60 % of the nodes want nothing; ranges at the others: {x:g}",
        kinds=(RANDOM,),
        places=(1, 3),
        varied="per_node",
        subscriptions={"subscribers": 0.4},
    ),
    Other(study=WIDTHS, label="widths over three decades", subscriptions={"width_decades": 3.0}),
    Other(
        study=NESTED,
        label="ranges around one point, over a decade of widths; events anywhere",
        kinds=(SKEWED,),
        subscriptions={
            "places": 1,
            "spread": 0.0,
            "width": 0.3,
            "width_decades": 1.0,
            "correlation": 0.0,
        },
    ),
    Other(
        study=STRIPES,
        label="two attributes, ranges 100 times as wide on one as on the other",
        subscriptions={"attributes": 2, "width": 0.0866, "aspect": 100.0},
    ),
    Other(
        study=ELSEWHERE,
        label="events anywhere",
        kinds=(SKEWED,),
        subscriptions={"correlation": 0.0},
    ),
    Other(
        study=PUBLISHERS,
        label="a hundredth of the nodes publishes, Zipf-like",
        fields=_few_publishers,
    ),
    Other(
        study=REPLACED,
        label="a fifth replaces its range every ten minutes, ten times",
        fields=_drifting(Drift(every_s=_CHANGE_S, replaced=0.2)),
    ),
    Other(
        study=SHIFTED,
        label="a fifth shifts its range every ten minutes, ten times",
        fields=_drifting(Drift(every_s=_CHANGE_S, shifted=0.2, shift=0.01)),
    ),
    Other(
        study=MOVING_EVENTS,
        label="events move by a tenth of the domain an hour",
        fields=_drifting(Drift(event_shift=0.1)),
    ),
    Other(study=TURNOVER, label="half of the nodes replaced in an hour", fields=_turnover),
)


def workload_points(plan: Plan) -> Iterator[Point]:
    """All of them, with all presets."""
    for other in OTHERS:
        for x in other.places:
            for kind in other.kinds:
                fields = other.scenario_fields(plan, kind, x)
                for system in SYSTEMS:
                    for seed in seeds_of(plan, plan.nodes, system):
                        yield steady_point(plan, other.study, system, kind, seed, x=x, **fields)


# The runs behind V1 to V10, the growth and the ablation.


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
    for number, (kind, seed), system in product(plan.attributes, kinds_and_seeds(plan), SYSTEMS):
        settings = {"key_intervals": 4} if system == KINDRED else None
        fields: dict[str, Any] = {
            "nodes": plan.attribute_nodes,
            "subscriptions": workload(kind, number),
        }
        at = (plan, ATTRIBUTES, system, kind, seed)
        yield steady_point(*at, x=number, settings=settings, **fields)


def _rate_points(plan: Plan) -> Iterator[Point]:
    """Fig. 4(f): events at a rate in X, the capacity of a node."""
    rounds, network = 40 + plan.rate_rounds, Link(event_capacity=CAPACITY)
    for rate, (kind, seed), system in product(plan.rates, kinds_and_seeds(plan), SYSTEMS):
        events = Events(per_round=rate * CAPACITY, warm_up_rounds=40)
        at = (plan, RATES, system, kind, seed)
        yield steady_point(*at, x=rate, events=events, rounds=rounds, network=network)


def _churn_points(plan: Plan, data: Data) -> Iterator[Point]:
    """Fig. 5."""
    for kind in KINDS:
        for system in SYSTEMS:
            yield churn_point(CHURN, system, kind, plan.seeds[0], data.trace.churn)


def _real_points(plan: Plan, real: Churn) -> Iterator[Point]:
    """The whole month; the same faster and backwards; and failures that nobody is told of."""
    seed = plan.seeds[0]
    fast, back = attrs.evolve(real, time_scale=0.25), attrs.evolve(real, backwards=True)
    for kind in KINDS if plan.month else ():
        for system in (KINDRED, BASELINE):
            yield churn_point(MONTH, system, kind, seed, real)
        yield churn_point(FAST, KINDRED, kind, seed, fast)
    # Crowds leave at once then, which hits one seed harder than another.
    for kind, seed in kinds_and_seeds(plan) if plan.month else ():
        yield churn_point(BACKWARDS, KINDRED, kind, seed, back)
    if plan.silence is not None:
        begin, end = plan.silence
        part = attrs.evolve(real, start_s=begin * HOUR_S, end_s=end * HOUR_S)
        silent = Link(reports_unreachable=False)
        for kind, seed in kinds_and_seeds(plan):
            for system in SYSTEMS:
                yield churn_point(SILENT, system, kind, seed, part, network=silent)
            yield churn_point(
                ABLATION_SILENT,
                "no-suspicion",
                kind,
                seed,
                part,
                network=silent,
                settings=WITHOUT["no-suspicion"],
            )


def _ablation_points(plan: Plan) -> Iterator[Point]:
    """`kindred` with each of its ideas turned off by itself, where it matters."""
    for kind, seed in kinds_and_seeds(plan):
        point = partial(steady_point, plan, kind=kind, seed=seed)
        for system in (KINDRED, *SHOWN_BY_STANDARD):
            yield point(ABLATION, system, settings=WITHOUT.get(system))
        three = workload(kind, per_node=3)
        for system in (KINDRED, "no-guests"):
            without = WITHOUT.get(system)
            yield point(ABLATION_RANGES, system, settings=without, x=3, subscriptions=three)
        fields: dict[str, Any] = {
            "x": 3,
            "nodes": plan.attribute_nodes,
            "subscriptions": workload(kind, 3),
        }
        for system in (KINDRED, "no-key"):
            without = {**WITHOUT.get(system, {}), "key_intervals": 4}
            yield point(ABLATION_ATTRIBUTES, system, settings=without, **fields)
