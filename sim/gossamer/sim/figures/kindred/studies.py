"""The runs of `kindred` beside the others: workloads, V1 to V10, its growth, and its ablation.

The set-up is that of the Vinifera figures (`gossamer.sim.figures.vinifera.studies`): the same
widths, places, rates and warm-up, so that the values stand beside those of docs/figures.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import product
from types import MappingProxyType
from typing import Any, Final

import attrs

from gossamer.sim.figures.common.points import Point
from gossamer.sim.figures.vinifera import studies as vinifera
from gossamer.sim.figures.vinifera.studies import (
    ATTRIBUTES,
    BASELINE,
    CAPACITY,
    CHURN,
    FRIENDS,
    HOUR_S,
    HUGE,
    KINDS,
    LARGE,
    LINKS,
    PAPER,
    PER_ROUND,
    RANDOM,
    RATES,
    RESILIENT,
    ROUND_S,
    SIZES,
    SKEWED,
    Trace,
    churn_point,
    warm_up_of,
    workload,
)
from gossamer.sim.figures.vinifera.studies import FULL as PAPER_FULL
from gossamer.sim.studies.peers.inputs.changes import Drift, Turnover
from gossamer.sim.studies.peers.inputs.scenario import FORMED, Churn, Events
from gossamer.sim.studies.peers.inputs.scenario import TOPICS as TOPIC_KIND
from gossamer.sim.studies.worlds.network import Link

KINDRED: Final = "kindred"
SYSTEMS: Final = (KINDRED, PAPER, RESILIENT, BASELINE)

STANDARD: Final = 1000


@attrs.frozen(kw_only=True)
class Plan:
    """How much is run; by default what a full run has.

    Attributes:
        seeds: of every point that takes seconds; others run with the first only.
        events: events of a point.
        nodes: of studies that do not vary it.
        friends: numbers of friend links.
        sizes: numbers of nodes that all systems have.
        larger: numbers of nodes that `kindred` alone has, with the first seed.
        attributes: numbers of attributes.
        attribute_nodes: number of nodes with several attributes.
        rates: publication rates, in X a round.
        rate_rounds: rounds in which there are so many.
        churn_hours: the part of the real trace that V8 to V10 are about, from and to.
        bundled_hours: how much is played of the bundled trace where the real one is absent.
        month: whether all of the real trace is played, also faster and backwards.
        silence: the part of the real trace in which nobody is told of failures, hours; None for
            none.
    """

    seeds: tuple[int, ...] = (1, 2, 3)
    events: int = 2000
    nodes: int = STANDARD
    friends: tuple[int, ...] = (0, 4, 8)
    sizes: tuple[int, ...] = (300, 1000, 3000, 5000, 10_000)
    larger: tuple[int, ...] = (30_000, 100_000)
    attributes: tuple[int, ...] = (1, 2, 3, 5)
    attribute_nodes: int = 500
    rates: tuple[float, ...] = (0.5, 1.0, 2.0, 3.0, 5.0)
    rate_rounds: int = 40
    churn_hours: tuple[float, float] = PAPER_FULL.churn_hours
    bundled_hours: float = PAPER_FULL.bundled_hours
    month: bool = True
    silence: tuple[float, float] | None = (250.0, 256.0)


FULL: Final = Plan()
QUICK: Final = Plan(
    seeds=(1,),
    events=200,
    nodes=300,
    friends=(8,),
    sizes=(150, 300),
    larger=(),
    attributes=(1, 3),
    attribute_nodes=100,
    rates=(0.5, 5.0),
    rate_rounds=10,
    churn_hours=(251.0, 253.0),
    bundled_hours=1.5,
    month=False,
    silence=None,
)


@attrs.frozen(kw_only=True)
class Data:
    """What is played of churn.

    Attributes:
        trace: of V8 to V10, the real one or the bundled one.
        real: all of the real trace; None where it is absent.
    """

    trace: Trace
    real: Churn | None


def seeds_of(plan: Plan, nodes: int, system: str = KINDRED) -> tuple[int, ...]:
    """The seeds of a point: with many nodes others than `kindred` have the first only."""
    most = LARGE if system != KINDRED else HUGE
    return plan.seeds if nodes < most else plan.seeds[:1]


def steady_point(
    plan: Plan,
    study: str,
    system: str,
    kind: str,
    seed: int,
    *,
    nodes: int | None = None,
    **more: Any,
) -> Point:
    """A point without churn, see there, of the plan's size unless ``nodes`` says another."""
    size = plan.nodes if nodes is None else nodes
    return vinifera.steady_point(plan.events, study, system, kind, seed, nodes=size, **more)


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
    few: dict[str, Any] = {"publishers": 0.01, "publisher_exponent": 1.0}
    return {"events": Events(per_round=PER_ROUND, warm_up_rounds=warm_up_of(plan.nodes), **few)}


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
        for x, kind in product(other.places, other.kinds):
            fields = other.scenario_fields(plan, kind, x)
            for system in SYSTEMS:
                for seed in seeds_of(plan, plan.nodes, system):
                    yield steady_point(plan, other.study, system, kind, seed, x=x, **fields)


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
    for kind, seed in product(KINDS, plan.seeds):
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
    for nodes, system, kind in product(plan.sizes, SYSTEMS, KINDS):
        for seed in seeds_of(plan, nodes, system):
            yield steady_point(plan, SIZES, system, kind, seed, x=nodes, nodes=nodes)


def _larger_points(plan: Plan) -> Iterator[Point]:
    """They begin with the overlay formed: so many nodes find their places in a hundred rounds."""
    for nodes, kind in product(plan.larger, KINDS):
        for seed in seeds_of(plan, nodes):
            at = (plan, SIZES, KINDRED, kind, seed)
            yield steady_point(*at, x=nodes, nodes=nodes, start=FORMED)


def _attribute_points(plan: Plan) -> Iterator[Point]:
    """Fig. 4(c), 4(d), 4(e); of `kindred` the key has as many intervals as docs/kindred.md says."""
    for number, kind, seed, system in product(plan.attributes, KINDS, plan.seeds, SYSTEMS):
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
    for rate, kind, seed, system in product(plan.rates, KINDS, plan.seeds, SYSTEMS):
        events = Events(per_round=rate * CAPACITY, warm_up_rounds=40)
        at = (plan, RATES, system, kind, seed)
        yield steady_point(*at, x=rate, events=events, rounds=rounds, network=network)


def _churn_points(plan: Plan, data: Data) -> Iterator[Point]:
    """Fig. 5."""
    for kind, system in product(KINDS, SYSTEMS):
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
    for kind, seed in product(KINDS, plan.seeds) if plan.month else ():
        yield churn_point(BACKWARDS, KINDRED, kind, seed, back)
    if plan.silence is not None:
        begin, end = plan.silence
        part = attrs.evolve(real, start_s=begin * HOUR_S, end_s=end * HOUR_S)
        silent = Link(reports_unreachable=False)
        for kind, seed in product(KINDS, plan.seeds):
            for system in SYSTEMS:
                yield churn_point(SILENT, system, kind, seed, part, network=silent)
            at = (ABLATION_SILENT, "no-suspicion", kind, seed, part)
            yield churn_point(*at, network=silent, settings=WITHOUT["no-suspicion"])


def _ablation_points(plan: Plan) -> Iterator[Point]:
    """`kindred` with each of its ideas turned off by itself, where it matters."""
    for kind, seed in product(KINDS, plan.seeds):
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
