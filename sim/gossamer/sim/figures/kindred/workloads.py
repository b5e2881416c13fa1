"""Workloads that the paper does not have: how `kindred` fares where interests are otherwise.

Each is a study with all presets side by side. `OTHERS` lists them with what they
are called in tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import attrs

from gossamer.sim.figures.common.points import Point
from gossamer.sim.figures.kindred.setup import (
    PER_ROUND,
    SYSTEMS,
    Plan,
    seeds_of,
    steady_point,
    warm_up_of,
    workload,
)
from gossamer.sim.figures.vinifera.studies import KINDS, RANDOM, ROUND_S, SKEWED
from gossamer.sim.studies.peers.inputs.changes import Drift, Turnover
from gossamer.sim.studies.peers.inputs.scenario import TOPICS as TOPIC_KIND
from gossamer.sim.studies.peers.inputs.scenario import Events

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
