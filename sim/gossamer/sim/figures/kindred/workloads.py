"""Workloads that the paper does not have: how `kindred` fares where interests are otherwise.

Each is a study with `kindred` and the baseline side by side. `OTHERS` lists them with what they
are called in tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import attrs

from gossamer.sim.figures.common.points import Point
from gossamer.sim.figures.kindred.setup import (
    KINDRED,
    PER_ROUND,
    Plan,
    seeds_of,
    steady_point,
    warm_up_of,
    workload,
)
from gossamer.sim.figures.vinifera.studies import BASELINE, KINDS, RANDOM, ROUND_S, SKEWED
from gossamer.sim.studies.peers.inputs.changes import Drift, Turnover
from gossamer.sim.studies.peers.inputs.scenario import TOPICS as TOPIC_KIND
from gossamer.sim.studies.peers.inputs.scenario import Events

RANGES, TOPICS, SUBSCRIBERS = "ranges", "topics", "subscribers"
WIDTHS, ELSEWHERE, PUBLISHERS = "widths", "elsewhere", "publishers"
REPLACED, SHIFTED, MOVING_EVENTS, TURNOVER = "replaced", "shifted", "moving_events", "turnover"

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
    """

    study: str
    label: str
    kinds: tuple[str, ...] = KINDS
    places: tuple[float, ...] = (0,)


OTHERS: Final = (
    Other(study=RANGES, label="{x:g} unrelated ranges a node", places=(3, 8)),
    Other(study=TOPICS, label="eight of fifty topics a node", kinds=(TOPIC_KIND,)),
    Other(
        study=SUBSCRIBERS,
        label="60 % of the nodes want nothing; ranges at the others: {x:g}",
        places=(1, 3),
        kinds=(RANDOM,),
    ),
    Other(study=WIDTHS, label="widths over three decades"),
    Other(study=ELSEWHERE, label="events anywhere", kinds=(SKEWED,)),
    Other(study=PUBLISHERS, label="a hundredth of the nodes publishes, Zipf-like"),
    Other(study=REPLACED, label="a fifth replaces its range every ten minutes, ten times"),
    Other(study=SHIFTED, label="a fifth shifts its range every ten minutes, ten times"),
    Other(study=MOVING_EVENTS, label="events move by a tenth of the domain an hour"),
    Other(study=TURNOVER, label="half of the nodes replaced in an hour"),
)


def workload_points(plan: Plan) -> Iterator[Point]:
    """All of them."""
    for other in OTHERS:
        for x in other.places:
            for kind in other.kinds:
                for system in (KINDRED, BASELINE):
                    for seed in seeds_of(plan, plan.nodes, system):
                        fields = _fields(plan, other.study, kind, x)
                        yield steady_point(plan, other.study, system, kind, seed, x=x, **fields)


def _fields(plan: Plan, study: str, kind: str, x: float) -> Mapping[str, Any]:
    """The fields of a scenario in which a workload differs from the standard one."""
    if study in (REPLACED, SHIFTED, MOVING_EVENTS):
        return _drifting(plan, study)
    if study == TURNOVER:
        return {"turnover": Turnover(share=0.5), "nodes": 2 * plan.nodes}
    if study == PUBLISHERS:
        few = Events(
            per_round=PER_ROUND,
            warm_up_rounds=warm_up_of(plan.nodes),
            publishers=0.01,
            publisher_exponent=1.0,
        )
        return {"events": few}
    different: Mapping[str, Mapping[str, Any]] = {
        RANGES: {"per_node": int(x)},
        TOPICS: {"places": 50, "per_node": 8, "exponent": 1.0},
        SUBSCRIBERS: {"subscribers": 0.4, "per_node": int(x)},
        WIDTHS: {"width_decades": 3.0},
        ELSEWHERE: {"correlation": 0.0},
    }
    return {"subscriptions": workload(kind, **different[study])}


def _drifting(plan: Plan, study: str) -> Mapping[str, Any]:
    """As many events as elsewhere, over ten changes."""
    drifts = MappingProxyType(
        {
            REPLACED: Drift(every_s=_CHANGE_S, replaced=0.2),
            SHIFTED: Drift(every_s=_CHANGE_S, shifted=0.2, shift=0.01),
            MOVING_EVENTS: Drift(event_shift=0.1),
        }
    )
    warm_up = warm_up_of(plan.nodes)
    rounds = round(10 * _CHANGE_S / ROUND_S)
    per_round = plan.events / rounds
    return {
        "drift": drifts[study],
        "rounds": warm_up + rounds,
        "events": Events(per_round=per_round, warm_up_rounds=warm_up),
    }
