"""What is compared, how much of it is run, and the points that studies are made of.

The set-up is that of the Vinifera figures (`gossamer.sim.figures.vinifera.studies`): the same
widths, places, rates and warm-up, so that the values stand beside those of docs/figures.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import attrs

from gossamer.sim.figures.common.points import Point
from gossamer.sim.figures.vinifera.studies import (
    BASELINE,
    EXPONENT,
    KINDS,
    PAPER,
    PLACES,
    RESILIENT,
    ROOMY,
    ROOMY_LARGE,
    ROUND_S,
    SPREAD,
    VOLUME,
    Trace,
)
from gossamer.sim.figures.vinifera.studies import FULL as PAPER_FULL
from gossamer.sim.studies.peers.inputs.scenario import (
    Churn,
    Events,
    Scenario,
    Subscriptions,
    System,
)

KINDRED: Final = "kindred"
SYSTEMS: Final = (KINDRED, PAPER, RESILIENT, BASELINE)

STANDARD: Final = 1000
PER_ROUND: Final = 20
# From here on one round after another is needed until fingers reach every peer.
LARGE: Final = 5000
# Tables of so many nodes would not fit into memory otherwise; none has to merge an entry.
HUGE: Final = 30_000
ROOMY_HUGE: Final[Mapping[str, int]] = MappingProxyType(
    {"boxes_per_neighbour": 64, "routing_table_entries": 256}
)


@attrs.frozen(kw_only=True)
class Plan:
    """How much is run.

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

    seeds: tuple[int, ...]
    events: int
    nodes: int
    friends: tuple[int, ...]
    sizes: tuple[int, ...]
    larger: tuple[int, ...]
    attributes: tuple[int, ...]
    attribute_nodes: int
    rates: tuple[float, ...]
    rate_rounds: int
    churn_hours: tuple[float, float]
    bundled_hours: float
    month: bool
    silence: tuple[float, float] | None


FULL: Final = Plan(
    seeds=(1, 2, 3),
    events=2000,
    nodes=STANDARD,
    friends=(0, 4, 8),
    sizes=(300, 1000, 3000, 5000, 10_000),
    larger=(30_000, 100_000),
    attributes=(1, 2, 3, 5),
    attribute_nodes=500,
    rates=(0.5, 1.0, 2.0, 3.0, 5.0),
    rate_rounds=40,
    churn_hours=PAPER_FULL.churn_hours,
    bundled_hours=PAPER_FULL.bundled_hours,
    month=True,
    silence=(250.0, 256.0),
)
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


def seeds_of(plan: Plan, nodes: int, system: str = KINDRED) -> tuple[int, ...]:
    """The seeds of a point: with many nodes others than `kindred` have the first only."""
    most = LARGE if system != KINDRED else HUGE
    return plan.seeds if nodes < most else plan.seeds[:1]


def kinds_and_seeds(plan: Plan) -> Iterator[tuple[str, int]]:
    """What points of the standard size are run with."""
    for kind in KINDS:
        for seed in plan.seeds:
            yield kind, seed


def steady_point(
    plan: Plan,
    study: str,
    system: str,
    kind: str,
    seed: int,
    *,
    x: float = 0.0,
    nodes: int | None = None,
    settings: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Point:
    """A point without churn: the overlay settles, then `PER_ROUND` events a round."""
    size = plan.nodes if nodes is None else nodes
    warm_up = warm_up_of(size)
    standard: dict[str, Any] = {
        "nodes": size,
        "rounds": warm_up + -(-plan.events // PER_ROUND),
        "events": Events(per_round=PER_ROUND, warm_up_rounds=warm_up),
        "subscriptions": workload(kind),
    }
    room = ROOMY if size < LARGE else ROOMY_LARGE if size < HUGE else ROOMY_HUGE
    return any_point(
        study,
        system,
        kind,
        seed,
        x=x,
        settings={**room, **(settings or {})},
        **{**standard, **fields},
    )


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
    """A point of a study of a preset, or of `kindred` without one of its ideas."""
    chosen = System(name=system, settings=dict(settings))
    common = {
        "name": study,
        "seed": seed,
        "systems": (chosen,),
        "round_s": ROUND_S,
        "measure_every": 50,
    }
    scenario = Scenario(**{**common, **fields})
    return Point(study=study, system=system, kind=kind, x=float(x), scenario=scenario)
